//! A box with `network "shared"`: the addresses that it reaches and does not reach, and the end of its passt process.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use testbed::prerequisites::{Package, packages, with_program};

use crate::scenario::{Scenario, Step, as_user, bake, sleeping, tools};

const PASST: &str = "/usr/bin/passt";
/// Gives the host a network with a web server, and a resolver and a web server on loopback. The box must not reach the server
/// on loopback. passt needs a default route, the user `nobody`, and the permission to ping (icmp(7)).
const HOST: &str = r#"
ifconfig lo 127.0.0.1 up; ifconfig lo:1 192.0.2.1 up; ifconfig lo:2 93.184.216.34 netmask 255.255.255.255; route add default dev lo
echo 'nobody:x:65534:65534::/:/bin/false' >>/etc/passwd; echo nameserver 127.0.0.1 >/etc/resolv.conf
echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range
mkdir /tmp/far /tmp/own; echo far >/tmp/far/index.html; head -c 3000000 /dev/urandom >/tmp/far/big
mkdir /tmp/far/cgi-bin; printf '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n"; head -c 3000000 | md5sum\n' >/tmp/far/cgi-bin/sum
chmod 755 /tmp/far/cgi-bin/sum; echo the host itself >/tmp/own/index.html
httpd -p 192.0.2.1:80 -h /tmp/far; peers /tmp/own >/tmp/peers 2>&1 </dev/null &
until grep -q ready /tmp/peers; do sleep 0.1; done; wget -qO- http://127.0.0.1/; : >/tmp/peers
"#;
/// Run by root and by an ordinary user. passt must end when the supervisor is killed, and when a run ends.
///
/// An upload through passt that is fed by a download stalls at some timings of the virtual host, without an error. It is repeated.
const SESSION: &str = r#"
boxlaunch run -q -d $jail --network shared --name shared /net
ps -o user,args | grep '[/]passt ' | cut -d' ' -f1
boxlaunch exec --in business shared -- sh -c 'grep name /etc/resolv.conf; wget -qO- http://192.0.2.1/
nslookup a.test.example | grep -A1 Name; ping -c1 -W2 192.0.2.1 | grep -o "1 packets received"
for at in 127.0.0.1 127.0.0.2 0.0.0.0 198.19.255.1 198.19.255.53; do
    timeout 3 wget -qO- http://$at/ 2>/dev/null || echo "not $at"; done
ifconfig eth0 192.0.2.99 2>&1 | grep -o "not permitted"'
boxlaunch exec --in agent shared -- sh -c 'wget -qO- http://192.0.2.1/; cat /proc/sys/net/ipv4/ping_group_range'
for try in 1 2 3; do
sum=$(timeout 10 boxlaunch exec --in agent shared -- sh -c '{ printf "POST /cgi-bin/sum HTTP/1.0\r\nContent-Length: 3000000\r\n\r\n"
wget -qO- http://192.0.2.1/big; sleep 2; } | nc 192.0.2.1 80 | tail -n 1'); [ "$sum" ] && break; done
[ "$sum" = "$(md5sum </tmp/far/big)" ] && echo the same
for to in 127.0.0.1 0.0.0.0 198.19.255.1 198.19.255.53; do
    boxlaunch exec --in business shared -- /raw eth0 $to raw-$to.test.example; done; sleep 1
kill -9 $(boxlaunch inspect --json shared | sed 's/.*"supervisor":\([0-9]*\),.*/\1/'); sleep 1; ps | grep -c '[/]passt '
boxlaunch run -q --rm --network shared /net -- wget -qO- http://192.0.2.1/; ps | grep -c '[/]passt '
"#;
/// Starts that are refused: without `--network shared`, without passt, in the emulated host, without a default route, and
/// without user namespaces for an ordinary user. With `--network none`, the box starts without passt.
const REFUSED: &str = r#"
boxlaunch run /net -- true; PATH=/none /bin/boxlaunch run -q --network shared /net -- true; boxlaunch run --emulated /net -- true
PATH=/none /bin/boxlaunch run -q --network none /net -- /bin/sh -c 'ls /sys/class/net | tail -n 1; timeout 2 wget -qO- http://192.0.2.1/ || echo nothing; for i in 1 2 3 4 5 6; do ping -q -c 2 -i 0.1 -s 60000 -W 1 192.0.2.1 >/dev/null; done; echo still here'
route del default; boxlaunch run -q --network shared /net -- true; route add default dev lo
namespaces=/proc/sys/user/max_user_namespaces; before=$(cat $namespaces); echo 0 >$namespaces
su me -c 'HOME=/tmp/home XDG_RUNTIME_DIR=/tmp/home; export HOME XDG_RUNTIME_DIR; cd; boxlaunch run -q --network shared --jail best-effort /net -- true' 2>&1 | grep passt
echo $before >$namespaces; ps | grep -c '[/]passt '
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    packages(&[Package::Passt], &mut |line| println!("{line}")).unwrap();
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("net.box"));
    testbed::hello::write_images(&tools.programs.hello_agent, &dir.path().join("images")).unwrap();
    // The business component runs as root with NET_RAW, for `ping` and `raw`. busybox cannot ping without it.
    fs::copy(&tools.programs.raw_question, dir.path().join("raw")).unwrap();
    let of_root = "capabilities add=\"NET_RAW\"\n    file \"raw\" to=\"/raw\" mode=\"0755\"";
    let text = sleeping("net").replace("user \"1001:1002\"", of_root);
    fs::write(&boxfile, text + "network \"shared\"\n").unwrap();
    bake(&boxfile, &tools.programs.box_init, &bundle);
    let host = tools.host.clone().file(&tools.programs.peers, "/bin/peers").file(&bundle, "/net");
    let host = with_program(host, Path::new(PASST), PASST).unwrap();
    Scenario::default()
        .script(10, "host", HOST)
        .script(70, "root", &format!("jail='--jail require'; {SESSION}"))
        .script(70, "user", &as_user(SESSION))
        .script(30, "refused", REFUSED)
        .script(5, "asked", "cat /tmp/peers; killall peers httpd")
        .start(&host)
});

