//! Tests that copies are unchanged, and that hostile archives change no file outside the destination.

use std::fs::{self, Permissions, read_link, symlink_metadata};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tar::{Builder, Header};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::{LeftOut, by_path, pack};

/// The greatest number of copies during which a directory is exchanged.
const ROUNDS: usize = 20_000;

/// Packs `from` and unpacks it at `to`, as for a copy out of a box. Returns the entries that both ends left out.
fn copy(from: &Path, to: &Path) -> io::Result<LeftOut> {
    let mut archive = Vec::new();
    let LeftOut { special, .. } = pack(&CopyEnd::source(from, by_path)?, &mut archive)?;
    unpack_to(to, &archive, Author::Box(from)).map(|it| LeftOut { special, ..it })
}

fn unpack_to(to: &Path, archive: &[u8], author: Author<'_>) -> io::Result<LeftOut> {
    unpack(archive, CopyEnd::destination(to, by_path)?, author)
}

/// Unpacks the archive that a box sent for `name` into a directory.
fn unpack_as(name: &str, archive: &[u8], to: &Path) -> io::Result<LeftOut> {
    unpack_to(to, archive, Author::Box(Path::new(name)))
}

/// Returns a directory with every supported type of entry.
fn source() -> (TempDir, PathBuf) {
    let dir = tempdir().unwrap();
    let source = dir.path().join("source");
    let deep = source.join("a/b");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(deep.join("run"), Permissions::from_mode(0o4755)).unwrap();
    fs::write(source.join("n".repeat(200)), "long").unwrap();
    symlink("/etc/passwd", source.join("out")).unwrap();
    symlink("../../../source", deep.join("up")).unwrap();
    symlink("../run", deep.join("a-link")).unwrap();
    symlink("t".repeat(300), source.join("long link")).unwrap();
    drop(UnixListener::bind(source.join("socket")).unwrap());
    (dir, source)
}

#[test]
fn a_directory_arrives_in_one_that_is_there_under_its_name_and_else_as_the_path() {
    let (dir, source) = source();
    fs::create_dir(dir.path().join("there")).unwrap();
    for (to, arrived) in [("there", "there/source"), ("new", "new")] {
        assert_eq!(copy(&source, &dir.path().join(to)).unwrap(), LeftOut { special: 1, links: 2 });
        let arrived = dir.path().join(arrived);
        let run = arrived.join("a/b/run");
        assert_eq!(fs::read(&run).unwrap(), b"#!/bin/sh\n");
        assert_eq!(symlink_metadata(run).unwrap().permissions().mode() & 0o7777, 0o755);
        assert_eq!(fs::read(arrived.join("n".repeat(200))).unwrap(), b"long");
        assert_eq!(read_link(arrived.join("a/b/a-link")).unwrap(), Path::new("../run"));
        assert!(
            read_link(arrived.join("out")).is_err() && read_link(arrived.join("a/b/up")).is_err()
        );
        assert_eq!(read_link(arrived.join("long link")).unwrap(), Path::new(&"t".repeat(300)));
        assert!(!arrived.join("socket").exists());
    }
}

#[test]
fn a_file_that_the_kernel_makes_has_its_content() {
    let dir = tempdir().unwrap();
    copy(Path::new("/proc/self/status"), &dir.path().join("status")).unwrap();
    assert!(fs::read_to_string(dir.path().join("status")).unwrap().starts_with("Name:"));
    let error = copy(Path::new("/dev/null"), dir.path()).unwrap_err().to_string();
    assert_eq!(error, "/dev/null: it is neither a file nor a directory nor a link");
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
    symlink(".", dir.path().join("here")).unwrap();
    let error = copy(&dir.path().join("source"), &dir.path().join("here")).unwrap_err();
    assert!(error.to_string().contains("here: Not a directory"), "a planted link: {error}");
    let error = copy(&dir.path().join("here"), &dir.path().join("x")).unwrap_err().to_string();
    assert!(error.ends_with("x: it is a symbolic link to .: copy that"), "{error}");
    for (to, reason) in
        [("missing/", "missing: No such file"), ("missing/a", "missing: No such file")]
    {
        let error = copy(&from, &dir.path().join(to)).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let error = copy(&dir.path().join("source"), &from).unwrap_err().to_string();
    assert!(error.contains("from: Not a directory"), "{error}");
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
        let content = archive(entries);
        for name in [".", std::str::from_utf8(entries[0].1).unwrap()] {
            assert!(unpack_as(name, &content, &inside).is_err(), "{entries:?}");
        }
        assert_eq!(fs::read(&secret).unwrap(), b"secret", "{entries:?}");
    }
    // Links to a target outside the directory are left out. A later file with the name of such a link is created.
    for target in ["../secret", "/secret", "a/../../secret", ".."] {
        let linked = archive(&[(Symlink, b"s", target), (Regular, b"s", "mine")]);
        assert_eq!(unpack_as(".", &linked, &inside).unwrap(), LeftOut { special: 0, links: 1 });
    }
    assert_eq!(fs::read(inside.join("s")).unwrap(), b"mine");
    // An existing link is replaced and not followed.
    symlink("../secret", inside.join("there")).unwrap();
    unpack_as("there", &archive(&[(Regular, b"there", "mine")]), &inside).unwrap();
    assert_eq!(fs::read(inside.join("there")).unwrap(), b"mine");
    assert_eq!(fs::read(&secret).unwrap(), b"secret");
}

