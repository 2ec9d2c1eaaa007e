//! Tests that the export of a damaged box fails and leaves no file.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};

use box_contract::ComponentName;
use box_inspect::export::{ExportError, OciImage, Ownership, copy_rootfs, file};

use crate::command::{shell, stderr_text};
use crate::made::Made;
use crate::specimens::small;

/// Changes the first byte of the first occurrence of `bytes` in the box's metadata.
fn damage(made: &Made, bytes: &[u8]) {
    let path = made.opened().rootfs.metadata().path.clone();
    let image = fs::read(&path).unwrap();
    let at = image.windows(bytes.len()).position(|window| window == bytes).unwrap();
    // The file is read-only.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    File::options().write(true).open(&path).unwrap().write_all_at(b"X", at as u64).unwrap();
}

/// Checks that the export of a component fails in every form and leaves no file.
fn refused(made: &Made, expected: &str) {
    let before = made.names();
    let export = made.component(ComponentName::Agent);
    let errors = [
        file(&made.path("a"), |out| export.tar(out)).unwrap_err(),
        export.directory(&made.path("b"), Ownership::Box).unwrap_err(),
        OciImage::of(&export).map(drop).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.to_string(), expected);
    }
    let error = file(&made.path("c"), |out| copy_rootfs(&made.opened(), out)).unwrap_err();
    assert!(matches!(error, ExportError::Damaged(_)), "{error}");
    assert_eq!(made.names(), before);
}

#[test]
fn a_file_in_blocks_of_its_own() {
    let made = Made::of(&small());
    damage(&made, &[2; 4096]);
    refused(
        &made,
        "the rootfs of the box is damaged: /srv/block-and-one does not have the content that the listing names",
    );
}

#[test]
fn a_file_after_its_inode() {
    let made = Made::of(&small());
    damage(&made, b"not a program either");
    refused(
        &made,
        "the rootfs of the box is damaged: /bin/ping does not have the content that the listing names",
    );
}

#[test]
fn a_part_of_the_image_that_is_not_exported() {
    let made = Made::of(&small());
    let path = made.opened().rootfs.metadata().path.clone();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    // The byte belongs to no file: the superblock begins at 1024.
    File::options().write(true).open(&path).unwrap().write_all_at(b"X", 7).unwrap();
    fs::create_dir(made.path("out")).unwrap();
    let script = "for form in erofs tar dir 'oci --component agent' 'tar -o -'; do \
                  \"$0\" export ../made.box --format $form; echo $? $(ls -A); done";
    let output = shell(&made.path("out"), script, &[]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout.clone()).unwrap(), "1\n1\n1\n1\n1\n");
    let message = stderr_text(&output);
    assert_eq!(message.matches("has the digest sha256:").count(), 4, "{message}");
    assert_eq!(message.matches("its first block is another").count(), 1, "{message}");
}

#[test]
fn damage_between_two_readings_of_an_image() {
    let made = Made::of(&small());
    let export = made.component(ComponentName::Agent);
    let image = OciImage::of(&export).unwrap();
    damage(&made, b"not a program either");
    let before = made.names();
    assert!(image.write_directory(&made.path("layout")).is_err());
    assert!(file(&made.path("image.tar"), |out| image.write_archive(out)).is_err());
    assert_eq!(made.names(), before);
}

#[test]
fn what_a_reader_cannot_take_is_an_error() {
    let made = Made::of(&small());
    let export = made.component(ComponentName::Agent);
    let mut whole = Vec::new();
    export.tar(&mut whole).unwrap();
    for room in [0, 511, 512, 2000, 10_000, whole.len() - 1] {
        let error = export.tar(&mut vec![0; room].as_mut_slice()).unwrap_err();
        assert!(matches!(error, ExportError::Write(_)), "{room}: {error}");
    }
    export.tar(&mut vec![0; whole.len()].as_mut_slice()).unwrap();
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let made = Made::of(&small());
    fs::create_dir(made.path("full")).unwrap();
    // Limits files to 8 blocks of 512 bytes.
    let script = "trap '' XFSZ; ulimit -f 8; for form in erofs tar dir 'oci --component agent'; do \
                  \"$0\" export ../made.box --format $form; echo $? $(ls -A); done";
    let output = shell(&made.path("full"), script, &[]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout.clone()).unwrap(), "1\n1\n1\n1\n");
    insta::assert_snapshot!(stderr_text(&output), @r"
    error: cannot write made.erofs: File too large (os error 27)
    error: cannot write made.tar: File too large (os error 27)
    error: cannot write /roots/agent/srv/block-and-one of the box: File too large (os error 27)
    error: cannot write made-agent.oci: File too large (os error 27)
    ");
}
