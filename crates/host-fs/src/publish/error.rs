//! How publishing a directory ends.

use std::io;
use std::path::PathBuf;

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
pub enum PublishError {
    /// Something is at the destination, where nothing was to be.
    #[error("{} exists", path.display())]
    Exists {
        /// The destination.
        path: PathBuf,
    },
    /// Other processes kept the destination locked, or changed it again and again.
    #[error("another process is using {}", path.display())]
    Busy {
        /// The destination.
        path: PathBuf,
    },
    /// What came out of an exchange was refused, and could not be put back.
    #[error("cannot write {}; what was there is kept as {}", path.display(), kept.display())]
    NotRestored {
        /// The destination.
        path: PathBuf,
        /// Where that which was at the destination is now.
        kept: PathBuf,
        /// Why it could not be put back.
        source: io::Error,
    },
    /// The operating system refused something.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The destination, also where a file of the draft is concerned.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}
