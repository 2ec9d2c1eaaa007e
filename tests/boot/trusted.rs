//! A host whose administrator's policy requires a key starts the box that the key has signed, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use box_cache::{Attachment, Store};
use box_trust::BUNDLE_MEDIA_TYPE;
use testbed::prerequisites::{docker_registry, with_program};
use testbed::{DockerRegistry, Workspace};

use crate::scenario::{Scenario, Step, bake, hello_checkout, tools};

/// The configuration of a read-only registry with the boxes that were pushed on the host of the test. It logs each request.
const CONFIG: &str = "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: /registry\n  maintenance:\n    \
    readonly:\n      enabled: true\nhttp:\n  addr: 127.0.0.1:5000\n";

/// Starts the registry, configures boxlaunch to use HTTP without TLS for it, and writes the administrator's policy.
const SERVE: &str = r#"ifconfig lo 127.0.0.1 up; mkdir -p /tmp/config/boxbuild
printf '[registry."localhost:5000"]\nplain-http = true\n' >/tmp/config/boxbuild/registries.toml
mkdir -p /etc/boxbuild; chmod 755 /etc/boxbuild; cp /project/acme.pub /etc/boxbuild
printf '[[rule]]\nmatch = "localhost:5000/acme/*"\nkeys = ["acme.pub"]\n' >/etc/boxbuild/policy.toml
docker-registry serve /registry.yml >/tmp/served 2>&1 </dev/null &
until wget -qO- http://localhost:5000/v2/ >/tmp/version; do sleep 0.2; done; echo serving"#;

/// The repositories below `acme` whose box the policy refuses: without a signature, with one by another key, and with one by the
/// right key that was changed.
const REFUSED: [&str; 3] = ["unsigned", "other", "changed"];

/// What the host did.
struct Ran {
    steps: BTreeMap<String, Step>,
    /// The digest of the box.
    digest: String,
}

