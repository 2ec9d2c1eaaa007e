//! Errors of a box's network.

use std::io;
use std::net::SocketAddr;

use box_contract::ComponentName;
use egress_proxy::ServiceError;
use egress_rules::PeerError;
use host_fs::OsError;
use tls_roots::RootsError;
use vmm::VmmError;

use crate::host::programs::PASST;

/// Why the network of a box could not be set up.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum NetworkError {
    /// The operating system refused an operation.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A socket of the VMM process could not be created.
    #[error(transparent)]
    Vmm(#[from] VmmError),
    /// A port could not be published at an address of the host.
    #[error("cannot publish a port at {at}: {source}")]
    Port {
        at: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// A port of a component that the box does not have.
    #[error("the box has no {} component", .0.name())]
    NoComponent(ComponentName),
    /// The box's plan has a malformed rule.
    #[error("the box's network: {0}")]
    Peer(#[from] PeerError),
    /// A service of the box cannot be served.
    #[error("the box: {0}")]
    Service(#[from] ServiceError),
    /// The root certificates for services cannot be read.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// The system has no root certificates.
    #[error("no service of the box can be trusted: this system has no root certificates")]
    NoRoots,
    /// The client for services cannot be set up.
    #[error("cannot set up the TLS client for services: {0}")]
    Tls(#[from] rustls::Error),
    /// The box shares the host's network, and passt is not installed.
    #[error("the box needs {PASST} for its network \"shared\", and there is no {PASST} in PATH")]
    NoPasst,
    /// passt could not start. Contains passt's message.
    #[error("{PASST} could not start: {0}")]
    Passt(String),
}
