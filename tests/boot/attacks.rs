//! A guest whose kernel attacks the directories that it is given: `hostile-kernel` sends requests of FUSE that no Linux
//! sends, and says what came back. It must not learn of a file that lies beside them, nor change one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use box_contract::manifest::KERNEL_TYPE;
use testbed::promises::KERNEL_ATTACKS;

use crate::erofs::{build, replace_blob};
use crate::scenario::{Scenario, Step, tools};

/// How many attacks there are.
const ATTACKS: usize = 40;
/// The text of the files that are kept from the guest, and the size that no other file has.
const KEPT: &str = "canary-of-the-host";
const SIZE: &str = "size 31337 ";

/// Directories to share, to read and to write, and what is to be kept beside and above them. A pipe, a device and a socket
/// of the host are in them, too.
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
/// Starts the kernel until it has made all attacks: each time it continues after the one that has ended the machine.
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
/// `look` prints the files of the host: everything but the directory to write, and the places where a run leaves something of
/// its own. `left` prints what no guest may leave in that directory.
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
/// With the jail. Root's directories are root's own, and so is the machine, which makes it the strongest there is.
const ROOT: &str = r#"
make; look >/tmp/before; flood=20000
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
/// Without it: the attacks on what is outside.
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
        "export BOXLAUNCH_STATE=/srv/state; run='{RUN}'; attacks={ATTACKS}\n{SETUP}{ATTACK}{LOOK}"
    );
    let script = |run: &str| format!("{start}{run}");
    Scenario::default()
        .script(100, "root", &script(ROOT))
        .script(100, "user", &script(USER))
        .script(60, "unjailed", &script(UNJAILED))
        .start(&host)
});

/// The attacks of a report with a text in what they found.
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

/// Returns the numbers of the attacks that were made to the end.
fn made(report: &str) -> Vec<usize> {
    let results = report.lines().filter_map(|line| line.strip_prefix("result "));
    results.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[test]
#[ignore = "one of the longer boots"]
fn forty_attacks_of_a_guests_kernel_get_nothing() {
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
        // Without a directory among the descriptors that are tried, nothing would be learned of those.
        let through = with(&step.stdout, "found /proc/self/fd/");
        assert!(through.contains("look-up-through-open-files"), "{user}: {through:?}");
        let exhausted = with(&step.stdout, "ENFILE");
        assert!(exhausted.is_empty(), "{user}: the host has no more files in {exhausted:?}");
    }
}

/// The attacks that end the machine are the guest's own loss: the thread panics that serves a directory, or it waits.
#[test]
#[ignore = "one of the longer boots"]
fn the_machine_ends_in_some_attacks_and_only_the_machine() {
    for user in ["root", "user"] {
        let report = &STEPS[user].stdout;
        let ends = report.lines().filter_map(|line| line.strip_prefix("ended "));
        let ends: Vec<&str> = ends.collect();
        let expected =
            "error: the virtual machine ended (exit status: 0) before the agent was ready";
        let expected: Vec<_> =
            (35..=ATTACKS).map(|number| format!("{number} {expected}")).collect();
        assert_eq!(ends, expected, "{user}");
    }
}

/// Fails where the attacks get nothing because they are none.
#[test]
#[ignore = "one of the longer boots"]
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
