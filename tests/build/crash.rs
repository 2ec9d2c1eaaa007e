//! A build that is killed leaves whole objects only, and the next build succeeds.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Instant;

use box_cache::BlobId;

use crate::checkout::{Checkout, files};

#[test]
fn a_killed_build_leaves_no_half_object() {
    let whole = Checkout::new();
    let started = Instant::now();
    let expected = whole.built(&[])["box"].clone();
    let length = started.elapsed();
    let checkout = Checkout::new();
    for round in 0..40u32 {
        fs::remove_dir_all(checkout.path("store/actions")).ok();
        let mut command = checkout.command();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Spread over the length of a build; where a kill lands does not matter to the outcome.
        sleep(length.mul_f64(f64::from(round) / 40.0));
        child.kill().unwrap();
        child.wait().unwrap();
        check_store(&checkout);
    }
    assert_eq!(checkout.built(&[])["box"], expected);
    assert!(files(&checkout.path("test.box")) == files(&whole.path("test.box")));
}

/// Every object that has a name is what its name says.
fn check_store(checkout: &Checkout) {
    let blobs = checkout.path("store/blobs");
    if !blobs.exists() {
        return;
    }
    for (name, bytes) in files(&blobs) {
        assert_eq!(BlobId::of(&bytes).hex(), name.to_str().unwrap());
    }
}
