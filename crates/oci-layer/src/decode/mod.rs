//! Decodes a layer's blob to the layer's index, and writes its files' data to a pack and a segment.

use std::io::{self, BufRead, Read, Write};

use box_digest::{Digest, Hasher};
use box_tree::{Content, Leaf, MAX_TARGET};
use tar::EntryType;

use super::archive::{Archive, unreadable};
use super::contents::Divider;
use super::gzip::MAGIC as GZIP_MAGIC;
use super::metadata::Member;
use super::path::{Directories, Marker, marker, normalize};
use super::read::{Finished, HashingReader};
use super::segment::SegmentSink;
use super::stream::Stream;
use super::total::Total;
use super::zstd::{MAGIC as ZSTD_MAGIC, is_skippable};
use super::{Action, Change, LayerError, LayerErrorKind, LayerIndex, Limits};
use crate::error::{malformed, refused, too_large};

/// How a layer's blob is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// A plain tar stream.
    None,
    /// gzip ([RFC 1952](https://www.rfc-editor.org/rfc/rfc1952)), of one or several members. Bytes after the last member
    /// are an error.
    Gzip,
    /// zstd (RFC 8878), of one or several frames.
    Zstd,
}

impl Compression {
    /// Returns how a blob with these first bytes is compressed. Ignores its media type, because builders and copying
    /// tools label blobs wrongly. Podman and docker's classic image store ignore it, too. containerd also examines the
    /// bytes, but does not decompress a blob with OCI's media type for uncompressed layers
    /// (`compressedHandler` in <https://github.com/containerd/containerd/blob/main/core/diff/stream.go>).
    pub fn of_start(start: &[u8]) -> Self {
        if start.starts_with(&GZIP_MAGIC) {
            Self::Gzip
        } else if start.starts_with(&ZSTD_MAGIC) || is_skippable(start) {
            Self::Zstd
        } else {
            Self::None
        }
    }

