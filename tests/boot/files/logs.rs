//! Logs: the files of a run in the agent's `/logs`, and the events that the host keeps.

use std::fs;
use std::path::Path;

use testbed::VirtualHost;

use super::RAN;
use crate::page::{self, assert_page, blocks};
use crate::scenario::{Scenario, as_user, bake, sleeping, tools};
use crate::schema::assert_fits;

const PAGE: &str = include_str!("../../../docs/logs.md");
/// `lines` replaces the times in lines of JSON, which differ from run to run.
const LINES: &str = r#"
lines() { sed 's/"time_ms":[0-9]*/"time_ms":N/'; }
[ "$(id -u)" = 0 ] && cd /tmp || cd
"#;
/// An agent that tries to change its logs, and writes more output than its log files may contain.
const AGENT: &str = r#"#!/bin/sh
ls -ld /logs /logs/* | tr -s ' ' | cut -d' ' -f1,3,4,9
for it in 'echo x >>/logs/stdout.log' 'echo x >/logs/new' 'rm -f /logs/events.jsonl' 'mv /logs/atif /tmp' 'mkdir /logs/atif/d'; do
    sh -c "$it" && echo "done: $it"
done
until grep -q "done: mkdir" /logs/stdout.log; do sleep 0.1; done
read=$(cat /logs/stdout.log); echo "$read" | sed 's/^/read: /'
ln -s /etc/passwd /logs/atif/link; mkfifo /logs/atif/pipe; echo hidden >/logs/atif/.hidden
echo '{"schema_version":"ATIF-v1.4"}' >/logs/atif/a.json; printf 'no json' >/logs/atif/b.txt
box=/a3s/bin/box-exec; $box sh -c 'exit 3' secret; $box ls /logs; $box --timeout 1 sleep 100
cat /logs/events.jsonl; cat /logs/stderr.log | head -n 1
i=0; while [ $i -lt 5 ]; do yes $i | head -c 500000; i=$((i + 1)); done >&2
for it in /logs/stderr.log*; do size=$(stat -c %s $it); tail -n 1 $it; [ $size -gt 0 ] && [ $size -lt 1081344 ] && echo bounded; done
head -c 8000000 /dev/zero >/logs/atif/big || ls -l /logs/atif | wc -l; rm /logs/atif/big
[ ! -e /a3s/tools.json ] || cat /a3s/tools.json
cat "$A3S_AGENT_CONFIG"
"#;
const SEEN: &str = r#"
boxlaunch run -q --name seen /seen 2>errors | lines; grep -v '^[0-4]*$' errors
echo --; boxlaunch logs --task seen | grep -v '"kind":"output"' | lines
echo --; boxlaunch logs --task seen | grep '"stream":"stderr"' | wc -c | cut -c1
boxlaunch logs --task seen >/out/seen.jsonl; boxlaunch logs --since 0s --task seen | wc -l; boxlaunch rm seen
"#;
/// The events of a detached box: commands of the host, and the program of the business component. The box logs no output of
/// the agent. `boxlaunch logs --follow` and `boxlaunch logs` after the box's end must print the same events.
const SERVED: &str = r#"
boxlaunch run -q -d --name served /served; boxlaunch exec served -- sh -c 'exit 4' hidden; boxlaunch health served >/dev/null; boxlaunch cp served:/etc/hosts .
boxlaunch exec --in agent served -- tail -n 1 /logs/events.jsonl | lines
boxlaunch logs --follow --task served >followed & boxlaunch stop --grace 1 served; wait
boxlaunch logs --task served | cmp - followed && sort followed | lines
boxlaunch inspect served | grep -i tools; boxlaunch logs --task none; boxlaunch logs --task --in agent served 2>&1 | head -n 1
"#;

pub(super) fn add(dir: &Path, scenario: Scenario, host: VirtualHost) -> (Scenario, VirtualHost) {
    let (tools, at) = (tools(), |name: &str| dir.join(name));
    testbed::hello::write_images(&tools.programs.hello_agent, &at("images")).unwrap();
    fs::write(at("all.sh"), AGENT).unwrap();
    fs::write(at("agent.sh"), blocks(PAGE, "sh").join("\n") + "\n").unwrap();
    let page = blocks(PAGE, "kdl").join("\n") + "\nvm cpus=1 memory=\"384MiB\"\n";
    let seen = sleeping("seen").replace("\"/bin/sleep\" \"1000\"", "\"/all.sh\"").replacen(
        "image",
        "file \"all.sh\" to=\"/all.sh\" mode=\"0755\"\n    tools \"bash\" \"read\"\n    image",
        1,
    ) + "logs\nhook \"session-end\" \"/all.sh\"\n";
    let served = sleeping("served").replacen(
        "user \"1001:1002\"",
        "user \"1001:1002\"\n    entrypoint \"/bin/sh\" \"-c\" \"echo up; exit 5\"\n    autostart #true",
        1,
    ) + "logs stdout=#false stderr=#false\n";
    for (name, text) in [("seen", seen), ("served", served), ("counter", page)] {
        fs::write(at(&format!("Boxfile.{name}")), text).unwrap();
        bake(&at(&format!("Boxfile.{name}")), &tools.programs.box_init, &at(name));
    }
    let host = ["seen", "served", "counter"]
        .into_iter()
        .fold(host, |host, name| host.file(at(name), format!("/{name}")));
    let with = |script: &str| format!("{LINES}\n{script}");
    let scenario = scenario
        .script(40, "seen", &with(SEEN))
        .script(40, "served", &with(SERVED))
        .script(20, "page", &page::script(PAGE, "ln -s /counter counter.box"))
        .script(20, "user", &as_user(&with("boxlaunch run -q --rm /counter")));
    (scenario, host)
}

fn the_agent_reads_its_logs_and_writes_trajectories_alone() {
    insta::assert_snapshot!(RAN.0["seen"].stdout, @r#"
    drwxr-xr-x root root /logs
    drwxr-xr-x agent agent /logs/atif
    -rw-r--r-- root root /logs/events.jsonl
    -rw-r--r-- root root /logs/stderr.log
    -rw-r--r-- root root /logs/stdout.log
    done: mkdir /logs/atif/d
    read: drwxr-xr-x root root /logs
    read: drwxr-xr-x agent agent /logs/atif
    read: -rw-r--r-- root root /logs/events.jsonl
    read: -rw-r--r-- root root /logs/stderr.log
    read: -rw-r--r-- root root /logs/stdout.log
    read: done: mkdir /logs/atif/d
    {"time_ms":N,"component":"agent","kind":"start"}
    {"time_ms":N,"component":"agent","kind":"ready"}
    {"time_ms":N,"component":"business","kind":"command","command":256,"by":"agent","argv":["sh","-c","exit 3","secret"]}
    {"time_ms":N,"component":"business","kind":"command-end","command":256,"status":3}
    {"time_ms":N,"component":"business","kind":"command","command":257,"by":"agent","argv":["ls","/logs"]}
    {"time_ms":N,"component":"business","kind":"command-end","command":257,"status":1}
    {"time_ms":N,"component":"business","kind":"command","command":258,"by":"agent","argv":["sleep","100"]}
    {"time_ms":N,"component":"business","kind":"command-end","command":258,"status":137,"timed_out":true}
    sh: can't create /logs/stdout.log: Permission denied
    4
    bounded
    4
    bounded
    7
    ["bash","read_file"]
    {"version":1,"mcpServers":{},"agents":[],"hooks":[{"event":"session-end","argv":["/all.sh"]}]}
    sh: can't create /logs/stdout.log: Permission denied
    sh: can't create /logs/new: Read-only file system
    rm: can't remove '/logs/events.jsonl': Read-only file system
    mv: can't remove '/logs/atif': Read-only file system
    ls: /logs: No such file or directory
    head: standard output: I/O error
    --
    {"component":"agent","kind":"start","time_ms":N}
    {"component":"agent","kind":"ready","time_ms":N}
    {"argv":["sh","-c","exit 3","secret"],"by":"agent","command":256,"component":"business","kind":"command","time_ms":N}
    {"command":256,"component":"business","kind":"command-end","status":3,"time_ms":N}
    {"argv":["ls","/logs"],"by":"agent","command":257,"component":"business","kind":"command","time_ms":N}
    {"command":257,"component":"business","kind":"command-end","status":1,"time_ms":N}
    {"argv":["sleep","100"],"by":"agent","command":258,"component":"business","kind":"command","time_ms":N}
    {"command":258,"component":"business","kind":"command-end","status":137,"time_ms":N,"timed_out":true}
    {"component":"agent","kind":"end","status":0,"time_ms":N}
    {"component":"agent","file":"a.json","kind":"trajectory","time_ms":N,"trajectory":{"schema_version":"ATIF-v1.4"}}
    {"component":"agent","file":"b.txt","kind":"trajectory","text":"no json","time_ms":N}
    --
    3
    0
    seen
    "#);
}

fn each_line_is_as_the_schema_says() {
    let lines = str::from_utf8(&RAN.1[Path::new("seen.jsonl")]).unwrap();
    lines.lines().for_each(|line| assert_fits("run-log", &serde_json::from_str(line).unwrap()));
}

fn the_host_keeps_what_happened() {
    insta::assert_snapshot!(RAN.0["served"].stdout, @r#"
    served
    {"time_ms":N,"component":"agent","kind":"command","command":1,"by":"host","argv":["tail"]}
    served
    {"argv":["sh"],"by":"host","command":1,"component":"business","kind":"command","time_ms":N}
    {"argv":["tail"],"by":"host","command":1,"component":"agent","kind":"command","time_ms":N}
    {"by":"host","command":1,"component":"business","kind":"command","own":"pack","time_ms":N}
    {"command":1,"component":"agent","kind":"command-end","status":0,"time_ms":N}
    {"command":1,"component":"business","kind":"command-end","status":0,"time_ms":N}
    {"command":1,"component":"business","kind":"command-end","status":4,"time_ms":N}
    {"component":"agent","kind":"end","status":143,"time_ms":N}
    {"component":"agent","kind":"ready","time_ms":N}
    {"component":"agent","kind":"start","time_ms":N}
    {"component":"business","kind":"end","status":5,"time_ms":N}
    {"component":"business","kind":"output","stream":"stdout","text":"up\n","time_ms":N}
    {"component":"business","kind":"start","time_ms":N}
    error: the argument '--all' cannot be used with '--component <COMPONENT>'
    "#);
    insta::assert_snapshot!(RAN.0["served"].stderr, @r#"
    error: no started box has the name none
      = help: `boxlaunch ps -a` lists the started boxes
    "#);
}

fn the_page_shows_what_happens() {
    assert_page(PAGE, &RAN.0["page"]);
}

fn an_ordinary_user_has_the_same() {
    let expected = "counting\n2\natif\nevents.jsonl\nstderr.log\nstdout.log\n";
    assert_eq!(RAN.0["user"].stdout, expected, "{:?}", RAN.0["user"]);
}

tests![
    the_agent_reads_its_logs_and_writes_trajectories_alone,
    each_line_is_as_the_schema_says,
    the_host_keeps_what_happened,
    the_page_shows_what_happens,
    an_ordinary_user_has_the_same
];
