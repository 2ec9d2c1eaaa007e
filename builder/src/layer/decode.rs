//! From a layer's blob to its index, and its files' data to a pack.

use std::io::{self, BufRead, BufWriter, Read, Write};

use box_image::Digest;
use tar::EntryType;

use super::archive::Archive;
use super::guard::Guard;
use super::metadata::Member;
use super::path::{Marker, marker, normalize};
use super::read::HashingReader;
use super::stream::Stream;
use super::{Action, Change, LayerError, LayerErrorKind, LayerIndex, Limits};
use crate::tree::{Content, Leaf, Meta};

/// How a layer's blob is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// A plain tar stream.
    None,
    /// gzip (RFC 1952), of one or several members. What is behind the last one is not passed over.
    Gzip,
    /// zstd (RFC 8878), of one or several frames.
    Zstd,
}

/// A layer as its image names it.
#[derive(Debug, Clone)]
pub struct LayerSource {
    /// sha256 of the blob.
    pub digest: Digest,
    /// The blob's size in bytes.
    pub size: u64,
    /// How it is compressed.
    pub compression: Compression,
    /// sha256 of the uncompressed archive, from the image's config.
    pub diff_id: Digest,
}

/// Bytes that are written to a pack at once.
const PACK_BUFFER: usize = 256 << 10;

/// Reads a layer, verifies both digests, and writes its files' data to a pack.
///
/// Memory does not grow with the files' data. What a failed layer has written is of no use.
///
/// # Errors
/// [`LayerError`], which names the layer and, where one is to blame, the entry.
pub fn decode(
    source: &LayerSource,
    blob: impl Read + Send,
    pack: &mut impl Write,
    limits: &Limits,
) -> Result<LayerIndex, LayerError> {
    let limits = &limits.of_blob(source.size);
    let fail = |kind| LayerError { layer: source.digest, entry: None, kind: Box::new(kind) };
    std::thread::scope(|scope| {
        let blob = HashingReader::new(blob, source.size);
        let (stream, unpacking) =
            Stream::start(scope, blob, source.compression, limits.archive_bytes);
        let (index, plain) = read_archive(source, stream, pack, limits);
        if index.as_ref().is_err_and(|error| matches!(*error.kind, LayerErrorKind::TooLarge { .. }))
        {
            return index; // What is too large is not read to its end only to be hashed.
        }
        let plain = plain.finish();
        let ended = || LayerErrorKind::Unreadable(io::Error::other("unpacking has failed"));
        let blob = unpacking.join().map_err(|_| fail(ended()))?;
        // A damaged blob makes the archive unreadable, too; the digest tells more than the parser.
        match (index, verify(source, plain, blob)) {
            (Err(error), Ok(()) | Err(LayerErrorKind::Unreadable(_))) => Err(error),
            (_, Err(kind)) => Err(fail(kind)),
            (Ok(index), Ok(())) => Ok(index),
        }
    })
}

/// Reads an archive that is not compressed and of which nothing is to be verified, and writes its
/// files' data to `data`.
///
/// # Errors
/// What is wrong with it.
pub fn read_plain(
    archive: impl BufRead,
    data: &mut impl Write,
    limits: &Limits,
) -> Result<LayerIndex, LayerErrorKind> {
    index(&mut Archive::new(archive, limits), data, limits)
}

/// Reads the archive to its end, and returns what is behind it.
fn read_archive(
    source: &LayerSource,
    stream: Stream,
    pack: &mut impl Write,
    limits: &Limits,
) -> (Result<LayerIndex, LayerError>, Stream) {
    let mut archive = Archive::new(stream, limits);
    let index = index(&mut archive, pack, limits).map_err(|kind| LayerError {
        layer: source.digest,
        entry: archive.here(),
        kind: Box::new(kind),
    });
    (index, archive.into_inner())
}

/// Makes the index of an archive.
fn index(
    archive: &mut Archive<'_, impl BufRead>,
    pack: &mut impl Write,
    limits: &Limits,
) -> Result<LayerIndex, LayerErrorKind> {
    let pack = BufWriter::with_capacity(PACK_BUFFER, pack);
    Indexer { limits, pack, offset: 0, bytes: 0, index: LayerIndex::default() }.read(archive)
}

/// Reads the blob to its end and checks what both streams hash to; the blob first.
fn verify<B: Read>(
    source: &LayerSource,
    (drained, diff_id): (io::Result<()>, Digest),
    blob: HashingReader<B>,
) -> Result<(), LayerErrorKind> {
    let blob = blob.finish();
    blob.drained.map_err(LayerErrorKind::Unreadable)?;
    let is_other = blob.digest != source.digest || blob.count != source.size;
    if Guard::BlobDigest.catches(is_other) {
        return Err(LayerErrorKind::WrongBlob { found: blob.digest });
    }
    drained.map_err(LayerErrorKind::Unreadable)?;
    if Guard::DiffId.catches(diff_id != source.diff_id) {
        let (expected, found) = (source.diff_id, diff_id);
        return Err(LayerErrorKind::WrongDiffId { expected, found });
    }
    Ok(())
}

