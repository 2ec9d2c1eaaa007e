//! Secrets: a secret reaches the component that it is declared for, and its value stays nowhere else. In a read-only system, too:
//! root changes nothing in it.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::page::{self, assert_page, blocks};
use crate::scenario::{Scenario, Step, as_user, bake, sleeping, tools};

/// The page's `kdl` blocks are added to [`BOXFILE`].
const PAGE: &str = include_str!("../../docs/secrets.md");
const BOXFILE: &str = r#"box "secretive"
agent {
    image "oci:images/business"
    entrypoint "/bin/sh" "-c" "echo ${#API_KEY} of $API_URL; exec sleep 1000"
    env API_URL "there" launch=#true
    health "none"
    user "1000:1000"
    limits memory="64MiB" pids=32
}
business {
    image "oci:images/business"
    user "1001:1002"
    limits memory="64MiB" pids=32
}
vm cpus=1 memory="256MiB"
"#;
/// A text that every secret's value contains.
const CANARY: &str = "c4n4ry";
const RUN: &str = "-e API_URL=here --secret CERT=file:/tmp/cert --secret API_KEY=env:KEY --secret TOKEN=- /secretive";
/// Prints the name of the user, which the image does not have, and the secrets that the user sees in a component. Then tries to
/// change one.
const SEEN: &str = "whoami 2>/dev/null; echo ${API_KEY-none}; cd /run/secrets 2>/dev/null && ls -ln | tail -n1 | tr -s \" \" | cut -d\" \" -f1,3,4; \
    cat /run/secrets/cert; cat /etc/app/token; echo x >>/etc/app/token; ls -ld /etc/app | cut -c1-10";
