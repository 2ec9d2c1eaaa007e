//! Why a registry does not give what is asked for.

use std::time::Duration;

use download::{DownloadError, Retryable};

/// Why a registry does not give what is asked for.
///
/// No message has a password, a token, or what of a URL could be one: of other servers only the
/// host is named.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum RegistryError {
    /// A host, repository or tag is malformed.
    #[error("{text:?} cannot be asked for: {why}")]
    Name { text: String, why: &'static str },
    /// The bytes could not be transferred.
    #[error(transparent)]
    Download(DownloadError),
    /// The registry answers, but not with TLS.
    #[error("{host} answers, but not with TLS")]
    NotTls { host: String },
    /// The registry's tokens come from a server that nobody said is to be trusted with credentials.
    #[error("{host} wants its tokens to be fetched from {realm}, which is another server")]
    Realm { host: String, realm: String },
    /// The registry's tokens would travel readable to anybody.
    #[error("{host} wants its tokens to be fetched over http, where anybody could watch them")]
    PlainRealm { host: String },
    /// The registry wants credentials, or refuses those that there are. Many say so of what they do
    /// not have, too.
    #[error(
        "{host} does not give {what} {}, or does not have it",
        if *has_credentials { "with the credentials that there are" } else { "without credentials" }
    )]
    Unauthorized { what: String, host: String, has_credentials: bool },
    /// The registry has no such thing.
    #[error("{host} does not have {what}")]
    NotFound { what: String, host: String },
    /// A response has something that no registry should send, or asks for credentials in an
    /// unknown way, or has no token. What it has is not repeated.
    #[error("{what}: {why}")]
    Response { what: String, why: &'static str },
    /// A file of credentials cannot be used, or a credential helper does not work. Nothing of what
    /// they say is repeated: `from` names the file or the helper, with what it does not give.
    #[error("{from}: {why}")]
    Credentials { from: String, why: String },
    /// Neither the mirrors nor the registry itself could help.
    #[error("the mirrors failed ({mirrors}), and then the registry itself")]
    AfterMirrors { mirrors: String, source: Box<Self> },
}

impl RegistryError {
    /// Returns the error of a response that no registry should send for `what`.
    pub(crate) fn response(what: &str, why: &'static str) -> Self {
        let what = format!("the registry's response for {what} cannot be used");
        Self::Response { what, why }
    }

    /// Returns whether the fault is on this machine, so that no other server can help.
    pub(crate) const fn is_local(&self) -> bool {
        match self {
            Self::Download(error) => error.is_local(),
            Self::Name { .. } | Self::Credentials { .. } => true,
            _ => false,
        }
    }
}

impl Retryable for RegistryError {
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Download(error) => error.retry_after(),
            _ => None,
        }
    }
}

impl<E: Into<DownloadError>> From<E> for RegistryError {
    fn from(error: E) -> Self {
        Self::Download(error.into())
    }
}
