//! The disk of a box: files that need not fit into memory, and that stay when a detached box is stopped and started again.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::scenario::{Scenario, Step, UNHURRIED, as_user, bake, sleeping, tools};

/// The box `worker` has a secret in a file and a network, and the box `small` declares a disk.
const WORKER: &str = r#"secret "KEY" path="/run/key" component="agent"
network "filtered" { allow "a.test.example" "b.test.example"; }
"#;
const SMALL: &str = "disk \"16MiB\"\n";
/// A full disk is named, and `none` keeps the files in memory.
const SIZES: &str = r#"
boxlaunch run -q /small -- dd if=/dev/zero of=/tmp/big bs=1M count=60 2>&1 | grep -v records
boxlaunch run -q --disk none /small -- sh -c 'df -m / | tail -n1 | tr -s " " | cut -d" " -f2; dd if=/dev/zero of=/tmp/big bs=1M count=60' 2>&1 | grep -v records
"#;
/// What both components wrote is there after `stop` and `start`, after `restart` and after a kill, without the value of the
/// secret. The box starts with its options. `run --replace` and `rm` remove the disk. A disk holds more than the memory limit of a component.
const STAYS: &str = r#"
all() { boxlaunch exec --component agent kept -- sh -c 'cat /new/a /run/key; ls -l /run/key | cut -c1-10'; boxlaunch exec kept -- sh -c 'cat /new/b; ls /moved; ls /bin/sh'; }
ifconfig lo 127.0.0.1 up; echo canary >/key
boxlaunch run -q -d --name kept -p 9091:80/business --disk 32MiB --secret KEY=file:/key /worker
boxlaunch exec --component agent -u 0 kept -- sh -c 'mkdir /new; echo of the agent >/new/a; sync'
boxlaunch exec -u 0 kept -- sh -c 'mkdir /new; echo of the business >/new/b; mv /etc /moved; mkdir /etc; sync'
all; boxlaunch network kept deny a.test.example; boxlaunch stop kept; grep -c 'canary' /root/.local/state/boxbuild/boxes/kept/disk; stat -c %a:%s /root/.local/state/boxbuild/boxes/kept/disk
FAILS
boxlaunch start kept; all; boxlaunch port kept | head -n 1; boxlaunch network kept | grep -c 'deny "a.test.example"'; boxlaunch start kept
boxlaunch restart kept; all; boxlaunch port kept | head -n 1; boxlaunch kill kept; boxlaunch wait kept; boxlaunch start kept nobody; echo $?; all
boxlaunch start --json kept; boxlaunch inspect --json kept | grep -o '"disk_bytes":[0-9]*'
boxlaunch run -q -d --name kept --replace --disk 200MiB --secret KEY=file:/key /worker; boxlaunch exec kept -- ls /new 2>&1
boxlaunch exec kept -- sh -c 'dd if=/dev/zero of=/tmp/big bs=1M count=60 2>/dev/null; ls -l /tmp/big | tr -s " " | cut -d" " -f5; grep "^overlay / " /proc/mounts | tr , "\n" | grep -E "metacopy|index|xino|redirect_dir" | sort'
boxlaunch stop kept; boxlaunch rm kept; ls /root/.local/state/boxbuild/boxes | grep -c kept
"#;
/// While `kept` is stopped, `n` has its port, so neither it nor what replaces it starts. A start over its budget has failed: the
/// box `n` that it was to replace has its name and its disk again, and else the name is free.
const FAILS: &str = r#"boxlaunch run -d --name n --console /none/x /small 2>/dev/null || echo failed; boxlaunch run -q -d --name n -p 9091:80/business /small
boxlaunch start kept 2>&1 | tail -n 2; boxlaunch run -q -d --name kept --replace -p 9091:80/business /small 2>&1 | head -n 1
boxlaunch exec -u 0 n -- sh -c 'echo old >/x; sync'; boxlaunch run -q -d --name n --replace /hasty 2>&1 | grep error; boxlaunch ps -a -n --filter name=n
boxlaunch run -q -d --name gone /hasty >/dev/null 2>&1; echo $?; ls /root/.local/state/boxbuild/boxes/gone"#;
/// A start that fails keeps no name, and a box that cannot be started again says so. An update gives a box a new disk.
const NAMES: &str = r#"
boxlaunch run -q -d --name n /small 2>&1 | head -n 1
boxlaunch run --json --name front --disk 20MiB /small -- dd if=/dev/zero of=/tmp/big bs=1M count=60 | grep -o '"disk_full":true'; boxlaunch start front; echo $?
boxlaunch run -q -d --rm --name gone --lifetime 2 /small; boxlaunch restart gone; boxlaunch wait gone; boxlaunch start gone; echo $?
sh -c 'boxlaunch run -q -d --name child --with-parent /small; true'; boxlaunch wait child
boxlaunch start n; boxlaunch exec n cat /x; boxlaunch update -q --accept n /worker 2>&1 | head -n 1; boxlaunch update --accept n /other 2>/dev/null | cut -d' ' -f1-3; boxlaunch exec n cat /x; find /root/.local/state/boxbuild/boxes -name disk | wc -l; boxlaunch rm -f n
"#;
const USER: &str = r#"
boxlaunch run -q -d --name mine /small; boxlaunch exec -u 0 mine -- sh -c 'echo mine >/x; sync'; boxlaunch restart mine; boxlaunch exec mine cat /x; boxlaunch rm -f mine
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    testbed::hello::write_images(&tools.programs.hello_agent, &at("images")).unwrap();
    let boxes = [
        ("worker", WORKER),
        ("small", SMALL),
        ("other", "disk \"17MiB\"\n"),
        ("hasty", "budget total=\"1ms\"\n"),
    ];
    let host = boxes.into_iter().fold(tools.host.clone(), |host, (name, more)| {
        let file = at(&format!("Boxfile.{name}"));
        fs::write(&file, sleeping(name) + more).unwrap();
        bake(&file, &tools.programs.box_init, &at(name));
        host.file(at(name), format!("/{name}"))
    });
    let stays = STAYS.replace("FAILS", FAILS);
    let scripts = [("sizes", SIZES), ("stays", &stays), ("names", NAMES)];
    let scenario = scripts.into_iter().fold(Scenario::default(), |scenario, (name, script)| {
        scenario.script(UNHURRIED, name, script)
    });
    scenario.script(30, "user", &as_user(USER)).start(&host)
});

fn a_box_has_a_disk_that_stays_while_it_has_its_name() {
    for name in ["sizes", "stays", "names", "user"] {
        let Step { stdout, stderr, .. } = &STEPS[name];
        insta::assert_snapshot!(name, format!("{stdout}---\n{stderr}"));
    }
}

tests![a_box_has_a_disk_that_stays_while_it_has_its_name];
