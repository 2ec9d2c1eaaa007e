//! The errors of requests to registries.

use std::path::PathBuf;
use std::time::Duration;

use download::{DownloadError, Retryable};
use reqwest::StatusCode;

/// An error of a request to a registry.
///
/// No message has a password, a token, or what of a URL could be one: of other servers only the
/// host is named.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum RegistryError {
    /// A host, repository or tag is malformed.
    #[error("{text:?} cannot be asked for: {reason}")]
    Name { text: String, reason: &'static str },
    /// The bytes could not be transferred.
    #[error(transparent)]
    Download(DownloadError),
    /// The registry answers, but not with TLS. `config_file` is where plain http could be allowed.
    #[error("{host} answers, but not with TLS")]
    NotTls { host: String, config_file: Option<PathBuf> },
    /// The registry's tokens come from a server that the configuration does not trust with
    /// credentials. `config_file` is where it could be trusted.
    #[error("{host} wants its tokens to be fetched from {realm}, which is another server")]
    Realm { host: String, realm: String, config_file: Option<PathBuf> },
    /// The registry's tokens would be sent without encryption.
    #[error("{host} wants its tokens to be fetched over http, which is not encrypted")]
    PlainRealm { host: String },
    /// The registry wants credentials, or refuses `credentials`: whose they are, and where they come
    /// from. Many registries answer the same for an image that does not exist. `passed_over` are files of
    /// credentials and helpers that could not be used, each with the reason.
    #[error(
        "{host} {} for {what}, or does not have it{}",
        credentials.as_ref().map_or("wants credentials".to_owned(), |it| format!("refuses {it}")),
        passed_over.iter().map(|it| format!("; {it}")).collect::<String>()
    )]
    Unauthorized {
        what: String,
        host: String,
        credentials: Option<String>,
        passed_over: Vec<String>,
    },
    /// The registry has no such repository, manifest or blob. `tag` is the tag that was requested.
    #[error("registry {host} has no {what}")]
    NotFound { what: String, host: String, tag: Option<String> },
    /// The registry knows who asks, and does not allow it; it may also be read-only, or its repository.
    #[error(
        "registry {host} does not allow {what}{}",
        reason.map(|it| format!(": it answers {it}")).unwrap_or_default()
    )]
    Denied { what: String, host: String, reason: Option<&'static str> },
    /// The registry takes no blob or manifest of this size, in bytes; a proxy in front of it may set the limit.
    #[error("{host} does not take {what}: its {size} bytes are too many")]
    TooLarge { what: String, host: String, size: u64 },
    /// The registry does not take a manifest of this kind, or with something in it.
    #[error(
        "registry {host} refuses {what}: it answers \"{status}{}\"",
        reason.map(|it| format!(", {it}")).unwrap_or_default()
    )]
    Refused { what: String, host: String, status: StatusCode, reason: Option<&'static str> },
    /// A response has something that no registry should send, or asks for credentials in an
    /// unknown way, or has no token. What it has is not repeated.
    #[error("{what}: {reason}")]
    Response { what: String, reason: &'static str },
    /// The answer is a page for a browser, or other text that no registry sends: a proxy, a filter or
    /// a login page answers in the registry's place, or the host is no registry.
    #[error("the answer for {what} is {found}, which no registry sends")]
    NotARegistry { what: String, host: String, found: &'static str },
    /// Neither the mirrors nor the registry itself could help.
    #[error("mirror {}; registry {host}", mirrors.join("; mirror "))]
    AfterMirrors { mirrors: Vec<String>, host: String, source: Box<Self> },
}

impl RegistryError {
    /// Returns the error of a response that no registry should send for `what`.
    pub(crate) fn response(what: &str, reason: &'static str) -> Self {
        let what = format!("the registry's response for {what} cannot be used");
        Self::Response { what, reason }
    }

    /// Returns whether a registry refuses a manifest for what it is, and not for a blob, a tag or a size: it may take one
    /// with another artifact type, or with other media types.
    pub fn is_refused_kind(&self) -> bool {
        match self {
            Self::Refused { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, .. } => true,
            Self::Refused { reason, .. } => {
                matches!(reason, None | Some("MANIFEST_INVALID" | "UNSUPPORTED"))
            }
            _ => false,
        }
    }

    /// Returns whether a registry refuses a manifest because it lacks a blob that the manifest names.
    pub fn is_missing_blob(&self) -> bool {
        match self {
            Self::Refused { reason, .. } => {
                matches!(reason, Some("MANIFEST_BLOB_UNKNOWN" | "BLOB_UNKNOWN"))
            }
            _ => false,
        }
    }

    /// Returns whether the fault is on this machine, so that no other server can help.
    pub(crate) const fn is_local(&self) -> bool {
        match self {
            Self::Download(error) => error.is_local(),
            Self::Name { .. } => true,
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
