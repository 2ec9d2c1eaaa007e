//! How publishing a directory ends.

use std::io;
use std::path::PathBuf;

use crate::FileError;

/// How a directory took the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// In one step, or there was none: at every moment either the old or the new was there.
    Atomic,
    /// The file system has no `RENAME_EXCHANGE`: a crash between two steps would have left nothing
    /// at the destination, and the old directory beside it.
    InSteps,
}

/// Why a directory is not published.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum PublishError {
    /// Something is at the destination, where nothing was to be, or nothing else than what is
    /// replaced: `what` is the end of a sentence about it, such as `is a symbolic link`.
    #[error("{} exists{}", path.display(), and(what.as_deref()))]
    Exists { path: PathBuf, what: Option<String> },
    /// Other processes kept the destination locked, or changed it again and again.
    #[error("another process is using {}", path.display())]
    Busy { path: PathBuf },
    /// What came out of an exchange was refused, and could not be put back.
    #[error("cannot write {}; what was there is kept as {}", path.display(), kept.display())]
    NotRestored { path: PathBuf, kept: PathBuf, source: io::Error },
    /// The operating system refused something. Also where a file of the draft is concerned, the path
    /// is that of the destination.
    #[error(transparent)]
    File(#[from] FileError),
}

fn and(what: Option<&str>) -> String {
    what.map_or_else(String::new, |what| format!(" and {what}"))
}