/// Searches for the values in the host's files and records of a box, in the environments of its processes, and in the memory of
/// its supervisor. Also searches for the box's name, `secretive`, which must be found, or else the search is broken.
const SEARCH: &str = r#"
record=$(boxlaunch inspect --json kept); boxlaunch logs kept
field() { echo "$record" | sed "s/.*\"$1\":\"*\([^,\"]*\).*/\1/"; }
memory() {
    while read -r range perms _; do
        case $perms in rw*) ;; *) continue ;; esac
        from=$((0x${range%-*})) to=$((0x${range#*-}))
        dd if=/proc/$1/mem bs=4096 skip=$((from / 4096)) count=$(((to - from) / 4096)) 2>/dev/null
    done </proc/$1/maps
}
vmm=$(echo "$record" | sed 's/.*"vmm":\([0-9]*\),"protocol.*/\1/')
supervisor=$(field supervisor)
for process in $supervisor $vmm; do
    cat /proc/$process/environ /proc/$process/cmdline; ls -l /proc/$process/fd
done >/tmp/found 2>&1
boxlaunch inspect --json kept >>/tmp/found; boxlaunch ps --json >>/tmp/found
boxlaunch logs kept >>/tmp/found
cat $(find $BOXLAUNCH_STATE /tmp/boxlaunch-* -type f) >>/tmp/found
echo files $(grep -c c4n4ry /tmp/found)
echo record $(grep -c secretive /tmp/found | sed 's/[1-9][0-9]*/some/')
memory $supervisor >/tmp/memory
echo memory $(grep -c c4n4ry /tmp/memory)
echo name $(grep -c secretive /tmp/memory | sed 's/[1-9][0-9]*/some/')
"#;

/// Run by an ordinary user, for whom a command sees the secrets of the agent while another sees those of business. The launcher makes
/// itself undumpable while it has the values, so root owns its files in `/proc`.
const USER: &str = r#"export KEY=a; echo c >/tmp/home/c
echo b | boxlaunch run -q --name mine --in agent --secret API_KEY=env:KEY --secret CERT=file:/tmp/home/c --secret TOKEN=- /secretive -- \
    sh -c 'cat /etc/app/token; echo $API_KEY; cat /run/secrets/cert; sleep 3' & sleep 2; boxlaunch exec mine cat /run/secrets/cert; wait
"#;

/// The path of a secret, `/tree/led/app/token`, contains a symbolic link: `/tree/led` points to `/workspace`. The secret is
/// refused if a volume or a share is mounted at `/workspace`.
const LINKED: &str = r#"
mkdir -p /tmp/linked; cd /tmp/linked; export KEY=value
boxlaunch run -q --secret TOKEN=env:KEY /linked -- cat /workspace/app/token; echo
boxlaunch run -q --secret TOKEN=env:KEY --volume leak:/workspace /linked -- echo ran 2>&1 | grep error
boxlaunch run -q --secret TOKEN=env:KEY -v ./:/workspace:rw /linked -- echo ran 2>&1 | grep error; ls
"#;

/// A box whose business component runs as root and has a read-only system, with a secret in it.
const SEALED_BOX: &str = r#"box "sealed"
agent {
    image "oci:images/business"
    entrypoint "/bin/sleep" "1000"
    health "none"
    limits memory="64MiB" pids=32
}
business {
    image "oci:images/business"
    system "read-only"
    file "usr" to="/usr"
    file "sbin" to="/sbin"
    file "lib" to="/lib"
    file "var" to="/var"
    limits memory="64MiB" pids=32
}
vm cpus=1 memory="256MiB"
secret "TOKEN" path="/etc/app/token" component="business"
"#;
/// Tries to change the system as root, and prints what succeeds. Then writes where a component can, and prints files of the system.
const CHANGE: &str = r#"try() { "$@" 2>/dev/null && echo changed "$*"; }
write() { (echo x >"$1") 2>/dev/null; }
echo x >/tmp/file
for path in /new /usr/new /usr/tool /sbin/new /sbin/tool /lib/new /lib/part /bin/busybox /etc/passwd /etc/resolv.conf /etc/app/new /var/lib/dpkg/new /var/lib/dpkg/arch \
    /proc/self/root/usr/tool /proc/1/root/usr/tool /tmp/../usr/tool; do try write $path; done
try mv /usr /old; try mv /etc/passwd /tmp/passwd; try mv /tmp/file /etc/passwd; try mv /bin/sh /bin/old
try mv /var /old; try mv /var/lib /var/old; try mv /var/lib/dpkg /var/lib/old; try rm -r /var/lib/dpkg
try rm /bin/sh; try mkdir /opt; try ln -s /tmp /lib64; try ln /tmp/file /usr/linked; try ln /usr/tool /tmp/linked
try chmod 777 /etc; try chown 1 /usr/tool; try touch /usr/tool
try mount -o remount,rw none /; try mount -o remount,bind,rw none /; try mount -o remount,bind,rw none /var/lib/dpkg
try mount -t tmpfs none /usr; try umount /var/lib/dpkg; try umount /var/lib
write /etc/conf/new && echo share
touch /tmp/a /root/a /workspace/a /workspace/app/a /var/a /var/lib/a && echo elsewhere
cat /usr/tool /sbin/tool /lib/part /var/lib/dpkg/arch /etc/app/token; echo; grep -c options /etc/resolv.conf; head -n 1 /etc/passwd"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("secretive.box"));
    testbed::hello::write_images(&tools.programs.hello_agent, &dir.path().join("images")).unwrap();
    fs::create_dir(dir.path().join("tree")).unwrap();
    fs::write(&boxfile, BOXFILE.to_owned() + &blocks(PAGE, "kdl").join("\n")).unwrap();
    bake(&boxfile, &tools.programs.box_init, &bundle);
    let given = format!(
        "printf '{CANARY}\\0cert\\n' >/tmp/cert; export KEY={CANARY}=key; echo {CANARY} token"
    );
    let run = |arguments: &str| format!("{given} | boxlaunch run {arguments} {RUN}");
    let kept = |line: &str| format!("export BOXLAUNCH_STATE=/tmp/state; {line}");
    let seen = |options: &str| {
        kept(&format!("boxlaunch exec {options} kept -- sh -c '{SEEN}' | tr '\\0' 0"))
    };
    std::os::unix::fs::symlink("/workspace", dir.path().join("tree/led")).unwrap();
    let linked = dir.path().join("linked.box");
    let led = "secret \"TOKEN\" path=\"/tree/led/app/token\" component=\"business\"\n";
    let file = "business {\n    file \"tree\" to=\"/tree\"\n";
    fs::write(&boxfile, sleeping("linked").replace("business {\n", file) + led).unwrap();
    bake(&boxfile, &tools.programs.box_init, &linked);
    let sealed = dir.path().join("sealed.box");
    for (path, text) in [
        ("usr/tool", "a tool\n"),
        ("sbin/tool", "another tool\n"),
        ("lib/part", "a part\n"),
        ("var/lib/dpkg/arch", "amd64\n"),
    ] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(&boxfile, SEALED_BOX).unwrap();
    bake(&boxfile, &tools.programs.box_init, &sealed);
    let change = format!(
        "mkdir -p /tmp/sealed/conf; cd /tmp/sealed; export KEY=value
boxlaunch run -d --name sealed --secret TOKEN=env:KEY -v ./conf:/etc/conf:rw /sealed >/dev/null
boxlaunch exec sealed sh -c '{CHANGE}'; cat conf/new
boxlaunch cp conf/new sealed:/usr/new 2>&1 | grep -o 'Read-only file system'; boxlaunch stop sealed >/dev/null"
    );
    let host = tools.host.clone().file(&bundle, "/secretive").file(&linked, "/linked");
    Scenario::default()
        .anew()
        .script(20, "linked", LINKED)
        .script(30, "sealed", &change)
        .script(
            20,
            "kept",
            &kept(&format!(
                "({}) >/dev/null; unset KEY; {SEARCH}",
                run("-d --name kept --disk 16MiB")
            )),
        )
        // The supervisor passes the values on here, so its memory is searched before.
        .script(5, "business", &seen(""))
        .script(5, "agent", &seen("--in agent"))
        .script(5, "nobody", &seen("--user 5:1002"))
        .script(5, "stopped", &kept("boxlaunch stop kept"))
        .script(10, "user", &as_user(USER))
        .script(20, "page", &page::script(PAGE, "ln -s /secretive keys.box"))
        .start(&host.file(&sealed, "/sealed"))
});

