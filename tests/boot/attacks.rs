//! A hostile guest kernel attacks the host through its shares: `hostile-kernel` sends FUSE requests that no Linux sends, and
//! prints the answers. It must neither read nor change a file of the host outside its shares.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use box_contract::manifest::KERNEL_TYPE;
use testbed::promises::KERNEL_ATTACKS;

use crate::erofs::{build, replace_blob};
use crate::scenario::{Scenario, Step, tools};

const ATTACKS: usize = 41;
/// The text of the canaries, which are files that the guest must not read. [`SIZE`] is their size in a report, which no other
/// file has.
const KEPT: &str = "canary-of-the-host";
const SIZE: &str = "size 31337 ";

/// Makes a read-only and a writable share, with canaries in the directories beside and above them. The writable share also has a
/// pipe, a device and a socket.
const SETUP: &str = r#"
make() {
    mkdir -p /srv/state
    for share in ro/0 rw; do
        mkdir -p /srv/shares/$share/inner; echo shared >/srv/shares/$share/file
        mkdir -p /srv/shares/$share/../sibling/empty
    done
    mkfifo /srv/shares/rw/pipe; mknod -m 666 /srv/shares/rw/device c 1 5
    unjailed listen /srv/shares/rw/socket & listener=$!
    for place in /etc /srv/state /srv/shares /srv/shares/sibling /srv/shares/ro /srv/shares/ro/sibling; do
        { echo canary-of-the-host; dd if=/dev/zero bs=31318 count=1 2>/dev/null; } >$place/canary
    done
}
"#;
/// Boots the kernel until it has made all attacks. If an attack ends the VM, the next boot continues with the attack after it.
const ATTACK: &str = r#"
attack() {
    first=1
    for boot in 1 2 3 4 5 6 7 8 9; do
        echo $first $attacks $flood >/srv/shares/rw/attacks
        boot >/tmp/said 2>&1; cat /tmp/console
        grep -q '^all attacks are made' /tmp/console && return
        last=$(sed -n 's/^attack \([0-9]*\) .*/\1/p' /tmp/console | tail -n1)
        echo "ended $last $(grep -E '^error' /tmp/said)"; [ "$last" ] || cat /tmp/said
        first=$((last + 1))
        [ $first -gt $attacks ] && return
    done
}
"#;
/// `look` prints the host's files, except the writable share and the directories in which each run leaves files. `left` prints
/// files that no guest may leave in the writable share, such as set-user-ID files and devices.
const LOOK: &str = r#"
look() {
    find / -xdev \( -path /srv/shares/rw -o -path /tmp -o -path /out -o -path /srv/state \) -prune \
        -o -exec stat -c '%n %i %f %u %g %s %Y' {} + | sort
    stat -c '%n %f %u %g %s %Y' /srv/state/canary /dev /dev/kvm /dev/null /run
    find /etc /srv/shares/ro /srv/shares/sibling /srv/state/canary -type f -exec md5sum {} +
}
left() {
    find /srv/shares/rw \( -perm -4000 -o -perm -2000 -o -type b \) -print
    find /srv/shares/rw -type c ! -name device -print; ls $1 | grep boxlaunch-
}
"#;
/// A VM may open a quarter of these files of the host, fewer than the flood tries to open. Opening a quarter of the default would take most of
/// the test's time. A VM without this limit takes all of them, which an attack reports as `ENFILE`.
const HOST_FILES: &str = "echo 16000 >/proc/sys/fs/file-max";
/// Run by root, with the jail. Because root owns the shares, the VMM runs as root, the user with the most permissions. The flood has more
/// look-ups than the VM may open files, so a descriptor for each look-up would end the flood.
const ROOT: &str = r#"
make; look >/tmp/before; flood=5000
boot() { rm -f /tmp/console; boxlaunch $run; }
attack
look >/tmp/after; diff /tmp/before /tmp/after >&2; left /tmp >&2; kill $listener
"#;
const USER: &str = r#"
echo 'me:x:1000:1000::/tmp/home:/bin/sh' >>/etc/passwd; echo 'kvm:x:104:me' >>/etc/group
rm -rf /srv /tmp/home /tmp/console; mkdir -m 755 /tmp/home; chown 1000:1000 /tmp/home
make; chown -R 1000:1000 /srv; look >/tmp/before; flood=1000
boot() {
    rm -f /tmp/console; touch /tmp/console; chown me /tmp/console
    su me -c "HOME=/tmp/home XDG_RUNTIME_DIR=/tmp/home BOXLAUNCH_STATE=/srv/state boxlaunch $run"
}
attack
look >/tmp/after; diff /tmp/before /tmp/after >&2; left /tmp/home >&2; kill $listener
"#;
/// Without the jail: the first 22 attacks, which are the attacks on files outside the shares.
const UNJAILED: &str = r#"
rm -rf /srv; make; look >/tmp/before; echo 1 22 >/srv/shares/rw/attacks
timeout 30 unjailed /hostile-kernel /srv/shares/ro /srv/shares/rw 2>&1 | sed 's/^\[[^ ]* ERROR init_or_kernel\] //'
look >/tmp/after; diff /tmp/before /tmp/after >&2
"#;
const RUN: &str = "run --rm --budget off --startup-timeout 60 -v /srv/shares/ro/0:/r -v /srv/shares/rw:/w:rw \
                   --console /tmp/console /hostile";

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("hostile.box");
    build(dir.path(), &tools.programs.box_init, &bundle);
    replace_blob(&bundle, KERNEL_TYPE, &fs::read(&tools.programs.hostile_kernel).unwrap());
    let host = tools
        .host
        .clone()
        .file(&bundle, "/hostile")
        .file(&tools.programs.hostile_kernel, "/hostile-kernel")
        .file(&tools.programs.unjailed, "/bin/unjailed")
        .time_limit(Duration::from_secs(60 * 60));
    let start = format!(
        "export BOXLAUNCH_STATE=/srv/state; run='{RUN}'; attacks={ATTACKS}; {HOST_FILES}\n{SETUP}{ATTACK}{LOOK}"
    );
    let script = |run: &str| format!("{start}{run}");
    Scenario::default()
        .anew()
        .script(100, "root", &script(ROOT))
        .script(100, "user", &script(USER))
        .script(60, "unjailed", &script(UNJAILED))
        .start(&host)
});

