//! A rootfs of several files, which the VMM process opens in its jail.

use std::path::Path;

use box_contract::{Access, BoxConfig, Scope, SharePlan};
use boxlaunch::host::kvm::DEVICE;
use testkit::test_box::{TestBox, config, segment};

use crate::Scene;

/// The boxes have an invalid kernel, so that nothing boots. libkrun reports this error after it has opened all disks.
const NO_KERNEL: &str = "Building the microVM failed: ElfLoadKernel";

/// Starts a box with this number of segments. The start must fail only when the kernel is loaded. With `--jail trace`, the error
/// names a system call that the jail forbids.
fn start(config: &BoxConfig, segments: u8, options: &[&str]) {
    let made = TestBox::with_segments(config, (0..segments).map(|it| segment(it, 1)).collect());
    let scene = Scene { made, state: tempfile::tempdir().unwrap() };
    scene.trust_kvm();
    let ended = scene.run(&[&["run", "--jail", "trace"], options].concat());
    assert!(ended.stderr.contains(NO_KERNEL), "{segments} {options:?}: {ended:?}");
}

#[test]
fn every_part_is_opened_in_the_jail() {
    // Without `/dev/kvm`, the start fails before the disks are opened.
    if Path::new(DEVICE).exists() {
        [0, 1, 254].into_iter().for_each(|segments| start(&config(), segments, &[]));
    }
}

#[test]
fn every_part_is_opened_where_the_guest_can_write_to_a_directory() {
    let mut config = config();
    let (name, guest) = ("work".to_owned(), "/work".to_owned());
    let (access, scope) = (Access::ReadWrite, Scope::Agent);
    config.plan.shares = vec![SharePlan { name, guest, access, scope, host: None }];
    let shared = tempfile::tempdir().unwrap();
    let given = format!("work={}", shared.path().display());
    if Path::new(DEVICE).exists() {
        [1, 254].into_iter().for_each(|segments| start(&config, segments, &["--share", &given]));
    }
}
