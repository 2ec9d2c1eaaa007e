//! `e2fsck` finds no errors in file systems of any size.

use std::ffi::OsStr;
use std::os::unix::fs::FileExt as _;

use proptest::prelude::*;

use crate::tools::{
    BLOCK, GIB, GROUP, KIB, MIB, TIB, UUID, check, header, made, options, run, value,
};

/// Sizes on both sides of a group's end, and of the 128 groups whose descriptors fill a block.
const SIZES: [u64; 24] = [
    MIB,
    MIB + BLOCK - 1,
    8 * MIB,
    GROUP - BLOCK,
    GROUP,
    GROUP + BLOCK,
    GROUP + MIB,
    GROUP + 1300 * KIB,
    GROUP + 2 * MIB,
    2 * GROUP,
    2 * GROUP + BLOCK,
    2 * GROUP + 3 * MIB,
    GIB,
    2 * GIB - BLOCK,
    2 * GIB,
    2 * GIB + BLOCK,
    128 * GROUP,
    128 * GROUP + BLOCK,
    128 * GROUP + 3 * MIB,
    129 * GROUP,
    100 * GIB,
    TIB - BLOCK,
    TIB,
    TIB + 100 * MIB,
];

#[test]
fn borders() {
    for size in SIZES {
        check(made(size, &options(false)).path());
    }
}

#[test]
fn borders_with_a_journal() {
    for size in SIZES.into_iter().filter(|&size| size >= ext4_image::MIN_SIZE_WITH_JOURNAL) {
        check(made(size, &options(true)).path());
    }
}

#[test]
fn it_says_what_it_is() {
    let plain = "ext_attr dir_index sparse_super2 filetype extent sparse_super large_file huge_file \
                 dir_nlink extra_isize metadata_csum";
    for (journal, features, free) in
        [(false, plain.to_owned(), 25_803_179), (true, format!("has_journal {plain}"), 25_786_795)]
    {
        let text = header(made(100 * GIB, &options(journal)).path());
        for (name, expected) in [
            ("Filesystem features", features.as_str()),
            ("Filesystem UUID", UUID),
            ("Filesystem state", "clean"),
            ("Block count", "26214400"),
            ("Inode count", "6553600"),
            ("Reserved block count", "0"),
            ("Free blocks", &free.to_string()),
            ("Free inodes", "6553589"),
            ("Block size", "4096"),
            ("Inode size", "256"),
            ("Backup block groups", "1"),
        ] {
            assert_eq!(value(&text, name), expected, "{name}");
        }
        assert_eq!(text.contains("Total journal size:       64M"), journal, "{text}");
    }
}

#[test]
fn a_damaged_superblock_has_a_copy() {
    let image = made(GIB, &options(true));
    image.as_file().write_all_at(&[0; 4096], 0).unwrap();
    let at = ["-o", "superblock=32768", "-o", "blocksize=4096", "-h"];
    let mut arguments: Vec<&OsStr> = at.into_iter().map(AsRef::as_ref).collect();
    arguments.push(image.path().as_os_str());
    assert_eq!(value(&run("dumpe2fs", &arguments), "Block count"), "262144");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_size(size in 8 * MIB..TIB, shift in 0_u32..16, journal: bool) {
        let size = (size >> shift).max(8 * MIB);
        check(made(size, &options(journal)).path());
    }
}
