//! The fields of a FUSE answer that the attacks read.

use core::fmt;

use super::{ANSWER_HEADER, Fs};
use crate::machine::Shared;

/// The result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The host did it. The payload after the header has this many bytes.
    Done(usize),
    /// The host refused it with this error.
    Refused(Errno),
    /// The device used the chain and wrote no answer.
    Silent,
    /// The device did not use the chain in time, or has lost an earlier request.
    Lost,
}

/// An error number of Linux, such as 2 for `ENOENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

/// The attributes of a node (`struct fuse_attr`) that the report shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// The inode number on the host.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The file type and permissions (`st_mode`).
    pub mode: u32,
}

impl Answer {
    pub(super) fn read(answer: &Shared, written: u32) -> Self {
        if written == 0 {
            return Self::Silent;
        }
        let mut header = [0; 8];
        answer.read(0, &mut header);
        let [a, b, c, d, e, f, g, h] = header;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(0);
        match i32::from_le_bytes([e, f, g, h]) {
            0 => Self::Done(length.saturating_sub(ANSWER_HEADER)),
            error => Self::Refused(Errno(-error)),
        }
    }

    /// Returns whether the request was done.
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Done(_))
    }
}

impl Attributes {
    /// Reads the attributes at offset `at` of the last answer's payload.
    pub fn read(fs: &Fs, at: usize) -> Self {
        let [a, b, c, d, ..] = fs.number(at + 60).to_le_bytes();
        let mode = u32::from_le_bytes([a, b, c, d]);
        Self { inode: fs.number(at), size: fs.number(at + 8), mode }
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inode, size, mode } = self;
        write!(to, "inode {inode} size {size} mode {mode:o}")
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(_) => to.write_str("done"),
            Self::Refused(errno) => errno.fmt(to),
            Self::Silent => to.write_str("silent"),
            Self::Lost => to.write_str("lost"),
        }
    }
}

/// The names of the errors that libkrun and the host's kernel return (`asm-generic/errno.h`).
const NAMES: [(i32, &str); 32] = [
    (1, "EPERM"),
    (2, "ENOENT"),
    (5, "EIO"),
    (6, "ENXIO"),
    (7, "E2BIG"),
    (9, "EBADF"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (17, "EEXIST"),
    (18, "EXDEV"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (25, "ENOTTY"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (29, "ESPIPE"),
    (30, "EROFS"),
    (34, "ERANGE"),
    (36, "ENAMETOOLONG"),
    (38, "ENOSYS"),
    (39, "ENOTEMPTY"),
    (40, "ELOOP"),
    (61, "ENODATA"),
    (71, "EPROTO"),
    (75, "EOVERFLOW"),
    (95, "EOPNOTSUPP"),
];

impl fmt::Display for Errno {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.0) {
            Some((_, name)) => to.write_str(name),
            None => write!(to, "errno-{}", self.0),
        }
    }
}
