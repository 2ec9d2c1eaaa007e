//! Boxes as services of Debian's systemd, which the units of docs/fleet.md update. systemd is process 1 of a PID namespace of the
//! virtual host, so that a power cut of its host takes no new boot of the virtual host.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use testbed::debian::SystemdTree;
use testbed::prerequisites::{docker_registry, with_program};
use testbed::{DockerRegistry, Workspace};

use crate::scenario::{Scenario, Step, UNHURRIED, hello_checkout, tools};

/// The configuration of a registry with the boxes that were pushed on the host of the test.
const CONFIG: &str = "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: /tmp/registry\n  maintenance:\n    \
    readonly:\n      enabled: true\nhttp:\n  addr: 127.0.0.1:5000\n";
/// The scripts of the virtual host: `host.sh`, which each step sources, and `init.sh`.
const SCRIPTS: &str = "tests/boot/fleet";
const UNITS: &str = "launcher/systemd";

/// The host starts, and so does the box of its service.
const BOOT: &str = r#"
ifconfig lo 127.0.0.1 up; mkdir /local/bin; cp -L /bin/boxlaunch /local/bin/
cp -r /registry /tmp/registry; docker-registry serve /registry.yml >/tmp/served 2>&1 </dev/null &
mkdir -p /keep; cp -a /debian/etc /debian/var /keep/; cp /etc/hosts /keep/etc/hosts; mkdir -p /keep/etc/boxbuild
for unit in getty@ console-getty getty-static; do ln -s /dev/null /keep/etc/systemd/system/$unit.service; done
printf '[registry."localhost:5000"]\nplain-http = true\n' >/keep/etc/boxbuild/registries.toml
configure hello "-p 8080:4088 --startup-timeout 3"
boot; state hello; get 8080; groups hello
in_host systemd-analyze verify --man=no $(ls /local/lib/systemd/system | sed s,^,$units/,) 2>&1; in_host systemctl --failed --no-legend | cat
"#;
/// The timer elapses while a client connects as often as it can, and then its service is started once more.
const UPDATED: &str = r#"
release v2; while [ ! -e /tmp/done ]; do get 8080; usleep 20000; done >/tmp/answers 2>&1 & clients=$!
timer=/keep/etc/systemd/system/boxbuild-update@hello.timer.d; mkdir -p $timer
printf '[Timer]\nOnCalendar=\nOnActiveSec=1\nRandomizedDelaySec=0\nAccuracySec=1us\n' >$timer/now.conf
in_host systemctl daemon-reload; in_host systemctl start boxbuild-update@hello.timer
until_ "get 8080" v2 >/dev/null; usleep 300000; touch /tmp/done; wait $clients; uniq /tmp/answers; state hello; groups hello
release v3; update hello; get 8080; said hello; state hello; groups hello
"#;
/// The new box does not become ready, and is not tried again.
const REFUSED: &str = r#"
was=$(main hello); release bad; update hello; get 8080; said hello 2; state hello
update hello; said hello; get 8080; state hello; [ $was = $(main hello) ] && echo the same process
in_host systemctl is-failed boxbuild-update@hello
"#;
/// The new box asks for a host, and is not started.
const ASKED: &str = r#"
release wider; update hello; get 8080; in_host journalctl --no-pager -o cat -u boxbuild@hello | grep -c 'network allow: - '
"#;
/// The supervisor is killed, and then the agent.
const RESTARTED: &str = r#"
in_host systemctl kill -s KILL --kill-who=main boxbuild@hello; until_ "state hello" "active running success 1 "; get 8080
in_host boxlaunch exec --in agent hello killall -KILL httpd; until_ "state hello" "active running success 2 "; get 8080
"#;
/// A box that was ready fails after each start, so the service waits for its next start most of the time. `update` by hand would end
/// the service.
const FAILING: &str = r#"
release failing; update hello; until_ "get 8080" refused >/dev/null; in_host systemctl is-active boxbuild@hello | sed 's/^active$/activating/'
release v3; update hello; until_ "get 8080" v3; in_host systemctl is-active boxbuild@hello
in_host boxlaunch update hello localhost:5000/acme/hello:v2 2>&1; get 8080
"#;
/// The power of the host is cut. The registry still has the bad box under the tag.
const REBOOTED: &str = r"cut; boot; state hello; get 8080";
/// A box with a volume is stopped first.
const VOLUME: &str = r#"
release v1; configure data "--volume data:/data -p 8081:4088 --startup-timeout 3"; in_host systemctl daemon-reload
in_host systemctl start boxbuild@data; state data; get 8081; in_host boxlaunch exec data -- sh -c 'echo kept >/data/file'
release v2; update data; get 8081; said data; state data; in_host boxlaunch exec data cat /data/file; groups data
release bad; update data; get 8081; said data; state data; in_host boxlaunch exec data cat /data/file
"#;
/// The registry is gone, and then the boxes.
const STOPPED: &str = r#"
killall docker-registry; update data; said data; state data; in_host systemctl restart boxbuild@hello; state hello; get 8080
in_host systemctl stop boxbuild@data boxbuild@hello; state data; state hello; get 8080; in_host boxlaunch ps -a -n
"#;

/// The Boxfile of an agent that runs `script`, and is ready when its port accepts connections.
fn boxfile(script: &str) -> String {
    format!(
        r##"box "hello"
agent {{
    image "oci:images/business"
    entrypoint "/bin/sh" "-c" #"{script}"#
    port 4088
    health "tcp"
    limits memory="64MiB" pids=64
}}
vm cpus=1 memory="192MiB"
"##
    )
}

