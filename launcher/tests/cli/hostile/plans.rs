//! Boxes that no Boxfile can declare. Their documents and digests match, but their plans contain values that the Boxfile language
//! refuses, because they would harm the host. Such a box does not open.

use box_contract::BoxConfig;
use serde_json::{Value, json};
use testkit::damage;
use testkit::test_box::config;

use crate::Scene;

/// A forged plan: the JSON pointer of a value, the value, and a part of the error.
type Forged = (&'static str, Value, &'static str);

/// Returns the forged plans, grouped by what they declare.
fn forged() -> Vec<Forged> {
    let shared = |host: &str| json!([share("work", "/work", host)]);
    let below = "a share proposes a directory below the one in which the box is launched, or none";
    let peer = |text: &str| json!({"mode": "filtered", "allow": [{"peer": text}]});
    let limits = |connections: u32, rate: u64, names: u32| {
        let limits = json!({
            "connections": connections, "bytes-per-second": rate, "names-per-minute": names
        });
        json!({"mode": "filtered", "allow": [{"peer": "a.example"}], "limits": limits})
    };
    let secret =
        |path: &str| json!([{"name": "K", "scope": "agent", "delivery": {"file": {"path": path}}}]);
    let disk = |name: &str, guest: &str, size: u64| json!([{"name": name, "guest": guest, "size-bytes": size, "scope": "both"}]);
    let task = |input: &str, limit: u64| {
        json!({
            "id": "t", "type": "t", "description": "t", "input": input, "timeout-seconds": limit
        })
    };
    let names = |count: usize| (0..count).map(|it| format!("V{it:04}")).collect::<Vec<_>>();
    let many = json!(names(257));
    let secrets: Vec<_> = names(257)
        .iter()
        .map(|name| json!({"name": name, "scope": "agent", "delivery": "env"}))
        .collect();
    let skill = |name: &str, about: &str| json!([{"name": name, "description": about}]);
    vec![
        // Shares.
        ("/shares", shared("/etc"), below),
        ("/shares", shared("/"), below),
        ("/shares", shared("../.."), below),
        ("/shares", shared("a/../../b"), below),
        ("/shares", shared(""), below),
        ("/shares", shared("a\0b"), below),
        ("/shares", shared("a\u{202e}b"), below),
        ("/shares", shared(&"a/".repeat(3000)), below),
        ("/shares", json!([share("../up", "/work", "a")]), "a name has lower-case letters"),
        ("/shares", json!([share("a=/etc", "/work", "a")]), "a name has lower-case letters"),
        ("/shares", json!([share("a", "/proc/1", "a")]), "reserved for the guest"),
        ("/shares", json!([share("a", "work", "a")]), "not absolute and normalized"),
        ("/shares", json!([share("a", "/a", "a"), share("a", "/b", "b")]), "two of this name"),
        (
            "/shares",
            json!([share("a", "/a", "a"), share("b", "/a", "b")]),
            "twice, or a path inside another",
        ),
        // Scratch disks.
        ("/scratch", disk("a", "/a", 0), "not between 1 MiB and 1 TiB"),
        ("/scratch", disk("a", "/a", u64::MAX), "not between 1 MiB and 1 TiB"),
        ("/scratch", disk("a", "/a", (1 << 20) + 1), "not a whole number of MiB"),
        ("/scratch", disk("../a", "/a", 1 << 20), "a name has lower-case letters"),
        ("/scratch", disk("a", "/a/../b", 1 << 20), "not absolute and normalized"),
        // Memory and CPUs.
        ("/vm/cpus", json!(0), "1 to 16 are possible"),
        ("/vm/cpus", json!(255), "1 to 16 are possible"),
        ("/vm/memory-mib", json!(0), "64 to 65536 are possible"),
        ("/vm/memory-mib", json!(u32::MAX), "64 to 65536 are possible"),
        ("/agent/limits/memory-bytes", json!(u64::MAX), "it needs more than its components"),
        // The network and ports.
        ("/network", peer("https://a.example/"), "neither a domain nor an address"),
        ("/network", peer("*"), "neither a domain nor an address"),
        ("/network", peer("0x7f.1"), "neither a domain nor an address"),
        ("/network", peer("\u{1b}[2J"), "neither a domain nor an address"),
        ("/network", limits(0, 1 << 20, 1), "limits connections=0"),
        ("/network", limits(u32::MAX, 1 << 20, 1), "limits connections=4294967295"),
        ("/network", limits(1, 0, 1), "limits rate=0"),
        ("/network", limits(1, u64::MAX, 1), "limits rate=18446744073709551615"),
        ("/network", limits(1, 1 << 20, u32::MAX), "limits names=4294967295"),
        ("/agent/port", json!(0), "a port is from 1 to 65535"),
        ("/agent/port", json!(1024), "init itself uses"),
        ("/business/port", json!(4088), "the agent has the same"),
        // Secrets and variables that the command line sets.
        ("/secrets", secret("/proc/self/mem"), "reserved for the guest"),
        ("/secrets", secret("/a3s/run/box-exec.sock"), "reserved for the guest"),
        ("/secrets", secret("key"), "not absolute and normalized"),
        (
            "/secrets",
            json!([{"name": "K=V", "scope": "agent", "delivery": "env"}]),
            "not that of a variable",
        ),
        ("/secrets", json!(secrets), "at most 256 secrets"),
        ("/agent/launch-env", many, "at most 256 variables"),
        ("/agent/launch-env", json!(["A=B"]), "not that of a variable"),
        ("/agent/launch-env", json!(["A", "A"]), "or one is there twice"),
        // Names, skills and tasks.
        ("/name", json!("../../../tmp/pwned"), "a name has lower-case letters"),
        ("/name", json!("\u{1b}[2J"), "a name has lower-case letters"),
        ("/skills", skill("../../proc", "a"), "a name has lower-case letters"),
        ("/skills", skill("a", "b\u{1b}[2J"), "not of one line"),
        ("/skills", skill("a", &"b".repeat(2000)), "too long"),
        ("/task", task("1,\"tags\":[]", 1), "its `input` is not JSON"),
        ("/task", task(&format!("\"{}\"", "a".repeat(60_000)), 1), "at most 49152 are allowed"),
        ("/task", task("1", 0), "its `timeout_seconds` is 0"),
        ("/agent/hostname", json!("a\n127.0.0.1 b"), "a host name has letters"),
        // Settings of processes that the kernel would refuse or misinterpret. For example, the user id 4294967295 means "no
        // change".
        ("/agent/user/uid", json!(u32::MAX), "has the number 4294967295"),
        ("/agent/user/groups", json!([u32::MAX]), "has the number 4294967295"),
        ("/agent/rlimits", json!({"nofile": 0}), "not between 1 and 1048576"),
        ("/agent/rlimits", json!({"nproc": u64::MAX}), "not between 1 and 4194304"),
        ("/agent/rlimits", json!({"core-bytes": u64::MAX}), "more than 1 PiB"),
        ("/agent/limits/pids", json!(u64::MAX), "not between 1 and 4194304"),
        ("/agent/limits/cpu-weight", json!(0), "not between 1 and 10000"),
        ("/agent/health", json!({"kind": "tcp", "port": 0}), "a port is from 1 to 65535"),
        ("/agent/health", json!({"kind": "exec", "argv": [""]}), "it names no program"),
        (
            "/agent/health",
            json!({"kind": "http", "port": 1, "path": "/ HTTP/1.1\r\n"}),
            "visible ASCII characters",
        ),
        ("/agent/health", json!({"kind": "grpc", "port": 1, "service": "a b"}), "of a service"),
        ("/agent/workdir", json!("/srv/../proc/self"), "which are the kernel's"),
        ("/agent/stop-signal", json!(9), "it asks no program to end"),
        ("/agent/argv", json!(["/a\0b"]), "it has a NUL byte"),
    ]
}

fn share(name: &str, guest: &str, host: &str) -> Value {
    json!({"name": name, "guest": guest, "access": "rw", "scope": "agent", "host": host})
}

/// Sets the value at a JSON pointer of a plan.
fn put(plan: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    plan.pointer_mut(parent).unwrap()[key] = value;
}

#[test]
fn what_no_boxfile_declares_no_box_has() {
    for (pointer, value, says) in forged() {
        let what = format!("{pointer} = {value:.60}");
        let mut forged = json!(config());
        put(&mut forged["plan"], pointer, value);
        // `Scene::new` computes the digests from the forged config, so all digests match.
        let forged: BoxConfig = serde_json::from_value(forged).unwrap();
        let scene = Scene::new(&forged);
        scene.trust_kvm();
        for args in [&["inspect"][..], &["verify"], &["run", "--share", "work"]] {
            let ended = scene.run(args);
            assert!(matches!(ended.code, Some(1 | 5)), "{what}: {args:?}: {ended:?}");
            assert!(ended.stderr.contains("the box cannot be run: "), "{what}: {}", ended.stderr);
            assert!(ended.stderr.contains(says), "{what}: {}", ended.stderr);
            damage::assert_one_harmless_error(&ended.stderr, &what);
        }
    }
}
