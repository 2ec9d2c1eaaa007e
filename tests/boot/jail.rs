//! The jail of the VMM process: its properties in `/proc`, and the attempts of a hostile program in the VMM's place.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use testbed::promises::VMM_ATTEMPTS;

use crate::scenario::{Scenario, Step, UNHURRIED, bake, hello_checkout, tools};

/// Prints the namespaces, capabilities, mounts, open files and limits of a VMM process, without numbers that differ from run to
/// run.
const AUDIT: &str = r#"
self=$$
boxlaunch run -d --name audited --disk 64MiB /hello >/dev/null 2>/tmp/notices || cat /tmp/notices
vmm=$(boxlaunch inspect --json audited | sed 's/.*"vmm":\([0-9]*\),"protocol.*/\1/')
cat >/tmp/audit <<'END'
self=$1 vmm=$2
for namespace in cgroup ipc mnt net pid user uts; do
    [ "$(readlink /proc/$vmm/ns/$namespace)" = "$(readlink /proc/$self/ns/$namespace)" ] || echo "namespace $namespace"
done
sed -n 's/^NSpid:.*\t/pid in it /p' /proc/$vmm/status
grep -E '^(Cap|Seccomp|NoNewPrivs)' /proc/$vmm/status
cut -d' ' -f5,6,8- /proc/$vmm/mountinfo | sed 's/ - / /; s/size=.*//; s/,*mode=.*//; s/rootfs.*/(the sockets)/'
ls -l /proc/$vmm/fd | sed -n 's/.* -> //p' | sed 's/\[[0-9]*\]//; s/[0-9a-f]\{64\}/DIGEST/' | sort -u
tr '\0' '\n' </proc/$vmm/environ
tr '\0' ' ' </proc/$vmm/cmdline; echo
grep -E '^Max (core|file size|msgqueue)' /proc/$vmm/limits | tr -s ' '
sed -n 's/^ *\([a-z0-9]*\):.*/interface \1/p' /proc/$vmm/net/dev
cd /proc/$vmm/root; find . -path ./proc/self/fd -prune -o -print
END
sh /tmp/audit $self $vmm; boxlaunch stop audited >/dev/null
"#;
/// Prints the ids and the control group limits of two VMMs that root starts.
const ROOT: &str = r#"
for run in 1 2; do
    boxlaunch run -d --name root$run /hello >/dev/null
    vmm=$(boxlaunch inspect --json root$run | sed 's/.*"vmm":\([0-9]*\),"protocol.*/\1/')
    sed -n 's/^[UG]id:\t//p' /proc/$vmm/status | tr '\t' '\n' | sort -u
    sed -n 's/^Groups:\t*/groups /p' /proc/$vmm/status
    group=/sys/fs/cgroup$(sed 's/^0:://' /proc/$vmm/cgroup)
    for limit in memory pids cpu; do echo $limit $(cat $group/$limit.max); done
    boxlaunch stop root$run >/dev/null
done
find /sys/fs/cgroup/boxlaunch -mindepth 1 -type d
"#;
/// Run by an ordinary user, whose jail has no control group. boxlaunch reports that.
const USER: &str = r#"
echo 'me:x:1000:1000::/tmp/home:/bin/sh' >>/etc/passwd; echo 'kvm:x:104:me' >>/etc/group
mkdir -m 755 /tmp/home; chown 1000:1000 /tmp/home
cat >/tmp/home/script <<'END'
export HOME=/tmp/home XDG_RUNTIME_DIR=/tmp/home
boxlaunch run -q /hello -- true
boxlaunch run /hello -- echo ran 2>&1 | sed 's/inspect hello-[0-9a-f]*/inspect NAME/'
boxlaunch run --jail require /hello -- echo ran; echo $?
boxlaunch run --json /hello -- true | sed 's/.*"jail":\({.*}]}\).*/\1/'
boxlaunch run -d --name mine --disk 64MiB /hello 2>/dev/null; boxlaunch inspect mine | grep jail
boxlaunch inspect --json mine | sed 's/.*"vmm":\([0-9]*\),"protocol.*/\1/' >/tmp/home/vmm
END
su me -c 'sh /tmp/home/script'
vmm=$(cat /tmp/home/vmm)
sh /tmp/audit $$ $vmm >&2; sed -n 's/^[UG]id:\t//p' /proc/$vmm/status | tr '\t' '\n' | sort -u >&2
"#;
/// Starts boxlaunch as the user of [`USER`], in a control group that is delegated to this user, as service managers do it. Prints
/// the delegated group and its child groups, each with its number of processes and its memory limit.
const DELEGATED: &str = r#"
mine=/sys/fs/cgroup/mine; mkdir $mine
echo '+cpu +memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
chown me $mine $mine/cgroup.procs $mine/cgroup.subtree_control
start="su me -c 'XDG_RUNTIME_DIR=/tmp/home exec boxlaunch run --name limited --jail require /hello'"
sh -c "echo \$\$ >$mine/cgroup.procs; exec $start" 2>/tmp/limited &
until grep -qE 'ready|error' /tmp/limited; do sleep 0.1; done
cat /tmp/limited >&2
cd $mine
for group in . *-* supervisor; do
    echo ${group%-*} $(wc -l <$group/cgroup.procs) $(cat $group/memory.max)
