//! Receipts: which files were hashed before, so that a start need not hash them again.
//!
//! ```text
//! <state>/verified/              0700
//! <state>/verified/<sha256>      one line per file with this digest: its stamp
//! <state>/verified/<sha256>.box  one line per copy of the box with this digest: the stamps of all its blobs that boot
//! ```
//!
//! A line says that the file with this stamp had this digest when it was last hashed; see
//! [`host_fs::stamp`] for what that proves. The line of a box says so of each file in the order of
//! [`box_layout::OpenBox::boot_blobs`], whose digests the box's own digest covers: a start reads one receipt, however many
//! parts the rootfs has. Those of the blobs serve another box that has some of them. What is left open there, only the file's owner, root and
//! who can take the disk away can do: [`crate::opened::open()`] refuses blobs that others may write, and a
//! state directory that others may write is not used. `--verify` hashes whatever the receipts say.

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
/// How many files with one digest are remembered.
const MAX_LINES: usize = 16;
/// More than [`MAX_LINES`] lines never take.
const MAX_BYTES: u64 = 4096;
/// How many copies of one box are remembered.
const MAX_COPIES: usize = 4;
/// More than [`MAX_COPIES`] lines never take, of a box with as many blobs as one can have.
const MAX_BOX_BYTES: u64 = 256 << 10;
/// Is between the stamps of a box's line. No stamp has one.
const BETWEEN: char = '\t';

/// The receipts in a state directory.
#[derive(Debug)]
pub struct Receipts {
    state: PathBuf,
}

impl Receipts {
    /// Uses the receipts in `<state>/verified`, which is made when the first one is written.
    pub fn new(state: &Path) -> Self {
        Self { state: state.to_owned() }
    }

    /// Returns `true` if the file with this stamp was found to have this digest. A receipt that
    /// cannot be read proves nothing.
    pub fn holds(&self, digest: &Digest, stamp: &Stamp) -> bool {
        self.record(digest, stamp).is_some()
    }

    /// Returns the line of the file with this stamp, if it was found to have this digest.
    pub(crate) fn record(&self, digest: &Digest, stamp: &Stamp) -> Option<String> {
        let lines = lines(&self.directory().ok()?, &Kind::Blob.name(digest), Kind::Blob);
        lines.into_iter().find(|line| stamp.is_recorded(line))
    }

    /// Returns `true` if the files with these stamps were found to be the blobs of the box with this digest that boot, in
    /// their order.
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

    /// Notes that the file of a stamp, of which this is the [`Stamp::record`], has this digest.
    ///
    /// # Errors
    /// When the receipt cannot be written.
    pub fn note(&self, digest: &Digest, record: String) -> Result<(), OsError> {
        self.add(digest, record, Kind::Blob)
    }

    /// Notes that the files of these records are the blobs of the box with this digest that boot, in their order.
    ///
    /// # Errors
    /// When the receipt cannot be written.
    pub fn note_box(&self, digest: &Digest, records: &[String]) -> Result<(), OsError> {
        self.add(digest, records.join(&BETWEEN.to_string()), Kind::Box)
    }

    /// Adds a line to a receipt, the oldest of which go.
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

    /// Opens the directory of the receipts, if nobody else can change it or what it is in.
    fn directory(&self) -> io::Result<File> {
        let state = open_private(AT_FDCWD, &self.state)?;
        open_private(&state, Path::new(NAME))
    }
}

/// What a receipt is for.
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

/// Reads the lines of a receipt; none where it is missing, not a regular file of few lines, or one
/// that another user can change.
fn lines(directory: &File, name: &str, kind: Kind) -> Vec<String> {
    let file = open_regular_at(directory, Path::new(name), Links::Refuse).ok();
    let file = file.filter(|file| is_private(file).is_ok_and(|private| private));
    let bytes = file.and_then(|file| read_open(&file, kind.most_bytes()).ok());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Puts a receipt in place, below the handle of the directory: what its path leads to may have changed
/// since it was checked. It is not flushed, as nothing is lost but time.
fn write(directory: &File, name: &str, text: &str) -> io::Result<()> {
    let directory = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let to = directory.join(name);
    let draft = FileDraft::beside(&to, 0o600)?;
    draft.file().write_all(text.as_bytes())?;
    draft.finish_over_unflushed(&to)
}

#[cfg(test)]
mod tests;