/// The network of the box `wider`.
const WIDER: &str = "network \"filtered\" { allow \"a.example\"; }\n";

/// Builds and pushes a box for each tag of `acme/hello`. `stable` is `v1` first, `bad` is never ready, `wider` may reach a host,
/// and `failing` ends after it was ready.
fn push_all(project: &Path, host: &str) {
    drop(hello_checkout(project));
    let config = project.join("registries.toml");
    fs::write(&config, format!("[registry.\"{host}\"]\nplain-http = true\n")).unwrap();
    let serving = |version: &str| {
        format!(
            "mkdir -p /tmp/www; echo {version} >/tmp/www/index.html; exec httpd -f -p 127.0.0.1:4088 -h /tmp/www"
        )
    };
    let good = [("v1", "v1"), ("stable", "v1"), ("v2", "v2"), ("v3", "v3"), ("wider", "wider")];
    let good = good.map(|(tag, version)| (tag, serving(version)));
    let failing = "httpd -p 127.0.0.1:4088 -h /tmp; sleep 2; exit 3";
    let other =
        [("bad", "exec sleep 1000"), ("failing", failing)].map(|(tag, it)| (tag, it.to_owned()));
    for (tag, script) in good.into_iter().chain(other) {
        let network = if tag == "wider" { WIDER } else { "" };
        fs::write(project.join("Boxfile"), boxfile(&script) + network).unwrap();
        let programs = &tools().programs;
        let mut build = programs.box_build(&programs.box_init, &tools().kernel);
        build.args(["--quiet", "--push", &format!("{host}/acme/hello:{tag}")]);
        build.env("BOXBUILD_STORE", project.join("store")).env("BOXBUILD_REGISTRIES", &config);
        let built = build.current_dir(project).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
}

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let (workspace, say) = (Workspace::find(), &mut |line: &str| println!("{line}"));
    let registry = DockerRegistry::open(&workspace, say).unwrap();
    let project = tempfile::tempdir().unwrap();
    push_all(project.path(), &registry.host());
    let config = project.path().join("registry.yml");
    fs::write(&config, CONFIG).unwrap();
    let server = docker_registry(&workspace, say).unwrap();
    let debian = SystemdTree::make(&workspace, say).unwrap();
    let host = tools().host.clone().memory(2560);
    let host = host.disk(registry.data(), "/registry").disk(debian.0, "/debian");
    let host = host.file(config, "/registry.yml").file(workspace.path(SCRIPTS), "/fleet");
    let host = host.file(workspace.path(UNITS), "/local/lib/systemd/system");
    let host = with_program(host, &server, "/bin/docker-registry").unwrap();
    let scripts = [
        ("boot", BOOT),
        ("updated", UPDATED),
        ("refused", REFUSED),
        ("asked", ASKED),
        ("restarted", RESTARTED),
        ("failing", FAILING),
        ("rebooted", REBOOTED),
        ("volume", VOLUME),
        ("stopped", STOPPED),
    ];
    let scenario = scripts.into_iter().fold(Scenario::default(), |scenario, (name, script)| {
        scenario.script(UNHURRIED, name, &format!(". /fleet/host.sh\n{script}"))
    });
    scenario.start(&host)
});

fn a_host_starts_its_box_and_the_box_that_was_good_after_a_power_cut() {
    insta::assert_snapshot!(STEPS["boot"].stdout);
    insta::assert_snapshot!("rebooted", STEPS["rebooted"].stdout);
}

fn the_timer_updates_a_box_without_a_gap() {
    insta::assert_snapshot!(STEPS["updated"].stdout);
}

fn a_box_that_is_not_ready_leaves_the_service_as_it_was() {
    insta::assert_snapshot!(STEPS["refused"].stdout);
}

fn a_box_that_asks_for_more_is_not_started_by_the_timer() {
    assert_eq!(STEPS["asked"].stdout, "update: 1\nv3\n1\n");
}

fn a_box_that_fails_is_started_again() {
    insta::assert_snapshot!(STEPS["restarted"].stdout);
}

fn a_service_that_fails_again_and_again_gets_the_next_version() {
    insta::assert_snapshot!("failing", STEPS["failing"].stdout);
}

fn a_box_with_a_volume_comes_back_with_its_data() {
    insta::assert_snapshot!(STEPS["volume"].stdout);
}

fn without_the_registry_boxes_start_and_stop() {
    insta::assert_snapshot!(STEPS["stopped"].stdout);
}

fn the_page_shows_the_units() {
    let page = include_str!("../../docs/fleet.md");
    for unit in fs::read_dir(Workspace::find().path(UNITS)).unwrap() {
        let unit = unit.unwrap();
        let (name, text) = (unit.file_name(), fs::read_to_string(unit.path()).unwrap());
        let shown = format!("`{}`:\n\n```ini\n{text}```\n", name.to_str().unwrap());
        assert!(page.contains(&shown), "{shown}");
    }
}

tests![
    a_host_starts_its_box_and_the_box_that_was_good_after_a_power_cut,
    the_timer_updates_a_box_without_a_gap,
    a_box_that_is_not_ready_leaves_the_service_as_it_was,
    a_box_that_asks_for_more_is_not_started_by_the_timer,
    a_box_that_fails_is_started_again,
    a_service_that_fails_again_and_again_gets_the_next_version,
    a_box_with_a_volume_comes_back_with_its_data,
    without_the_registry_boxes_start_and_stop,
    the_page_shows_the_units
];
