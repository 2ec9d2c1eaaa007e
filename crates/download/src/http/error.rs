//! Why there is no answer.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum HttpError {
    /// The proxy's URL cannot be used. It is not repeated, as it may have a password.
    #[error("the proxy cannot be used: {0}")]
    Proxy(String),
    /// A file of root certificates cannot be used.
    #[error("cannot read root certificates from {}", path.display())]
    Roots { path: PathBuf, source: Box<dyn Error + Send + Sync> },
    /// There are no root certificates, so that no https server can be trusted.
    #[error("{host} cannot be trusted: this system has no root certificates")]
    NoRoots { host: String },
    /// The HTTP client cannot be made.
    #[error("cannot set up the network client")]
    Client(#[source] Box<dyn Error + Send + Sync>),
    /// The server's certificate proves nothing.
    #[error("{host} cannot be trusted: its certificate is not valid here")]
    Untrusted { host: String, source: Box<dyn Error + Send + Sync> },
    /// What answers does not speak TLS.
    #[error("{host} answers, but not with TLS")]
    NotTls { host: String },
    /// No connection, or no HTTP answer on it.
    #[error("{host} cannot be reached or gives no answer")]
    Unreachable { host: String, source: Box<dyn Error + Send + Sync> },
    /// The server holds the connection but sends nothing.
    #[error("{host} has sent nothing for {waited:?}")]
    Stalled { host: String, waited: Duration },
}

impl HttpError {
    /// Returns whether a retry may help: the connection failed, nothing else.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Stalled { .. })
    }
}
