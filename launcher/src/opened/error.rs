//! Errors of a box that is opened to run.

use std::path::PathBuf;

use box_contract::Unsupported;
use box_layout::OpenError;
use host_fs::OsError;
use safe_text::shown;
use vmm::signals::Stopped;

use crate::streams::StreamError;

/// Why a box could not be opened or verified.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum OpenBoxError {
    /// The operating system refused something.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A signal asked for the end.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// Its init speaks another protocol.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The box could not be opened, or a blob of it is not the one that it names.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Somebody else could change a blob while it is verified or running.
    #[error("{} can be changed by another user", .0.display())]
    Writable(PathBuf),
    /// The box declares what this version does not enforce.
    #[error("this version of boxlaunch cannot run a box with these declarations:{}", list(.0))]
    Unsupported(Vec<Unsupported>),
}

/// Lists declarations, each on a line of its own.
fn list(unsupported: &[Unsupported]) -> String {
    let line = |it: &Unsupported| format!("\n  {}", shown(&it.to_string()));
    unsupported.iter().map(line).collect()
}