    /// Returns the name of the compression for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "plain tar",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// The number of first bytes of a blob that [`Compression::of_start`] needs.
pub const START: usize = 4;

/// A layer, as its image's manifest and config describe it.
#[derive(Debug, Clone)]
pub struct LayerSource {
    /// sha256 of the blob.
    pub digest: Digest,
    /// The blob's size in bytes.
    pub size: u64,
    /// The compression by the media type in the image. The blob's bytes determine how it is decompressed.
    pub compression: Compression,
    /// sha256 of the uncompressed archive, from the image's config.
    pub diff_id: Digest,
}

impl AsRef<Self> for LayerSource {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Reads a layer, verifies both digests, and writes its files' data to a pack and, if there are enough, to a segment.
///
/// The segment has the distinct contents above [`MAX_INLINE`](super::MAX_INLINE) bytes, in the order of their first occurrence,
/// each padded with zeros to a multiple of [`SEGMENT_BLOCK`](super::SEGMENT_BLOCK) bytes. It depends only on the contents of the
/// archive's files. A segment of less than [`MIN_SEGMENT`](super::MIN_SEGMENT) bytes is not written; its contents are in the
/// pack. The pack has all other distinct contents.
///
/// Memory does not grow with the files' data. The output of a failed call is incomplete.
///
/// # Errors
/// [`LayerError`], with the layer and, if an entry caused it, the entry.
pub fn decode(
    source: &LayerSource,
    blob: impl Read + Send,
    pack: &mut impl Write,
    segment: &mut impl SegmentSink,
    limits: &Limits,
) -> Result<LayerIndex, LayerError> {
    Total::default().decode(source, blob, pack, segment, limits)
}

impl Total {
    /// Reads a layer as [`decode`] does, and adds it to the total while it is read, so that a layer beyond the limits is never in
    /// memory as a whole.
    ///
    /// # Errors
    /// [`LayerError`], also if the layers together exceed a limit.
    pub fn decode(
        &self,
        source: &LayerSource,
        blob: impl Read + Send,
        pack: &mut impl Write,
        segment: &mut impl SegmentSink,
        limits: &Limits,
    ) -> Result<LayerIndex, LayerError> {
        let limits = &limits.of_blob(source.size);
        let fail = |kind| LayerError { layer: source.digest, entry: None, kind: Box::new(kind) };
        let mut blob = HashingReader::new(blob, source.size);
        let (index, plain) = std::thread::scope(|scope| {
            let (stream, unpacking) = Stream::start(scope, &mut blob, limits.archive_bytes, self);
            let contents = Divider::new(pack, segment);
            let (index, plain) = read_archive(source, stream, contents, limits, self);
            // A refused layer is not decompressed to its end: dropping the reader stops the other thread.
            let plain = index.is_ok().then(move || plain.finish());
            let ended = || LayerErrorKind::Unreadable(io::Error::other("unpacking has failed"));
            let unpacked =
                unpacking.map_or(Ok(()), |thread| thread.join().map_err(|_| fail(ended())));
            unpacked.map(|()| (index, plain))
        })?;
        let archive_size = plain.as_ref().map_or(0, |plain| plain.count);
        // A layer that is too large is not read to its end to be hashed.
        let is_too_large = |error: &LayerError| {
            matches!(*error.kind, LayerErrorKind::TooLarge { .. } | LayerErrorKind::Together(_))
        };
        if index.as_ref().is_err_and(is_too_large) {
            return index;
        }
        // A damaged blob makes the archive unreadable, too. The wrong digest is the more useful error.
        match (index, verify(source, plain, blob, limits)) {
            (Err(error), Ok(()) | Err(LayerErrorKind::Unreadable(_))) => Err(error),
            (_, Err(kind)) => Err(fail(kind)),
            (Ok(index), Ok(())) => Ok(LayerIndex { archive_size, ..index }),
        }
    }
}

/// Reads an archive that is not compressed, without verifying its digest, and writes its files' data
/// as [`decode`] does.
///
/// # Errors
/// The fault in the archive.
pub fn read_plain(
    archive: impl BufRead,
    pack: &mut impl Write,
    segment: &mut impl SegmentSink,
    limits: &Limits,
) -> Result<LayerIndex, LayerErrorKind> {
    let contents = Divider::new(pack, segment);
    index(&mut Archive::new(archive, limits), contents, limits, &Total::default())
}

/// Reads the archive to its end, and returns its index and the rest of the stream.
fn read_archive<'scope>(
    source: &LayerSource,
    stream: Stream<'scope>,
    contents: Divider<'_, impl Write, impl SegmentSink>,
    limits: &Limits,
    total: &Total,
) -> (Result<LayerIndex, LayerError>, Stream<'scope>) {
    let mut archive = Archive::new(stream, limits);
    let index = index(&mut archive, contents, limits, total).map_err(|kind| LayerError {
        layer: source.digest,
        entry: archive.here(),
        kind: Box::new(kind),
    });
    (index, archive.into_inner())
}

/// Makes the index of an archive.
fn index(
    archive: &mut Archive<'_, impl BufRead>,
    contents: Divider<'_, impl Write, impl SegmentSink>,
    limits: &Limits,
    total: &Total,
) -> Result<LayerIndex, LayerErrorKind> {
    let (directories, index) = (Directories::default(), LayerIndex::default());
    let mut indexer = Indexer { limits, total, directories, contents, bytes: 0, index };
    while let Some(member) = archive.next_member()? {
        indexer.member(archive, member)?;
    }
    let (contents, segment) = indexer.contents.finish().map_err(unstored)?;
    Ok(LayerIndex { contents, segment, ..indexer.index })
}

/// Reads the blob to its end and checks both digests, the blob's first. `plain` is the archive, if it was read to its end.
fn verify<B: Read>(
    source: &LayerSource,
    plain: Option<Finished>,
    blob: HashingReader<B>,
    limits: &Limits,
) -> Result<(), LayerErrorKind> {
    let blob = blob.finish();
    blob.drained.map_err(LayerErrorKind::Unreadable)?;
    if blob.digest != source.digest || blob.count != source.size {
        let reason = format!("its bytes have the digest {}", blob.digest);
        return Err(LayerErrorKind::WrongDigest(reason));
    }
    let Some(plain) = plain else { return Ok(()) };
    plain.drained.map_err(|error| unreadable(error, limits.archive_bytes))?;
    let (found, expected) = (plain.digest, source.diff_id);
    if found != expected {
        let reason = format!("uncompressed it is {found}, but the image's config names {expected}");
        return Err(LayerErrorKind::WrongDigest(reason));
    }
    Ok(())
}

/// Turns members into changes.
struct Indexer<'a, W: Write, S> {
    limits: &'a Limits,
    total: &'a Total,
    directories: Directories,
    contents: Divider<'a, W, S>,
    /// The cost of the changes so far: their names, attributes and a constant.
    bytes: usize,
    index: LayerIndex,
}

