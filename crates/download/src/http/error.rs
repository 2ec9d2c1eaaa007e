//! Errors of requests that got no response.

use std::error::Error;
use std::io;
use std::time::Duration;

/// Errors of a request that got no response.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum HttpError {
    /// The proxy's URL cannot be used. It is not repeated, as it may have a password.
    #[error("the proxy cannot be used: {0}")]
    Proxy(String),
    /// There are no root certificates, so that no https server can be trusted.
    #[error("{host} cannot be trusted: this system has no root certificates")]
    NoRoots { host: String },
    /// The HTTP client cannot be made.
    #[error("cannot set up the network client")]
    Client(#[source] Box<dyn Error + Send + Sync>),
    /// A file of root certificates cannot be used, or the server's certificate proves nothing.
    #[error("{what}")]
    Untrusted { what: String, source: Box<dyn Error + Send + Sync> },
    /// The server does not speak TLS.
    #[error("{host} answers, but not with TLS")]
    NotTls { host: String },
    /// Something answers, but not as RFC 9112 says.
    #[error("{host} answers, but not with valid HTTP")]
    NotHttp { host: String, source: Box<dyn Error + Send + Sync> },
    /// A redirect leads to an address of the link, or to a cloud's metadata, whatever its name is.
    #[error("{host} is not asked: its address is {purpose}")]
    Screened { host: String, purpose: &'static str },
    /// What is to be sent cannot be read on this machine.
    #[error("the bytes that go to {host} cannot be read")]
    Content { host: String, source: io::Error },
    /// What was sent did not arrive in the time that it may take.
    #[error("{what}")]
    Late { what: String },
    /// No connection, or no HTTP answer on it, or nothing is sent any more.
    #[error("{what}")]
    Unreachable { what: String, source: Option<Box<dyn Error + Send + Sync>> },
}

impl HttpError {
    /// Returns the error of a server that holds the connection but sends nothing.
    pub(crate) fn stalled(host: &str, waited: Duration) -> Self {
        Self::Unreachable { what: format!("{host} has sent nothing for {waited:?}"), source: None }
    }
}
