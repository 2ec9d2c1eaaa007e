//! Unix sockets of the host to which programs of a box connect. `peers` is the server on the host and the client in the box.

use std::fs;

use crate::scenario::{Scenario, UNHURRIED, bake, hello_checkout, sleeping, tools};

const DECLARED: &str = "share \"own\" guest=\"/run/own.sock\" component=\"business\"\n";
/// Each component has its own network namespace, and no network. The server echoes what it gets after the client has ended its
/// direction.
const SOCKETS: &str = r#"
exec 2>&1; serve() { peers --serve-socket /$1.sock >/dev/null & eval $1=$!; until [ -S /$1.sock ]; do sleep 0.1; done; }
serve echo; serve own; serve docker
boxlaunch run -d --name one -v /echo.sock:/deep/echo.sock --share own=/own.sock /sockets 2>&1 | grep -v verified
inside() { boxlaunch exec --in "$@"; }
inside agent one -- sh -c 'echo of the agent | /peers --socket /deep/echo.sock; ls -l /deep/echo.sock | cut -c1-10; test -S /run/own.sock || echo not its own'
inside business one -- sh -c 'echo of business | /peers --socket /run/own.sock; head -c 3000000 /dev/zero | /peers --socket /deep/echo.sock | wc -c; ls /sys/class/net'
kill $own; wait $own; inside business one -- sh -c 'for i in 1 2; do echo unheard | /peers --socket /run/own.sock; done; echo closed'
rm /own.sock; serve own; inside business one -- sh -c 'echo heard again | /peers --socket /run/own.sock'
boxlaunch network one | grep own; (timeout 2 boxlaunch events --since 100s | cut -d' ' -f2- | grep connection) 2>/dev/null
boxlaunch stop one; boxlaunch start one 2>/dev/null; inside agent one -- sh -c 'echo after a start | /peers --socket /deep/echo.sock'
boxlaunch inspect one | grep directories
of_run=$(grep -o '/.*boxlaunch-[0-9a-f]*/[^/]*$' /proc/net/unix | head -n 1)
run() { boxlaunch run -q --share own=/own.sock "$@" /sockets -- true; }
run -v $of_run:/x 2>&1 | sed 's/boxlaunch-[0-9a-f]*/boxlaunch-RUN/g'; run -v /echo.sock:/x:rw
run -v /docker.sock:/x; boxlaunch rm -f one; kill $echo $own $docker
"#;

#[test]
#[ignore = "one of the longer boots"]
fn programs_of_a_box_reach_the_sockets_that_its_start_gives() {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    hello_checkout(dir.path());
    fs::copy(&tools.programs.peers, at("peers")).unwrap();
    let tooled = "namespaces net=#true\n    file \"peers\" to=\"/peers\" mode=\"0755\"\n    limits";
    let text = sleeping("sockets").replace("limits", tooled) + DECLARED;
    fs::write(at("Boxfile"), text).unwrap();
    bake(&at("Boxfile"), &tools.programs.box_init, &at("sockets"));
    let host = tools.host.clone().file(&tools.programs.peers, "/bin/peers");
    let host = host.file(at("sockets"), "/sockets");
    let steps = Scenario::default().script(UNHURRIED, "sockets", SOCKETS).start(&host);
    insta::assert_snapshot!(steps["sockets"].stdout, @"
    boxlaunch: /run/own.sock leads to the socket /own.sock
    boxlaunch: /deep/echo.sock leads to the socket /echo.sock
    one
    of the agent
    srw-rw-rw-
    not its own
    of business
    3000000
    lo
    Terminated
    closed
    heard again
        /run/own.sock: Connection refused (os error 111)
    connection one business /run/own.sock failed: Connection refused (os error 111)
    one
    one
    after a start
    directories  /own.sock at /run/own.sock (socket), /echo.sock at /deep/echo.sock (socket)
    error: a box must not connect to /tmp/boxlaunch-RUN/supervisor.sock: boxlaunch keeps its files in /tmp/boxlaunch-RUN
      = help: share a socket of another program
    error: /echo.sock is a socket, which is neither read-only nor writable
      = help: share it without `rw`: a box sends and receives through it
    boxlaunch: warning: whoever connects to /docker.sock can start any program on this host as root, and the box can connect to it
    one
    ");
}
