//! Starts a box with libkrunfw's kernel, the default of `boxbuild build`.

use std::fs;

use testbed::prerequisites::kernel_bundle;
use testbed::promises::{HELLO_JAIL, KRUNFW_START};

use crate::scenario::{Scenario, assert_ready, bake_with, hello_checkout, sleeping, tools};

/// Prints the kernel's release. The `ls` fails, because only the lean kernel has `/proc/config.gz`.
const LOOK: &str = "uname -r; ls /proc/config.gz";

/// Reads a read-only share, in which this kernel does not map owners, and writes to a writable one. Then writes to two of root.
const SHARES: &str = "mkdir -p /tmp/k/read /tmp/k/write /tmp/k/more; cd /tmp/k; echo text >read/file
boxlaunch run -q -v ./read:/r -v ./write:/w:rw /hello -- sh -c 'cat /r/file; echo written >/w/file; ls -ln /w/file | tr -s \" \" | cut -d\" \" -f3,4'
cat write/file; boxlaunch run -q -v ./write:/w:rw -v ./more:/m:rw /hello -- sh -c 'ls -ln /w/file | tr -s \" \" | cut -d\" \" -f3,4; echo more >/m/file'; cat more/file";

fn the_hello_box_starts_with_the_kernel_of_libkrunfw() {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("hello.box"));
    fs::write(&boxfile, hello_checkout(dir.path())).unwrap();
    let kernel = kernel_bundle(&tools.workspace, None, &mut |line| println!("{line}")).unwrap();
    bake_with(&kernel, &boxfile, &tools.programs.box_init, &bundle);
    let warned = dir.path().join("warned.box");
    let policy = "sandbox \"default\" fallback=\"warn\"\n";
    fs::write(&boxfile, sleeping("warned") + policy).unwrap();
    bake_with(&kernel, &boxfile, &tools.programs.box_init, &warned);
    let steps = Scenario::default()
        .step("verify", "boxlaunch verify /hello")
        .run("look", "/hello", LOOK)
        .script(20, "shares", SHARES)
        .run("warned", "/warned", "touch /workspace/new")
        .start(&tools.host.clone().file(&bundle, "/hello").file(&warned, "/warned"));
    assert_eq!(steps["shares"].stdout, "text\n0 0\nwritten\n0 0\nmore\n", "{:?}", steps["shares"]);
    // This kernel has no Landlock, so mounts alone enforce the policy.
    let command = &steps["warned"].json()["command"];
    assert_eq!(command["sandbox"]["state"], "without-landlock", "{command}");
    let refused = command["stderr"].as_str().unwrap();
    assert!(refused.contains("Read-only file system"), "{command}");
    let report = steps["look"].json();
    assert_ready(&report);
    let stdout = report["command"]["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("6.12.113\n") && stdout.lines().count() == 1, "{report}");
    println!("{}", report["phases_ms"]);
    let phase = |name: &str| report["phases_ms"][name].as_f64().unwrap();
    HELLO_JAIL.check(phase("jail"));
    KRUNFW_START.check(phase("total"));
}

tests![the_hello_box_starts_with_the_kernel_of_libkrunfw];
