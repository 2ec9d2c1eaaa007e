//! Tests with layers that different programs write: the dialects of tar.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::prerequisites::{Package, packages};
use testbed::program;
use testkit::images::{Compression, Config, Entry, Image, Kind, Layer, LayerTar};

use crate::compare::differences;
use crate::listing::Listing;
use crate::{ours, theirs};

/// Returns a tree that every dialect can represent.
fn plain() -> Layer {
    Layer::new()
        .dir("./", 0o755)
        .owner(1000, 65_534)
        .mtime(1_700_000_000)
        .dir("etc", 0o2775)
        .file("etc/file", 0o4755, "content")
        .hardlink("etc/hard", "etc/file")
        .symlink("etc/link", "../etc/file")
        .hardlink("etc/link2", "etc/link")
        .dir("empty", 0o700)
        .file("empty file", 0o400, "")
        .file("block", 0o644, vec![7; 512])
        .file("more", 0o644, vec![0; 10_241])
}

/// Returns the plain tree with entries below `rich` that only some dialects can represent.
fn rich() -> Layer {
    let long = |depth| format!("rich/{}", "directory/".repeat(depth));
    let layer = (0..=25).fold(plain(), |layer, depth| layer.dir(&long(depth), 0o755));
    let long = long(25);
    let layer = layer
        .file(&format!("{long}{}", "n".repeat(255)), 0o644, "x")
        .symlink(&format!("{long}link"), &"t".repeat(300))
        .hardlink(&format!("{long}hard"), &format!("{long}{}", "n".repeat(255)))
        .owner(3_000_000_000, 4_000_000_000)
        .file("rich/owned", 0o644, "")
        .file("rich/old", 0o644, "")
        .record("mtime", "-1000000")
        .file("rich/late", 0o644, "")
        .record("mtime", "9000000000.5")
        .file("rich/noted", 0o644, "")
        .xattr("user.note", vec![0, 10, 255])
        .device("rich/null", 0o666, 1, 3)
        .fifo("rich/pipe", 0o600);
    layer.entry(Entry {
        name: b"rich/\xff\n".to_vec(),
        kind: Kind::File(Vec::new()),
        mode: 0o644,
        uid: 0,
        gid: 0,
        mtime: 0,
        xattrs: Vec::new(),
    })
}

fn write(layers: impl IntoIterator<Item = LayerTar>, layout: &Path) {
    let image = layers.into_iter().fold(Image::new(Config::default()), Image::with);
    image.write_layout(layout, "latest", Compression::Gzip).unwrap();
}

/// Unpacks `layer` into a directory, and returns the directory and its listing.
fn on_the_disk(layer: &Layer, directory: &Path) -> (PathBuf, Listing) {
    let (layout, rootfs) = (directory.join("layout"), directory.join("rootfs"));
    write([layer.to_tar()], &layout);
    theirs::unpack(&layout, "latest", &rootfs).unwrap();
    let listing = theirs::walk(&rootfs);
    (rootfs, listing)
}

