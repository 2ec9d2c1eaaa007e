//! Shares: read-only by default. Files that a box writes belong to the user who runs boxlaunch, or if root runs it, to the owner
//! of the share.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::page::{self, assert_page, blocks};
use crate::scenario::{Scenario, Step, as_user, bake_named, hello_checkout, sleeping, tools};

/// The page's `kdl` blocks are declarations of the boxes `page` and `desk`.
const PAGE: &str = include_str!("../../docs/files.md");
const WATCHER: &str = "business {\n    file \"watcher\" to=\"/watcher\" mode=\"0755\"\n";
const SKILLED: &str = r#"
skill "hot" path="hot" mode="mount"
scratch "a" guest="/var/a" size="1MiB"
scratch "b" guest="/var/b" size="1MiB"
"#;
/// Makes `h/project`, with a file that only its owner can read, and with symbolic links to paths outside.
const PROJECT: &str = "mkdir -p h/project/open h/other; echo canary >h/other/secret; chmod 600 h/other/secret; cd h/project
echo text >file; chmod 600 file; chmod 777 open; ln -s /etc/hostname up; ln -s ../other/secret beside; cd ../..
";
/// Commands for the business component, whose user differs from the agent's.
const BUSINESS: &str = r#"
ls -ln /w/file | tr -s " " | cut -d" " -f1,3,4; cat /w/file /r/secret; ls -ln /r/secret | tr -s " " | cut -d" " -f3,4; echo new >/w/new; ls -ln /w/new | tr -s " " | cut -d" " -f3,4
grep -E " /[wr] " /proc/mounts | cut -d" " -f2-4 | cut -c1-28; (echo no >/r/no) 2>&1 | grep -o "Read-only.*"
cat /w/beside 2>&1 | grep -o "No such.*"; cat /w/up; mkfifo /w/fifo; chown 5:6 /w/new; touch -d "2001-02-03 04:05:06" /w/new
chmod 4755 /w/new 2>&1 | grep -o "not permitted"; chmod 2755 /w/new 2>&1 | grep -o "not permitted"; chmod 755 /w/new
ln -s new /w/link; ln /w/new /w/hard; mv /w/hard /w/open/hard; truncate -s 3 /w/file; rm /w/beside"#;
const ROOT: &str = r#"echo root >/w/root; mknod /w/null c 1 3 2>&1 | grep -o "not permitted"; ls -ln /w/root | tr -s " " | cut -d" " -f3,4"#;
const THIRD: &str = r#"echo third >/w/open/third; (echo third >/w/third) 2>&1 | grep -o "Permission.*"; ls -ln /w/open/third | tr -s " " | cut -d" " -f3,4"#;

/// Returns commands for root or an ordinary user of the host. They share directories with a box, run commands in it, and print
/// the files on the host and the VMM's properties.
fn session() -> String {
    format!(
        r#"{PROJECT}
boxlaunch run -q -d --name seen -v h/project:/w:rw -v h/other:/r /seeing
boxlaunch exec --in business seen -- sh -c '{BUSINESS}'
boxlaunch exec --in business -u 0 seen -- sh -c '{ROOT}'
boxlaunch exec --in business -u 77:78 seen -- sh -c '{THIRD}'
boxlaunch exec --in agent seen -- sh -c 'echo agent >/w/open/agent; ls -ln /w/open/agent | tr -s " " | cut -d" " -f3,4; cat /w/new'
echo late >h/project/late; boxlaunch exec seen -- cat /w/late
ls -l h/project h/project/open | tr -s ' ' | cut -d' ' -f1,3,4,9 | grep -v total; stat -c %Y h/project/new; cat h/project/file; ls h/other; readlink h/project/link
vmm=$(boxlaunch inspect --json seen | sed 's/.*"vmm":\([0-9]*\),"protocol.*/\1/')
grep -E '^(CapEff|CapBnd|Uid|NoNewPrivs|Seccomp):' /proc/$vmm/status; cut -d' ' -f5,6 /proc/$vmm/mountinfo | grep shares | cut -c1-36
boxlaunch stop seen
"#
    )
}

