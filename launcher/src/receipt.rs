//! Receipts: which files were hashed before, so that a start need not hash them again.
//!
//! ```text
//! <state>/verified/          0700
//! <state>/verified/<sha256>  one line per file with this digest: its stamp
//! ```
//!
//! A line says that the file with this stamp had this digest when it was last hashed; see
//! [`host_fs::stamp`] for what that proves. What is left open there, only the file's owner, root and
//! who can take the disk away can do: [`crate::open()`] refuses blobs that others may write, and a
//! state directory that others may write is not used. `--verify` hashes whatever the receipts say.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use box_digest::Digest;
use host_fs::publish::FileDraft;
use host_fs::read::{Links, is_private, open_regular_at, read_open};
use host_fs::stamp::Stamp;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::Mode;

use crate::LaunchError;

/// The directory of the receipts in the state directory.
const NAME: &str = "verified";
/// How many files with one digest are remembered.
const MAX_LINES: usize = 16;
/// More than [`MAX_LINES`] lines never take.
const MAX_BYTES: u64 = 4096;

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
        self.directory().is_ok_and(|directory| {
            lines(&directory, digest).iter().any(|line| stamp.is_recorded(line))
        })
    }

    /// Notes that the file of a stamp, of which this is the [`Stamp::record`], has this digest.
    ///
    /// # Errors
    /// When the receipt cannot be written.
    pub fn note(&self, digest: &Digest, record: String) -> Result<(), LaunchError> {
        let path = self.state.join(NAME);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(LaunchError::file("make", &path))?;
        let directory = self.directory().map_err(LaunchError::file("use", &path))?;
        let mut lines = lines(&directory, digest);
        lines.retain(|line| *line != record);
        lines.push(record);
        let surplus = lines.len().saturating_sub(MAX_LINES);
        lines.drain(..surplus);
        let written = write(&directory, digest, &(lines.join("\n") + "\n"));
        written.map_err(LaunchError::file("write to", &path))
    }

    /// Opens the directory of the receipts, if nobody else can change it or what it is in.
    fn directory(&self) -> io::Result<File> {
        let state = open_private(AT_FDCWD, &self.state)?;
        open_private(&state, Path::new(NAME))
    }
}

/// Opens a directory that belongs to this user or root, and that nobody else may write to.
pub(crate) fn open_private(parent: impl AsFd, name: &Path) -> io::Result<File> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = File::from(openat(parent, name, flags, Mode::empty())?);
    if is_private(&directory)? {
        return Ok(directory);
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user can change it"))
}

/// Reads the lines of a receipt; none where it is missing, not a regular file of few lines, or one
/// that another user can change.
fn lines(directory: &File, digest: &Digest) -> Vec<String> {
    let name = digest.hex();
    let file = open_regular_at(directory, Path::new(&name), Links::Refuse).ok();
    let file = file.filter(|file| is_private(file).is_ok_and(|private| private));
    let bytes = file.and_then(|file| read_open(&file, MAX_BYTES).ok());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Puts a receipt in place, below the handle of the directory: what its path leads to may have changed
/// since it was checked. It is not flushed, as nothing is lost but time.
fn write(directory: &File, digest: &Digest, text: &str) -> io::Result<()> {
    let directory = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let to = directory.join(digest.hex());
    let draft = FileDraft::beside(&to, 0o600)?;
    draft.file().write_all(text.as_bytes())?;
    draft.finish_over_unflushed(&to)
}

#[cfg(test)]
mod tests;