/// Runs a program that writes an archive, and returns our listing of it. Asserts that umoci's is the same.
fn archived(program: &str, words: &[&dyn AsRef<OsStr>], archive: &Path) -> Listing {
    program::run(Command::new(program).args(words)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    write([LayerTar::read(archive).unwrap()], directory.path());
    let ours = ours::listing(&ours::tree(directory.path(), "latest").unwrap());
    let theirs = theirs::unpacked(directory.path(), "latest").unwrap();
    assert_eq!(differences(&ours, &theirs), [], "{program}");
    ours
}

#[test]
fn the_dialects_of_gnu_tar_are_read_alike() {
    let directory = tempfile::tempdir().unwrap();
    let (rootfs, rich) = on_the_disk(&rich(), directory.path());
    let archive = directory.path().join("layer.tar");
    let write = |words: &[&str]| {
        let tar: [&dyn AsRef<OsStr>; 5] = [&"--numeric-owner", &"-C", &rootfs, &"-cf", &archive];
        let words = words.iter().map(|word| word as &dyn AsRef<OsStr>);
        let words: Vec<_> = words.chain(tar).chain([&"." as &dyn AsRef<OsStr>]).collect();
        archived("tar", &words, &archive)
    };
    let plain: Listing = plain_part(&rich);
    for format in ["--format=v7", "--format=ustar"] {
        let listing = write(&[format, "--exclude=./rich"]);
        assert_eq!(differences(&listing, &plain), [], "{format}");
    }
    for format in ["--format=oldgnu", "--format=gnu"] {
        let found = differences(&write(&[format]), &rich);
        let fields: Vec<_> = found.iter().map(|it| (it.path.as_str(), it.field)).collect();
        // GNU's formats store neither fractions of seconds nor extended attributes.
        assert_eq!(fields, [("/rich/late", "mtime"), ("/rich/noted", "xattrs")], "{format}");
    }
    let listing = write(&["--format=pax", "--xattrs", "--xattrs-include=*"]);
    assert_eq!(differences(&listing, &rich), []);
    assert_eq!(listing.len(), 10 + 26 + 3 + 7);
}

/// Returns the entries that are not below `rich`.
fn plain_part(rich: &Listing) -> Listing {
    let plain = rich.iter().filter(|(path, _)| !path.starts_with(b"/rich"));
    plain.map(|(path, entry)| (path.clone(), entry.clone())).collect()
}

#[test]
fn the_archives_of_busybox_and_python_are_read_alike() {
    packages(&[Package::Busybox], &mut |line| println!("{line}")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (rootfs, plain) = on_the_disk(&plain(), &directory.path().join("plain"));
    let archive = directory.path().join("layer.tar");
    let words: [&dyn AsRef<OsStr>; 6] = [&"tar", &"-C", &rootfs, &"-cf", &archive, &"."];
    assert_eq!(differences(&archived("busybox", &words, &archive), &plain), []);
    let (rootfs, rich) = on_the_disk(&rich(), &directory.path().join("rich"));
    // Python writes no hard links to symbolic links, and no extended attributes.
    let always = [("/etc/link2", "hard links"), ("/rich/noted", "xattrs")];
    let [link, noted] = always;
    let in_gnu = [link, ("/rich/late", "mtime"), noted];
    for (format, lost) in [("GNU_FORMAT", &in_gnu[..]), ("PAX_FORMAT", &always)] {
        let script = format!(
            "import sys, tarfile\n\
             with tarfile.open(sys.argv[2], 'w', format=tarfile.{format}) as archive:\n    \
                 archive.add(sys.argv[1], arcname='.')"
        );
        let words: [&dyn AsRef<OsStr>; 4] = [&"-c", &script, &rootfs, &archive];
        let found = differences(&archived("python3", &words, &archive), &rich);
        let fields: Vec<_> = found.iter().map(|it| (it.path.as_str(), it.field)).collect();
        assert_eq!(fields, lost, "{format}");
    }
}

/// umoci writes layers with Go's archive/tar, as docker and buildah do.
#[test]
fn layers_that_umoci_writes_are_read_alike() {
    let directory = tempfile::tempdir().unwrap();
    let (rootfs, rich) = on_the_disk(&rich(), directory.path());
    let layout = directory.path().join("layout");
    let image = format!("{}:latest", layout.display());
    let insert = |words: &[&dyn AsRef<OsStr>]| {
        program::run(Command::new("umoci").args(["insert", "--image", &image]).args(words))
            .unwrap();
        let ours = ours::listing(&ours::tree(&layout, "latest").unwrap());
        let theirs = theirs::unpacked(&layout, "latest").unwrap();
        assert_eq!(differences(&ours, &theirs), []);
        ours
    };
    let inserted = insert(&[&rootfs, &"/copy"]);
    assert_eq!(inserted.len(), 2 * rich.len());
    let whited_out = insert(&[&"--whiteout", &"/copy/rich"]);
    assert_eq!(whited_out.len(), rich.len() + 10);
    let opaque = insert(&[&"--opaque", &rootfs.join("empty"), &"/etc"]);
    assert_eq!(opaque.len(), rich.len() + 10 - 4);
}