/// What an entry and an attribute cost beyond their bytes, roughly.
const ENTRY_BYTES: usize = 128;
const XATTR_ENTRY_BYTES: usize = 64;

/// Turns members into changes.
struct Indexer<'a, W: Write> {
    limits: &'a Limits,
    pack: BufWriter<W>,
    /// How many bytes the pack has.
    offset: u64,
    /// How many bytes of names and attributes the index has.
    bytes: usize,
    index: LayerIndex,
}

impl<W: Write> Indexer<'_, W> {
    fn read(
        mut self,
        archive: &mut Archive<'_, impl BufRead>,
    ) -> Result<LayerIndex, LayerErrorKind> {
        while let Some(member) = archive.next_member()? {
            self.member(archive, member)?;
        }
        self.pack.flush().map_err(|error| LayerErrorKind::Store(error.into()))?;
        Ok(self.index)
    }

    fn member(
        &mut self,
        archive: &mut Archive<'_, impl BufRead>,
        member: Member,
    ) -> Result<(), LayerErrorKind> {
        if Guard::Entries.catches(self.index.changes.len() >= self.limits.entries) {
            let limit = self.limits.entries as u64;
            return Err(LayerErrorKind::TooLarge { what: "entries", limit });
        }
        let is_file = matches!(member.kind, EntryType::Regular | EntryType::Continuous);
        // Archives older than POSIX have no type for a directory but the slash behind its name.
        let is_old_directory = is_file && member.path.ends_with(b"/");
        let has_data = (!is_file || is_old_directory) && member.size != 0;
        if Guard::UnexpectedData.catches(has_data) {
            return Err(LayerErrorKind::UnexpectedData(member.size));
        }
        let path = normalize(&member.path, self.limits)?;
        let change = match marker(&path)? {
            Marker::Skip => return Ok(()),
            Marker::Change(path, action) => Change { path, action },
            Marker::None if is_old_directory => {
                Change { path, action: Action::Directory(member.meta) }
            }
            Marker::None => Change { path, action: self.action(archive, member)? },
        };
        let is_directory = matches!(change.action, Action::Directory(_) | Action::Opaque);
        if Guard::RootNotDirectory.catches(change.path.is_empty() && !is_directory) {
            return Err(LayerErrorKind::RootNotDirectory);
        }
        self.charge(&change)?;
        self.index.changes.push(change);
        Ok(())
    }

    /// Counts what a change takes in memory.
    fn charge(&mut self, change: &Change) -> Result<(), LayerErrorKind> {
        let attributes = |meta: &Meta| -> usize {
            let sizes = meta.xattrs.iter().map(|(name, value)| name.len() + value.len());
            sizes.map(|size| size + XATTR_ENTRY_BYTES).sum()
        };
        let action = match &change.action {
            Action::Directory(meta) => attributes(meta),
            Action::Leaf(meta, Leaf::Symlink(target)) => attributes(meta) + target.len(),
            Action::Leaf(meta, _) => attributes(meta),
            Action::HardLink(target) => target.len(),
            Action::Whiteout | Action::Opaque => 0,
        };
        self.bytes += change.path.len() + action + ENTRY_BYTES;
        if Guard::IndexBytes.catches(self.bytes > self.limits.index_bytes) {
            let limit = self.limits.index_bytes as u64;
            return Err(LayerErrorKind::TooLarge { what: "bytes of names and attributes", limit });
        }
        Ok(())
    }

    fn action(
        &mut self,
        archive: &mut Archive<'_, impl BufRead>,
        member: Member,
    ) -> Result<Action, LayerErrorKind> {
        Ok(match member.kind {
            EntryType::Link => Action::HardLink(normalize(&target(member.target)?, self.limits)?),
            EntryType::Directory => Action::Directory(member.meta),
            EntryType::Symlink => Action::Leaf(member.meta, Leaf::Symlink(target(member.target)?)),
            EntryType::Char | EntryType::Block => {
                let device = member.device()?;
                Action::Leaf(member.meta, device)
            }
            EntryType::Fifo => Action::Leaf(member.meta, Leaf::Fifo),
            // A member of another type is none: `Member::new`.
            _ => Action::Leaf(member.meta, Leaf::File(self.content(archive)?)),
        })
    }

    /// Copies a file's data to the pack.
    fn content(
        &mut self,
        archive: &mut Archive<'_, impl BufRead>,
    ) -> Result<Content, LayerErrorKind> {
        let mut hasher = blake3::Hasher::new();
        let mut size = 0;
        loop {
            let data = archive.data()?;
            if data.is_empty() {
                break;
            }
            hasher.update(data);
            let stored = self.pack.write_all(data);
            stored.map_err(|error| LayerErrorKind::Store(error.into()))?;
            let length = data.len();
            size += length as u64;
            archive.consume(length);
        }
        let content = Content { hash: *hasher.finalize().as_bytes(), size };
        self.index.contents.push((content, self.offset));
        self.offset += size;
        Ok(content)
    }
}

