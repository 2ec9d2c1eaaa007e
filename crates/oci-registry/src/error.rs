//! The errors of requests to registries.

use std::path::PathBuf;
use std::time::Duration;

use download::{DownloadError, Retryable};
use reqwest::StatusCode;

/// An error of a request to a registry.
///
/// No message contains a password, a token or a part of a URL that could be one. Other servers are named by their host only.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum RegistryError {
    /// A host, repository or tag is malformed.
    #[error("{text:?} cannot be asked for: {reason}")]
    Name { text: String, reason: &'static str },
    /// The bytes could not be transferred.
    #[error(transparent)]
    Download(DownloadError),
    /// The registry answers without TLS. Plain HTTP can be allowed in `config_file`.
    #[error("{host} answers, but not with TLS")]
    NotTls { host: String, config_file: Option<PathBuf> },
    /// The realm of the registry's tokens is another server, which the configuration does not trust with credentials. It can be
    /// trusted in `config_file`.
    #[error("{host} wants its tokens to be fetched from {realm}, which is another server")]
    Realm { host: String, realm: String, config_file: Option<PathBuf> },
    /// The registry has an https URL, but its realm has an http URL, to which credentials would be sent without encryption.
    #[error("{host} wants its tokens to be fetched over http, which is not encrypted")]
    PlainRealm { host: String },
    /// The registry wants credentials, or refuses `credentials`, a description of a login and its source. Many registries also
    /// answer like this for an image that does not exist. `passed_over` has the reason for each file of credentials and each
    /// helper that could not be used.
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
    /// The registry has no such repository, manifest or blob. `tag` is the requested tag.
    #[error("registry {host} has no {what}")]
    NotFound { what: String, host: String, tag: Option<String> },
    /// The registry does not allow this request for the login. The registry or the repository may be read-only.
    #[error(
        "registry {host} does not allow {what}{}",
        reason.map(|it| format!(": it answers {it}")).unwrap_or_default()
    )]
    Denied { what: String, host: String, reason: Option<&'static str> },
    /// The registry rejects a blob or manifest of this size in bytes. A proxy in front of the registry may set the limit.
    #[error("{host} does not take {what}: its {size} bytes are too many")]
    TooLarge { what: String, host: String, size: u64 },
    /// The registry rejects the type or a field of a manifest.
    #[error(
        "registry {host} refuses {what}: it answers \"{status}{}\"",
        reason.map(|it| format!(", {it}")).unwrap_or_default()
    )]
    Refused { what: String, host: String, status: StatusCode, reason: Option<&'static str> },
    /// A response has a field that no registry should send, requests credentials with an unknown scheme, or has no token. The
    /// message does not repeat its content.
    #[error("{what}: {reason}")]
    Response { what: String, reason: &'static str },
    /// The answer is an HTML page or another text that no registry sends. A proxy, a filter or a login page may have answered
    /// instead of the registry, or the host is not a registry.
    #[error("the answer for {what} is {found}, which no registry sends")]
    NotARegistry { what: String, host: String, found: &'static str },
    /// The mirrors and the registry itself have all failed.
    #[error("mirror {}; registry {host}", mirrors.join("; mirror "))]
    AfterMirrors { mirrors: Vec<String>, host: String, source: Box<Self> },
}

impl RegistryError {
    /// Returns the error of an invalid response for `what`.
    pub(crate) fn response(what: &str, reason: &'static str) -> Self {
        let what = format!("the registry's response for {what} cannot be used");
        Self::Response { what, reason }
    }

    /// Returns whether the registry may have rejected the type of a manifest, and not a blob, a tag or a size. The registry may
    /// accept another artifact type or other media types.
    pub fn is_refused_kind(&self) -> bool {
        match self {
            Self::Refused { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, .. } => true,
            Self::Refused { reason, .. } => {
                matches!(reason, None | Some("MANIFEST_INVALID" | "UNSUPPORTED"))
            }
            _ => false,
        }
    }

    /// Returns whether a registry rejects a manifest because it lacks a blob that the manifest names.
    pub fn is_missing_blob(&self) -> bool {
        match self {
            Self::Refused { reason, .. } => {
                matches!(reason, Some("MANIFEST_BLOB_UNKNOWN" | "BLOB_UNKNOWN"))
            }
            _ => false,
        }
    }

    /// Returns whether the registry lacks what a digest names, or has other content under that name. If mirrors have failed too, the
    /// answer of the registry itself counts.
    pub fn is_missing_or_other_content(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::Download(error) => error.is_other_content(),
            Self::AfterMirrors { source, .. } => source.is_missing_or_other_content(),
            _ => false,
        }
    }

    /// Returns whether the cause is on this host, so that a request to another server would fail too.
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

    fn is_refused_connection(&self) -> bool {
        matches!(self, Self::Download(error) if error.is_refused_connection())
    }
}

impl<E: Into<DownloadError>> From<E> for RegistryError {
    fn from(error: E) -> Self {
        Self::Download(error.into())
    }
}
