//! Opens and reads regular files within bounds.
//!
//! A path can refer to anything by the time of opening: a pipe, which blocks until there is a writer, a device
//! without an end, or a link to either. So files are opened without blocking, and the checks apply to the open handle
//! instead of the path.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::FileError;

/// How symbolic links in a path are treated. Links before the last component are followed, except with
/// [`Links::RefuseAll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Follows it: for files that a user names, and for the trees of links that Bazel and Nix make.
    Follow,
    /// Refuses it with [`ReadError::NotRegular`]: for boxes, stores and state.
    Refuse,
    /// Refuses a link in any component with [`ReadError::NotRegular`]: for root's use of another user's directory, who
    /// could replace any component.
    RefuseAll,
}

/// An error from reading a file. It does not name the file.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ReadError {
    /// A directory, a device, a pipe, a socket, or a symbolic link that is not followed.
    #[error("it is not a regular file")]
    NotRegular,
    /// The file is longer than allowed. For a growing file, `found` is the number of bytes that were read.
    #[error("it has {found} bytes, and at most {limit} are allowed")]
    TooLong { limit: u64, found: u64 },
    /// The operating system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ReadError {
    /// Returns `true` if the file does not exist, or its parent does not exist or is not a directory.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io(error) if matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ))
    }
}

/// Wraps the error in an I/O error with the same message.
impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            ReadError::TooLong { .. } => Self::new(io::ErrorKind::FileTooLarge, error),
            ReadError::NotRegular => Self::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

/// Opens a regular file for reading. Never blocks on another process.
///
/// # Errors
/// [`ReadError::NotRegular`] or [`ReadError::Io`].
pub fn open_regular(path: &Path, links: Links) -> Result<File, ReadError> {
    open_regular_at(CWD, path, links)
}

/// Opens a regular file for reading by a path relative to an open directory. Never blocks on another process.
///
/// # Errors
/// [`ReadError::NotRegular`] or [`ReadError::Io`].
pub fn open_regular_at(directory: impl AsFd, path: &Path, links: Links) -> Result<File, ReadError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let (last, none) = (flags | OFlags::NOFOLLOW, Mode::empty());
    let opened = match links {
        Links::Follow => openat(directory, path, flags, none),
        Links::Refuse => openat(directory, path, last, none),
        Links::RefuseAll => openat2(directory, path, last, none, ResolveFlags::NO_SYMLINKS),
    };
    let file = match opened {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::LOOP) if links != Links::Follow => return Err(ReadError::NotRegular),
        // open(2): a socket, or a device without a driver.
        Err(Errno::NXIO) => return Err(ReadError::NotRegular),
        Err(error) => return Err(ReadError::Io(error.into())),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(ReadError::NotRegular) }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// [`ReadError`]. A file that is too long is not read.
pub fn read_file(path: &Path, links: Links, limit: u64) -> Result<Vec<u8>, ReadError> {
    read_open(&open_regular(path, links)?, limit)
}

/// Returns the bytes of the file at `path` as text.
///
/// # Errors
/// That the bytes are not UTF-8, with the line and column of the first invalid byte.
pub fn text(path: &Path, bytes: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|it| **it == b'\n').count();
        let start = valid.iter().rposition(|it| *it == b'\n').map_or(0, |at| at + 1);
        let column = 1 + String::from_utf8_lossy(&valid[start..]).chars().count();
        let reason = if utf16(error.as_bytes()).is_some() {
            UTF_16.to_owned()
        } else {
            format!("not valid UTF-8 at line {line}, column {column}")
        };
        FileError::of("read", path)(io::Error::new(io::ErrorKind::InvalidData, reason))
    })
}

/// The message for a text that [`utf16`] recognizes.
pub const UTF_16: &str = "it is UTF-16, not UTF-8";

/// Decodes UTF-16, in which some editors save a text. Returns `None` if the bytes do not begin with its byte order mark.
pub fn utf16(bytes: &[u8]) -> Option<String> {
    let of: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let (pairs, _) = bytes[2..].as_chunks();
    Some(String::from_utf16_lossy(&pairs.iter().map(|it| of(*it)).collect::<Vec<_>>()))
}

/// Reads an open regular file of at most `limit` bytes, from its position to its end.
///
/// # Errors
/// [`ReadError`]. A file that is too long is not read.
pub fn read_open(file: &File, limit: u64) -> Result<Vec<u8>, ReadError> {
    let length = file.metadata()?.len();
    if length > limit {
        return Err(ReadError::TooLong { limit, found: length });
    }
    // Read up to one byte more than `limit`, which shows that the file has grown meanwhile.
    let bytes = take(file, length, limit.saturating_add(1))?;
    match bytes.len() as u64 {
        found if found > limit => Err(ReadError::TooLong { limit, found }),
        _ => Ok(bytes),
    }
}

/// Reads at most the first `most` bytes of a regular file, for callers that check the length themselves.
///
/// # Errors
/// [`ReadError::NotRegular`] or [`ReadError::Io`].
pub fn read_prefix(path: &Path, links: Links, most: u64) -> Result<Vec<u8>, ReadError> {
    Ok(read_open_prefix(&open_regular(path, links)?, most)?)
}

/// Like [`read_prefix`], for an open regular file, from its position.
///
/// # Errors
/// The operating system's error.
pub fn read_open_prefix(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    take(file, length.min(most), most)
}

/// Reads a part of a file without using the position of the handle, so that several readers can share the handle.
#[derive(Debug)]
pub struct Section<F> {
    file: F,
    offset: u64,
    rest: u64,
}

impl<F: Deref<Target = File>> Section<F> {
    /// Returns a reader of `size` bytes from `offset`, or up to the end of the file.
    pub const fn new(file: F, offset: u64, size: u64) -> Self {
        Self { file, offset, rest: size }
    }
}

impl<F: Deref<Target = File>> Read for Section<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = usize::try_from(self.rest).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..length], self.offset)?;
        self.offset += read as u64;
        self.rest -= read as u64;
        Ok(read)
    }
}

/// Reads at most `most` bytes. `expected` is the likely number.
fn take(file: &File, expected: u64, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
