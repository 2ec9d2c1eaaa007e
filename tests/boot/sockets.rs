//! What boxes reach through the host: its Unix sockets, HTTP APIs whose credentials it adds, and the SSH agent of its user. `peers` is the
//! server on the host, and the client of sockets in the box.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::page::{self, assert_page, blocks};
use crate::scenario::{Scenario, Step, UNHURRIED, bake, hello_checkout, sleeping, tools};

/// The page's `kdl` block is the service of the box `services`.
const PAGE: &str = include_str!("../../docs/services.md");
/// Starts the API of the page.
const API: &str = "ifconfig lo 127.0.0.1 up; peers --serve-api 8443 >/tmp/api.log & api=$!; trap 'kill $api' EXIT; until grep -q ready /tmp/api.log; do sleep 0.1; done
export SSL_CERT_FILE=/ca.pem KEY=sk-c4n4ry1";

/// The page's `kdl` block is the declaration of the box `ssh`.
const AGENT_PAGE: &str = include_str!("../../docs/ssh-agent.md");
/// Starts the SSH agent of the page.
const AGENT: &str = "peers --serve-agent /page.sock >/dev/null & agent=$!; trap 'kill $agent' EXIT; until [ -S /page.sock ]; do sleep 0.1; done
export SSH_AUTH_SOCK=/page.sock";

const DECLARED: &str = "share \"own\" guest=\"/run/own.sock\" component=\"business\"\n";
/// Each component has its own network namespace, and no network. The server echoes what it gets after the client has ended its
/// direction.
const SOCKETS: &str = r#"
exec 2>&1; serve() { peers --serve-socket /$1.sock >/dev/null & eval $1=$!; until [ -S /$1.sock ]; do sleep 0.1; done; }
serve echo; serve own
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
run -v $of_run:/x 2>&1 | sed 's/boxlaunch-[0-9a-f]*/boxlaunch-RUN/g'; run -v /echo.sock:/x:rw; boxlaunch rm -f one; kill $echo $own
"#;

/// Uses the API of the page from a box without a network device, and searches for the credential in the memory of the VM. The box is the
/// one that the page has stopped.
const SERVICES: &str = r#"
exec 2>&1; printf %s $KEY >/tmp/key; boxlaunch inspect /services | grep -E '(service|secret) '
boxlaunch run -q --secret MODEL_KEY=file:/tmp/key /services -- true; boxlaunch run -q --secret MODEL_KEY=file:/tmp/key --network-local 10.0.0.1 /services -- true
start() { boxlaunch run -q -d --name "$1" --secret MODEL_KEY=file:/tmp/key "$2" "$3" /services; }; cd /tmp/page; boxlaunch start agent 2>/dev/null
inside() { boxlaunch exec --in "$@"; }
inside agent agent -- sh -c 'wget -qO- --header "Authorization: Bearer own" --header "X-Own: 1" $MODEL_URL/echo | tr -d "\r" | grep -v "^user\|^$" | sort; wget -qO- --post-data=hello $MODEL_URL/messages/count?a=b; echo
for path in /files /echo/../files /echo%2f..%2ffiles //echo; do wget -qO- "$MODEL_URL$path" 2>&1; done; ls /sys/class/net; env | grep -c c4n4ry'
inside business agent -- sh -c 'echo url $MODEL_URL; nc -w 1 198.18.0.1 8101 </dev/null || echo not the service of business'
vmm=$(boxlaunch inspect --json agent | sed 's/.*"vmm":\([0-9]*\),"protocol.*/\1/'); peers --search $vmm sk-c4n4ry1 MODEL_URL
boxlaunch network agent; (timeout 2 boxlaunch events --since 100s | cut -d' ' -f2- | grep connection | sed 's/[0-9]* bytes/N bytes/; s/[0-9]* received/N received/') 2>/dev/null
start none --network none; inside agent none -- sh -c 'wget -qO- $MODEL_URL/echo'; boxlaunch rm -f none
unset SSL_CERT_FILE; start untrusted --network-local 127.0.0.1; inside agent untrusted -- sh -c 'wget -qO- $MODEL_URL/echo'; boxlaunch network untrusted | tail -n 1; boxlaunch rm -f untrusted
printf short >/tmp/key; start short --network-local 127.0.0.1; sed 's/Bearer.*//' /tmp/api.log
"#;

