//! The files are sparse, have the requested length, and have the same bytes every time.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::tools::{BLOCK, GIB, GROUP, KIB, MIB, TIB, made, options};

/// The unit of `st_blocks`, in bytes.
const SECTOR: u64 = 512;

#[test]
fn few_bytes_are_allocated() {
    for (size, journal, most) in [
        (MIB, false, 44 * KIB),
        (GIB, false, 60 * KIB),
        (100 * GIB, false, 108 * KIB),
        (100 * GIB, true, 112 * KIB),
        (TIB, true, 572 * KIB),
    ] {
        let allocated =
            made(size, &options(journal)).as_file().metadata().unwrap().blocks() * SECTOR;
        assert!(allocated <= most, "{size} {journal}: {allocated}");
    }
}

#[test]
fn the_length_is_rounded_down_to_blocks() {
    for (size, expected) in [(MIB + 1, MIB), (GROUP + 2 * BLOCK - 1, GROUP + BLOCK)] {
        assert_eq!(made(size, &options(false)).as_file().metadata().unwrap().len(), expected);
    }
}

#[test]
fn the_same_options_give_the_same_bytes() {
    let bytes = |options| fs::read(made(GROUP + 3 * MIB, &options).path()).unwrap();
    let once = bytes(options(true));
    assert!(once == bytes(options(true)));
    for other in [
        ext4_image::Options { uuid: [1; 16], ..options(true) },
        ext4_image::Options { root_mode: 0o700, ..options(true) },
        ext4_image::Options { root_owner: (1, 0), ..options(true) },
        options(false),
    ] {
        assert!(once != bytes(other));
    }
}
