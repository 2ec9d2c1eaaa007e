//! The disk of a box: files that need not fit into memory, and that stay when a detached box is stopped and started again.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::scenario::{Scenario, Step, UNHURRIED, as_user, bake, sleeping, tools};

/// The box `worker` has a secret in a file, and the box `small` declares a disk.
const SECRET: &str = "secret \"KEY\" path=\"/run/key\" component=\"agent\"\n";
const NETTED: &str = "network \"filtered\" { allow \"a.test.example\" \"b.test.example\"; }\n";
const SMALL: &str = "disk \"16MiB\"\n";
/// The disk holds more than the memory limit of a component. `none` keeps the files in memory. A full disk is named.
const SIZES: &str = r#"
size() { df -m / | tail -n1 | tr -s ' ' | cut -d' ' -f2; }
boxlaunch run -q --disk 200MiB /worker --secret KEY=file:/key -- sh -c 'dd if=/dev/zero of=/tmp/big bs=1M count=60 2>/dev/null; ls -l /tmp/big | tr -s " " | cut -d" " -f5; grep "^overlay / " /proc/mounts | tr , "\n" | grep -E "metacopy|index|xino|redirect_dir" | sort'
boxlaunch run -q --disk none /worker --secret KEY=file:/key -- df -m / | tail -n1 | tr -s ' ' | cut -d' ' -f2
boxlaunch run -q /small -- dd if=/dev/zero of=/tmp/big bs=1M count=60 2>&1 | grep -v records
boxlaunch run -q --disk none /small -- dd if=/dev/zero of=/tmp/big bs=1M count=60 2>&1 | grep -v records
boxlaunch run --json --disk 20MiB /small -- dd if=/dev/zero of=/tmp/big bs=1M count=60 | grep -o '"disk_full":true'
boxlaunch run --disk 1MiB /small 2>&1 | head -n 1
boxlaunch run --max-scratch 15MiB /small; echo $?
"#;
/// What both components wrote is there after `stop` and `start`, after `restart` and after a kill, without the value of the
/// secret. The box starts with its options. `run --replace` and `rm` remove the disk.
const STAYS: &str = r#"
all() { boxlaunch exec --component agent kept -- sh -c 'cat /new/a /run/key; ls -l /run/key | cut -c1-10'; boxlaunch exec kept -- sh -c 'cat /new/b; ls /moved; ls /bin/sh'; }
boxlaunch run -q -d --name kept --disk 32MiB --secret KEY=file:/key /worker
boxlaunch exec --component agent -u 0 kept -- sh -c 'mkdir /new; echo of the agent >/new/a; sync'
boxlaunch exec -u 0 kept -- sh -c 'mkdir /new; echo of the business >/new/b; mv /etc /moved; mkdir /etc; sync'
all; boxlaunch stop kept; grep -c 'canary' /root/.local/state/boxbuild/boxes/kept/disk; stat -c %a:%s /root/.local/state/boxbuild/boxes/kept/disk
boxlaunch start kept; all; boxlaunch start kept
boxlaunch restart kept; all; boxlaunch kill kept; boxlaunch wait kept; boxlaunch start kept nobody; echo $?; all
boxlaunch start --json kept; boxlaunch inspect --json kept | grep -o '"disk_bytes":[0-9]*'
boxlaunch run -q -d --name kept --replace --secret KEY=file:/key /worker; boxlaunch exec kept -- ls /new 2>&1
boxlaunch stop kept; boxlaunch rm kept; ls /root/.local/state/boxbuild/boxes | grep -c kept
"#;
/// A start that fails keeps no name, and a box that cannot be started again says so.
const NAMES: &str = r#"
boxlaunch run -d --name n --console /none/x /small 2>/dev/null || echo failed; boxlaunch run -q -d --name n /small; boxlaunch stop n
boxlaunch run -q -d --name n /small 2>&1 | head -n 1
boxlaunch run -q --name front /small -- true; boxlaunch start front; echo $?
boxlaunch run -q -d --rm --name gone /small; boxlaunch restart gone; boxlaunch stop gone; boxlaunch start gone; echo $?
boxlaunch run -q -d --name lives --lifetime 2 /small; boxlaunch wait lives; sh -c 'boxlaunch run -q -d --name child --with-parent /small; true'; boxlaunch wait child
boxlaunch start n; boxlaunch exec -u 0 n -- sh -c 'echo x >/x'; boxlaunch update n /worker 2>&1 | head -n 1; boxlaunch update n /other | cut -d' ' -f1-3; boxlaunch exec -u 0 n -- cat /x; find /root/.local/state/boxbuild/boxes -name disk | wc -l; boxlaunch rm -f n
"#;
/// A box keeps its ports and what the user has denied it, and `--replace` gives the name back if the new box does not start.
const AGAIN: &str = r#"
ifconfig lo 127.0.0.1 up
boxlaunch run -q -d --name web -p 9091:80/business /netted; boxlaunch exec -u 0 web -- sh -c 'echo web >/x'
boxlaunch network web deny a.test.example; boxlaunch stop web
boxlaunch run -q -d --name other -p 9091:80/business /small; boxlaunch start web 2>&1 | tail -n 2; boxlaunch run -q -d --name web --replace -p 9091:80/business /small 2>&1 | head -n 1; boxlaunch rm -f other
boxlaunch start web; boxlaunch exec web cat /x; boxlaunch port web | head -n 1; boxlaunch network web | grep -c 'deny "a.test.example"'; boxlaunch rm -f web
"#;
/// A start over its budget has failed: the box that it was to replace has its name and its disk again, and else the name is free.
const LATE: &str = r#"
boxlaunch run -q -d --name late /small; boxlaunch exec -u 0 late -- sh -c 'echo old >/x; sync'
boxlaunch run -q -d --name late --replace /hasty 2>&1 | grep error; boxlaunch ps -a -n --filter name=late; boxlaunch start late; boxlaunch exec late cat /x; boxlaunch rm -f late
boxlaunch run -q -d --name late /hasty >/dev/null 2>&1; echo $?; ls /root/.local/state/boxbuild/boxes/late; boxlaunch run -q -d --name late /small; boxlaunch rm -f late
"#;
/// All devices of a VM in use: the box's disk, a scratch disk, a volume, and one device for two writable shares, whose files
/// belong to the component's user in the box and to the caller on the host.
const FULL: &str = r#"
mkdir -p one two; chown 1000:1000 one two
boxlaunch run -q --disk 32MiB --volume v:/v -v ./one:/one:rw -v ./two:/two:rw /roomy -- sh -c 'echo 1 >/one/a; echo 2 >/two/b; echo 3 >/v/c; echo 4 >/s/d; echo 5 >/tmp/e; ls -ln /one/a /two/b | tr -s " " | cut -d" " -f3,4,9'
ls -ln one two | grep -v total | tr -s ' ' | cut -d' ' -f3,4,9
boxlaunch run -q --disk 32MiB --volume v:/v -v ./one:/one:rw -v ./two:/two /roomy -- true
"#;
const USER: &str = r#"
boxlaunch run -q -d --name mine /small; boxlaunch exec -u 0 mine -- sh -c 'echo mine >/x; sync'; boxlaunch restart mine; boxlaunch exec mine cat /x; boxlaunch rm -f mine
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    testbed::hello::write_images(&tools.programs.hello_agent, &at("images")).unwrap();
    let scratch = "scratch \"s\" guest=\"/s\" size=\"1MiB\"\n";
    let boxes = [
        ("worker", SECRET),
        ("small", SMALL),
        ("other", "disk \"17MiB\"\n"),
        ("hasty", "budget total=\"1ms\"\n"),
        ("netted", NETTED),
        ("roomy", scratch),
    ];
    let host = boxes.into_iter().fold(tools.host.clone(), |host, (name, more)| {
        let file = at(&format!("Boxfile.{name}"));
        fs::write(&file, sleeping(name) + more).unwrap();
        bake(&file, &tools.programs.box_init, &at(name));
        host.file(at(name), format!("/{name}"))
    });
    let scripts = [
        ("sizes", SIZES),
        ("stays", STAYS),
        ("names", NAMES),
        ("again", AGAIN),
        ("late", LATE),
        ("full", FULL),
    ];
    let scenario = scripts.into_iter().fold(Scenario::default(), |scenario, (name, script)| {
        scenario.script(UNHURRIED, name, &format!("echo canary >/key; {script}"))
    });
    scenario.script(30, "user", &as_user(USER)).start(&host)
});

fn a_box_has_a_disk_that_stays_while_it_has_its_name() {
    for name in ["sizes", "stays", "names", "again", "late", "full", "user"] {
        let Step { stdout, stderr, .. } = &STEPS[name];
        insta::assert_snapshot!(name, format!("{stdout}---\n{stderr}"));
    }
}

tests![a_box_has_a_disk_that_stays_while_it_has_its_name];