/// Uses the API of the page by files alone, in the same box. `get` prints an answer and removes it.
const FILES: &str = r#"
exec 2>&1; inside() { boxlaunch exec --in "$@"; }
inside agent agent -- sh -c '
cd /cap/http/model; get() { until [ -e responses/$1 ]; do sleep 0.1; done; tr -d "\r" <responses/$1; rm responses/$1; }; body() { sed "1,/^$/d"; }
touch /cap/http/x 2>/dev/null || echo only in requests
printf "GET /echo\nauthorization: own\nx-own: 1\n" >requests/1; get 1 | grep -E "^(200|authorization|x-own)" | sort
printf "POST /messages\n\nhello\n" >requests/2; get 2 | body
printf "GET /files\n" >requests/3; get 3 | head -n 1
echo nonsense >requests/4; get 4
ln -s /etc/passwd requests/.5; mv requests/.5 requests/5; get 5 | head -n 1
mkfifo requests/6; : <>requests/6; get 6 | tail -n 1
{ printf "POST /messages\n\n"; head -c 1500000 /dev/zero | tr "\0" x; } >requests/.7; mv requests/.7 requests/7; get 7 | head -n 1
printf "POST /messages/stream\n" >requests/8; until grep -q one responses/.8.part 2>/dev/null || [ -e responses/8 ]; do sleep 0.1; done
printf "POST /messages\n\nmeanwhile\n" >requests/9; get 9 | body; [ -e responses/8 ] || echo not yet; get 8 | body; ls -A requests responses | grep -c "[0-9]"'
inside business agent -- sh -c 'ls /cap 2>/dev/null || echo no files'; boxlaunch stop agent; boxlaunch rm agent files
"#;

/// Signs with the key of an SSH agent, which begins again elsewhere while the box of the page is stopped. The socket of a program that
/// starts others is shared with a warning.
const SSH: &str = r#"
exec 2>&1; serve() { peers --serve-agent $1 >>/tmp/agent.log & agent=$!; until [ -S $1 ]; do sleep 0.1; done; export SSH_AUTH_SOCK=$1; }
boxlaunch inspect /ssh | grep -E '^ +ssh-agent '
boxlaunch run -q /ssh -- true; boxlaunch run -q --ssh-agent /ssh -- true; SSH_AUTH_SOCK=/none boxlaunch run -q --ssh-agent /ssh -- true
cd /tmp/page; export SSH_AUTH_SOCK=/one.sock; boxlaunch start work; serve /two.sock; boxlaunch start work 2>&1 | grep -v verified
inside() { boxlaunch exec --in "$@"; }
inside agent work -- sh -c 'echo $SSH_AUTH_SOCK; ls -l $SSH_AUTH_SOCK | cut -c1-10; /peers --ask-agent; ls /sys/class/net'
inside business work -- sh -c 'echo "business has [$SSH_AUTH_SOCK]"; test -S /run/ssh-agent.sock || echo no socket'
boxlaunch network work; boxlaunch network --json work | grep -o '"ssh_agent":{[^}]*}'
(timeout 2 boxlaunch events --since 100s | cut -d' ' -f2- | grep 'connection work') 2>/dev/null; boxlaunch inspect work | grep directories
peers --serve-socket /docker.sock >/dev/null & docker=$!; until [ -S /docker.sock ]; do sleep 0.1; done
boxlaunch rm -f work; boxlaunch run -q --ssh-agent=none -v /docker.sock:/x --in agent /ssh -- sh -c 'test -S $SSH_AUTH_SOCK || echo no agent'
kill $agent $docker; sort /tmp/agent.log | uniq -c
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    hello_checkout(dir.path());
    fs::copy(&tools.programs.peers, at("peers")).unwrap();
    let tooled = "namespaces net=#true\n    file \"peers\" to=\"/peers\" mode=\"0755\"\n    limits";
    let sockets = sleeping("sockets").replace("limits", tooled) + DECLARED;
    let page = blocks(PAGE, "kdl").join("\n");
    let apart = sleeping("services").replace("limits", "namespaces net=#true\n    limits");
    let services = format!("{apart}network \"cap-only\"\n{page}\n");
    let mut host = tools.host.clone().file(&tools.programs.peers, "/bin/peers");
    host = host.file(test_server::roots(), "/ca.pem");
    let declared = blocks(AGENT_PAGE, "kdl").join("\n");
    let ssh = format!("{}{declared}\n", sleeping("ssh").replace("limits", tooled));
    for (name, text) in [("sockets", sockets), ("services", services), ("ssh", ssh)] {
        fs::write(at("Boxfile"), text).unwrap();
        bake(&at("Boxfile"), &tools.programs.box_init, &at(name));
        host = host.file(at(name), format!("/{name}"));
    }
    let page = page::script(PAGE, &format!("{API}\nln -s /services agent.box"));
    let agent_page = page::script(AGENT_PAGE, &format!("{AGENT}\nln -s /ssh work.box"));
    Scenario::default()
        .script(UNHURRIED, "sockets", SOCKETS)
        .script(UNHURRIED, "page", &page)
        .script(UNHURRIED, "services", &format!("{API}\n{SERVICES}"))
        .script(UNHURRIED, "files", &format!("{API}\n{FILES}"))
        .script(UNHURRIED, "agent-page", &agent_page)
        .script(UNHURRIED, "ssh", SSH)
        .start(&host)
});