fn each_component_has_its_own_and_only_its_user_reads_a_file() {
    assert_eq!(
        STEPS["business"].stdout,
        "business\nnone\n-r-------- 1001 1002\nc4n4ry0cert\nc4n4ry token\ndrwxr-xr-x\n",
        "{:?}",
        STEPS["business"]
    );
    assert_eq!(STEPS["agent"].stdout, "agent\nc4n4ry=key\nc4n4ry token\ndrwxr-xr-x\n");
    assert_eq!(STEPS["nobody"].stdout, "none\n-r-------- 1001 1002\ndrwxr-xr-x\n");
}

/// Fails if a symbolic link in a secret's path makes init write the value into a volume or a share.
fn a_secret_is_written_nowhere_but_to_memory() {
    insta::assert_snapshot!(STEPS["linked"].stdout, @"
    value
    error: the guest failed to write the secret's file /tree/led/app/token: something is mounted there
    error: the guest failed to write the secret's file /tree/led/app/token: something is mounted there
    app
    ");
}

/// Fails if root changes a part of a read-only system, or if a secret, a share or another directory is not as without one.
fn no_program_changes_a_read_only_system() {
    insta::assert_snapshot!(STEPS["sealed"].stdout, @"
    share
    elsewhere
    a tool
    another tool
    a part
    amd64
    value
    1
    root:x:0:0:root:/root:/bin/sh
    x
    Read-only file system
    ");
}

fn a_user_gives_secrets_too() {
    assert_eq!(STEPS["user"].stdout, "b\na\nc\n", "{:?}", STEPS["user"]);
}

fn the_page_shows_what_happens() {
    assert_page(PAGE, &STEPS["page"]);
}

/// Fails if a value stays in the environment or the memory of the supervisor, or in a file of the host.
fn the_values_are_nowhere_on_the_host() {
    let kept = &STEPS["kept"];
    assert_eq!(kept.stdout, "10 of here\nfiles 0\nrecord some\nmemory 0\nname some\n", "{kept:?}");
}

tests![
    each_component_has_its_own_and_only_its_user_reads_a_file,
    a_secret_is_written_nowhere_but_to_memory,
    no_program_changes_a_read_only_system,
    a_user_gives_secrets_too,
    the_page_shows_what_happens,
    the_values_are_nowhere_on_the_host
];