static RUN: LazyLock<Ran> = LazyLock::new(|| {
    let registry =
        DockerRegistry::open(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    let project = tempfile::tempdir().unwrap();
    let built = publish(project.path(), &registry.host());
    let config = project.path().join("registry.yml");
    fs::write(&config, CONFIG).unwrap();
    let mut scenario = Scenario::default().anew().script(20, "serve", SERVE);
    for name in REFUSED {
        let script = format!("boxlaunch run --json localhost:5000/acme/{name}:v1 -- echo ran");
        scenario = scenario.script(20, name, &with_variables(&script));
    }
    let kept = "find /tmp/store -type f | grep -E '/(blobs|boxes|attached)/'";
    let served = "cat /tmp/served";
    let signed = with_variables("boxlaunch run localhost:5000/acme/signed:v1 -- echo ran");
    let scenario = scenario
        .script(20, "kept", kept)
        .script(20, "before", served)
        .script(40, "signed", &signed);
    let scenario = scenario.script(20, "after", served);
    let server = docker_registry(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    let host = tools().host.clone().disk(registry.data(), "/registry");
    let host = host.file(config, "/registry.yml");
    let host = host.file(project.path().join("acme.pub"), "/project/acme.pub");
    let host = with_program(host, &server, "/bin/docker-registry").unwrap();
    Ran { steps: scenario.start(&host), ..built }
});

fn with_variables(script: &str) -> String {
    format!(
        "export BOXBUILD_STORE=/tmp/store XDG_CONFIG_HOME=/tmp/config HOME=/tmp BOXLAUNCH_STATE=/tmp/state; {script}"
    )
}

/// Builds a box, and pushes it to a repository for each case, each from its own store.
fn publish(project: &Path, host: &str) -> Ran {
    let config = project.join("registries.toml");
    fs::write(&config, format!("[registry.\"{host}\"]\nplain-http = true\n")).unwrap();
    let boxfile = hello_checkout(project);
    fs::write(project.join("Boxfile"), boxfile).unwrap();
    bake(&project.join("Boxfile"), &tools().programs.box_init, &project.join("hello.box"));
    let boxbuild = |store: &str, args: &[&str]| {
        let mut command = Command::new(&tools().programs.boxbuild);
        command.args(args).current_dir(project).env("BOXBUILD_STORE", project.join(store));
        let ran = command.env("BOXBUILD_REGISTRIES", &config).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    for key in ["acme", "stranger"] {
        boxbuild("keys", &["keygen", "-o", key]);
    }
    let push = |case: &str| {
        let reference = format!("{host}/acme/{case}:v1");
        boxbuild(case, &["push", "./hello.box", &reference]);
        reference
    };
    push("unsigned");
    for (case, key) in [("signed", "acme.key"), ("other", "stranger.key")] {
        let reference = push(case);
        boxbuild(case, &["sign", "./hello.box", "--key", key, "--push", &reference]);
    }
    boxbuild("file", &["sign", "./hello.box", "--key", "acme.key", "-o", "bundle.json"]);
    let bundle = changed(fs::read(project.join("bundle.json")).unwrap());
    let digest = box_layout::OpenBox::open(&project.join("hello.box")).unwrap().digest;
    let store = Store::open(&project.join("changed")).unwrap();
    store.attach(&digest, &Attachment::new(BUNDLE_MEDIA_TYPE, bundle)).unwrap();
    drop(store);
    push("changed");
    Ran { steps: BTreeMap::new(), digest: digest.to_string() }
}

/// Changes one byte in the middle of a bundle's signature, which stays base64.
fn changed(mut bundle: Vec<u8>) -> Vec<u8> {
    const START: &[u8] = b"\"sig\":\"";
    let start = bundle.windows(START.len()).position(|it| it == START).unwrap();
    let byte = &mut bundle[start + START.len() + 20];
    *byte = if *byte == b'A' { b'B' } else { b'A' };
    bundle
}

/// Returns the digests of the blobs that a registry was asked for, from its log.
fn blobs(log: &str) -> BTreeSet<&str> {
    let blobs = log.split("/blobs/").skip(1);
    blobs.map(|it| it.split(char::is_whitespace).next().unwrap()).collect()
}

fn what_the_policy_does_not_accept_is_refused_before_a_blob_is_fetched() {
    let Ran { steps, digest } = &*RUN;
    for (name, reason) in [
        ("unsigned", "the box has no such document at all"),
        ("other", "the bundle is signed with another key"),
        ("changed", "the signature does not match"),
    ] {
        let refused = &steps[name];
        let report = refused.json();
        assert_eq!((refused.status, &report["errors"][0]["code"]), (1, &"box-unsigned".into()));
        let help = report["errors"][0]["help"].as_str().unwrap();
        assert!(help.contains(reason), "{name}: {help}");
    }
    assert_eq!(steps["kept"].stdout, "", "nothing is in the store");
    let (before, after) = (&steps["before"].stdout, &steps["after"].stdout);
    for name in REFUSED {
        assert!(before.contains(&format!("/v2/acme/{name}/manifests/v1")), "{before}");
    }
    // The registry logs each request: those for the box's manifest, which has the digest that is signed, and for two bundles.
    let blobs = blobs(before);
    assert!(blobs.len() == 3 && blobs.contains(&**digest), "{before}");
    assert!(self::blobs(after).len() > 3, "{after}");
}

fn a_box_that_a_key_of_the_policy_has_signed_starts() {
    let signed = &RUN.steps["signed"];
    assert_eq!((signed.status, &*signed.stdout), (0, "ran\n"), "{signed:?}");
    assert!(signed.stderr.contains("as /etc/boxbuild/policy.toml:2 requires"), "{signed:?}");
}

tests![
    what_the_policy_does_not_accept_is_refused_before_a_blob_is_fetched,
    a_box_that_a_key_of_the_policy_has_signed_starts
];