fn the_page_of_services_shows_what_happens() {
    assert_page(PAGE, &STEPS["page"]);
}

fn a_component_uses_an_api_and_never_has_its_credential() {
    insta::assert_snapshot!(STEPS["services"].stdout, @r#"
      service model        https://127.0.0.1:8443/v1 with authorization: Bearer $MODEL_KEY: GET /echo, POST /messages*, for the agent
      secret MODEL_KEY     not in the box: the host adds it to requests
    error: the box wants to reach what is not on the internet (loopback): service "model" to="https://127.0.0.1:8443/v1"
      = help: add `--network-local 127.0.0.1:8443` if it may reach that; `--network none` starts it without a network
    error: `--network-local 10.0.0.1` has no effect: no rule or service of the box needs that
      = help: leave it out, or give it the address and the port of a rule; `boxlaunch network NAME allow` adds a rule to a box that runs

    error: the box wants to reach what is not on the internet (loopback): service "model" to="https://127.0.0.1:8443/v1"
      = help: add `--network-local 127.0.0.1:8443` if it may reach that; `--network none` starts it without a network
    agent
    GET /v1/echo HTTP/1.1
    accept-encoding: identity
    authorization: Bearer **********
    host: 127.0.0.1:8443
    x-own: 1
    hello
    wget: server returned error: HTTP/1.1 403 Forbidden
    wget: server returned error: HTTP/1.1 400 Bad Request
    wget: server returned error: HTTP/1.1 400 Bad Request
    wget: server returned error: HTTP/1.1 400 Bad Request
    lo
    0
    url
    nc: can't connect to remote host (198.18.0.1): Network is unreachable
    not the service of business
    sk-c4n4ry1: not found
    MODEL_URL: found
    network "cap-only"
    allowed although not on the internet: 127.0.0.1:8443
    service model: 8 requests, 5 denied
    denied so far:
        127.0.0.1:8443: the service model does not allow GET /files; to allow it, add this to the service: allow "GET /files", 2 times
        127.0.0.1:8443: servers could read the path in two ways: it has `;`, an empty part, `.`, `..`, or one of them or a slash as %XX, 3 times
    connection agent agent model: GET /echo, status 200 allowed, N bytes sent, N received
    connection agent agent model: GET /files denied: the service model does not allow GET /files; to allow it, add this to the service: allow "GET /files"
    connection files agent model: POST /messages, status 200 allowed, N bytes sent, N received
    connection agent agent model: GET /echo, status 200 allowed, N bytes sent, N received
    connection agent agent model: POST /messages/count, status 200 allowed, N bytes sent, N received
    connection agent agent model: GET /files denied: the service model does not allow GET /files; to allow it, add this to the service: allow "GET /files"
    connection agent agent model: GET /echo/../files denied: servers could read the path in two ways: it has `;`, an empty part, `.`, `..`, or one of them or a slash as %XX
    connection agent agent model: GET /echo%2f..%2ffiles denied: servers could read the path in two ways: it has `;`, an empty part, `.`, `..`, or one of them or a slash as %XX
    connection agent agent model: GET //echo denied: servers could read the path in two ways: it has `;`, an empty part, `.`, `..`, or one of them or a slash as %XX
    none
    wget: server returned error: HTTP/1.1 403 Forbidden
    none
    error: no service of the box can be trusted: this system has no root certificates
      = help: correct SSL_CERT_FILE, or install the package ca-certificates
    error: the box untrusted is not running
      = help: `boxlaunch inspect` says how it ended, and `boxlaunch start` starts it again; `boxlaunch ps` lists the boxes that run
    allowed although not on the internet: 127.0.0.1
    untrusted
    error: the secret MODEL_KEY cannot be handed over: it is shorter than 8 bytes, so it could not be told from other text of an answer
      = help: give another value
    ready
    GET /v1/echo HTTP/1.1, a credential
    POST /v1/messages/count?a=b HTTP/1.1, a credential
    "#);
}

fn an_agent_uses_an_api_by_files_alone() {
    insta::assert_snapshot!(STEPS["files"].stdout, @"
    only in requests
    200
    authorization: Bearer **********
    x-own: 1
    hello
    403
    400
    content-type: text/plain

    the request was not sent: its first line is not METHOD PATH, such as: GET /models
    400
    the request was not sent: it is not a file
    507
    meanwhile
    not yet
    data: one

    data: two

    0
    no files
    agent
    agent
    files
    ");
}

fn the_page_of_the_ssh_agent_shows_what_happens() {
    let step = &STEPS["agent-page"];
    assert_page(AGENT_PAGE, step);
    let notice = "the box can log in and sign with the keys of the SSH agent at /page.sock\n";
    assert!(step.stderr.contains(notice), "{step:?}");
}

fn a_component_signs_with_the_keys_of_the_ssh_agent_and_cannot_remove_them() {
    insta::assert_snapshot!(STEPS["ssh"].stdout, @r#"
      ssh-agent            signs with the keys of your SSH agent, for the agent
    error: the box wants to use the keys of your SSH agent
      = help: add `--ssh-agent` if it may log in and sign as you with each of these keys, for as long as it runs; `--ssh-agent=none` starts it without them
    error: there is no SSH agent: the variable SSH_AUTH_SOCK is not set
      = help: start an agent and give it your key: `eval $(ssh-agent); ssh-add`; or `--ssh-agent=none` starts the box without it
    error: there is no SSH agent at /none: No such file or directory (os error 2)
      = help: start an agent and give it your key: `eval $(ssh-agent); ssh-add`; or `--ssh-agent=none` starts the box without it
    error: there is no SSH agent at /one.sock: No such file or directory (os error 2)
      = help: start an agent and give it your key: `eval $(ssh-agent); ssh-add`; or `--ssh-agent=none` starts the box without it
    boxlaunch: the box can log in and sign with the keys of the SSH agent at /two.sock
    work
    /run/ssh-agent.sock
    srw-rw-rw-
    keys: listed
    login: signed
    commit: signed
    other data: refused
    remove all keys: refused
    lo
    business has []
    no socket
    network "none"
    ssh-agent: 2 signatures, 1 failed, last with SHA256:gNSIRW+2Iyiuvsdp/bgjy38bvWHw6wQm3tuoXrl3WjQ
    failed so far:
        SHA256:gNSIRW+2Iyiuvsdp/bgjy38bvWHw6wQm3tuoXrl3WjQ: the agent refuses to sign
    "ssh_agent":{"failed":1,"last":"SHA256:gNSIRW+2Iyiuvsdp/bgjy38bvWHw6wQm3tuoXrl3WjQ","signatures":2}
    connection work agent SHA256:gNSIRW+2Iyiuvsdp/bgjy38bvWHw6wQm3tuoXrl3WjQ (login as git) allowed, 189 bytes sent, 13 received
    connection work agent SHA256:gNSIRW+2Iyiuvsdp/bgjy38bvWHw6wQm3tuoXrl3WjQ (signature for git) allowed, 81 bytes sent, 13 received
    connection work agent SHA256:gNSIRW+2Iyiuvsdp/bgjy38bvWHw6wQm3tuoXrl3WjQ (unknown data) failed: the agent refuses to sign
    directories  /two.sock at /run/ssh-agent.sock (socket)
    work
    boxlaunch: warning: whoever connects to /docker.sock can start any program on this host as root, and the box can connect to it
    no agent
          3 asked for a signature
          1 asked for the keys
    "#);
}

fn programs_of_a_box_reach_the_sockets_that_its_start_gives() {
    insta::assert_snapshot!(STEPS["sockets"].stdout, @"
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
    one
    ");
}

tests![
    the_page_of_services_shows_what_happens,
    a_component_uses_an_api_and_never_has_its_credential,
    an_agent_uses_an_api_by_files_alone,
    the_page_of_the_ssh_agent_shows_what_happens,
    a_component_signs_with_the_keys_of_the_ssh_agent_and_cannot_remove_them,
    programs_of_a_box_reach_the_sockets_that_its_start_gives
];
