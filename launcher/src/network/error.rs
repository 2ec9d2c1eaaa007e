//! Errors of a box's network.

use std::io;
use std::net::SocketAddr;

use egress_rules::PeerError;
use host_fs::OsError;
use vmm::VmmError;

use crate::host::programs::PASST;

/// Why a box has no network.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum NetworkError {
    /// The operating system refused something.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A socket of the machine's process could not be made.
    #[error(transparent)]
    Vmm(#[from] VmmError),
    /// A port of the host cannot be published at.
    #[error("cannot publish a port at {at}: {source}")]
    Port {
        at: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// The plan of a box names hosts in a malformed form.
    #[error("the box's network: {0}")]
    Peer(#[from] PeerError),
    /// The box shares the host's network, and what carries that is not installed.
    #[error("the box needs {PASST} for its network \"shared\", and there is no {PASST} in PATH")]
    NoPasst,
    /// passt could not start; holds its own words.
    #[error("{PASST} could not start: {0}")]
    Passt(String),
}