/// Root shares a directory of another user together with a directory of root. Only one of the two may be writable.
const OF_ANOTHER: &str = r#"
mkdir -p h/users h/roots; chown 1000:1000 h/users
boxlaunch run -q -v h/users:/w:rw -v h/roots:/x --in business -u 0 /seeing -- sh -c 'echo x >/w/x; mkdir /w/d'; echo $?; ls -ln h/users | tr -s ' ' | cut -d' ' -f3,4,9
boxlaunch run -q -v h/users:/w:rw -v h/roots:/x:rw /seeing -- true; echo $?
"#;
/// A VM has at most four disks and share devices. The box `desk` uses all four: two scratch disks, one device for all read-only
/// shares, and one for a writable share.
const DEVICES: &str = r#"
mkdir -p hot project many six; echo first >hot/SKILL.md
boxlaunch run -q -d --name looks --share input=project --skill hot=hot -v .:/w:rw /desk
boxlaunch exec looks -- sh -c 'cat /a3s/skills/hot/SKILL.md; ls -d /w/project; (echo x >/a3s/skills/hot/x) 2>&1 | grep -o "Read-only.*"'
"#;
/// Changes shared files on the host that the box has read: their length, the file under a name, the names, and a skill. After
/// each of two rounds of changes, the box reads them again.
const CHANGES: &str = r#"
cd project; echo text >grows; echo old >other; touch goes; cd ..
look() { boxlaunch exec looks -- sh -c 'cd /data; ls; cat grows other /w/project/grows /w/project/other /a3s/skills/hot/SKILL.md; echo'; }
look; cd project; echo more >>grows; echo new >.new; mv .new other; rm goes; touch comes; echo second >../hot/SKILL.md; look
truncate -s 0 grows; mkdir goes; mv comes goes; rm other; mkdir other; cd ..; look 2>&1
"#;
/// `watcher` in the box counts the inotify events for changes that the box makes in a share.
const WATCHED: &str = r#"
boxlaunch exec looks -- sh -c '
/watcher /w/many >/tmp/heard & sleep 1; cd /w/many
i=0; while [ $i -lt 1500 ]; do : >$i; i=$((i+1)); done; mv 1 2; rm 3; : >end; wait; cat /tmp/heard'
"#;
const MANY: &str = r#"
i=0; while [ $i -lt 600 ]; do echo $i >six/$i; i=$((i+1)); done
boxlaunch exec looks -- sh -c 'cd /w/six; ls | wc -l; cat * | md5sum; for i in 1 2 3 4 5 6 7 8 9; do echo more >>$i$i$i; done; mkdir new; cp 1* new; ls new | wc -l'
i=0; while [ $i -lt 600 ]; do echo $i; i=$((i+1)); done >all; cat $(sort all | sed 's,^,six/,') >/dev/null; ls six/new | wc -l; cat six/555; boxlaunch kill looks
"#;
/// Tries to share directories that the box must not change: the directory of the box itself, boxlaunch's state, and `/proc`. Then
/// replaces `project` by a symbolic link to `/etc`, as an earlier run could: `--share` refuses the link, and `-v` reports it. A box may
/// read its own files.
const REFUSED: &str = r#"
mkdir project; echo first >SKILL.md; cp -r /seeing ./copy.box; run() { boxlaunch run -q "$@" -- echo ran; }
run -v .:/w:rw ./copy.box; run -v ./copy.box:/w:rw ./copy.box
run -v .:/w:rw ./copy.box@$(boxlaunch inspect --json ./copy.box | sed 's/^{"blobs.*"box":"\([^"]*\)".*/\1/')
run -v /tmp:/w:rw /seeing; BOXLAUNCH_STATE=./project/state run -v ./project:/w:rw /seeing
run -v /proc:/w:rw /seeing; run -v /sys/kernel:/w /seeing; run -v /:/w /seeing
rm -r project; ln -s /etc project; run --share input --skill hot=. /desk
run -v .:/w -v ./project:/x ./copy.box
"#;
/// Mounts the read-only share `p/.git` at `/w/.git`, within the writable share `p` at `/w`. Neither component can change it,
/// although the Boxfile declares it for the agent alone. Then mounts directories and a volume at other paths below `/w`.
const NESTED: &str = r#"
mkdir -p p/.git p/other/d q; echo ref >p/.git/HEAD; chmod 600 p/.git/HEAD; ln -s /etc p/link; run() { boxlaunch run -q --share history=p/.git "$@"; }
run -d --name kept -v ./p:/w:rw -v ./q:/w/new:rw -v ./p/other/d:/w/other/d --volume cache:/w/cache /nested 2>&1 | sed 's, /[^ ]*/p/, ,g'
for component in agent business; do boxlaunch exec --in $component kept -- sh -c '
cd /w; cat .git/HEAD; echo x >.git/HEAD; rm .git/HEAD; mv .git git; chmod 0 .git; ln .git/HEAD hard; echo x >made; grep -c " /w/.git " /proc/mounts' 2>&1; done
cut -d' ' -f5,6 /proc/$(boxlaunch inspect --json kept | sed 's/.*"vmm":\([0-9]*\),"protocol.*/\1/')/mountinfo | grep shares | cut -d, -f1
boxlaunch exec kept -- sh -c 'touch /w/new/x /w/cache/x; mv /w/other /w/moved'; boxlaunch kill kept; ls -A p; cat p/.git/HEAD; ls p/new q p/cache p/moved
run -v ./p:/w -v ./q:/w/moved:rw /nested -- touch /w/moved/y; ls p/moved q
for place in none link .git/HEAD; do run -v ./p:/w -v ./q:/w/$place /nested -- true 2>&1 | grep show; done
"#;
/// All devices of a VM in use: the box's disk, a scratch disk, a volume, and one device for two writable shares, whose files
/// belong to the component's user in the box and to the caller on the host.
const FULL: &str = r#"
mkdir -p one two; chown 1000:1000 one two
boxlaunch run -q --disk 32MiB --volume v:/v -v ./one:/one:rw -v ./two:/two:rw /roomy -- sh -c 'echo 1 >/one/a; echo 2 >/two/b; echo 3 >/v/c; echo 4 >/s/d; echo 5 >/tmp/e; ls -ln /one/a /two/b | tr -s " " | cut -d" " -f3,4,9'
ls -ln one two | grep -v total | tr -s ' ' | cut -d' ' -f3,4,9
boxlaunch run -q --disk 32MiB --volume v:/v -v ./one:/one:rw -v ./two:/two /roomy -- true
"#;
/// On a host without mount namespaces, a box without shares starts with `--jail best-effort`. A box with shares does not start.
const UNSHARED: &str = r#"
mkdir project; limit=/proc/sys/user/max_mnt_namespaces; before=$(cat $limit); echo 0 >$limit
boxlaunch run -q --jail best-effort /seeing -- echo ran 2>/dev/null
boxlaunch run -q --jail best-effort -v ./project:/w:rw /seeing -- echo ran; echo $?; echo $before >$limit
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let hello = hello_checkout(dir.path());
    fs::create_dir(at("hot")).unwrap();
    fs::copy(&tools.programs.watcher, at("watcher")).unwrap();
    fs::write(at("hot/SKILL.md"), "---\nname: hot\ndescription: Changes.\n---\n").unwrap();
    let declared = blocks(PAGE, "kdl").join("\n");
    let boxes = [
        ("seeing", sleeping("seeing")),
        ("page", hello.clone() + &declared),
        ("hello", hello),
        ("roomy", sleeping("roomy") + "scratch \"s\" guest=\"/s\" size=\"1MiB\"\n"),
        (
            "nested",
            sleeping("seeing") + "share \"history\" guest=\"/w/.git\" component=\"agent\"\n",
        ),
        ("desk", sleeping("seeing").replace("business {\n", WATCHER) + &declared + SKILLED),
    ];
    let mut host = tools.host.clone();
    for (name, text) in boxes {
        fs::write(at("Boxfile"), text).unwrap();
        bake_named(&at("Boxfile"), &at(name), name);
        host = host.file(at(name), format!("/{name}"));
    }
    host = host.disk(at("store"), "/store");
    let in_directory =
        |name: &str, script: &str| format!("mkdir -p /tmp/{name}; cd /tmp/{name}\n{script}");
    Scenario::default()
        .script(30, "root", &in_directory("root", &session()))
        .script(30, "user", &as_user(&session()))
        .script(20, "another", &in_directory("another", OF_ANOTHER))
        .script(20, "devices", &in_directory("desk", DEVICES))
        .script(20, "changes", &in_directory("desk", CHANGES))
        .script(60, "watched", &in_directory("desk", WATCHED))
        .script(60, "many", &in_directory("desk", MANY))
        .script(20, "refused", &in_directory("refused", REFUSED))
        .script(30, "nested", &in_directory("nested", NESTED))
        .script(30, "nested-user", &as_user(NESTED))
        .script(30, "full", &in_directory("full", FULL))
        .script(20, "unshared", &in_directory("unshared", UNSHARED))
        .script(
            30,
            "page",
            &page::script(
                PAGE,
                "ln -s /hello hello.box; ln -s /page desk.box; export BOXBUILD_STORE=/store",
            ),
        )
        .start(&host)
});

