//! Errors of opening a box to run it.

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
    /// The operating system refused an operation.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A signal requested the end of the start.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The box's init speaks another protocol.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The box could not be opened, or a blob does not match its digest.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Another user could change a blob while it is verified or used.
    #[error("{} can be changed by another user", .0.display())]
    Writable(PathBuf),
    /// The box declares something that this version does not enforce.
    #[error("this version of boxlaunch cannot run a box with these declarations:{}", list(.0))]
    Unsupported(Vec<Unsupported>),
}

/// Lists declarations, one on each line.
fn list(unsupported: &[Unsupported]) -> String {
    let line = |it: &Unsupported| format!("\n  {}", shown(&it.to_string()));
    unsupported.iter().map(line).collect()
}
