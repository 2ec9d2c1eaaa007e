//! Scratch disks: files that need not fit into a component's memory, and that are lost when the box stops.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::scenario::{Scenario, Step, as_user, bake, sleeping, tools};

const SCRATCH: &str = r#"
scratch "work" guest="/var/work" size="64MiB" component="business"
scratch "shared" guest="/shared" size="1MiB"
scratch "large" guest="/large" size="1024GiB" component="agent"
"#;
/// Writes more bytes than the component's memory limit, then fills the disk.
const FILL: &str = "cd /var/work; ls -lnd . | tr -s ' ' | cut -d' ' -f1,3,4; ls
dd if=/dev/zero of=big bs=1M count=40 2>/dev/null; ls -l big | tr -s ' ' | cut -d' ' -f5
dd if=/dev/zero of=more bs=1M count=40 2>&1 | grep -o 'No space left on device'; rm more; echo still here; cat /proc/mounts | grep '/var/work ' | cut -d' ' -f3,4
test -e /large || echo no other; df -m /var/work | tail -n1 | tr -s ' ' | cut -d' ' -f2";
/// Writes a file to each disk of a box, and prints what the host has of the disks: open files without a name, limits of the
/// VMM, and no file after the box has ended. The next run gets empty disks.
const HOST: &str = r#"
export BOXLAUNCH_STATE=/tmp/state
boxlaunch run -d --max-scratch 1026GiB --name roomy /roomy >/dev/null
boxlaunch exec --in agent roomy -- sh -c 'df -m /large | tail -n1 | tr -s " " | cut -d" " -f2; echo here >/large/file; echo hello >/shared/word'
boxlaunch exec roomy -- sh -c 'cat /shared/word; echo kept >/var/work/file; cat /var/work/file'
vmm=$(boxlaunch inspect --json roomy | sed 's/.*"vmm":\([0-9]*\),"protocol.*/\1/')
ls -l /proc/$vmm/fd | grep -c 'scratch-[0-9a-f]* (deleted)'
grep 'Max file size' /proc/$vmm/limits | tr -s ' '; grep -E '^(Seccomp|NoNewPrivs):' /proc/$vmm/status
boxlaunch kill roomy >/dev/null; boxlaunch wait roomy >/dev/null
find $BOXLAUNCH_STATE -name '.scratch*' | wc -l
boxlaunch run --max-scratch 1026GiB /roomy -- ls /var/work
"#;
const USER: &str = r#"boxlaunch run -q --max-scratch 1026GiB /roomy -- sh -c "echo mine >/var/work/file; cat /var/work/file""#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("roomy.box"));
    testbed::hello::write_images(&tools.programs.hello_agent, &dir.path().join("images")).unwrap();
    fs::write(&boxfile, sleeping("roomy") + SCRATCH).unwrap();
    bake(&boxfile, &tools.programs.box_init, &bundle);
    Scenario::default()
        .script(
            20,
            "fill",
            &format!("boxlaunch run --max-scratch 1026GiB /roomy -- sh -c \"{FILL}\""),
        )
        .script(20, "host", HOST)
        .script(10, "user", &as_user(USER))
        .start(&tools.host.clone().file(&bundle, "/roomy"))
});

fn a_component_writes_more_than_its_memory() {
    let expected = "drwxr-xr-x 1001 1002\nlost+found\n41943040\nNo space left on device\nstill here\n\
                    ext4 rw,nosuid,nodev,noatime,no_prefetch_block_bitmaps,errors=remount-ro\nno other\n";
    let fill = &STEPS["fill"];
    let (start, size) = fill.stdout.trim().rsplit_once('\n').unwrap();
    assert_eq!(format!("{start}\n"), expected, "{fill:?}");
    let size: u32 = size.parse().unwrap();
    assert!((56..=64).contains(&size), "{size} MiB");
}

fn a_disk_is_the_machines_and_gone_with_it() {
    let host = &STEPS["host"];
    let (size, rest) = host.stdout.split_once('\n').unwrap();
    assert!(size.parse::<u64>().unwrap() > 900 << 10, "{size} MiB of a tebibyte");
    let expected = "hello\nkept\n6\nMax file size 1099511627776 1099511627776 bytes \nNoNewPrivs:\t1\nSeccomp:\t2\n0\nlost+found\n";
    assert_eq!(rest, expected, "{host:?}");
}

fn a_user_has_disks_too() {
    assert_eq!(STEPS["user"].stdout, "mine\n", "{:?}", STEPS["user"]);
}

tests![
    a_component_writes_more_than_its_memory,
    a_disk_is_the_machines_and_gone_with_it,
    a_user_has_disks_too
];
