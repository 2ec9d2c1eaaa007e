//! Tasks: the files in the agent's `/task`, and the verdict that boxlaunch derives from the agent's end and its result.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::page::{self, assert_page, blocks};
use crate::scenario::{Scenario, Step, as_user, bake, sleeping, tools};

const PAGE: &str = include_str!("../../docs/tasks.md");
/// An agent that runs its task's `input` as a line of shell.
const AGENT: &str =
    "#!/bin/sh\neval \"$(sed 's/.*\"input\":\"\\(.*\\)\"}$/\\1/' /task/spec.json)\"\n";
/// `task LINE [FIELDS]` writes a task with this line of shell and further JSON fields. `work` also runs it, and prints the messages and
/// the exit status of the run, and the result, which takes the place of another run's.
const TASK: &str = r#"
[ "$(id -u)" = 0 ] && cd /tmp || cd
task() {
    echo "{\"id\":\"t-1\",\"type\":\"shell\",\"description\":\"Do it\",\"input\":\"$1\"${2:+,$2}}" >task.json
}
work() {
    task "$1" "$2"; echo 'of another run' >result.json
    boxlaunch run --rm --task task.json --result result.json /do >log 2>&1; code=$?
    grep -v 'is ready after\|: verified\|jail lacks' log; echo "exit $code"; head -c 60 result.json 2>/dev/null
}
"#;
const SEEN: &str = r#"
work "id -u; ls -l /task | cut -c1-10; sed s/[0-9]*}/N}/ /task/status; sed s/at.:[0-9]*/at/ /task/meta.json; cat /task/spec.json | wc -l; echo x >/task/spec.json; touch /task/new; rm /task/result.json; mv /task/result.json /tmp; rm /task/status; grep ' /task' /proc/mounts | cut -d' ' -f2-4" '"tags":["b","a"],"timeout_seconds":60'
"#;
/// Results that count, and that do not. [`VERIFICATION`] has others.
const VERDICTS: &str = r#"
work 'echo 1 >/task/result.json; sleep 100' '"timeout_seconds":1'
echo --; work 'head -c 1100000 /dev/zero | tr \\0 1 >/task/result.json; head -c 2000000 /dev/zero >/task/result.json; true'
echo --; work 'kill -9 $$'
echo --; task 'echo 3 >/task/result.json; yes | head -n 100000'; boxlaunch run -q --rm --task task.json --result result.json /do | head -c 0; cat result.json
"#;
/// Detached runs with a task: one that completes, two that are stopped, and one whose supervisor is killed. Then a box with a
/// task in its Boxfile.
const BACKGROUND: &str = r#"
task 'sleep 1; echo 6 >/task/result.json'
boxlaunch run -d --name done --task task.json --result later.json /do; boxlaunch task done; boxlaunch wait done; cat later.json
boxlaunch task done; boxlaunch task --json done | sed 's/[0-9]\{6,\}/N/g'; boxlaunch task --result done
task 'sleep 100'
boxlaunch run -d --name stopped --task task.json /do; boxlaunch exec --in business stopped -- ls /task; boxlaunch stop --grace 0 stopped; boxlaunch task stopped
task 'trap : TERM; echo 9 >/task/result.json; sleep 100 & wait; exit 0'; echo 'of another run' >kept.json
boxlaunch run -d --name asked --task task.json --result kept.json /do; sleep 1; boxlaunch stop asked; boxlaunch wait asked; cat kept.json; boxlaunch task asked
boxlaunch run -d --name killed --task task.json /do; kill -9 $(boxlaunch inspect --json killed | sed 's/.*"supervisor":\([0-9]*\),.*/\1/'); sleep 1
boxlaunch task killed; boxlaunch task --result killed; boxlaunch rm -f done stopped asked killed
task 'echo 8 >/task/result.json'
for what in '-- true' --until-ready; do boxlaunch run -q --rm /sleeper $what; echo "exit $?"; done
boxlaunch run --json --rm --task task.json /do | sed 's/.*"task":\({[^}]*}\).*/\1/; s/[0-9]\{6,\}/N/g'
"#;
/// What the agent does in the business component of the box `verified`: `work.sh KIND [STATE]`.
const WORK_IN_BUSINESS: &str = r#"#!/bin/sh
echo ${2:-good} >state
case $1 in
attack)
    rm /bin/tool; echo 'echo replaced' >/bin/tool; chmod 755 /bin/tool
    (i=0; while :; do i=$((i+1)); echo $i >count; done) >/dev/null 2>&1 </dev/null &
    sleep 1; sh /bin/tool; [ -e count ] && echo rewriting;;
