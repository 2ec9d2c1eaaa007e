//! `run` and `pull` fetch boxes from a registry to a host without a store. A box that the store has is not fetched again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

use testbed::hello::TAG;
use testbed::prerequisites::{docker_registry, with_program};
use testbed::{DockerRegistry, Workspace};

use crate::page;
use crate::scenario::{Scenario, Step, hello_checkout, tools};

/// The configuration of a read-only registry with the boxes that were pushed on the host of the test.
const CONFIG: &str = "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: /registry\n  maintenance:\n    \
    readonly:\n      enabled: true\nhttp:\n  addr: 127.0.0.1:5000\n";

/// Starts the registry, and configures boxlaunch to use HTTP without TLS for it.
const SERVE: &str = r#"ifconfig lo 127.0.0.1 up; mkdir -p /tmp/config/boxbuild
printf '[registry."localhost:5000"]\nplain-http = true\n' >/tmp/config/boxbuild/registries.toml
docker-registry serve /registry.yml >/tmp/served 2>&1 </dev/null &
until wget -qO- http://localhost:5000/v2/ >/tmp/version; do sleep 0.2; done; echo serving"#;

/// A user starts a box from root's store, `BOXBUILD_STORE_RO`, after the registry has stopped. Prints the differences in that
/// store, or `unchanged`.
const BASE: &str = "mkdir -m 755 /tmp/base; boxlaunch save localhost:5000/acme/hello:v1 -o - | BOXBUILD_STORE=/tmp/base boxlaunch load -q -
state() { find /tmp/base ! -path '*/sessions*' | sort | xargs stat -c '%n %a %Y %s'; }; state >/tmp/before
echo 'me:x:1000:1000::/tmp/home:/bin/sh' >>/etc/passwd; echo 'me:x:1000:' >>/etc/group; echo 'kvm:x:104:me' >>/etc/group
mkdir -m 755 /tmp/home; chown 1000:1000 /tmp/home
su me -c 'export HOME=/tmp/home XDG_RUNTIME_DIR=/tmp/home BOXBUILD_STORE_RO=/tmp/base; unset BOXBUILD_STORE BOXLAUNCH_STATE; cd
boxlaunch images -q; boxlaunch run -q --jail best-effort localhost:5000/acme/hello:v1 -- echo ran; ls -A .cache/boxbuild/blobs 2>/dev/null'
state | diff /tmp/before - && echo unchanged";

/// Uses a separate store. boxbuild lies beside boxlaunch.
const IMAGE: &str =
    "export BOXBUILD_STORE=/tmp/image BOXBUILD_INIT=/box-init BOXBUILD_KERNEL=/kernel; cd /tmp
