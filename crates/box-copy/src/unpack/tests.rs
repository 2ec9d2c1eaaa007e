//! Copies arrive as they were, and hostile archives reach nothing else.

use std::fs::{self, Permissions, read_link, symlink_metadata};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use proptest::prelude::*;
use tar::{Builder, Header};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::{LeftOut, pack};

fn copy(from: &Path, to: &Path) -> io::Result<LeftOut> {
    let mut archive = Vec::new();
    let left_out = pack(from, &mut archive)?;
    unpack(archive.as_slice(), to).map(|()| left_out)
}

/// Returns a directory with what a directory can have in it.
fn source() -> (TempDir, PathBuf) {
    let dir = tempdir().unwrap();
    let source = dir.path().join("source");
    let deep = source.join("a/b");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(deep.join("run"), Permissions::from_mode(0o4755)).unwrap();
    fs::write(source.join("n".repeat(200)), "long").unwrap();
    symlink("/etc/passwd", source.join("link")).unwrap();
    symlink("t".repeat(300), source.join("long link")).unwrap();
    drop(UnixListener::bind(source.join("socket")).unwrap());
    (dir, source)
}

#[test]
fn a_directory_arrives_in_one_that_is_there_under_its_name_and_else_as_the_path() {
    let (dir, source) = source();
    fs::create_dir(dir.path().join("there")).unwrap();
    for (to, arrived) in [("there", "there/source"), ("new", "new")] {
        assert_eq!(copy(&source, &dir.path().join(to)).unwrap(), LeftOut(1));
        let arrived = dir.path().join(arrived);
        let run = arrived.join("a/b/run");
        assert_eq!(fs::read(&run).unwrap(), b"#!/bin/sh\n");
        assert_eq!(symlink_metadata(run).unwrap().permissions().mode() & 0o7777, 0o755);
        assert_eq!(fs::read(arrived.join("n".repeat(200))).unwrap(), b"long");
        assert_eq!(read_link(arrived.join("link")).unwrap(), Path::new("/etc/passwd"));
        assert_eq!(read_link(arrived.join("long link")).unwrap(), Path::new(&"t".repeat(300)));
        assert!(!arrived.join("socket").exists());
    }
}

#[test]
fn the_content_of_a_directory_arrives_without_its_name() {
    let (dir, source) = source();
    for to in ["new", "new"] {
        copy(&source.join("."), &dir.path().join(to)).unwrap();
        assert!(dir.path().join("new/a/b/run").exists() && !dir.path().join("new/source").exists());
    }
}

#[test]
fn a_file_arrives_in_a_directory_or_in_place_of_another() {
    let (dir, _) = source();
    let [from, to] = ["from", "to"].map(|name| dir.path().join(name));
    fs::write(&from, "new").unwrap();
    fs::write(dir.path().join("kept"), "old").unwrap();
    symlink("kept", &to).unwrap();
    copy(&from, &to).unwrap();
    assert_eq!(fs::read(&to).unwrap(), b"new");
    assert_eq!(fs::read(dir.path().join("kept")).unwrap(), b"old", "a link is replaced");
    for (to, why) in [("missing/", "missing: No such file"), ("missing/a", "missing: No such file")]
    {
        let error = copy(&from, &dir.path().join(to)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let error = copy(&dir.path().join("source"), &from).unwrap_err().to_string();
    assert!(error.starts_with("source: Not a directory"), "{error}");
}

/// Returns an archive of entries: type, path, and content or target.
fn archive(entries: &[(EntryType, &[u8], &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, path, text) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
        let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
        if is_link {
            header.set_link_name_literal(text).unwrap();
        }
        let content = if is_link { "" } else { text };
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn hostile_archives_reach_nothing_else() {
    use EntryType::{Char, Directory, GNULongName, Link, Regular, Symlink, XHeader};
    let dir = tempdir().unwrap();
    let (inside, secret) = (dir.path().join("inside"), dir.path().join("secret"));
    fs::create_dir(&inside).unwrap();
    fs::write(&secret, "secret").unwrap();
    symlink("..", inside.join("up")).unwrap();
    let long = "x".repeat(4097);
    let deep = "a/".repeat(300);
    let hostile: &[&[(EntryType, &[u8], &str)]] = &[
        &[(Regular, b"../secret", "x")],
        &[(Regular, b"/secret", "x")],
        &[(Regular, b"a/../../secret", "x")],
        &[(Regular, b"up/secret", "x")],
        &[(Directory, b"up", "")],
        &[(Symlink, b"out", ".."), (Regular, b"out/secret", "x")],
        &[(Link, b"secret", "../secret")],
        &[(Link, b"taken", "up/secret"), (Regular, b"taken", "x")],
        &[(Char, b"null", "")],
        &[(XHeader, b"pax", "20 path=../secret\n"), (Regular, b"a", "x")],
        &[(GNULongName, b"long", &long), (Regular, b"a", "x")],
        &[(GNULongName, b"long", &deep), (Regular, b"a", "x")],
        &[(Regular, b".", "x"), (Regular, b"up/.", "x")],
    ];
    for entries in hostile {
        assert!(unpack(archive(entries).as_slice(), &inside).is_err(), "{entries:?}");
        assert_eq!(fs::read(&secret).unwrap(), b"secret", "{entries:?}");
        assert!(!inside.join(DRAFT).exists());
    }
    // A link that leads out is a link, and writing to its name replaces it.
    let swapped = archive(&[(Symlink, b"s", "../secret"), (Regular, b"s", "mine")]);
    unpack(swapped.as_slice(), &inside).unwrap();
    assert_eq!(
        (fs::read(inside.join("s")).unwrap(), fs::read(&secret).unwrap()),
        (b"mine".to_vec(), b"secret".to_vec())
    );
    let linked = archive(&[(Regular, b"one", "1"), (Link, b"other", "one")]);
    unpack(linked.as_slice(), &inside).unwrap();
    assert_eq!(fs::read(inside.join("other")).unwrap(), b"1");
}

#[test]
fn a_file_that_breaks_off_is_not_there() {
    let dir = tempdir().unwrap();
    let whole = archive(&[(EntryType::Regular, b"a", &"x".repeat(2000))]);
    assert!(unpack(&whole[..1000], dir.path()).is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_or_leave_the_directory(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        name in proptest::collection::vec(any::<u8>(), 1..90),
        kind in 0..8_u8,
    ) {
        let dir = tempdir().unwrap();
        let inside = dir.path().join("inside");
        fs::create_dir(&inside).unwrap();
        drop(unpack(bytes.as_slice(), &inside));
        let entry = archive(&[(EntryType::new(b'0' + kind), &name, "text")]);
        drop(unpack(entry.as_slice(), &inside));
        prop_assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
