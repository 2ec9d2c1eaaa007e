//! Why a registry does not give what is asked for.

use std::path::PathBuf;
use std::time::Duration;

use box_cache::StoreError;
use download::http::HttpError;
use download::{DownloadError, Retryable};

/// Why a registry does not give what is asked for.
///
/// No message has a password, a token, or what of a URL could be one: of other servers only the
/// host is named.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A host, repository or tag is none.
    #[error("{text:?} cannot be asked for: {why}")]
    Name {
        /// The text.
        text: String,
        /// What it should be.
        why: &'static str,
    },
    /// The transfer failed.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The registry answers, but not with TLS.
    #[error("{host} answers, but not with TLS")]
    NotTls {
        /// The registry or mirror.
        host: String,
    },
    /// The registry asks for credentials in a way that this version does not know.
    #[error("{host} asks for credentials in a way that is not known: {why}")]
    Challenge {
        /// The registry.
        host: String,
        /// What is wrong with the header `WWW-Authenticate`.
        why: &'static str,
    },
    /// The registry's tokens come from a server that nobody said is to be trusted with credentials.
    #[error("{host} wants its tokens to be fetched from {realm}, which is another server")]
    Realm {
        /// The registry.
        host: String,
        /// Where its tokens come from.
        realm: String,
    },
    /// The registry's tokens would travel readable to anybody.
    #[error("{host} wants its tokens to be fetched over http, where anybody could watch them")]
    PlainRealm {
        /// The registry.
        host: String,
    },
    /// What should be a token is none.
    #[error("{realm} gives no token that can be used for {host}: {why}")]
    Token {
        /// The registry.
        host: String,
        /// Where its tokens come from.
        realm: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The registry wants credentials, and there are none. Many say so of what they do not have, too.
    #[error("{host} does not give {what} without credentials, or does not have it")]
    NoCredentials {
        /// What was asked for.
        what: String,
        /// The registry.
        host: String,
    },
    /// The registry refuses the credentials, or does not have what was asked for.
    #[error("{host} does not give {what} with the credentials that there are, or does not have it")]
    Unauthorized {
        /// What was asked for.
        what: String,
        /// The registry.
        host: String,
    },
    /// The registry has no such thing.
    #[error("{host} does not have {what}")]
    NotFound {
        /// What was asked for.
        what: String,
        /// The server, behind all redirects.
        host: String,
    },
    /// The answer is compressed, though that was not asked for.
    #[error("{what} comes compressed, which was not asked for")]
    Encoded {
        /// What was asked for.
        what: String,
    },
    /// The registry names the content by what is no sha256 (header `Docker-Content-Digest`).
    #[error("the registry names {what} by a digest that cannot be used: {why}")]
    DigestHeader {
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The registry serves a manifest as something else (header `Content-Type`).
    #[error("the registry gives {what} a media type that is not that of a manifest or an index")]
    MediaType {
        /// What was asked for.
        what: String,
    },
    /// A file of credentials cannot be used. Nothing of it is repeated.
    #[error("the credentials in {} cannot be used: {why}", path.display())]
    AuthFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A credential helper does not work. Nothing that it says is repeated.
    #[error("{program} gives no credentials for {host}: {why}")]
    Helper {
        /// The program.
        program: String,
        /// The registry.
        host: String,
        /// Why not.
        why: String,
    },
    /// Neither the mirrors nor the registry itself could help.
    #[error("the mirrors failed ({mirrors}), and then the registry itself")]
    AfterMirrors {
        /// Each mirror's error.
        mirrors: String,
        /// The registry's error.
        source: Box<Self>,
    },
}

impl RegistryError {
    /// Returns whether the fault is on this machine, so that no other server can help.
    pub(crate) const fn is_local(&self) -> bool {
        match self {
            Self::Download(error) => error.is_local(),
            Self::Name { .. } | Self::AuthFile { .. } | Self::Helper { .. } => true,
            _ => false,
        }
    }

    /// Returns the error's text with those of its causes.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text
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

impl From<HttpError> for RegistryError {
    fn from(error: HttpError) -> Self {
        Self::Download(error.into())
    }
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        Self::Download(error.into())
    }
}
