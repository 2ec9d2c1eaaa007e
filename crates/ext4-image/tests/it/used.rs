//! `debugfs` can write files into the file systems.

use std::io::Write as _;

use ext4_image::Options;
use tempfile::NamedTempFile;

use crate::tools::{GIB, MIB, check, debugfs, header, made, options, value};

#[test]
fn files_can_be_written() {
    for (size, journal) in [(MIB, false), (8 * MIB, true), (GIB, true), (100 * GIB, false)] {
        let image = made(size, &options(journal));
        let mut source = NamedTempFile::new().unwrap();
        source.write_all(&vec![0x5A; 300_000]).unwrap();
        debugfs(image.path(), "mkdir /directory");
        debugfs(image.path(), &format!("write {} /directory/file", source.path().display()));
        check(image.path());
        let found = debugfs(image.path(), "stat /directory/file");
        assert!(found.contains("Size: 300000"), "{found}");
    }
}

#[test]
fn the_root_has_its_owner_and_mode() {
    let wanted = Options { root_owner: (70_000, 100_001), root_mode: 0o1777, ..options(false) };
    let image = made(MIB, &wanted);
    let found = debugfs(image.path(), "stat /");
    assert!(found.contains("Mode:  01777"), "{found}");
    assert!(found.contains("User: 70000   Group: 100001"), "{found}");
    check(image.path());
    let found = debugfs(image.path(), "stat /lost+found");
    assert!(
        found.contains("Mode:  0700") && found.contains("User:     0   Group:     0"),
        "{found}"
    );
}

#[test]
fn a_small_file_system_has_an_inode_for_every_16_kib() {
    for mebibytes in [1, 2, 100, 1000] {
        let text = header(made(mebibytes * MIB, &options(false)).path());
        assert_eq!(value(&text, "Inode count"), (mebibytes * 64).to_string());
    }
}
