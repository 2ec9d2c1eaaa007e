//! Written archives and directories.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use box_contract::manifest::{INDEX_FILE, KERNEL_TYPE, LAYOUT_FILE, blob_name};
use host_fs::publish::PublishError;
use testkit::test_box::BoxFiles;

use super::*;

#[test]
fn the_same_boxes_give_the_same_bytes() {
    let boxes = boxes(&["one", "two", "three"]);
    let documents = documents(&boxes);
    let write = |order: [usize; 3]| {
        let mut bytes = Vec::new();
        let named = order.map(|at| (&documents[at], Some(["one", "two", "three"][at])));
        let saved = Bundle::of(named).unwrap().write_archive(&mut bytes).unwrap();
        (bytes, saved)
    };
    let (bytes, saved) = write([0, 1, 2]);
    assert!(write([2, 0, 1]).0 == bytes && write([0, 1, 2]).0 == bytes);
    let members = members(&bytes);
    let names: Vec<_> = members.iter().map(|(name, _)| name.clone()).collect();
    let mut manifests: Vec<_> = documents.iter().map(|it| blob_name(&it.digest)).collect();
    manifests.sort();
    assert_eq!(names[..2], [LAYOUT_FILE, INDEX_FILE]);
    assert_eq!(names[2..5], manifests);
    assert!(names[5..].is_sorted());
    assert_eq!(saved.blobs, names.len() - 2);
    assert_eq!(saved.bytes, members[2..].iter().map(|(_, data)| data.len() as u64).sum::<u64>());
    for entry in tar::Archive::new(&*bytes).entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.mode().unwrap(), header.mtime().unwrap()), (0o444, 0));
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
    }
}

#[test]
fn what_boxes_share_is_there_once() {
    let [one, three] = [&["one"][..], &["one", "two", "three"]].map(|names| archive(names).len());
    assert!(three as f64 <= 1.1 * one as f64, "{one} {three}");
}

#[test]
fn what_tar_extracts_is_a_box() {
    let stage = Stage::new();
    let bytes = archive(&["one"]);
    tar::Archive::new(&*bytes).unpack(stage.path("extracted")).unwrap();
    let digest = Documents::read(boxes(&["one"])[0].path()).unwrap().digest;
    assert_eq!(OpenBox::open(&stage.path("extracted")).unwrap().digest, digest);
}

#[test]
fn a_directory_has_the_same_files() {
    let stage = Stage::new();
    let boxes = boxes(&["one", "two"]);
    let documents = documents(&boxes);
    let bundle = Bundle::of(documents.iter().zip([Some("one"), Some("two")])).unwrap();
    let to = stage.path("d/");
    bundle.write_directory(&to).unwrap();
    for (name, data) in members(&archive(&["one", "two"])) {
        assert!(fs::read(to.join(&name)).unwrap() == data, "{name}");
        let mode = fs::metadata(to.join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0, "{name} could be changed by others");
    }
    let archive = Archive::open(&to).unwrap();
    assert_eq!(stage.load(&archive).unwrap().len(), 2);
    assert_eq!(stage.found().len(), 2);
}

#[test]
fn a_name_is_given_only_if_there_is_one() {
    let boxes = boxes(&["one"]);
    let documents = documents(&boxes);
    let mut bytes = Vec::new();
    let bundle = Bundle::of([(&documents[0], None), (&documents[0], None)]).unwrap();
    bundle.write_archive(&mut bytes).unwrap();
    let index = fs::read(boxes[0].path().join(INDEX_FILE)).unwrap();
    assert_eq!(members(&bytes)[1].1, index, "it is the index of the box itself");
}

#[test]
fn a_damaged_blob_is_an_error_and_nothing_is_left() {
    let stage = Stage::new();
    let boxes = boxes(&["one"]);
    let files: &BoxFiles = &boxes[0];
    let documents = documents(&boxes);
    let kernel = files.blob(KERNEL_TYPE);
    for bytes in [&b"a kernem"[..], b"a kerne", b"a kernel and more"] {
        files.replace(&kernel, bytes);
        let bundle = Bundle::of([(&documents[0], None)]).unwrap();
        let errors = [
            bundle.write_file(&stage.path("x.tar")).unwrap_err(),
            bundle.write_directory(&stage.path("x")).unwrap_err(),
        ];
        for error in errors {
            let is_size = matches!(error, ArchiveError::Open(_));
            assert!(is_size || matches!(error, ArchiveError::Damaged { .. }), "{error}");
        }
        assert_eq!(count(stage.dir.path()), 0, "{bytes:?}");
    }
    fs::remove_file(&kernel).unwrap();
    let bundle = Bundle::of([(&documents[0], None)]).unwrap();
    assert!(matches!(bundle.write_file(&stage.path("x.tar")), Err(ArchiveError::Open(_))));
    files.replace(&files.manifest_path(), b"{}");
    assert!(matches!(Bundle::of([(&documents[0], None)]), Err(ArchiveError::Open(_))));
}

#[test]
fn nothing_is_written_over_nor_into_a_box_or_a_store() {
    let stage = Stage::new();
    let boxes = boxes(&["one"]);
    let documents = documents(&boxes);
    let bundle = Bundle::of([(&documents[0], None)]).unwrap();
    drop(stage.store());
    fs::write(stage.path("file"), "precious").unwrap();
    symlink("nowhere", stage.path("link")).unwrap();
    let is_there =
        |error: &ArchiveError| matches!(error, ArchiveError::Publish(PublishError::Exists { .. }));
    for name in ["file", "link", "store", "link/"] {
        let to = stage.path(name);
        let errors =
            [bundle.write_file(&to).unwrap_err(), bundle.write_directory(&to).unwrap_err()];
        assert!(errors.iter().all(is_there), "{name}: {errors:?}");
    }
    for to in [stage.path("store/x.tar"), stage.path("store/blobs/x"), boxes[0].path().join("a/b")]
    {
        let errors =
            [bundle.write_file(&to).unwrap_err(), bundle.write_directory(&to).unwrap_err()];
        let is_within = |it: &ArchiveError| matches!(it, ArchiveError::Within { .. });
        assert!(errors.iter().all(is_within), "{}: {errors:?}", to.display());
    }
    assert_eq!(fs::read(stage.path("file")).unwrap(), b"precious");
    assert_eq!(count(stage.dir.path()), 3);
}

#[test]
fn a_writer_that_fails_is_not_the_box() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let boxes = boxes(&["one"]);
    let documents = documents(&boxes);
    let error = Bundle::of([(&documents[0], None)]).unwrap().write_archive(&mut Full).unwrap_err();
    assert!(matches!(error, ArchiveError::Write(_)), "{error}");
}

#[test]
fn the_name_of_a_path_says_what_is_written() {
    for (path, expected) in [("a.tar", true), ("a.tar/", false), ("a", false), ("a.box", false)] {
        assert_eq!(is_tar(Path::new(path)), expected, "{path}");
    }
    for (path, expected) in [("a.tar.gz", true), ("a.tgz", true), ("a.tar", false), ("a.gz", false)]
    {
        assert_eq!(is_compressed(Path::new(path)), expected, "{path}");
    }
}
