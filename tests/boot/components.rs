//! Declarations of components: an agent alone, its user, CPUs and socket on the host, each kind of health check, and namespaces
//! other than the default.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use testbed::prerequisites::{Package, packages, with_program};

use crate::scenario::{Scenario, Step, bake, tools};

/// An agent that serves its port until a request for `/cgi-bin/end`, and then exits with 9. Without a declaration, its health
/// check is `tcp`.
const ALONE: &str = r##"box "alone"
agent {
    image "oci:images/business"
    entrypoint "/bin/sh" "-c" #"""
        echo "user $(id -u):$(id -g), $(grep -c ^processor /proc/cpuinfo) CPUs"
        mkdir -p /tmp/www/cgi-bin
        printf '#!/bin/sh\ntouch /tmp/end\nprintf "\\nending\\n"\n' >/tmp/www/cgi-bin/end
        chmod +x /tmp/www/cgi-bin/end
        httpd -p 127.0.0.1:4088 -h /tmp/www
        until [ -e /tmp/end ]; do sleep 0.1; done
        exit 9
        """#
    user "1000:100"
    limits memory="64MiB" pids=32
}
vm cpus=2 memory="256MiB"
"##;

/// The components share all namespaces except the network. The agent is ready once it has written a file, which its health
/// check tests for.
const SHARED: &str = r##"box "shared"
agent {
    image "oci:images/business"
    entrypoint "/bin/sh" "-c" #"""
        mkdir /tmp/www
        echo from the agent >/tmp/www/index.html
        httpd -p 127.0.0.1:4088 -h /tmp/www
        sleep 0.4
        touch /tmp/ready
        exec sleep 1000
        """#
    health "exec" "/bin/test" "-e" "/tmp/ready"
    namespaces mount=#false pid=#false ipc=#false uts=#false net=#true
    limits memory="64MiB" pids=32
}
business {
    image "oci:images/business"
    namespaces mount=#false pid=#false ipc=#false uts=#false
    limits memory="64MiB" pids=32
}
vm cpus=1 memory="256MiB"
"##;

/// An agent without a port and a health check, which exits at once with 7.
const UNCHECKED: &str = r#"box "unchecked"
agent {
    image "oci:images/business"
    entrypoint "/bin/sh" "-c" "echo to stdout; echo to stderr >&2; exit 7"
    health "none"
    limits memory="64MiB" pids=32
}
vm cpus=1 memory="256MiB"
"#;

/// Runs a box without a command, and makes its agent exit by a request through the agent's socket on the host.
const SERVE: &str = r#"
socket=/tmp/alone.sock
rm -f $socket
boxlaunch run /alone --agent-socket $socket &
run=$!
trap "kill $run" TERM
until [ -S $socket ] && curl --silent --unix-socket $socket http://localhost/cgi-bin/end; do sleep 0.1; done
stat -c 'mode %a' $socket
wait $run
status=$?
[ -e $socket ] || echo the socket is gone
exit $status
"#;

/// Runs a box without a command, and stops it with SIGTERM. SIGINT would not work: background jobs of a shell ignore it.
const STOP: &str = r#"
rm -f /tmp/stop.log
boxlaunch run /alone 2>/tmp/stop.log &
run=$!
trap "kill $run" TERM
until grep -sq 'ready after' /tmp/stop.log; do sleep 0.1; done
kill -TERM $run
wait $run
"#;

/// In the business component: prints the namespaces, compares them with those of the agent's process, and tries to reach the
/// agent on loopback. Meanwhile the host reaches the agent through the socket.
const LOOK: &str = r#"
socket=/tmp/shared.sock
rm -f $socket
boxlaunch run /shared --budget report --agent-socket $socket -- sh -c '
    for each in uts ipc pid; do readlink /proc/self/ns/$each; done
    agent=$(pidof httpd)
    [ "$(readlink /proc/self/ns/mnt)" = "$(readlink /proc/$agent/ns/mnt)" ] && echo same mounts
    [ "$(readlink /proc/self/ns/net)" = "$(readlink /proc/$agent/ns/net)" ] || echo another network
    wget -qO- http://127.0.0.1:4088/ || echo no agent on loopback
    sleep 1' &
run=$!
trap "kill $run" TERM
until [ -S $socket ] && curl --silent --unix-socket $socket http://localhost/; do sleep 0.1; done
wait $run
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    packages(&[Package::Curl], &mut |line| println!("{line}")).unwrap();
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    testbed::hello::write_images(&tools.programs.hello_agent, &path("images")).unwrap();
    let curl = testbed::program::find("curl").unwrap();
    let mut host = with_program(tools.host.clone(), &curl, "/bin/curl").unwrap();
    for (name, boxfile) in [("alone", ALONE), ("shared", SHARED), ("unchecked", UNCHECKED)] {
        fs::write(path(name), boxfile).unwrap();
        let bundle = path(&format!("{name}.box"));
        bake(&path(name), &tools.programs.box_init, &bundle);
        host = host.file(bundle, format!("/{name}"));
    }
    for (name, script) in [("serve", SERVE), ("stop", STOP), ("look", LOOK)] {
        fs::write(path(name), script).unwrap();
        host = host.file(path(name), Path::new("/").join(name).to_string_lossy());
    }
    Scenario::default()
        .step("serve", "sh /serve")
        .step("stop", "sh /stop")
        .step("look", "sh /look")
        .step("unchecked", "boxlaunch run /unchecked")
        .start(&host)
});

fn lines(step: &Step) -> Vec<&str> {
    step.stdout.lines().collect()
}

fn an_agent_alone_is_reached_from_the_host_and_its_status_is_passed_on() {
    let step = &STEPS["serve"];
    assert_eq!(step.status, 9, "{step:?}");
    let expected = ["user 1000:100, 2 CPUs", "ending", "mode 600", "the socket is gone"];
    assert_eq!(lines(step), expected, "{step:?}");
    assert!(step.stderr.contains("the agent's socket is /tmp/alone.sock"), "{step:?}");
}

fn a_signal_stops_the_box() {
    let step = &STEPS["stop"];
    assert_eq!(step.status, 128 + 15, "{step:?}");
}

/// Without namespaces of its own, a component is in the guest's initial ones, whose fixed numbers are in
/// `include/linux/proc_ns.h`.
fn namespaces_are_shared_where_the_boxfile_says_so() {
    let step = &STEPS["look"];
    assert_eq!(step.status, 0, "{step:?}");
    let mut lines = lines(step);
    // The line of the host's request can be anywhere, because the request and the command run at the same time.
    let answer = lines.iter().position(|line| *line == "from the agent").expect("an answer");
    lines.remove(answer);
    let first = ["uts:[4026531838]", "ipc:[4026531839]", "pid:[4026531836]"];
    assert_eq!(lines[..3], first, "{step:?}");
    assert_eq!(lines[3..], ["same mounts", "another network", "no agent on loopback"], "{step:?}");
}

fn a_program_says_when_the_agent_is_ready() {
    let step = &STEPS["look"];
    let row = step.stderr.lines().find_map(|line| line.strip_prefix("ready ")).expect("a row");
    let taken: Vec<&str> = row.split_whitespace().collect();
    let ["-", taken, "ms"] = taken[..] else { panic!("{step:?}") };
    let taken: f64 = taken.parse().unwrap();
    assert!((400.0..2000.0).contains(&taken), "the file is written after 400 ms: {step:?}");
}

fn an_agent_without_a_health_check_may_end_at_once() {
    let step = &STEPS["unchecked"];
    assert_eq!((step.status, step.stdout.as_str()), (7, "to stdout\n"), "{step:?}");
    assert!(step.stderr.contains("to stderr\n"), "{step:?}");
}

tests![
    an_agent_alone_is_reached_from_the_host_and_its_status_is_passed_on,
    a_signal_stops_the_box,
    namespaces_are_shared_where_the_boxfile_says_so,
    a_program_says_when_the_agent_is_ready,
    an_agent_without_a_health_check_may_end_at_once
];