/// Returns the names of the attacks in `report` whose results contain `text`.
fn with<'a>(report: &'a str, text: &str) -> BTreeSet<&'a str> {
    let mut attack = "";
    let mut found = BTreeSet::new();
    for line in report.lines() {
        if let Some((_, name)) = line.strip_prefix("attack ").and_then(|it| it.split_once(' ')) {
            attack = name;
        }
        if line.contains(text) {
            found.insert(attack);
        }
    }
    found
}

/// Returns the numbers of the attacks that have a result.
fn made(report: &str) -> Vec<usize> {
    let results = report.lines().filter_map(|line| line.strip_prefix("result "));
    results.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

fn forty_one_attacks_of_a_guests_kernel_get_nothing() {
    KERNEL_ATTACKS.check(ATTACKS as f64);
    for user in ["root", "user"] {
        let step = &STEPS[user];
        println!("{user}:\n{}\n{}", step.stdout, step.stderr);
        assert!(step.stdout.contains(&format!("there are {ATTACKS} attacks\n")), "{user}");
        assert_eq!(made(&step.stdout), (1..=ATTACKS).collect::<Vec<_>>(), "{user}");
        for kept in [KEPT, SIZE] {
            assert_eq!(with(&step.stdout, kept), BTreeSet::new(), "{user}: {kept}");
        }
        assert_eq!(step.stderr, "", "{user}: what has changed on the host");
        // The attack is only tested if one of the descriptors that it tries is a directory.
        let through = with(&step.stdout, "found /proc/self/fd/");
        assert!(through.contains("look-up-through-open-files"), "{user}: {through:?}");
        let exhausted = with(&step.stdout, "ENFILE");
        assert!(exhausted.is_empty(), "{user}: the host has no more files in {exhausted:?}");
    }
}

/// The last six attacks make the VMM's thread for a share panic or hang. This ends the VM, and nothing else.
fn the_machine_ends_in_some_attacks_and_only_the_machine() {
    for user in ["root", "user"] {
        let report = &STEPS[user].stdout;
        let ends = report.lines().filter_map(|line| line.strip_prefix("ended "));
        let ends: Vec<&str> = ends.collect();
        let expected = "error: the VM ended (exit status: 0) before the agent was ready";
        let expected: Vec<_> =
            (36..=ATTACKS).map(|number| format!("{number} {expected}")).collect();
        assert_eq!(ends, expected, "{user}");
    }
}

/// Without the jail, the attacks read canaries and change files. Fails if the attacks in the jail only failed because they are
/// ineffective.
fn without_the_jail_they_get_what_is_kept() {
    let step = &STEPS["unjailed"];
    println!("{}\n{}", step.stdout, step.stderr);
    let read = with(&step.stdout, KEPT);
    for name in [
        "look-up-parents",
        "look-up-absolute-names",
        "look-up-through-a-directory",
        "look-up-through-open-files",
        "look-up-processes",
    ] {
        assert!(read.contains(name), "{name}: {read:?}");
    }
    assert!(with(&step.stdout, SIZE).len() >= read.len());
    for made in ["+/etc/new", "+/srv/shares/new", "-/srv/shares/canary"] {
        assert!(step.stderr.contains(made), "{made}: {}", step.stderr);
    }
}

tests![
    forty_one_attacks_of_a_guests_kernel_get_nothing,
    the_machine_ends_in_some_attacks_and_only_the_machine,
    without_the_jail_they_get_what_is_kept
];
