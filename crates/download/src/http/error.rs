//! The errors of requests that got no response.

use std::error::Error;
use std::io;
use std::time::Duration;

/// An error of a request that got no response.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum HttpError {
    /// The URL in `HTTPS_PROXY` is invalid. The message does not repeat it, because it may have a password.
    #[error("the proxy in HTTPS_PROXY cannot be used: {0}")]
    Proxy(String),
    /// A file of root certificates cannot be read.
    #[error(transparent)]
    Roots(#[from] tls_roots::RootsError),
    /// There are no root certificates, so no https server can be trusted.
    #[error("{host} cannot be trusted: this system has no root certificates")]
    NoRoots { host: String },
    /// The HTTP client cannot be made.
    #[error("cannot set up the network client")]
    Client(#[source] Box<dyn Error + Send + Sync>),
    /// The server's certificate is not trusted.
    #[error("{what}")]
    Untrusted { what: String, source: Box<dyn Error + Send + Sync> },
    /// The server does not speak TLS.
    #[error("{host} answers, but not with TLS")]
    NotTls { host: String },
    /// The server answers, but not with [HTTP/1.1](https://www.rfc-editor.org/rfc/rfc9112).
    #[error("{host} answers, but not with valid HTTP")]
    NotHttp { host: String, source: Box<dyn Error + Send + Sync> },
    /// A redirect leads to a link-local address or a cloud's metadata service.
    #[error("{host} is not contacted: its address is {purpose}")]
    Screened { host: String, purpose: &'static str },
    /// The content to send cannot be read on this host.
    #[error("the bytes that go to {host} cannot be read")]
    Content { host: String, source: io::Error },
    /// The upload has exceeded its time limit.
    #[error("{what}")]
    Late { what: String },
    /// The server's host, or the proxy's, refuses the connection: no program listens on the port.
    #[error("{what}")]
    Refused { what: String, source: Box<dyn Error + Send + Sync> },
    /// The server cannot be reached, or it sends no response, or no further bytes of one.
    #[error("{what}")]
    Unreachable { what: String, source: Option<Box<dyn Error + Send + Sync>> },
}

impl HttpError {
    /// Returns the error of a server that keeps the connection open, but sends no bytes.
    pub(crate) fn stalled(host: &str, waited: Duration) -> Self {
        Self::Unreachable { what: format!("{host} has sent nothing for {waited:?}"), source: None }
    }
}
