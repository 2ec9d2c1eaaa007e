//! Starts the image that `boxbuild export --format container` writes, as runc does for docker and Kubernetes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Value, json};
use testbed::prerequisites::{Package, packages, with_program};
use testbed::program::run;

use crate::scenario::{Scenario, Step, UNHURRIED, bake, hello_checkout, tools};

/// Starts the container, waits until its box is ready, and connects to its port from outside of its loopback. Then starts a
/// second box in the container and ends its parent, which leaves an orphan to process 1. At last stops the container.
const SESSION: &str = r#"
runc run --bundle /bundle hello >/tmp/output 2>/tmp/messages </dev/null & runc=$!
probe() { runc exec hello /usr/bin/boxlaunch --quiet health box 2>/dev/null; }
until probe; do kill -0 $runc || break; sleep 0.5; done
pid=$(runc state hello | sed -n 's/.*"pid": \([0-9]*\),.*/\1/p')
nsenter -t $pid -n ifconfig lo:1 192.0.2.7 up
nsenter -t $pid -n wget -qO- http://192.0.2.7:4088/
runc exec hello /usr/bin/boxlaunch exec box hostname
runc exec hello /usr/bin/boxlaunch ps --names
grep -E '^(Uid|NoNewPrivs|CapEff|Seccomp):' /proc/$pid/status
runc exec hello /usr/bin/boxlaunch run --quiet --detach --rm --budget off --name other /box
runc exec hello /usr/bin/boxlaunch stop other
sleep 2; echo zombies: $(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ')
runc kill hello TERM; wait $runc; echo stopped: $?
cat /tmp/messages >&2
"#;

/// Starts the container again, without a writable file system but `/dev/shm`, which every container has. The end of process 1 may kill
/// `boxlaunch kill` before it prints the name.
const IN_SHM: &str = r#"
runc run --bundle /shm shm >/tmp/output 2>/tmp/messages </dev/null & runc=$!
until runc exec shm /usr/bin/boxlaunch health box 2>/dev/null; do kill -0 $runc || break; sleep 0.5; done
runc exec shm /usr/bin/boxlaunch kill box >/dev/null; wait $runc; echo killed: $?
cat /tmp/messages >&2
"#;

/// Makes the bundle of the image for runc. Its limits are those of docker's defaults that matter to boxlaunch, and a
/// read-only root file system: no capabilities, no new privileges, and no namespaces.
fn bundle(directory: &Path) {
    let tools = tools();
    fs::write(directory.join("Boxfile"), hello_checkout(directory)).unwrap();
    let made = directory.join("hello.box");
    bake(&directory.join("Boxfile"), &tools.programs.box_init, &made);
    let (layout, bundle) = (directory.join("layout"), directory.join("bundle"));
    let mut export = Command::new(&tools.programs.boxbuild);
    export.arg("export").arg(&made).args(["--format", "container", "--launcher"]);
    run(export.arg(&tools.programs.boxlaunch).arg("--output").arg(&layout)).unwrap();
    let image = format!("{}:latest", layout.display());
    run(Command::new("umoci").args(["unpack", "--image", &image]).arg(&bundle)).unwrap();
    let path = bundle.join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    confine(&mut config);
    let mut in_shm = config.clone();
    let tmpfs = |at: &str| json!({ "destination": at, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"] });
    let mounts = config["mounts"].as_array_mut().unwrap();
    mounts.extend(["/run/boxlaunch", "/var/lib/boxlaunch"].map(tmpfs));
    fs::write(&path, serde_json::to_vec(&config).unwrap()).unwrap();
    in_shm["root"]["path"] = json!("/bundle/rootfs");
    let variables = [("BOXLAUNCH_STATE", "/dev/shm/state"), ("XDG_RUNTIME_DIR", "/dev/shm")];
    for variable in in_shm["process"]["env"].as_array_mut().unwrap() {
        let is_of = |(name, _): &&(&str, &str)| variable.as_str().unwrap().starts_with(name);
        if let Some((name, value)) = variables.iter().find(is_of) {
            *variable = json!(format!("{name}={value}"));
        }
    }
    fs::create_dir(directory.join("shm")).unwrap();
    fs::write(directory.join("shm/config.json"), serde_json::to_vec(&in_shm).unwrap()).unwrap();
}

fn confine(config: &mut Value) {
    let kvm = json!({ "path": "/dev/kvm", "type": "c", "major": 10, "minor": 232, "fileMode": 0o660, "uid": 0, "gid": 104 });
    config["root"]["readonly"] = json!(true);
    config["process"]["terminal"] = json!(false);
    config["process"]["noNewPrivileges"] = json!(true);
    config["process"]["capabilities"] = json!({});
    config["process"]["user"]["additionalGids"] = json!([104]);
    config["linux"]["devices"] = json!([kvm]);
    config["linux"]["resources"]["devices"] = json!([
        { "allow": false, "access": "rwm" },
        { "allow": true, "type": "c", "major": 10, "minor": 232, "access": "rwm" },
    ]);
    // CLONE_NEWUSER of clone(2). ENOSYS makes a C library use clone(2) instead of clone3(2).
    let user = json!({ "index": 0, "value": 0x1000_0000, "valueTwo": 0x1000_0000, "op": "SCMP_CMP_MASKED_EQ" });
    config["linux"]["seccomp"] = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": [
            { "names": ["unshare", "setns", "mount", "pivot_root"], "action": "SCMP_ACT_ERRNO" },
            { "names": ["clone"], "action": "SCMP_ACT_ERRNO", "args": [user] },
            { "names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38 },
        ],
    });
}

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    packages(&[Package::Runc, Package::Umoci], &mut |line| println!("{line}")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    bundle(directory.path());
    let host = tools()
        .host
        .clone()
        .memory(1536)
        .disk(directory.path().join("bundle"), "/bundle")
        .file(directory.path().join("shm"), "/shm");
    let host = with_program(host, &Package::Runc.path().unwrap(), "/bin/runc").unwrap();
    let scenario = Scenario::default().script(UNHURRIED, "session", SESSION);
    scenario.script(UNHURRIED, "shm", IN_SHM).start(&host)
});

fn runc_starts_the_box_and_stops_it() {
    let step = &STEPS["session"];
    insta::assert_snapshot!(step.stdout);
    let messages = &step.stderr;
    assert!(messages.contains("user-namespace"), "the missing layers are named: {step:?}");
}

fn a_container_without_writable_files_but_those_in_memory_starts() {
    let step = &STEPS["shm"];
    assert_eq!(step.stdout, "healthy\nkilled: 137\n", "{step:?}");
}

tests![
    runc_starts_the_box_and_stops_it,
    a_container_without_writable_files_but_those_in_memory_starts
];
