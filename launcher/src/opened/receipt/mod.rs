//! Receipts of verified files, so that a start need not hash them again.
//!
//! ```text
//! <state>/verified/              0700
//! <state>/verified/<sha256>      one line for each file with this digest: its stamp
//! <state>/verified/<sha256>.box  one line for each copy of this box: the stamps of its boot blobs
//! ```
//!
//! A line of a blob's receipt means that the file with this stamp had this digest when it was last hashed; see
//! [`host_fs::stamp`] for the strength of that proof. A line of a box's receipt means this for each of its boot blobs,
//! in the order of [`box_layout::OpenBox::boot_blobs`]; the digest of the box covers their digests. So a start reads
//! one receipt, however many boot blobs the box has. Other boxes can use the receipts of single blobs: for example, a
//! later build with the same rootfs.
//!
//! Only the owner of a file, root, and a person who can remove the disk can defeat a receipt: [`crate::opened::open()`]
//! refuses blobs that other users may write, and a state directory that other users may write is not used. `--verify`
//! hashes all blobs regardless of receipts.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use box_digest::Digest;
use host_fs::OsError;
use host_fs::publish::FileDraft;
use host_fs::read::{Links, open_regular_at, read_open};
use host_fs::stamp::Stamp;
use host_fs::trust::{is_private, open_private};
use nix::fcntl::AT_FDCWD;

/// The directory of the receipts in the state directory.
const NAME: &str = "verified";
/// The maximum number of lines of a blob's receipt.
const MAX_LINES: usize = 16;
/// The greatest size of [`MAX_LINES`] lines, in bytes.
const MAX_BYTES: u64 = 4096;
/// The maximum number of lines of a box's receipt.
const MAX_COPIES: usize = 4;
/// The greatest size of [`MAX_COPIES`] lines of a box with the most blobs that it can have, in bytes.
const MAX_BOX_BYTES: u64 = 256 << 10;
/// Separates the stamps in a box's line. No stamp contains it.
const BETWEEN: char = '\t';

/// The receipts in a state directory.
#[derive(Debug)]
pub struct Receipts {
    state: PathBuf,
}

impl Receipts {
    /// Uses the receipts in `<state>/verified`, which is created with the first receipt.
    pub fn new(state: &Path) -> Self {
        Self { state: state.to_owned() }
    }

    /// Returns whether a receipt proves that the file with this stamp has this digest. A receipt that cannot be read
    /// proves nothing.
    pub fn holds(&self, digest: &Digest, stamp: &Stamp) -> bool {
        self.record(digest, stamp).is_some()
    }

    /// Returns the line of a receipt that proves that the file with this stamp has this digest.
    pub(crate) fn record(&self, digest: &Digest, stamp: &Stamp) -> Option<String> {
        let lines = lines(&self.directory().ok()?, &Kind::Blob.name(digest), Kind::Blob);
        lines.into_iter().find(|line| stamp.is_recorded(line))
    }

    /// Returns whether a receipt proves that the files with these stamps are the boot blobs of the box with this
    /// digest, in this order.
    pub fn holds_box(&self, digest: &Digest, stamps: &[Stamp]) -> bool {
        let is_of = |line: &String| {
            let records: Vec<_> = line.split(BETWEEN).collect();
            let mut both = records.iter().zip(stamps);
            records.len() == stamps.len() && both.all(|(record, stamp)| stamp.is_recorded(record))
        };
        self.directory().is_ok_and(|directory| {
            lines(&directory, &Kind::Box.name(digest), Kind::Box).iter().any(is_of)
        })
    }

    /// Records that a file has this digest; `record` is the [`Stamp::record`] of the file.
    ///
    /// # Errors
    /// If the receipt cannot be written.
    pub fn note(&self, digest: &Digest, record: String) -> Result<(), OsError> {
        self.add(digest, record, Kind::Blob)
    }

    /// Records that the files with these records are the boot blobs of the box with this digest, in this order.
    ///
    /// # Errors
    /// If the receipt cannot be written.
    pub fn note_box(&self, digest: &Digest, records: &[String]) -> Result<(), OsError> {
        self.add(digest, records.join(&BETWEEN.to_string()), Kind::Box)
    }

    /// Adds a line to a receipt, and removes the oldest lines beyond the limit of its kind.
    fn add(&self, digest: &Digest, line: String, kind: Kind) -> Result<(), OsError> {
        let path = self.state.join(NAME);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(OsError::file("make", &path))?;
        let directory = self.directory().map_err(OsError::file("use", &path))?;
        let name = kind.name(digest);
        let mut lines = lines(&directory, &name, kind);
        lines.retain(|it| *it != line);
        lines.push(line);
        let surplus = lines.len().saturating_sub(kind.most_lines());
        lines.drain(..surplus);
        let written = write(&directory, &name, &(lines.join("\n") + "\n"));
        written.map_err(OsError::file("write to", &path))
    }

    /// Opens the directory of the receipts, if no other user can change it or its parent.
    fn directory(&self) -> io::Result<File> {
        let state = open_private(AT_FDCWD, &self.state)?;
        open_private(&state, Path::new(NAME))
    }
}

/// The subject of a receipt.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Blob,
    Box,
}

impl Kind {
    fn name(self, digest: &Digest) -> String {
        match self {
            Self::Blob => digest.hex(),
            Self::Box => digest.hex() + ".box",
        }
    }

    const fn most_lines(self) -> usize {
        match self {
            Self::Blob => MAX_LINES,
            Self::Box => MAX_COPIES,
        }
    }

    const fn most_bytes(self) -> u64 {
        match self {
            Self::Blob => MAX_BYTES,
            Self::Box => MAX_BOX_BYTES,
        }
    }
}

/// Reads the lines of a receipt. Returns no lines if the receipt is missing, is not a regular file, is too large, or
/// can be changed by another user.
fn lines(directory: &File, name: &str, kind: Kind) -> Vec<String> {
    let file = open_regular_at(directory, Path::new(name), Links::Refuse).ok();
    let file = file.filter(|file| is_private(file).is_ok_and(|private| private));
    let bytes = file.and_then(|file| read_open(&file, kind.most_bytes()).ok());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Replaces a receipt through the handle of the checked directory, because the path may lead elsewhere now. The receipt
/// is not flushed to the disk, because its loss only costs time.
fn write(directory: &File, name: &str, text: &str) -> io::Result<()> {
    let directory = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let to = directory.join(name);
    let draft = FileDraft::beside(&to, 0o600)?;
    draft.file().write_all(text.as_bytes())?;
    draft.finish_over_unflushed(&to)
}

#[cfg(test)]
mod tests;