link) cd /; rm -r /workspace/app; ln -s /etc /workspace/app;;
slow) touch slow;;
esac
"#;
/// The verification of the box `verified`. It prints what the tool prints, the state that the agent has left, and whether a program
/// still writes to the file `count`.
const CHECK: &str = r#"#!/bin/sh
[ -e slow ] && sleep 100
before=$(cat count 2>/dev/null); sleep 1; left=writing; [ "$(cat count 2>/dev/null)" = "$before" ] && left=gone
echo "$(sh /bin/tool) $(cat state) $left, $(pwd)"
[ "$(cat state)" = good ]
"#;
/// `verify LINE` runs the box `verified` with the task, and prints what the run prints, its exit status, the result, and the task.
const VERIFICATION: &str = r#"
verify() {
    task "$1"; boxlaunch run --name v --task task.json --result result.json ${box:-/verified} >log 2>&1; code=$?
    grep -v 'is ready after\|: verified\|jail lacks' log | sed 's/after [0-9.]* m*s$/after N/'; echo "exit $code"; head -c 60 result.json 2>/dev/null
    boxlaunch task v | sed 's/, [0-9.]* m*s$/, N/'; boxlaunch task --json v >v.json; boxlaunch rm v >/dev/null; echo --
}
exec='/a3s/bin/box-exec /work.sh'
verify "$exec plain bad"; sed 's/[0-9]\{6,\}/N/g; s/\("duration_ms":\)[0-9]*/\1N/' v.json; echo --
verify "$exec attack; sleep 100 & true"
verify "$exec link"
verify "$exec slow"
verify 'echo [7] >/task/result.json; exit 7'
verify 'echo bad >/task/result.json'
box=/homed verify 'echo exit 0 >/h/.profile; sync'
task "$exec slow"; boxlaunch run -q -d --name v --task task.json /verified
until boxlaunch task v | grep -q verifying; do sleep 0.1; done
boxlaunch exec --in business v -- true 2>&1; echo "exit $?"; boxlaunch stop v; boxlaunch task v | sed -n 2p
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    testbed::hello::write_images(&tools.programs.hello_agent, &at("images")).unwrap();
    fs::write(at("do.sh"), AGENT).unwrap();
    fs::write(at("agent.sh"), blocks(PAGE, "sh").join("\n") + "\n").unwrap();
    let of_shell = sleeping("do").replace("\"/bin/sleep\" \"1000\"", "\"/do.sh\"");
    let of_shell =
        of_shell.replacen("image", "file \"do.sh\" to=\"/do.sh\" mode=\"0755\"\n    image", 1);
    let page = blocks(PAGE, "kdl").join("\n") + "\nvm cpus=1 memory=\"384MiB\"\n";
    let sleeper = of_shell.clone()
        + "task \"baked\" type=\"shell\" description=\"Sleep\" input=\"\\\"sleep 100\\\"\"\n";
    fs::write(at("work.sh"), WORK_IN_BUSINESS).unwrap();
    fs::write(at("check.sh"), CHECK).unwrap();
    fs::write(at("tool"), "echo original\n").unwrap();
    let files = "    file \"work.sh\" to=\"/work.sh\" mode=\"0755\"\n    file \"check.sh\" to=\"/check.sh\" mode=\"0755\"\n    \
                 file \"tool\" to=\"/bin/tool\" mode=\"0755\"\n";
    let verified = of_shell.replace("    user \"1001:1002\"\n", files)
        + "task \"baked\" type=\"shell\" description=\"Verify\" input=\"\\\"true\\\"\" { verify \"/check.sh\" timeout=\"5s\"; }\n";
    let homed = of_shell.replacen("image", "env HOME=\"/h\" PATH=\"/h:/bin\"\n    image", 1)
        + "scratch \"h\" guest=\"/h\" size=\"1MiB\"\n"
        + "task \"baked\" type=\"shell\" description=\"Verify\" input=\"\\\"true\\\"\" { verify \"/bin/sh\" \"-lc\" \"echo home is $HOME, programs are in $PATH; exit 1\" component=\"agent\"; }\n";
    for (name, text) in [
        ("do", of_shell),
        ("sleeper", sleeper),
        ("counter", page),
        ("verified", verified),
        ("homed", homed),
    ] {
        fs::write(at(&format!("Boxfile.{name}")), text).unwrap();
        bake(&at(&format!("Boxfile.{name}")), &tools.programs.box_init, &at(name));
    }
    let host = ["do", "sleeper", "counter", "verified", "homed"]
        .into_iter()
        .fold(tools.host.clone(), |host, name| host.file(at(name), format!("/{name}")));
    let with = |script: &str| format!("{TASK}\n{script}");
    Scenario::default()
        .script(30, "seen", &with(SEEN))
        .script(60, "verdicts", &with(VERDICTS))
        .script(30, "background", &with(BACKGROUND))
        .script(90, "verification", &with(VERIFICATION))
        .script(20, "page", &page::script(PAGE, "ln -s /counter counter.box"))
        .script(20, "user", &as_user(&with("work 'id -u; echo 5 >/task/result.json'")))
        .start(&host)
});

