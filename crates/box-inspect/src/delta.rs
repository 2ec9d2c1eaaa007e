//! The deltas between two boxes: what a host that has the old box needs to make the new one.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use box_contract::Descriptor;
use box_delta::{Extent, Made, PlacedFile, Plan, Source, partners};
use box_digest::{Blake3Digest, Digest};
use box_layout::Blob;
use box_tree::entries;
use host_fs::FileError;

use crate::contents::VerifiedContents;
use crate::error::ExportError;
use crate::opened::{OpenBox, OpenError, listing};

/// The minimum size of a blob for which a delta is made, in bytes: a smaller one is sent whole with hardly more bytes.
const MIN_BLOB: u64 = 16 << 10;

/// A blob of the new box for which a delta is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The digest of the blob.
    pub digest: Digest,
    /// The number of bytes as which the blob travels without a delta.
    pub sent: u64,
}

/// Makes the deltas of the wanted blobs of `new` against the box `old`. A delta that has more than half of the bytes as which its
/// blob travels is left out, and a blob that the old box has, too. The files of the deltas are unnamed, in the directory `scratch`.
///
/// The files of a segment are compared one by one ([`partners`]). All other blobs are compared as a whole with the one of the old box
/// that has the same purpose.
///
/// # Errors
/// [`ExportError`] if a box cannot be read, or is damaged.
pub fn deltas(
    old: &OpenBox,
    new: &OpenBox,
    wanted: &[Wanted],
    scratch: &Path,
) -> Result<Vec<Made>, ExportError> {
    let held: BTreeSet<_> = old.manifest.blobs().iter().map(|it| it.digest).collect();
    let wanted: Vec<_> = wanted.iter().filter(|it| !held.contains(&it.digest)).collect();
    let pair = Pair { old: Placed::of(old)?, new: Placed::of(new)?, scratch };
    let made = wanted.into_iter().filter(|it| it.sent >= MIN_BLOB).map(|it| {
        match pair.new.part(&it.digest) {
            // The first part has the metadata and no whole file.
            Some(part) if part > 0 => pair.of_segment(part, it.sent / 2),
            _ => pair.of_other((old, new), it),
        }
    });
    Ok(made.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The old and the new box.
struct Pair<'a> {
    old: Placed,
    new: Placed,
    scratch: &'a Path,
}

/// The parts of a box's rootfs, and where its files lie in them.
struct Placed {
    contents: VerifiedContents,
    files: Vec<(Vec<u8>, Blake3Digest, Extent)>,
    paths: BTreeSet<Vec<u8>>,
}

impl Placed {
    fn of(opened: &OpenBox) -> Result<Self, ExportError> {
        let tree = listing(opened)?.tree;
        let contents = VerifiedContents::open(opened, &tree)?;
        let (mut files, mut paths) = (Vec::new(), BTreeSet::new());
        for (path, id) in entries(&tree) {
            if let Some(content) = tree.inode(id).content()
                && let Some((source, offset)) = contents.place(&content.hash)
            {
                let place = Extent { source, offset, length: content.size };
                files.push((path.clone(), content.hash, place));
            }
            paths.insert(path);
        }
        Ok(Self { contents, files, paths })
    }

    /// Returns the number of the part with a digest.
    fn part(&self, digest: &Digest) -> Option<usize> {
        self.contents.parts().iter().position(|it| it.descriptor.digest == *digest)
    }

    fn files(&self) -> impl Iterator<Item = PlacedFile<'_>> {
        self.files.iter().map(|(path, content, place)| PlacedFile {
            path,
            content: *content,
            place: *place,
        })
    }
}

impl Pair<'_> {
    /// Makes the delta of a segment of the new box.
    fn of_segment(&self, part: usize, limit: u64) -> Result<Option<Made>, ExportError> {
        let new = &self.new.contents.parts()[part];
        let files: Vec<_> = self.new.files().filter(|it| it.place.source == part).collect();
        let old: Vec<_> = self.old.files().collect();
        let is_vanished = |path: &[u8]| !self.new.paths.contains(path);
        let plan = partners(&files, &old, is_vanished, new.descriptor.size);
        let sources: Vec<_> = self.old.contents.parts().iter().map(source).collect();
        self.made((&plan, &sources), (&new.descriptor, &new.file), limit)
    }

    /// Makes the delta of another blob, against the one of the same purpose. `None` if the old box has none, or more than one.
    fn of_other(
        &self,
        (old, new): (&OpenBox, &OpenBox),
        wanted: &Wanted,
    ) -> Result<Option<Made>, ExportError> {
        let (before, now) = (old.manifest.blobs(), new.manifest.blobs());
        let Some(now) = now.into_iter().find(|it| it.digest == wanted.digest) else {
            return Ok(None);
        };
        let mut alike = before.into_iter().filter(|it| it.media_type == now.media_type);
        let (Some(before), None) = (alike.next(), alike.next()) else { return Ok(None) };
        let opened = |opened: &OpenBox, it| Ok::<_, OpenError>(opened.open_blob(it)?);
        let (before, blob) = (opened(old, before)?, opened(new, now)?);
        let like = Extent { source: 0, offset: 0, length: before.descriptor.size };
        let plan = Plan::whole(like, now.size);
        self.made((&plan, &[source(&before)]), (now, &blob.file), wanted.sent / 2)
    }

    fn made(
        &self,
        how: (&Plan, &[Source<'_>]),
        (named, new): (&Descriptor, &File),
        limit: u64,
    ) -> Result<Option<Made>, ExportError> {
        let failed = |error: io::Error| {
            ExportError::from(FileError::of("make a delta in", self.scratch)(error))
        };
        let to = tempfile::tempfile_in(self.scratch).map_err(failed)?;
        Made::new(how, ((named.digest, named.size), new), to, limit).map_err(failed)
    }
}

fn source(blob: &Blob) -> Source<'_> {
    Source { digest: blob.descriptor.digest, size: blob.descriptor.size, file: &blob.file }
}
