//! `boxlaunch cp`: copies in both directions, streams, errors, and hostile boxes.

use std::fs;
use std::path::Path;

use testbed::VirtualHost;

use super::RAN;
use crate::scenario::{Scenario, Step, bake, hello_checkout, tools};

/// Makes a directory tree on the virtual host, with symbolic links and a pipe.
const TREE: &str = "mkdir -p /tmp/src/a/b /tmp/src/empty; cd /tmp/src
head -c 3000000 /dev/urandom >a/big; echo run >a/b/run; chmod 755 a/b/run; ln -s a/b/run link; ln -s /nowhere broken
long=$(printf '%0180d' 0); echo long >$long; mkfifo pipe";
/// Copies a directory into the box and back, and compares the two.
const AROUND: &str =
    "boxlaunch cp /tmp/src copy:/tmp/new; boxlaunch cp copy:/tmp/new /tmp/back 2>&1
ls -l /tmp/back | grep -c -e '->'; boxlaunch exec copy readlink /tmp/new/broken; rm /tmp/src/pipe /tmp/src/broken
diff -r /tmp/src /tmp/back && echo same
boxlaunch exec copy -- sh -c 'ls -ld /tmp/new/a/b/run | cut -c1-10; stat -c %u:%g /tmp/new/a'";
/// Copies directories and files to an existing directory and to a new path. `/.` copies only the content of a directory.
const PLACES: &str = "boxlaunch exec copy mkdir /tmp/there; boxlaunch cp /tmp/src/a copy:/tmp/there
boxlaunch cp /tmp/src/a/. copy:/tmp/there; boxlaunch exec copy ls /tmp/there
cd /tmp; boxlaunch cp src/a/b/run copy:renamed; boxlaunch exec copy cat renamed
mkdir out; boxlaunch cp copy:/workspace/app/README out; boxlaunch cp copy:README out/other; cat out/README; cmp out/*
boxlaunch cp -u 0 copy:/etc/passwd out; wc -l <out/passwd";
/// Copies to and from standard streams, as archives that the virtual host's tar reads and writes.
const STREAMS: &str = "boxlaunch cp copy:/tmp/there/b - | tar -t
tar -C /tmp/src -cf - a | boxlaunch cp - copy:/tmp/streamed; boxlaunch exec copy ls /tmp/streamed
boxlaunch cp copy:/tmp/new - | head -c 10 | wc -c";
/// The agent's image has one program, and neither a shell nor tar.
const AGENT: &str = "boxlaunch cp --in agent copy:/agent/bin/agent /tmp/agent; head -c 4 /tmp/agent | tail -c 3; echo
boxlaunch cp --in agent /tmp/src/link copy:/tmp/; boxlaunch cp --in agent copy:/tmp/link /tmp/link 2>&1";
/// A signal ends a copy into a stopped VM, which reads nothing. After the VM has continued, a copy works again.
const MUTE: &str = "vmm=$(boxlaunch inspect --json copy | sed 's/.*\"vmm\":\\([0-9]*\\),\"protocol.*/\\1/')
kill -STOP $vmm; boxlaunch cp /tmp/src/a/big copy:/tmp & pid=$!; sleep 1; kill -TERM $pid; wait $pid; echo $?; kill -CONT $vmm
boxlaunch cp /tmp/src/a/big copy:/tmp/big; boxlaunch exec copy sha256sum /tmp/big | cut -c1-64; sha256sum </tmp/src/a/big | cut -c1-64";
/// Copies that fail.
const WRONG: &str = "boxlaunch cp copy:/none /tmp; echo $?; boxlaunch cp /none copy:/tmp; echo $?
boxlaunch cp a b; echo $?; boxlaunch cp copy:/a copy:/b; echo $?; boxlaunch cp /tmp/src/a copy:/none/x; echo $?
boxlaunch cp -u nobody /tmp/src/a copy:/root; echo $?; boxlaunch cp copy:/tmp/new /none/x; echo $?
boxlaunch cp nobody:/a /tmp; echo $?; boxlaunch cp --in agent copy:/etc/passwd /dev/full/x; echo $?";
/// Symbolic links, in the box or from an earlier copy, must not make `boxlaunch cp` write to other paths of the host.
const HOSTILE: &str = "boxlaunch exec copy -- sh -c 'mkdir /tmp/evil; ln -s /tmp/target /tmp/evil/out; ln -s inner /tmp/evil/in; mkfifo /tmp/evil/pipe'
mkdir -p /tmp/into/evil; echo mine >/tmp/into/evil/out
boxlaunch cp copy:/tmp/evil /tmp/into; cat /tmp/into/evil/out; readlink /tmp/into/evil/in
mkdir /tmp/victim; ln -s /tmp/victim /tmp/escape; boxlaunch exec copy -- sh -c 'rm -r /tmp/evil; mkdir /tmp/evil; echo x >/tmp/evil/x'
boxlaunch cp copy:/tmp/evil /tmp/escape; ls /tmp/victim; boxlaunch cp copy:/tmp/evil /tmp/escape/; ls /tmp/victim
boxlaunch rm -f copy";