fn the_agent_finds_its_task_and_can_write_its_result_alone() {
    insta::assert_snapshot!(STEPS["seen"].stdout, @r#"
    1000
    total 12
    -r--r--r--
    -rw-r--r--
    -r--r--r--
    -r--r--r--
    {"status":"running","started_at":N}
    {"version":1,"created_at,"tags":["a","b"],"timeout_seconds":60}
    1
    /do.sh: eval: line 2: can't create /task/spec.json: Read-only file system
    touch: /task/new: Read-only file system
    rm: can't remove '/task/result.json': Read-only file system
    mv: can't remove '/task/result.json': Read-only file system
    rm: can't remove '/task/status': Read-only file system
    /task tmpfs ro,nosuid,nodev,noexec,relatime,size=1092k,mode=755
    /task/result.json tmpfs rw,nosuid,nodev,noexec,relatime,size=1092k,mode=755
    exit 0
    "#);
}

fn the_verdict_follows_from_the_end_and_the_result() {
    insta::assert_snapshot!(STEPS["verdicts"].stdout, @"
    boxlaunch: the task has failed: its time was up
    exit 124
    1
    --
    head: standard output: I/O error
    boxlaunch: the task has failed: its result is longer than 1048576 bytes
    exit 1
    --
    boxlaunch: the task has failed: the agent ended with the status 137
    exit 137
    --
    3
    ");
}

fn a_task_is_verified_in_a_root_that_the_agent_has_not_changed() {
    insta::assert_snapshot!(STEPS["verification"].stdout, @r#"
    boxlaunch: verifying: /check.sh
    boxlaunch: the end of the verification's output:
    original bad gone, /workspace/app
    boxlaunch: the task has failed: the verification `/check.sh` ended with the status 1
    exit 1
    t-1 (shell): Do it
    failed: the verification `/check.sh` ended with the status 1
    verification: /check.sh, N
    original bad gone, /workspace/app
    --
    {"id":"t-1","type":"shell","description":"Do it","status":"failed","finished_at":N,"error":"the verification `/check.sh` ended with the status 1","verification":{"argv":["/check.sh"],"component":"business","status":1,"timed_out":false,"oom_killed":false,"duration_ms":N,"output":"original bad gone, /workspace/app\n"}}
    --
    replaced
    rewriting
    boxlaunch: verifying: /check.sh
    boxlaunch: the verification has succeeded after N
    exit 0
    t-1 (shell): Do it
    completed
    verification: /check.sh, N
    original good gone, /workspace/app
    --
    boxlaunch: verifying: /check.sh
    boxlaunch: the task has failed: the verification `/check.sh` was not started: take over the working directory /workspace/app: a symbolic link is in its place
    exit 1
    t-1 (shell): Do it
    failed: the verification `/check.sh` was not started: take over the working directory /workspace/app: a symbolic link is in its place
    verification: /check.sh, N
    --
    boxlaunch: verifying: /check.sh
    boxlaunch: the task has failed: the verification `/check.sh` exceeded its time limit
    exit 1
    t-1 (shell): Do it
    failed: the verification `/check.sh` exceeded its time limit
    verification: /check.sh, N
    --
    boxlaunch: the task has failed: the agent ended with the status 7
    exit 7
    [7]
    t-1 (shell): Do it
    failed: the agent ended with the status 7
    verification: /check.sh
    --
    boxlaunch: the task has failed: its result is not JSON: expected value at line 1 column 1
    exit 1
    bad
    t-1 (shell): Do it
    failed: its result is not JSON: expected value at line 1 column 1
    verification: /check.sh
    --
    boxlaunch: verifying: /bin/sh -lc 'echo home is $HOME, programs are in $PATH; exit 1'
    boxlaunch: the end of the verification's output:
    home is /dev/shm/home, programs are in /bin
    boxlaunch: the task has failed: the verification `/bin/sh -lc 'echo home is $HOME, programs are in $PATH; exit 1'` ended with the status 1
    exit 1
    t-1 (shell): Do it
    failed: the verification `/bin/sh -lc 'echo home is $HOME, programs are in $PATH; exit 1'` ended with the status 1
    verification: /bin/sh -lc 'echo home is $HOME, programs are in $PATH; exit 1', N
    home is /dev/shm/home, programs are in /bin
    --
    v
    the task is being verified
    exit 126
    v
    failed: the box ended before it was done
    "#);
}

fn a_task_in_the_background_is_followed_to_its_end() {
    insta::assert_snapshot!(STEPS["background"].stdout, @r#"
    done
    t-1 (shell): Do it
    running
    0
    6
    t-1 (shell): Do it
    completed
    {"id":"t-1","type":"shell","description":"Do it","status":"completed","finished_at":N}
    6
    stopped
    stopped
    t-1 (shell): Do it
    failed: the box ended before it was done
    asked
    asked
    0
    9
    t-1 (shell): Do it
    failed: the box ended before it was done
    killed
    t-1 (shell): Do it
    failed: the box ended before it was done
    done
    stopped
    asked
    killed
    exit 0
    exit 0
    {"description":"Do it","finished_at":N,"id":"t-1","result":8,"status":"completed","type":"shell"}
    "#);
    insta::assert_snapshot!(STEPS["background"].stderr, @"ls: /task: No such file or directory");
}

fn the_page_shows_what_happens() {
    assert_page(PAGE, &STEPS["page"]);
}

fn an_ordinary_user_has_the_same() {
    assert_eq!(STEPS["user"].stdout, "1000\nexit 0\n5\n", "{:?}", STEPS["user"]);
}

tests![
    the_agent_finds_its_task_and_can_write_its_result_alone,
    the_verdict_follows_from_the_end_and_the_result,
    a_task_is_verified_in_a_root_that_the_agent_has_not_changed,
    a_task_in_the_background_is_followed_to_its_end,
    the_page_shows_what_happens,
    an_ordinary_user_has_the_same
];
