//! Verifies a whole box: every blob, and that its parts agree with each other.
//!
//! Digests alone do not prove that the listing matches the rootfs: a person who changes a box can compute new digests. The
//! metadata follow from the listing, the data of the files and their offsets in the segments. So this module generates the
//! metadata again and compares them.

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use box_contract::manifest::{METADATA_UNIT, SEGMENTED_EPOCH};
use box_digest::Blake3Digest;
use box_layout::Rootfs;
use box_tree::erofs::image_builder;
use box_tree::{Content, Tree, entries};
use erofs_writer::Behind;
use host_fs::FileError;
use serde::{Serialize, Serializer};

use crate::contents::{VerifiedContents, other_entries};
use crate::error::{ExportError, ROOTFS};
use crate::opened::{self, OpenBox, OpenError};

/// The result of one check of a box.
#[derive(Debug, Serialize)]
pub struct Check {
    /// `manifest`, the role of a blob, or `files` or `plan` for a check that compares parts with each other.
    pub name: String,
    /// The digest of a blob, or a description of what was compared.
    pub subject: String,
    /// The fault. `None` if the check passed; in JSON, `ok` is then `true`.
    #[serde(rename = "ok", serialize_with = "is_ok")]
    pub error: Option<ExportError>,
}

fn is_ok<S: Serializer>(error: &Option<ExportError>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(error.is_none())
}

impl Check {
    fn new(name: &str, subject: impl Display, checked: Result<(), ExportError>) -> Self {
        Self { name: name.to_owned(), subject: subject.to_string(), error: checked.err() }
    }
}

/// One line, not yet safe for a terminal.
impl Display for Check {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let verdict = match &self.error {
            None => "ok",
            Some(ExportError::Open(OpenError::Layout(error))) if error.is_missing() => "MISSING",
            Some(_) => "DIFFERS",
        };
        write!(f, "{:<8} {verdict:<9}{}", self.name, self.subject)
    }
}

/// Verifies a box: each blob has its digest in the manifest, and the rootfs has exactly the entries of the listing. If the rootfs
/// contains the plan, it is compared with the config. Manifest and config were verified when the box was opened.
pub fn verify(opened: &OpenBox) -> Vec<Check> {
    let of_layout = |error| ExportError::from(OpenError::from(error));
    let mut checks = vec![Check::new("manifest", opened.digest, Ok(()))];
    for named in opened.manifest.blobs() {
        let verified = opened.open_blob(named).and_then(|blob| blob.verify());
        checks.push(Check::new(named.role(), named.digest, verified.map_err(of_layout)));
    }
    checks.push(Check::new("files", "the rootfs, compared with the listing", files(opened)));
    if opened.config.epoch < SEGMENTED_EPOCH {
        let plan = opened.check_plan().map_err(of_layout);
        checks.push(Check::new("plan", "the plan in the rootfs, compared with the config", plan));
    }
    checks
}

/// Checks that the rootfs has exactly the entries, attributes and data of the listing.
///
/// # Errors
/// [`ExportError`].
pub fn files(opened: &OpenBox) -> Result<(), ExportError> {
    let epoch = opened.config.epoch;
    if epoch < SEGMENTED_EPOCH {
        return Err(OpenError::OldEpoch { path: opened.places.directory.clone(), epoch }.into());
    }
    let tree = opened::listing(opened)?.tree;
    let source = VerifiedContents::open(opened, &tree)?;
    let rootfs = opened.open_rootfs().map_err(OpenError::from)?;
    metadata(&tree, &source, &rootfs)?;
    // Each content is hashed once, because a file can have a million names.
    let mut seen = HashSet::new();
    for (path, id) in entries(&tree) {
        let Some(content) = tree.inode(id).content() else { continue };
        if source.place_in_segments(&content.hash).is_some() && seen.insert(content.hash) {
            source.copy(&path, *content, &mut io::sink())?;
        }
    }
    Ok(())
}

/// Checks that a build would write the same metadata for `tree`. The offsets of the contents in the segments are taken from
/// the checked metadata.
fn metadata(tree: &Tree, source: &VerifiedContents, rootfs: &Rootfs) -> Result<(), ExportError> {
    let size = rootfs.metadata().descriptor.size;
    let place = |content: &Blake3Digest| source.place_in_segments(content);
    let behind = Behind { alignment: METADATA_UNIT, size: rootfs.size() - size, place: &place };
    let mut data = Data { source, tree, failed: None };
    let mut image = Compared { metadata: &rootfs.metadata().file, length: 0, failed: None };
    let written = image_builder(tree)?.write_before(&mut image, &mut data, &behind);
    if let Some(error) = image.failed.or(data.failed) {
        return Err(error);
    }
    match written {
        Err(erofs_writer::Error::Misplaced { .. }) => return Err(other_entries()),
        written => written?,
    };
    if image.length == size { Ok(()) } else { Err(other_entries()) }
}

/// The data of files, read from the rootfs and hashed.
struct Data<'a> {
    source: &'a VerifiedContents,
    tree: &'a Tree,
    failed: Option<ExportError>,
}

impl erofs_writer::ContentSource for Data<'_> {
    fn copy(&mut self, hash: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()> {
        let content = Content { hash: *hash, size };
        let copied = self.source.copy(b"", content, out);
        self.failed = copied.err().map(|error| match error {
            ExportError::Damaged(_) => ExportError::other_data(&self.path(content)),
            error => error,
        });
        match self.failed {
            None => Ok(()),
            Some(_) => Err(io::Error::other("the data cannot be read")),
        }
    }
}

impl Data<'_> {
    /// Returns the first path of a content. Searches all paths, so it is for errors only.
    fn path(&self, content: Content) -> Vec<u8> {
        let has = |id| self.tree.inode(id).content() == Some(&content);
        entries(self.tree).find(|(_, id)| has(*id)).map(|(path, _)| path).unwrap_or_default()
    }
}

/// A writer that compares the generated bytes with the metadata.
struct Compared<'a> {
    metadata: &'a File,
    /// The number of bytes that were equal so far.
    length: u64,
    failed: Option<ExportError>,
}

impl Write for Compared<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut found = vec![0; bytes.len()];
        let read = self.metadata.read_exact_at(&mut found, self.length);
        self.failed = match read {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Some(FileError::of("read", ROOTFS)(error).into())
            }
            Ok(()) if found == bytes => None,
            _ => Some(other_entries()),
        };
        if self.failed.is_some() {
            return Err(io::Error::other("the rootfs is another"));
        }
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
