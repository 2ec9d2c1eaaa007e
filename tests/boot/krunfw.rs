//! Starts with the kernel of libkrunfw, which a box has that declares no other.

use std::fs;

use testkit::prerequisites::kernel_bundle;
use testkit::promises::KRUNFW_START;

use crate::scenario::{Scenario, assert_ready, bake_with, hello_checkout, tools};

/// What the lean kernel has and this one lacks, and its own release.
const LOOK: &str = "uname -r; ls /proc/config.gz";

#[test]
fn the_hello_box_starts_with_the_kernel_of_libkrunfw() {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("hello.box"));
    fs::write(&boxfile, hello_checkout(dir.path())).unwrap();
    let kernel = kernel_bundle(&tools.workspace, None, &mut |line| println!("{line}")).unwrap();
    bake_with(&kernel, &boxfile, &tools.programs.box_init, &bundle);
    let steps = Scenario::default()
        .step("verify", "boxlaunch verify /hello")
        .run("look", "/hello", LOOK)
        .start(&tools.host.clone().file(&bundle, "/hello"));
    let report = steps["look"].json();
    assert_ready(&report);
    let stdout = report["command"]["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("6.12.113\n") && stdout.lines().count() == 1, "{report}");
    println!("{}", report["phases_ms"]);
    KRUNFW_START.check(report["phases_ms"]["total"].as_f64().unwrap());
}