fn the_page_shows_what_happens() {
    assert_page(PAGE, &STEPS["page"]);
}

fn what_a_box_writes_is_the_users_who_launched_it() {
    insta::assert_snapshot!(STEPS["user"].stdout, @"
    seen
    -rw------- 1001 1002
    text
    canary
    1001 1002
    1001 1002
    /r virtiofs ro,nosuid,nodev,
    /w virtiofs rw,nosuid,nodev,
    Read-only file system
    No such file or directory
    business-host
    not permitted
    not permitted
    not permitted
    1001 1002
    Permission denied
    1001 1002
    1000 1000
    new
    late
    h/project:
    prw-r--r-- me me fifo
    -rw------- me me file
    -rw-r--r-- me me late
    lrwxrwxrwx me me link
    -rwxr-xr-x me me new
    drwxrwxrwx me me open
    -rw-r--r-- me me root
    lrwxrwxrwx me me up

    h/project/open:
    -rw-r--r-- me me agent
    -rwxr-xr-x me me hard
    -rw-r--r-- me me third
    981173106
    texsecret
    new
    Uid:	1000	1000	1000	1000
    CapEff:	00000000000000c0
    CapBnd:	0000000000000000
    NoNewPrivs:	1
    Seccomp:	2
    /shares/rw/0 rw,nosuid,nodev,noexec
    /shares/ro/0 ro,nosuid,nodev,noexec
    seen
    ");
}

fn root_shares_what_is_its_own() {
    let of_the_user = &STEPS["user"].stdout;
    let (user, root) = ("Uid:\t1000\t1000\t1000\t1000", "Uid:\t0\t0\t0\t0");
    let expected = of_the_user.replace(" me me ", " root root ").replace(user, root);
    assert_eq!(STEPS["root"].stdout, expected, "{:?}", STEPS["root"]);
}

fn root_shares_what_is_anothers() {
    insta::assert_snapshot!(STEPS["another"].stdout, @"
    0
      
    1000 1000 d
    1000 1000 x
    2
    ");
    insta::assert_snapshot!(STEPS["another"].stderr, @"
    error: writable directories of several users or groups cannot be shared
      = help: the files that a box writes belong to one user: share only writable directories of that user
    ");
}

fn a_box_can_use_all_devices() {
    insta::assert_snapshot!(STEPS["devices"].stdout, @"
    looks
    first
    /w/project
    Read-only file system
    ");
}

fn a_box_can_use_two_directories_with_one_device() {
    let Step { stdout, stderr, .. } = &STEPS["full"];
    insta::assert_snapshot!("full", format!("{stdout}---\n{stderr}"));
}

fn a_change_of_the_host_is_seen_at_once() {
    insta::assert_snapshot!(STEPS["changes"].stdout, @"
    goes
    grows
    other
    text
    old
    text
    old
    first

    comes
    grows
    other
    text
    more
    new
    text
    more
    new
    second

    goes
    grows
    other
    cat: read error: Is a directory
    cat: read error: Is a directory
    second
    ");
}

fn a_program_of_the_box_that_watches_hears_of_fifteen_hundred_files() {
    insta::assert_snapshot!(STEPS["watched"].stdout, @"
    watching
    1500 made
    1 moved away
    1 moved here
    1 removed
    1500 written
    ");
}

fn a_directory_inside_another_is_kept_by_the_host() {
    let root = &STEPS["nested"].stdout;
    insta::assert_snapshot!(root);
    assert_eq!(&STEPS["nested-user"].stdout, root, "{:?}", STEPS["nested-user"]);
}

fn a_box_writes_neither_to_itself_nor_to_what_its_host_keeps() {
    let Step { stdout, stderr, .. } = &STEPS["refused"];
    insta::assert_snapshot!(format!("{stdout}{stderr}"), @"
    ran
    ran
    error: the box's files are in /tmp/refused, which the box may write to: it could replace itself
      = help: start the box by its name in the store, which `boxlaunch images` shows; or say which one you mean, by BOX@sha256:…, which `boxbuild build` prints; or share another directory
    error: the box's files are in /tmp/refused/copy.box, which the box may write to: it could replace itself
      = help: start the box by its name in the store, which `boxlaunch images` shows; or say which one you mean, by BOX@sha256:…, which `boxbuild build` prints; or share another directory
    error: a box must not write to /tmp: boxlaunch keeps its files in /tmp
      = help: share a directory that does not have /tmp in it
    error: a box must not write to /tmp/refused/project: boxlaunch keeps its files in /tmp/refused/project/state
      = help: share a directory that does not have /tmp/refused/project/state in it
    error: cannot share /proc: /proc is a file system of the kernel
      = help: share a directory that has no file system of the kernel, such as /proc, in it
    error: cannot share /sys/kernel: /sys is a file system of the kernel
      = help: share a directory that has no file system of the kernel, such as /proc, in it
    error: cannot share /: /dev is a file system of the kernel
      = help: share a directory that has no file system of the kernel, such as /proc, in it
    error: project, which the box proposes for its share input, leads to /etc
      = help: if you mean that directory: `--share input=/etc`
    boxlaunch: ./project is a link to /etc, which the box sees
    ");
}

fn without_a_mount_namespace_nothing_is_shared() {
    let Step { stdout, stderr, .. } = &STEPS["unshared"];
    insta::assert_snapshot!(format!("{stdout}{stderr}"), @"
    ran
    1
    error: directories are shared only in a mount namespace, which this host does not give: No space left on device (os error 28)
      = help: `boxlaunch doctor` says what this host gives, and what to do
    ");
}

fn six_hundred_files_are_listed_read_and_written() {
    insta::assert_snapshot!(STEPS["many"].stdout, @"
    600
    506311e7b8f55697e31b9f56c02cbc4f  -
    111
    111
    555
    more
    looks
    ");
}

tests![
    the_page_shows_what_happens,
    what_a_box_writes_is_the_users_who_launched_it,
    root_shares_what_is_its_own,
    root_shares_what_is_anothers,
    a_box_can_use_all_devices,
    a_box_can_use_two_directories_with_one_device,
    a_change_of_the_host_is_seen_at_once,
    a_program_of_the_box_that_watches_hears_of_fifteen_hundred_files,
    a_directory_inside_another_is_kept_by_the_host,
    a_box_writes_neither_to_itself_nor_to_what_its_host_keeps,
    without_a_mount_namespace_nothing_is_shared,
    six_hundred_files_are_listed_read_and_written
];