pub(super) fn add(dir: &Path, scenario: Scenario, host: VirtualHost) -> (Scenario, VirtualHost) {
    let (boxfile, bundle) = (dir.join("Boxfile"), dir.join("copy.box"));
    fs::write(&boxfile, hello_checkout(dir)).unwrap();
    bake(&boxfile, &tools().programs.box_init, &bundle);
    let scripts = [
        ("tree", TREE),
        ("around", AROUND),
        ("places", PLACES),
        ("streams", STREAMS),
        ("agent", AGENT),
        ("wrong", WRONG),
        ("mute", MUTE),
        ("hostile", HOSTILE),
    ];
    let begun = scenario.step("run", "boxlaunch run -d --name copy /copy");
    let all = scripts.iter().fold(begun, |all, (name, script)| all.script(30, name, script));
    (all, host.file(bundle, "/copy"))
}

#[track_caller]
fn step(name: &str) -> &'static Step {
    let step = &RAN.0[name];
    println!("{}\n{}", step.stdout, step.stderr);
    step
}

fn a_directory_comes_back_as_it_went() {
    let links = "boxlaunch: left out: symbolic links that lead out of the copy: 1";
    let expected = format!("{links}\n1\n/nowhere\nsame\n-rwxr-xr-x\n0:0\n");
    assert_eq!(step("around").stdout, expected);
    let special = "boxlaunch: left out: devices, pipes and sockets: 1\n";
    assert_eq!(step("around").stderr, special);
}

fn a_place_that_is_there_gets_more_and_another_is_made() {
    let readme = "The business application would be here.\n";
    assert_eq!(step("places").stdout, format!("a\nb\nbig\nrun\n{readme}2\n"));
}

fn archives_come_and_go_in_streams() {
    assert_eq!(step("streams").stdout, "b/\nb/run\nb\nbig\n10\n");
}

fn a_component_without_any_program_can_be_copied_from_and_to() {
    let link = "error: cannot copy: /tmp/link: it is a symbolic link to a/b/run: copy that";
    assert_eq!(step("agent").stdout, format!("ELF\n{link}\n"));
}

fn a_signal_ends_a_copy_to_a_box_that_reads_nothing() {
    let lines: Vec<&str> = step("mute").stdout.lines().collect();
    assert_eq!(lines[0], "143");
    assert!(lines.len() == 3 && lines[1] == lines[2], "{lines:?}");
}

fn what_cannot_be_copied_is_named() {
    insta::assert_snapshot!(step("wrong").stderr, @r#"
    error: cannot copy: in the box: /none: No such file or directory (os error 2)
    error: cannot copy: /none: No such file or directory (os error 2)
    error: neither path is in a box
      = help: write one of them as NAME:PATH; a path of this host with a colon is ./PATH
    error: both paths are in a box
      = help: copy to this host first
    error: cannot copy: in the box: /none: No such file or directory (os error 2)
    error: cannot copy: in the box: /root/a: Permission denied (os error 13)
    error: cannot copy: /none: No such file or directory (os error 2)
    error: no started box has the name nobody
      = help: `boxlaunch ps -a` lists the started boxes
    error: cannot copy: /dev/full: Not a directory (os error 20)
    "#);
    assert_eq!(step("wrong").stdout, "1\n1\n2\n2\n1\n1\n1\n1\n1\n");
}

fn nothing_that_a_box_has_leads_out_of_the_place_that_is_meant() {
    insta::assert_snapshot!(format!("{}{}", step("hostile").stdout, step("hostile").stderr), @"
    mine
    inner
    evil
    copy
    boxlaunch: left out: symbolic links that lead out of the copy: 1
    the box reports: left out: devices, pipes and sockets: 1
    error: cannot copy: /tmp/escape: Not a directory (os error 20)
    ");
}

tests![
    a_directory_comes_back_as_it_went,
    a_place_that_is_there_gets_more_and_another_is_made,
    archives_come_and_go_in_streams,
    a_component_without_any_program_can_be_copied_from_and_to,
    a_signal_ends_a_copy_to_a_box_that_reads_nothing,
    what_cannot_be_copied_is_named,
    nothing_that_a_box_has_leads_out_of_the_place_that_is_meant
];