impl<W: Write, S: SegmentSink> Indexer<'_, W, S> {
    fn member(
        &mut self,
        archive: &mut Archive<'_, impl BufRead>,
        member: Member,
    ) -> Result<(), LayerErrorKind> {
        if self.index.changes.len() >= self.limits.entries {
            return Err(too_large("entries", self.limits.entries));
        }
        let is_file = matches!(member.kind, EntryType::Regular | EntryType::Continuous);
        // In archives older than POSIX, only the slash after its name marks a directory.
        let is_old_directory = is_file && member.path.ends_with(b"/");
        if (!is_file || is_old_directory) && member.size != 0 {
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
        self.add(change)
    }

    /// Adds a change to the index.
    fn add(&mut self, change: Change) -> Result<(), LayerErrorKind> {
        let is_directory = matches!(change.action, Action::Directory(_) | Action::Opaque);
        if change.path.is_empty() && !is_directory {
            return Err(refused("the image's root must be a directory"));
        }
        self.bytes += change.cost();
        if self.bytes > self.limits.index_bytes {
            return Err(too_large("bytes of names and attributes", self.limits.index_bytes));
        }
        self.total.add_change(&change, self.directories.implied_by(&change))?;
        self.index.changes.push(change);
        Ok(())
    }

    fn action(
        &mut self,
        archive: &mut Archive<'_, impl BufRead>,
        mut member: Member,
    ) -> Result<Action, LayerErrorKind> {
        let to = member.target.take().unwrap_or_default();
        Ok(match member.kind {
            EntryType::Link => {
                Action::HardLink(normalize(&target(to, self.limits.path_bytes)?, self.limits)?)
            }
            EntryType::Directory => Action::Directory(member.meta),
            EntryType::Symlink => Action::Leaf(member.meta, Leaf::Symlink(target(to, MAX_TARGET)?)),
            EntryType::Char | EntryType::Block => {
                let device = member.device()?;
                Action::Leaf(member.meta, device)
            }
            EntryType::Fifo => Action::Leaf(member.meta, Leaf::Fifo),
            // `Member::new` refuses a member of another type.
            _ => Action::Leaf(member.meta, Leaf::File(self.content(archive)?)),
        })
    }

    /// Reads a file's data.
    fn content(
        &mut self,
        archive: &mut Archive<'_, impl BufRead>,
    ) -> Result<Content, LayerErrorKind> {
        let mut hasher = Hasher::default();
        loop {
            let data = archive.data()?;
            if data.is_empty() {
                break;
            }
            hasher.update(data);
            self.contents.add(data).map_err(unstored)?;
            let length = data.len();
            archive.consume(length);
        }
        let content = Content { hash: hasher.digest(), size: hasher.count() };
        self.contents.end(content).map_err(unstored)?;
        Ok(content)
    }
}

/// Returns the error of data that cannot be written to the pack or the segment.
fn unstored(error: io::Error) -> LayerErrorKind {
    LayerErrorKind::Store(error.into())
}

/// Checks the target of a link, which has at most `limit` bytes.
fn target(target: Vec<u8>, limit: usize) -> Result<Vec<u8>, LayerErrorKind> {
    let fits = !target.is_empty() && target.len() <= limit && !target.contains(&0);
    if fits { Ok(target) } else { Err(malformed("link target")) }
}

#[cfg(test)]
mod tests;