/// Checks the target of a link.
fn target(target: Option<Vec<u8>>) -> Result<Vec<u8>, LayerErrorKind> {
    let target = target.unwrap_or_default();
    let fits = !target.is_empty() && target.len() < 4096 && !target.contains(&0);
    if Guard::LinkTarget.catches(!fits) {
        return Err(LayerErrorKind::Malformed("link target"));
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::apply::flatten;
    use crate::tree::{Kind, Tree};
    use sha2::{Digest as _, Sha256};
    use std::io::Cursor;
    use tar::{Builder, Header};

    fn digest(bytes: &[u8]) -> Digest {
        Digest::from_bytes(Sha256::digest(bytes).into())
    }

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

    /// Writes a name without the checks that the tar crate's own setter makes.
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
            digest: digest(blob),
            size: blob.len() as u64,
            compression,
            diff_id: digest(plain),
        }
    }

    /// Decodes a layer.
    fn decoded(source: &LayerSource, blob: &[u8]) -> Result<LayerIndex, LayerErrorKind> {
        let limits = Limits { entries: 8, archive_bytes: 1 << 20, ..Limits::default() };
        decode(source, Cursor::new(blob), &mut Vec::new(), &limits).map_err(|error| *error.kind)
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
    fn the_wrong_bytes_are_told_from_unreadable_ones() {
        let tar = one(named(header(EntryType::Regular, 5), b"a"), b"hello");
        let blob = gzip(&tar);
        let right = source(&blob, &tar, Compression::Gzip);
        let wrong = LayerSource { digest: digest(b"other"), ..right.clone() };
        assert!(matches!(decoded(&wrong, &blob), Err(LayerErrorKind::WrongBlob { .. })));
        let wrong = LayerSource { diff_id: digest(b"other"), ..right.clone() };
        assert!(matches!(decoded(&wrong, &blob), Err(LayerErrorKind::WrongDiffId { .. })));
        let cut = &blob[..blob.len() - 9];
        assert!(matches!(decoded(&right, cut), Err(LayerErrorKind::WrongBlob { .. })));
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
        let tree = flatten(box_image::ComponentName::Agent, [(digest(&tar), &index)]).unwrap();
        let leaf = |name: &[u8]| match &tree.inode(tree.child(Tree::ROOT, name).unwrap()).kind {
            Kind::Leaf(leaf) => leaf.clone(),
            Kind::Directory(_) => panic!("{name:?} is a directory"),
        };
        assert_eq!(leaf(b"tty"), Leaf::CharDevice(5, 1));
        assert_eq!(leaf(b"pipe"), Leaf::Fifo);
        assert_eq!(leaf(b"link"), Leaf::Symlink(b"/d".to_vec()));
        assert_eq!(tree.child(Tree::ROOT, b"hard"), tree.child(Tree::ROOT, b"link"));
    }

    #[test]
    fn long_names_times_and_attributes_come_from_extended_headers() {
        let long = format!("{}/{}", "n".repeat(200), "m".repeat(200));
        let tar = archive(|builder| {
            let pax = [
                ("mtime", b"12.5".as_slice()),
                ("SCHILY.xattr.security.capability", b"\x01\0\0\x02"),
            ];
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
            assert!(matches!(plain(&file(name)), Err(LayerErrorKind::ParentInPath)), "{name:?}");
        }
        assert!(matches!(plain(&file(b"a/.wh.")), Err(LayerErrorKind::EmptyWhiteout)));
        let mut old = header(EntryType::Regular, 0);
        old.as_old_mut().linkflag = [0];
        assert!(plain(&one(named(old, b"./"), b"")).is_ok(), "an old archive's root directory");
        let fifo = one(named(header(EntryType::Fifo, 0), b"."), b"");
        assert!(matches!(plain(&fifo), Err(LayerErrorKind::RootNotDirectory)));
        let hidden = one(named(header(EntryType::Directory, 512), b"d"), &[0; 512]);
        assert!(matches!(plain(&hidden), Err(LayerErrorKind::UnexpectedData(512))));
        let unknown = one(named(header(EntryType::new(b'V'), 0), b"v"), b"");
        assert!(matches!(plain(&unknown), Err(LayerErrorKind::EntryType('V'))));
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
        assert!(matches!(plain(&overlay), Err(LayerErrorKind::OverlayAttribute(_))));
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
        assert!(matches!(bomb, Err(LayerErrorKind::TooLarge { .. })), "{bomb:?}");
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
            decode(&source, Cursor::new(&tar), &mut Vec::new(), &limits)
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
            let refused = device(major, minor);
            assert!(matches!(refused, Err(LayerErrorKind::Malformed("device number"))));
        }
    }

    #[test]
    fn data_behind_what_has_none_and_sparse_files_are_refused_under_any_name() {
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
            decode(&source, Cursor::new(&tar), &mut Vec::new(), &Limits::default()).unwrap_err();
        assert_eq!(error.entry, Some((b"a/../b".to_vec(), Some(1024))));
        assert!(matches!(*error.kind, LayerErrorKind::ParentInPath));
    }
}