done
kill $!; wait
"#;
/// Three users of the host connect to all sockets of two boxes: one box of root and one of the user `owner`. Only root and the
/// box's owner succeed.
const OTHERS: &str = r#"
echo 'other:x:1002:1002::/tmp:/bin/sh' >>/etc/passwd
echo 'owner:x:1003:1003::/tmp:/bin/sh' >>/etc/passwd; echo 'kvm:x:104:me,owner' >>/etc/group
for user in root owner; do mkdir -m 755 /tmp/of-$user; chown $user /tmp/of-$user; done
start="boxlaunch run -d --name private /hello"
XDG_RUNTIME_DIR=/tmp/of-root $start >/dev/null 2>&1
su owner -c "HOME=/tmp/of-owner BOXLAUNCH_STATE=/tmp/of-owner/state XDG_RUNTIME_DIR=/tmp/of-owner $start" >/dev/null 2>&1
for owner in root owner; do
    cd /tmp/of-$owner/boxlaunch-*; sockets=$(echo $PWD/*.sock $PWD/vmm/*.sock)
    echo of $owner: *.sock vmm/*.sock
    for user in root owner other; do echo $user $(su $user -c "/bin/intruder connect $sockets"); done
done
cd /; boxlaunch stop private >/dev/null
su owner -c "HOME=/tmp/of-owner BOXLAUNCH_STATE=/tmp/of-owner/state boxlaunch stop private" >/dev/null
"#;
/// Runs `intruder` in the place of the VMM: in the jail, in the jail with a writable directory, and without a jail, where all
/// attempts succeed.
const INTRUDER: &str = r#"
boxlaunch run -d --name victim /hello >/dev/null
record=$(boxlaunch inspect --json victim)
field() { echo "$record" | sed "s/.*\"$1\":\"*\([^,\"]*\).*/\1/"; }
receipt=$(find $BOXLAUNCH_STATE/verified -type f | head -n1)
blob=$(ls -S /tmp/hello/blobs/sha256/* | head -n1)
ip link set lo up; nc -ll -p 7777 -e true & echo x >/tmp/secret
aims="write-receipt=$receipt write-record=$BOXLAUNCH_STATE/boxes/victim/record.json write-blob=$blob write-own-blob=$blob change-own-blob=$blob
read-file=/tmp/secret create-file=/tmp/created connect-socket=$(field agent_socket) connect-tcp=7777
connect-supervisor=$(dirname $(field agent_socket))/supervisor.sock connect-vmm=$(dirname $(field agent_socket))/vmm/agent.sock
see-process=$(field supervisor) signal=$(field supervisor) trace=$(field supervisor) read-memory=1
execute=/bin/true mount=/mnt make-device=/tmp/device make-link=/tmp/link change-mode=$blob"
mkdir -p /mnt
intruder jailed /tmp/hello $BOXLAUNCH_STATE $aims
echo serving:; mkdir /tmp/served; intruder serving /tmp/served /tmp/hello $BOXLAUNCH_STATE $aims
intruder free $aims >&2
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let boxfile = hello_checkout(dir.path());
    let bundle = dir.path().join("hello.box");
    let declaration = dir.path().join("hello");
    std::fs::write(&declaration, boxfile).unwrap();
    bake(&declaration, &tools.programs.box_init, &bundle);
    let host =
        tools.host.clone().file(&bundle, "/hello").file(&tools.programs.intruder, "/bin/intruder");
    Scenario::default()
        .anew()
        .script(20, "audit", AUDIT)
        .script(20, "root", ROOT)
        .script(30, "user", USER)
        .script(20, "delegated", DELEGATED)
        .script(30, "others", OTHERS)
        .script(
            120,
            "intruder",
            &format!("export BOXLAUNCH_STATE=/tmp/state; cp -r /hello /tmp/hello; {INTRUDER}"),
        )
        .step_within(UNHURRIED, "trace", "boxlaunch run --jail trace /hello -- echo ran")
        .start(&host)
});

fn the_process_has_what_the_table_says() {
    let audit = &STEPS["audit"];
    assert_eq!(audit.status, 0, "{audit:?}");
    insta::assert_snapshot!(audit.stdout);
}

fn roots_machines_have_ids_and_limits_of_their_own() {
    let step = &STEPS["root"];
    let lines: Vec<&str> = step.stdout.lines().collect();
    let [one, groups, memory, pids, cpu, other, ..] = lines[..] else { panic!("{step:?}") };
    let id = |text: &str| text.parse::<u32>().unwrap();
    assert!(id(one) >= 0x7000_0000 && id(other) >= 0x7000_0000 && one != other, "{step:?}");
    assert_eq!(
        [groups, memory, pids, cpu],
        ["groups 104 ", "memory 536870912", "pids 33", "cpu 100000 100000"]
    );
    assert_eq!(lines.len(), 10, "no control group is left: {step:?}");
}

fn a_user_is_told_what_the_host_lacks() {
    let step = &STEPS["user"];
    insta::assert_snapshot!(format!("{}\n--\n{}", step.stdout, step.stderr));
}

/// Fails if a process stays in the delegated group itself, instead of a child group with a memory limit.
fn a_group_that_is_handed_over_limits_the_machine() {
    let step = &STEPS["delegated"];
    assert_eq!(
        step.stdout,
        ". 0 max\nboxlaunch 1 536870912\nsupervisor-boxlaunch 1 1073741824\nsupervisor 0 max\n",
        "{step:?}"
    );
}

/// Fails if other users can enter the runtime directory.
fn no_other_user_reaches_a_socket() {
    let step = &STEPS["others"];
    insta::assert_snapshot!(format!("{}\n--\n{}", step.stdout, step.stderr));
}

fn a_program_in_the_place_of_the_vmm_gets_nowhere() {
    let step = &STEPS["intruder"];
    let attempts = step.stdout.lines().filter(|it| *it != "serving:").count();
    let done: Vec<_> = step.stdout.lines().filter(|it| it.ends_with(" done")).collect();
    assert_eq!(done, ["open-device done"; 2], "{step:?}");
    VMM_ATTEMPTS.check(attempts as f64);
    // This line has the duration of hashing, which depends on the size of the box's kernel.
    let hashed = |line: &&str| line.starts_with("boxlaunch: verified hello in ");
    let free: Vec<_> = step.stderr.lines().filter(|line| !hashed(line)).collect();
    insta::assert_snapshot!(format!("jailed:\n{}\nfree:\n{}", step.stdout, free.join("\n")));
}

fn a_trace_runs_the_box() {
    assert_eq!(STEPS["trace"].stdout, "ran\n", "{:?}", STEPS["trace"]);
}

tests![
    the_process_has_what_the_table_says,
    roots_machines_have_ids_and_limits_of_their_own,
    a_user_is_told_what_the_host_lacks,
    a_group_that_is_handed_over_limits_the_machine,
    no_other_user_reaches_a_socket,
    a_program_in_the_place_of_the_vmm_gets_nowhere,
    a_trace_runs_the_box
];