#[test]
fn a_box_sends_what_it_was_asked_for_and_nothing_else() {
    use EntryType::{Directory, Regular};
    let dir = tempdir().unwrap();
    for other in [&b".bashrc"[..], b"out2", b"./x/out", b"o"] {
        let content = archive(&[(Directory, b"out/", ""), (Regular, other, "evil")]);
        for to in [dir.path().to_owned(), dir.path().join("new")] {
            let error = unpack_as("/agent/out", &content, &to).unwrap_err().to_string();
            assert!(error.contains("it has the path"), "{error}");
        }
        assert!(!dir.path().join(".bashrc").exists());
    }
    let dir = tempdir().unwrap();
    for cut in [0, 512] {
        let content = archive(&[(Regular, b"out", "")]);
        let error = unpack_as("out", &content[..cut], dir.path()).unwrap_err().to_string();
        assert!(error.contains("it ends too early"), "{error}");
    }
    assert!(unpack_as("out", &[0; 1024], dir.path()).is_err(), "nothing");
}

#[test]
fn a_users_own_archive_may_have_hard_links() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("own"), "own").unwrap();
    let linked = [(EntryType::Regular, &b"one"[..], "1"), (EntryType::Link, b"other", "one")];
    unpack_to(dir.path(), &archive(&linked), Author::User).unwrap();
    assert_eq!(fs::read(dir.path().join("other")).unwrap(), b"1");
    let to_itself = archive(&[(EntryType::Link, b"own", "own")]);
    unpack_to(dir.path(), &to_itself, Author::User).unwrap();
    assert_eq!(fs::read(dir.path().join("own")).unwrap(), b"own");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn copies_beside_each_other_do_not_take_each_others_files() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join(".boxlaunch-cp.part"), "mine").unwrap();
    let big = "x".repeat(1 << 20);
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let content =
                archive(&[(EntryType::Regular, name.as_bytes(), &(name.to_owned() + &big))]);
            let to = dir.path();
            scope.spawn(move || unpack_as(name, &content, to).unwrap());
        }
    });
    for name in ["a", "b", "c", "d"] {
        let content = fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(content.len() == big.len() + 1 && content.starts_with(name), "{name}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5);
}

#[test]
fn a_file_that_breaks_off_is_not_there() {
    let dir = tempdir().unwrap();
    let whole = archive(&[(EntryType::Regular, b"a", &"x".repeat(2000))]);
    assert!(unpack_as("a", &whole[..1000], dir.path()).is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_file_in_the_place_of_another_keeps_its_mode_and_a_link_is_written_through_if_it_may_be() {
    let dir = tempdir().unwrap();
    let (script, link) = (dir.path().join("script"), dir.path().join("link"));
    let write = |text: &str, to: &Path, follows: bool| {
        let place = CopyEnd::destination(to, by_path).unwrap();
        let place = if follows { place.following() } else { place };
        let content = archive(&[(EntryType::Regular, b"any", text)]);
        unpack(content.as_slice(), place, Author::User).unwrap();
    };
    let mode = |path: &Path| symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    fs::write(&script, "old").unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o4755)).unwrap();
    symlink("sub/../script", &link).unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    write("new", &link, true);
    assert_eq!((fs::read_to_string(&script).unwrap(), mode(&script)), ("new".to_owned(), 0o755));
    assert!(read_link(&link).is_ok(), "the link stays");
    write("other", &link, false);
    assert_eq!((fs::read_to_string(&script).unwrap(), mode(&link)), ("new".to_owned(), 0o644));
    // A link to a file that is missing makes the file; a link to itself is an error.
    symlink("missing", dir.path().join("dangling")).unwrap();
    write("made", &dir.path().join("dangling"), true);
    assert_eq!(fs::read_to_string(dir.path().join("missing")).unwrap(), "made");
    symlink("loop", dir.path().join("loop")).unwrap();
    let place = CopyEnd::destination(&dir.path().join("loop"), by_path).unwrap().following();
    let content = archive(&[(EntryType::Regular, b"any", "x")]);
    assert!(unpack(content.as_slice(), place, Author::User).is_err());
}

#[test]
fn times_are_kept_and_pax_headers_of_the_user_are_read() {
    use std::os::unix::fs::MetadataExt as _;
    let dir = tempdir().unwrap();
    let from = dir.path().join("from");
    fs::write(&from, "x").unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(981_173_106);
    File::options().write(true).open(&from).unwrap().set_modified(time).unwrap();
    copy(&from, &dir.path().join("to")).unwrap();
    assert_eq!(symlink_metadata(dir.path().join("to")).unwrap().mtime(), 981_173_106);

    let pax = "18 path=long-name\n27 mtime=1000000000.123456\n16 comment=none\n";
    let global = "20 comment=a-commit\n";
    let entries = [
        (EntryType::XGlobalHeader, &b"global"[..], global),
        (EntryType::XHeader, b"pax", pax),
        (EntryType::Regular, b"short", "text"),
    ];
    unpack_to(dir.path(), &archive(&entries), Author::User).unwrap();
    let made = dir.path().join("long-name");
    assert_eq!(fs::read_to_string(&made).unwrap(), "text");
    assert_eq!(symlink_metadata(made).unwrap().mtime(), 1_000_000_000);
    for bad in ["path=x\n", "27 GNU.sparse.realsize=100\n", "12 size=one\n", "19 path=../outside\n"]
    {
        let entries = [(EntryType::XHeader, &b"pax"[..], bad), (EntryType::Regular, b"a", "x")];
        assert!(unpack_to(dir.path(), &archive(&entries), Author::User).is_err(), "{bad}");
    }
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
        drop(unpack_to(&inside, &bytes, Author::User));
        let entry = archive(&[(EntryType::new(b'0' + kind), &name, "text")]);
        drop(unpack_to(&inside, &entry, Author::User));
        drop(unpack_as(".", entry.as_slice(), &inside));
        prop_assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

/// Without the directory's entry, the box's first entry would be created in place of the directory.
#[test]
fn the_content_of_a_directory_begins_with_the_directory() {
    let dir = tempdir().unwrap();
    let link = |builder: &mut Builder<Vec<u8>>, path: &str, target: &str| {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        builder.append_link(&mut header, path, target).unwrap();
    };
    for (path, target) in [("x", ".ssh"), ("x/key", "../.ssh/id_rsa"), ("x/y", "z")] {
        let mut builder = Builder::new(Vec::new());
        if path != "x" {
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            builder.append_data(&mut header, "x/", &[][..]).unwrap();
        }
        link(&mut builder, path, target);
        let archive = builder.into_inner().unwrap();
        for source in ["/w/.", "/w/..", "/"] {
            let error = unpack_as(source, &archive, &dir.path().join("new")).unwrap_err();
            assert!(error.to_string().contains("does not begin with the directory"), "{error}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{path} {source}");
        }
    }
}

/// Replaces a directory of the destination by a link out of it all the time, as a running box with a writable share can.
#[test]
fn whoever_exchanges_a_directory_leads_no_entry_out() {
    let (dir, source) = source();
    let at = |path: &str| dir.path().join(path);
    let mut sent = Vec::new();
    pack(&CopyEnd::source(&source, by_path).unwrap(), &mut sent).unwrap();
    fs::create_dir_all(at("to/source/a/b")).unwrap();
    fs::create_dir_all(at("outside/b")).unwrap();
    symlink("../../outside", at("to/source/link")).unwrap();
    let (one, other, done) = (at("to/source/a"), at("to/source/link"), AtomicBool::new(false));
    let exchange = || {
        while !done.load(Ordering::Relaxed) {
            renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        }
    };
    let deadline = Instant::now() + Duration::from_secs(1);
    thread::scope(|scope| {
        scope.spawn(exchange);
        let copies = (0..ROUNDS).take_while(|_| Instant::now() < deadline);
        // A copy fails if it meets the link.
        let copies = copies.map(|_| unpack_to(&at("to"), &sent, Author::Box(&source)).is_ok());
        let whole = copies.filter(|it| *it).count();
        done.store(true, Ordering::Relaxed);
        assert!(whole > 0, "the link was met each time");
    });
    assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(at("outside/b")).unwrap().count(), 0, "a copy has left its directory");
}
