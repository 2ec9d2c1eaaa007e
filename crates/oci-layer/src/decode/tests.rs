use std::io::Cursor;

use box_tree::{Kind, Tree};
use tar::{Builder, Header};

use super::*;
use crate::apply::flatten;

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header
}

/// Sets a name without the checks of the tar crate.
fn named(mut header: Header, name: &[u8]) -> Header {
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_cksum();
    header
}

fn archive(fill: impl FnOnce(&mut Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    fill(&mut builder);
    builder.into_inner().unwrap()
}

fn one(header: Header, data: &[u8]) -> Vec<u8> {
    archive(|builder| builder.append(&header, data).unwrap())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn source(blob: &[u8], plain: &[u8], compression: Compression) -> LayerSource {
    LayerSource {
        digest: Digest::of(blob),
        size: blob.len() as u64,
        compression,
        diff_id: Digest::of(plain),
    }
}

/// Decodes a layer.
fn decoded(source: &LayerSource, blob: &[u8]) -> Result<LayerIndex, LayerErrorKind> {
    let limits = Limits { entries: 8, archive_bytes: 1 << 20, ..Limits::default() };
    decode(source, Cursor::new(blob), &mut Vec::new(), &mut io::sink(), &limits)
        .map_err(|error| *error.kind)
}

#[track_caller]
fn refused(read: Result<LayerIndex, LayerErrorKind>, reason: &str) {
    let error = read.unwrap_err().to_string();
    assert!(error.contains(reason), "{error}");
}

fn plain(bytes: &[u8]) -> Result<LayerIndex, LayerErrorKind> {
    decoded(&source(bytes, bytes, Compression::None), bytes)
}

#[test]
fn gzip_and_plain_layers_give_the_same_changes() {
    let tar = one(named(header(EntryType::Regular, 5), b"./a"), b"hello");
    let mut members = gzip(&tar[..512]);
    members.extend(gzip(&tar[512..]));
    let expected = plain(&tar).unwrap();
    assert_eq!(expected.contents, [(Content::of(b"hello"), 0)]);
    for blob in [gzip(&tar), members] {
        let index = decoded(&source(&blob, &tar, Compression::Gzip), &blob).unwrap();
        assert_eq!(index, expected);
    }
}

#[test]
fn wrong_bytes_are_distinguished_from_unreadable_ones() {
    let tar = one(named(header(EntryType::Regular, 5), b"a"), b"hello");
    let blob = gzip(&tar);
    let right = source(&blob, &tar, Compression::Gzip);
    let wrong = LayerSource { digest: Digest::of(b"other"), ..right.clone() };
    refused(decoded(&wrong, &blob), "its bytes have the digest");
    let wrong = LayerSource { size: right.size + 1, ..right.clone() };
    refused(decoded(&wrong, &blob), "its bytes have the digest");
    let wrong = LayerSource { diff_id: Digest::of(b"other"), ..right.clone() };
    refused(decoded(&wrong, &blob), "uncompressed it is");
    let cut = &blob[..blob.len() - 9];
    refused(decoded(&right, cut), "its bytes have the digest");
    let cut = source(cut, &tar, Compression::Gzip);
    let blob = &blob[..blob.len() - 9];
    assert!(matches!(decoded(&cut, blob), Err(LayerErrorKind::Unreadable(_))));
    let noise = source(b"no gzip at all", b"", Compression::Gzip);
    assert!(matches!(decoded(&noise, b"no gzip at all"), Err(LayerErrorKind::Unreadable(_))));
}

#[test]
fn an_archive_that_ends_early_is_refused() {
    let tar = one(named(header(EntryType::Regular, 5000), b"a"), &[7; 5000]);
    for end in [100, 700, 5000] {
        assert!(matches!(plain(&tar[..end]), Err(LayerErrorKind::Unreadable(_))), "{end}");
    }
}

#[test]
fn every_kind_of_entry_reads() {
    let tar = archive(|builder| {
        let mut device = header(EntryType::Char, 0);
        device.set_device_major(5).unwrap();
        device.set_device_minor(1).unwrap();
        builder.append(&named(device, b"tty"), &[][..]).unwrap();
        builder.append(&named(header(EntryType::Fifo, 0), b"pipe"), &[][..]).unwrap();
        builder.append(&named(header(EntryType::Directory, 0), b"d/"), &[][..]).unwrap();
        builder.append_link(&mut header(EntryType::Symlink, 0), "link", "/d").unwrap();
        builder.append_link(&mut header(EntryType::Link, 0), "hard", "link").unwrap();
    });
    let index = plain(&tar).unwrap();
    let tree = flatten(box_contract::ComponentName::Agent, [(Digest::of(&tar), &index)]).unwrap();
    let leaf = |name: &[u8]| match &tree.inode(tree.child(Tree::ROOT, name).unwrap()).kind {
        Kind::Leaf(leaf) => leaf.clone(),
        Kind::Directory(_) => panic!("{name:?} is a directory"),
    };
    assert_eq!(leaf(b"tty"), Leaf::CharDevice(5, 1));
    assert_eq!(leaf(b"pipe"), Leaf::Fifo);
    assert_eq!(leaf(b"link"), Leaf::Symlink(b"/d".to_vec()));
    assert_eq!(tree.child(Tree::ROOT, b"hard"), tree.child(Tree::ROOT, b"link"));
}

/// The longest path of a file is the longest target of a hard link.
#[test]
fn a_hard_link_names_a_file_at_the_longest_path() {
    let parts = [vec!["d".repeat(255); 15], vec!["e".repeat(127), "f".repeat(128)]].concat();
    let path = parts.join("/");
    assert_eq!(path.len(), Limits::default().path_bytes);
    let tar = archive(|builder| {
        builder.append_data(&mut header(EntryType::Regular, 1), &path, &b"x"[..]).unwrap();
        builder.append_link(&mut header(EntryType::Link, 0), "hard", &path).unwrap();
    });
    let index = plain(&tar).unwrap();
    let tree = flatten(box_contract::ComponentName::Agent, [(Digest::of(&tar), &index)]).unwrap();
    assert_eq!(tree.child(Tree::ROOT, b"hard"), tree.lookup(path.as_bytes()));
}

#[test]
fn long_names_times_and_attributes_come_from_extended_headers() {
    let long = format!("{}/{}", "n".repeat(200), "m".repeat(200));
    let tar = archive(|builder| {
        let pax =
            [("mtime", b"12.5".as_slice()), ("SCHILY.xattr.security.capability", b"\x01\0\0\x02")];
        builder.append_pax_extensions(pax).unwrap();
        builder.append_data(&mut header(EntryType::Regular, 1), &long, &b"x"[..]).unwrap();
    });
    let index = plain(&tar).unwrap();
    let [change] = index.changes.as_slice() else { panic!("{index:?}") };
    assert_eq!(change.path, long.as_bytes());
    let Action::Leaf(meta, _) = &change.action else { panic!("{change:?}") };
    assert_eq!((meta.mtime, meta.mtime_nsec), (12, 500_000_000));
    assert_eq!(meta.xattrs[b"security.capability".as_slice()], b"\x01\0\0\x02");
}

#[test]
fn what_an_attacker_would_write_is_refused() {
    let file = |name: &[u8]| one(named(header(EntryType::Regular, 0), name), b"");
    for name in [b"../etc/passwd".as_slice(), b"a/../../b", b"a/.wh...", b".."] {
        refused(plain(&file(name)), crate::path::PARENT_IN_PATH);
    }
    refused(plain(&file(b"a/.wh.")), "the whiteout names nothing");
    let mut old = header(EntryType::Regular, 0);
    old.as_old_mut().linkflag = [0];
    assert!(plain(&one(named(old, b"./"), b"")).is_ok(), "an old archive's root directory");
    let fifo = one(named(header(EntryType::Fifo, 0), b"."), b"");
    refused(plain(&fifo), "the image's root must be a directory");
    let hidden = one(named(header(EntryType::Directory, 512), b"d"), &[0; 512]);
    assert!(matches!(plain(&hidden), Err(LayerErrorKind::UnexpectedData(512))));
    let unknown = one(named(header(EntryType::new(b'V'), 0), b"v"), b"");
    refused(plain(&unknown), "entries of tar type 'V'");
    let sparse = archive(|builder| {
        builder.append_pax_extensions([("GNU.sparse.major", b"1".as_slice())]).unwrap();
        builder.append(&named(header(EntryType::Regular, 0), b"s"), &[][..]).unwrap();
    });
    assert!(matches!(plain(&sparse), Err(LayerErrorKind::Sparse)));
    let overlay = archive(|builder| {
        let pax = [("SCHILY.xattr.trusted.overlay.opaque", b"y".as_slice())];
        builder.append_pax_extensions(pax).unwrap();
        builder.append(&named(header(EntryType::Regular, 0), b"o"), &[][..]).unwrap();
    });
    refused(plain(&overlay), "reserved for overlayfs");
}

#[test]
fn too_much_is_refused() {
    let many = archive(|builder| {
        for name in b'a'..=b'i' {
            let entry = named(header(EntryType::Regular, 0), &[name]);
            builder.append(&entry, &[][..]).unwrap();
        }
    });
    assert!(matches!(plain(&many), Err(LayerErrorKind::TooLarge { what: "entries", .. })));
    let large = one(named(header(EntryType::Regular, 2 << 20), b"a"), &vec![0; 2 << 20]);
    let blob = gzip(&large);
    let bomb = decoded(&source(&blob, &large, Compression::Gzip), &blob);
    for read in [bomb, plain(&large)] {
        refused(read, "it has more than 1048576 bytes when it is uncompressed");
    }
}

#[test]
fn what_is_refused_is_not_unpacked_to_its_end() {
    let bad = named(header(EntryType::Fifo, 0), b"../pipe");
    let tar = archive(|builder| {
        builder.append(&bad, &[][..]).unwrap();
        let large = named(header(EntryType::Regular, 1 << 19), b"a");
        builder.append(&large, &vec![0; 1 << 19][..]).unwrap();
    });
    let blob = gzip(&tar);
    let right = source(&blob, &tar, Compression::Gzip);
    let expected = decoded(&right, &blob).unwrap_err().to_string();
    // The digest of the whole archive is not computed.
    let wrong = LayerSource { diff_id: Digest::of(b"other"), ..right.clone() };
    assert_eq!(decoded(&wrong, &blob).unwrap_err().to_string(), expected);
    // A wrong digest of the blob is reported.
    let wrong = LayerSource { digest: Digest::of(b"other"), ..right };
    refused(decoded(&wrong, &blob), "its bytes have the digest");
}

#[test]
fn names_and_attributes_are_bounded_together() {
    let long = "n".repeat(200);
    let tar = archive(|builder| {
        for name in ["a", "b"] {
            builder.append_link(&mut header(EntryType::Symlink, 0), name, &long).unwrap();
        }
    });
    let source = source(&tar, &tar, Compression::None);
    let read = |index_bytes| {
        let limits = Limits { index_bytes, ..Limits::default() };
        decode(&source, Cursor::new(&tar), &mut Vec::new(), &mut io::sink(), &limits)
            .map_err(|error| *error.kind)
    };
    assert!(read(2 * (1 + 200 + 128)).is_ok());
    let what = "bytes of names and attributes";
    let over = read(2 * (1 + 200 + 128) - 1);
    assert!(matches!(over, Err(LayerErrorKind::TooLarge { what: found, .. }) if found == what));
}

#[test]
fn device_numbers_are_those_of_linux() {
    let device = |major, minor| {
        let mut device = header(EntryType::Block, 0);
        device.set_device_major(major).unwrap();
        device.set_device_minor(minor).unwrap();
        plain(&one(named(device, b"d"), b""))
    };
    assert!(device(4095, (1 << 20) - 1).is_ok());
    for (major, minor) in [(4096, 0), (0, 1 << 20)] {
        refused(device(major, minor), "its device number is malformed");
    }
}

#[test]
fn data_after_entries_without_content_and_sparse_files_are_refused() {
    for name in [b"d".as_slice(), b".wh.d", b".wh..wh.x"] {
        for kind in *b"123456" {
            let entry = one(named(header(EntryType::new(kind), 512), name), &[0; 512]);
            assert!(matches!(plain(&entry), Err(LayerErrorKind::UnexpectedData(512))));
        }
        let entry = one(named(header(EntryType::GNUSparse, 512), name), &[0; 512]);
        assert!(matches!(plain(&entry), Err(LayerErrorKind::Sparse)));
    }
    let marked = one(named(header(EntryType::Regular, 5), b".wh.d"), b"hello");
    assert_eq!(plain(&marked).unwrap().changes.len(), 1, "data of a marker is skipped");
}

#[test]
fn an_error_names_the_entry_by_its_whole_path() {
    let tar = archive(|builder| {
        builder.append_pax_extensions([("path", b"a/../b".as_slice())]).unwrap();
        builder.append(&named(header(EntryType::Regular, 0), b"short"), &[][..]).unwrap();
    });
    let source = source(&tar, &tar, Compression::None);
    let error =
        decode(&source, Cursor::new(&tar), &mut Vec::new(), &mut io::sink(), &Limits::default())
            .unwrap_err();
    assert_eq!(error.entry, Some((b"a/../b".to_vec(), Some(1024))));
    assert_eq!(error.kind.to_string(), crate::path::PARENT_IN_PATH);
}
