//! Carries out a plan.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use box_digest::Digest;
use host_fs::publish::flush_names;

use super::plan::Plan;
use super::remove;
use crate::attachments;
use crate::error::IoContext;
use crate::gate::Gate;
use crate::{Label, StoreError};

/// The prefix of a file in `tmp/` that was moved there to be deleted.
const GONE: &str = "gone-";

/// The number of files that each round moves even if there is no time left, so that a collection always ends.
const MIN_AT_ONCE: usize = 64;

/// How much of a plan was carried out.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) names: usize,
    pub(super) boxes: usize,
    pub(super) records: usize,
    pub(super) blobs: usize,
    /// Whether the whole plan was carried out.
    pub(super) is_all: bool,
    /// The number of files and directories that were moved.
    moved: usize,
}

/// The store, with the deadline for this round.
struct Carrier<'r> {
    root: &'r Path,
    end: Instant,
    done: Done,
}

/// Carries out `plan` until `end`, while the caller holds `gate` exclusively. If the process is killed at any moment, the boxes
/// that are left have all their blobs.
pub(super) fn out(
    root: &Path,
    gate: &Gate,
    plan: &Plan,
    ended: &[PathBuf],
    end: Instant,
) -> Result<Done, StoreError> {
    // Marks a store that this plan leaves without references, so that the next collection accepts blobs without references. The
    // mark is the length 1 of the file `gate`, because setting it takes no space on a full disk.
    gate.file.set_len(plan.empties.into()).context("mark", root)?;
    let mut carrier = Carrier { root, end, done: Done::default() };
    carrier.done.is_all = carrier.carry(plan)?;
    ended.iter().try_for_each(|session| remove(session))?;
    Ok(carrier.done)
}

impl Carrier<'_> {
    /// Returns whether the whole plan was carried out.
    fn carry(&mut self, plan: &Plan) -> Result<bool, StoreError> {
        for (label, digest) in &plan.names {
            remove_label(self.root, label, *digest)?;
            self.done.names += 1;
        }
        for digest in &plan.boxes {
            self.take("boxes", &digest.hex())?;
            self.done.boxes += 1;
        }
        for digest in &plan.attachments {
            remove(&attachments::path(self.root, digest))?;
        }
        for name in &plan.roots {
            remove(&self.root.join("roots").join(name))?;
        }
        // Flush, because a power failure must not bring back a box, or a list of attachments, whose blobs are gone.
        let changed =
            [(!plan.boxes.is_empty(), "boxes"), (!plan.attachments.is_empty(), "attached")];
        for (_, part) in changed.into_iter().filter(|(is_changed, _)| *is_changed) {
            let directory = self.root.join(part);
            flush_names(&directory).context("flush", &directory)?;
        }
        for key in &plan.records {
            remove(&self.root.join("actions").join(key.hex()))?;
            self.done.records += 1;
            if !self.take("data", &key.hex())? {
                return Ok(false);
            }
        }
        for key in &plan.data {
            if !self.take("data", &key.hex())? {
                return Ok(false);
            }
        }
        for blob in &plan.blobs {
            let goes_on = self.take("blobs", &blob.hex())?;
            self.done.blobs += 1;
            if !goes_on {
                return Ok(self.done.blobs == plan.blobs.len());
            }
        }
        Ok(true)
    }

    /// Moves the file or directory `name` in the directory `part` to `tmp/`. If it is missing, this is no error. Returns whether
    /// there is time to move another file.
    fn take(&mut self, part: &str, name: &str) -> Result<bool, StoreError> {
        take(self.root, part, name)?;
        self.done.moved += 1;
        Ok(self.done.moved < MIN_AT_ONCE || Instant::now() < self.end)
    }
}

/// Removes a label, unless it has been given to another box.
fn remove_label(root: &Path, label: &Label, digest: Option<Digest>) -> Result<(), StoreError> {
    let now = label.means(root)?;
    let path = label.path(root).filter(|_| digest.is_none() || now == digest);
    path.map_or(Ok(()), |path| remove(&path))
}

/// Moves the file or directory `name` in the directory `part` to `tmp/`. If it is missing, this is no error.
fn take(root: &Path, part: &str, name: &str) -> Result<(), StoreError> {
    let path = root.join(part).join(name);
    let gone = root.join("tmp").join(format!("{GONE}{part}-{name}"));
    match fs::rename(&path, &gone) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // An entry of this name was moved before and is not deleted yet. A directory cannot be renamed onto it.
        Err(error) if is_occupied(&error) => {
            free_gone(root);
            fs::rename(&path, gone).context("remove", &path)
        }
        removed => removed.context("remove", &path),
    }
}

fn is_occupied(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists)
}

/// Deletes the moved files. An entry that cannot be deleted takes space, but does no harm. Another process may be deleting the
/// same entries.
pub(crate) fn free_gone(root: &Path) {
    let Ok(entries) = fs::read_dir(root.join("tmp")) else { return };
    for path in entries.flatten().map(|it| it.path()) {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if !name.starts_with(GONE.as_bytes()) {
            continue;
        }
        if fs::remove_file(&path).is_err() {
            fs::remove_dir_all(&path).ok();
        }
    }
}
