//! What the store saves, and that it never serves what it should not.

use std::fs;

use crate::checkout::{BOXFILE, Checkout, files};

#[test]
fn a_second_build_of_the_same_input_reads_no_layer() {
    let checkout = Checkout::new();
    let first = checkout.built(&[]);
    assert_eq!(first["cached"], false);
    // Without their layers' bytes the images cannot be decoded: only the store can give the box.
    for name in ["agent", "business"] {
        for (path, bytes) in files(&checkout.path(&format!("images/{name}/blobs"))) {
            if bytes.starts_with(&[0x1f, 0x8b]) {
                let path = checkout.path(&format!("images/{name}/blobs")).join(path);
                fs::remove_file(path).unwrap();
            }
        }
    }
    let second = checkout.built(&["--output", "second.box"]);
    assert_eq!(second["cached"], true);
    assert_eq!(second["box"], first["box"]);
    assert!(files(&checkout.path("test.box")) == files(&checkout.path("second.box")));
}

#[test]
fn what_both_images_share_is_stored_once() {
    let checkout = Checkout::new();
    let bytes = checkout.built(&[])["rootfs_bytes"].as_u64().unwrap();
    // The shared base has one file of 160,000 bytes; the rest of the box is far smaller.
    assert!((160_000..320_000).contains(&bytes), "the rootfs has {bytes} bytes");
}

#[test]
fn a_changed_declaration_decodes_no_layer_again() {
    let checkout = Checkout::new();
    checkout.built(&[]);
    for name in ["agent", "business"] {
        for (path, bytes) in files(&checkout.path(&format!("images/{name}/blobs"))) {
            if bytes.starts_with(&[0x1f, 0x8b]) {
                let path = checkout.path(&format!("images/{name}/blobs")).join(path);
                fs::remove_file(path).unwrap();
            }
        }
    }
    checkout.write("Boxfile", BOXFILE.replace("\"test\"", "\"renamed\""));
    assert_eq!(checkout.built(&[])["cached"], false);
}

#[test]
fn a_damaged_store_is_noticed_and_never_sealed() {
    let checkout = Checkout::new();
    checkout.built(&[]);
    // Damage every blob but keep its size, as a bad disk would.
    for (path, mut bytes) in files(&checkout.path("store/blobs")) {
        let path = checkout.path("store/blobs").join(path);
        bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
        fs::remove_file(&path).unwrap();
        fs::write(path, bytes).unwrap();
    }
    checkout.write("Boxfile", BOXFILE.replace("\"test\"", "\"renamed\""));
    let errors = checkout.build(&["--output", "damaged.box"]);
    assert_eq!(errors.status.code(), Some(1));
    let errors = String::from_utf8(errors.stderr).unwrap();
    assert!(errors.contains("damaged"), "{errors}");
    assert!(!checkout.path("damaged.box").exists());
}