run() { boxlaunch run -q --image localhost:5000/acme/base:3.12 \"$@\"; }";
/// The first run of an image asks the registry.
const IMAGE_FIRST: &str = "boxlaunch run --image localhost:5000/acme/base:3.12 -w /tmp -e A=1 -- sh -c 'echo ran in $PWD with $A'
boxlaunch images -q; ls *.box Boxfile* 2>/dev/null";
/// Later runs do not ask the registry, which has stopped. A detached one is as any other box.
const IMAGE_AGAIN: &str = "run -d --name i; boxlaunch exec i cat /proc/1/comm; boxlaunch stop i; run --pull never --json -- true | grep -c oom_killed
run --pull always -- true; echo $?; chmod 777 /bin/boxbuild; run -- true; echo $?; chmod 755 /bin/boxbuild";

/// The page's `bash` blocks, which build and push, run on the host of the test. Its `console` blocks run in the virtual host.
const PAGE: &str = include_str!("../../docs/shipping.md");
/// The registry that the page uses. A local one replaces it.
const REGISTRY: &str = "ghcr.io";

/// The box digest and the digest of the registry's manifest, as `boxbuild build --push --json` prints them.
type Digests = [String; 2];

static RUN: LazyLock<(Digests, BTreeMap<String, Step>)> = LazyLock::new(|| {
    let registry =
        DockerRegistry::open(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    let project = tempfile::tempdir().unwrap();
    let boxfile = hello_checkout(project.path());
    fs::write(project.path().join("Boxfile"), boxfile).unwrap();
    let config = project.path().join("registries.toml");
    fs::write(&config, format!("[registry.\"{}\"]\nplain-http = true\n", registry.host())).unwrap();
    let digests = build(project.path(), &config, &registry.host());
    registry.push(&project.path().join("images/business"), TAG, "acme/base:3.12").unwrap();
    let config = project.path().join("registry.yml");
    fs::write(&config, CONFIG).unwrap();
    let mut scenario = Scenario::default().script(20, "serve", SERVE);
    for (name, script) in [
        ("dry", "boxlaunch pull localhost:5000/acme/hello:v1 --dry-run; boxlaunch images -aq"),
        (
            "other",
            "boxlaunch run -q localhost:5000/acme/hello:v1 --expect $OTHER; boxlaunch images -aq",
        ),
        (
            "none",
            "boxlaunch run localhost:5000/acme/hello:v1 --pull never; boxlaunch run localhost:5000/none:v1 -- true",
        ),
        (
            "detached",
            "boxlaunch run -q -d --name a localhost:5000/acme/hello@$REGISTRY; boxlaunch exec a echo ran; boxlaunch stop a",
        ),
        (
            "pull",
            "boxlaunch pull localhost:5000/acme/hello:v1; boxlaunch run -q --pull always localhost:5000/acme/hello:v1 -- echo ran",
        ),
        ("page", &page_script()),
        ("image", &format!("{IMAGE}; {IMAGE_FIRST}")),
        ("stop", "killall docker-registry"),
        ("image-again", &format!("{IMAGE}; {IMAGE_AGAIN}")),
        (
            "again",
            "boxlaunch run -q localhost:5000/acme/hello:v1@$REGISTRY -- echo ran; boxlaunch run --max-memory 1 localhost:5000/acme/hello:v1@$BOX",
        ),
        ("base", BASE),
        ("gone", "boxlaunch run -q --pull always --json localhost:5000/acme/hello:v1 -- true"),
    ] {
        let script = script.replace("$OTHER", &format!("sha256:{}", "7".repeat(64)));
        let script = script.replace("$BOX", &digests[0]).replace("$REGISTRY", &digests[1]);
        let variables = "export BOXBUILD_STORE=/tmp/store XDG_CONFIG_HOME=/tmp/config HOME=/tmp";
        scenario = scenario.script(120, name, &format!("{variables}; {script}"));
    }
    let server = docker_registry(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    let host = tools().host.clone().for_guest(2560).disk(registry.data(), "/registry");
    let host = host
        .file(config, "/registry.yml")
        .file(project.path().join("hello.tar"), "/project/hello.tar");
    let host = with_program(host, &server, "/bin/docker-registry").unwrap();
    let host = with_program(host, &tools().programs.boxbuild, "/bin/boxbuild").unwrap();
    let host = host.file(&tools().programs.box_init, "/box-init").file(&tools().kernel, "/kernel");
    (digests, scenario.start(&host))
});

/// Builds and pushes boxes with the page's `bash` blocks, and returns the digests of the first box.
fn build(project: &Path, config: &Path, host: &str) -> Digests {
    let programs = &tools().programs;
    let run = |line: &str| {
        let line = line.replace(REGISTRY, host).replace("boxbuild ", "boxbuild --quiet ");
        let mut shell = Command::new("sh");
        shell.args(["-ec", &format!("boxbuild() {{ {:?} \"$@\"; }}; {line}", programs.boxbuild)]);
        shell.env("BOXBUILD_STORE", project.join("store")).env("BOXBUILD_REGISTRIES", config);
        shell.env("BOXBUILD_INIT", &programs.box_init).env("BOXBUILD_KERNEL", &tools().kernel);
        shell.current_dir(project).output().unwrap()
    };
    let lines = page::blocks(PAGE, "bash");
    let (first, others) = lines.split_first().unwrap();
    assert_eq!((*first, others.len()), ("boxbuild build --push ghcr.io/acme/hello:v1", 4));
    let digests = digests(&run(&format!("{first} --json")));
    for line in others {
        let ran = run(line);
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    digests
}

fn digests(built: &Output) -> Digests {
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let report: serde_json::Value = serde_json::from_slice(&built.stdout).unwrap();
    ["box", "registry_digest"].map(|it| report["pushed"][it].as_str().unwrap().to_owned())
}

/// Returns a script of the page's `console` blocks, with a separate store.
fn page_script() -> String {
    let before = "export BOXBUILD_STORE=/tmp/page/store; cp /project/hello.tar .";
    page::script(&PAGE.replace(REGISTRY, "localhost:5000"), before)
}

fn step(name: &str) -> &'static Step {
    &RUN.1[name]
}

fn a_box_of_a_registry_is_fetched_and_starts() {
    // What the page shows of its first run is checked below.
    assert!(step("page").stderr.contains("fetching "), "{:?}", step("page"));
    let detached = step("detached");
    assert_eq!(detached.stdout, "a\nran\na\n", "{detached:?}");
}

fn what_the_store_has_needs_no_registry() {
    let pull = step("pull");
    assert_eq!(pull.stdout, format!("{}\nran\n", RUN.0[0]), "{pull:?}");
    assert!(pull.stderr.contains("blobs are in the store"), "{pull:?}");
    let again = step("again");
    assert_eq!(again.stdout, "ran\n", "{again:?}");
    assert!(again.stderr.contains("which is more than the maximum of 1 MiB"), "{again:?}");
    let gone = step("gone");
    assert!(gone.stdout.contains("\"server-unreachable\""), "{gone:?}");
}

fn a_command_runs_in_an_image_and_the_registry_is_asked_once() {
    let first = step("image");
    assert_eq!(first.stdout, "ran in /tmp with 1\nlocalhost-5000-acme-base-3-12\n", "{first:?}");
    assert!(first.stderr.contains("built: localhost-5000-acme-base-3-12 (rootfs "), "{first:?}");
    assert!(!first.stderr.contains("from the store"), "{first:?}");
    let again = step("image-again");
    assert_eq!(again.stdout, "i\nbox-holder\ni\n1\n1\n2\n", "{again:?}");
    let refused =
        "error: boxbuild is not started: /bin/boxbuild: everybody can write to /bin/boxbuild";
    assert!(again.stderr.contains("Connection refused"), "{again:?}");
    assert!(again.stderr.contains(refused), "{again:?}");
}

fn the_store_of_the_machine_serves_its_users_and_is_not_written_to() {
    let base = step("base");
    let box_digest = &RUN.0[0];
    let expected = format!("{box_digest}\nlocalhost:5000/acme/hello:v1\nran\nunchanged\n");
    assert_eq!(base.stdout, expected, "{base:?}");
}

fn the_commands_of_the_page_print_what_it_shows() {
    page::assert_page(&PAGE.replace(REGISTRY, "localhost:5000"), step("page"));
}

fn nothing_is_fetched_that_is_not_wanted() {
    let dry = step("dry");
    assert_eq!(dry.stdout, format!("{}\n", RUN.0[0]), "{dry:?}");
    assert!(dry.stderr.starts_with("would fetch "), "{dry:?}");
    let other = step("other");
    assert!(other.stdout.is_empty() && other.stderr.contains("was asked for"), "{other:?}");
    let none = step("none");
    assert!(none.stderr.contains("no box that was pulled as"), "{none:?}");
    assert!(none.stderr.contains("has no"), "{none:?}");
}

tests![
    a_box_of_a_registry_is_fetched_and_starts,
    what_the_store_has_needs_no_registry,
    a_command_runs_in_an_image_and_the_registry_is_asked_once,
    the_store_of_the_machine_serves_its_users_and_is_not_written_to,
    the_commands_of_the_page_print_what_it_shows,
    nothing_is_fetched_that_is_not_wanted
];