/// The output of [`SESSION`] after its line with the user of the passt process.
const SHOWN: &str = "nameserver 198.19.255.53
far
Name:	a.test.example
Address: 127.0.0.2
1 packets received
not 127.0.0.1
not 127.0.0.2
not 0.0.0.0
not 198.19.255.1
not 198.19.255.53
not permitted
far
0\t2147483647
the same
0
far
0
";

fn a_box_reaches_what_its_host_does_but_not_the_hosts_loopback() {
    assert_eq!(STEPS["host"].stdout, "the host itself\n", "{:?}", STEPS["host"]);
    for (name, passt) in [("root", "nobody"), ("user", "me")] {
        let step = &STEPS[name];
        assert_eq!(step.stdout, format!("shared\n{passt}\n{SHOWN}"), "{step:?}");
    }
    let asked = &STEPS["asked"].stdout;
    assert_eq!(asked.matches("asked for a.test.example\n").count(), 2, "{asked}");
    // Of the hand-made frames, only those to passt's resolver, 198.19.255.53, arrive: one in each session.
    assert_eq!(asked.matches("asked for raw-").count(), 2, "{asked}");
    assert_eq!(asked.matches("asked for raw-198.19.255.53.test").count(), 2, "{asked}");
    assert!(!asked.contains("GET"), "a server on the host's loopback was reached: {asked}");
}

fn a_host_without_such_a_network_starts_nothing() {
    insta::assert_snapshot!(STEPS["refused"].stderr, @r#"
    error: the box wants to share the network of this host, and only the command line gives that
      = help: add `--network shared` if it may reach everything that this host reaches, except its loopback: also your local network and a cloud's metadata service; `--network none` starts it without a network
    error: the box needs passt for its network "shared", and there is no passt in PATH
      = help: `sudo apt-get install passt` (Debian, Ubuntu) or `sudo dnf install passt` (Fedora)
    error: a box with a network cannot be started with --emulated: the emulated host has none
      = help: start it on a host with KVM; or without its network: `--network none`
    Terminated
    error: passt could not start: External interface not usable
      = help: a box with `network "shared"` needs a host with a default route of IPv4; passt there needs user namespaces, and for root a user `nobody`
    "#);
    let expected =
        "error: passt could not start: Couldn't create user namespace: No space left on device\n";
    let shown = &STEPS["refused"].stdout;
    let started = shown.strip_prefix("lo\nnothing\nstill here\n").unwrap_or_default();
    assert!(started.starts_with(expected) && shown.ends_with("\n0\n"), "{shown}");
}

tests![
    a_box_reaches_what_its_host_does_but_not_the_hosts_loopback,
    a_host_without_such_a_network_starts_nothing
];
