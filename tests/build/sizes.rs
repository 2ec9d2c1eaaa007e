//! The sizes that SPECIFICATION.md promises.

use std::fs;
use std::path::Path;

use testbed::promises::{BOX_INIT_SIZE, BOX_OVERHEAD, BOXLAUNCH_SIZE};
use testbed::{Artefacts, Profile, Workspace};

use crate::checkout::{Checkout, WHOLE, files, tools};

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

#[test]
fn the_static_programs_are_small() {
    // `tools` builds the programs.
    let init = &tools().init;
    let programs = Artefacts::locate(&Workspace::find(), Profile::Dev);
    let size = |program: &Path| kib(fs::metadata(program).unwrap().len());
    let [init, launcher] = [init, &programs.boxlaunch].map(|it| size(it));
    println!("KiB: box-init {init:.0}, boxlaunch {launcher:.0}");
    BOX_INIT_SIZE.check(init);
    BOXLAUNCH_SIZE.check(launcher / 1024.0);
}

#[test]
fn a_box_is_little_more_than_its_files() {
    let checkout = Checkout::new();
    let rootfs = checkout.built(WHOLE)["rootfs_bytes"].as_u64().unwrap();
    let all: u64 =
        files(&checkout.path("test.box")).iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let kernel = fs::metadata(&tools().kernel).unwrap().len();
    let rest = kib(all - kernel - rootfs);
    println!("a box beside its rootfs and kernel: {rest:.0} KiB");
    BOX_OVERHEAD.check(rest);
}
