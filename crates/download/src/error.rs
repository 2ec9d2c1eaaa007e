//! The errors of a download.

use std::io;
use std::time::Duration;

use box_cache::StoreError;
use box_digest::Digest;
use reqwest::StatusCode;

use crate::http::HttpError;
use crate::retry::Retryable;

/// An error of a download.
///
/// `what` is the description of the file. No message contains a password, a token or a part of a URL that could be one. Of a
/// redirect's URL, messages contain only the scheme and the server.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum DownloadError {
    /// There is no response.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server answers with an error status.
    #[error(
        "{host} answers \"{status}{}\" for {what}{}",
        reason.map(|it| format!(", {it}")).unwrap_or_default(),
        retry_after.map(|it| format!(" and asks to wait {} s", it.as_secs())).unwrap_or_default()
    )]
    Status {
        what: String,
        host: String,
        status: StatusCode,
        /// The error code of the body, if it is a known one.
        reason: Option<&'static str>,
        /// Whether a retry may help, because the server has failed or is busy.
        transient: bool,
        retry_after: Option<Duration>,
    },
    /// A redirect leads to a URL with a forbidden scheme or address, or there are too many redirects.
    #[error("the request for {what} is redirected {how}")]
    Redirect { what: String, how: String },
    /// A redirect leads from https to http.
    #[error(
        "the request for {what} is redirected from https to {to}, \
         where anybody could change or watch the response"
    )]
    Downgrade { what: String, to: String },
    /// The connection ended early, or the file arrives too slowly. A retry may help if it is `transient`, but not after the
    /// deadline for the whole download.
    #[error("{how}")]
    Interrupted { how: String, transient: bool, source: Option<io::Error> },
    /// The file is larger than the limit.
    #[error("{what} is larger than the {limit} bytes that it may have")]
    TooLarge { what: String, limit: u64 },
    /// The size is wrong. `found` is the size, or the number of bytes at which the download was stopped.
    #[error("{what} should have {expected} bytes, but has {found}")]
    WrongSize { what: String, expected: u64, found: u64 },
    /// The digest is wrong.
    #[error("{what} is damaged, or another file: its digest is {found}, not {expected}")]
    WrongDigest { what: String, expected: Digest, found: Digest },
    /// The target has rejected the content for `reason`.
    #[error("{what} cannot be used: {reason}")]
    Content { what: String, reason: String },
    /// The bytes cannot be written to the store.
    #[error("the download of {what} cannot be written to the store")]
    Write { what: String, source: io::Error },
    /// The store could not be read or written.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The download was canceled.
    #[error("the download of {what} was canceled")]
    Canceled { what: String },
}

impl DownloadError {
    /// Returns whether the download has failed because the bytes are wrong.
    pub const fn is_other_content(&self) -> bool {
        use DownloadError::{Content, TooLarge, WrongDigest, WrongSize};
        matches!(self, WrongSize { .. } | TooLarge { .. } | WrongDigest { .. } | Content { .. })
    }

    /// Returns whether the cause is on this host, so that a download from another server would fail too.
    pub const fn is_local(&self) -> bool {
        matches!(
            self,
            Self::Write { .. }
                | Self::Store(_)
                | Self::Canceled { .. }
                | Self::Http(HttpError::Content { .. })
        )
    }
}

impl Retryable for DownloadError {
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { transient: true, retry_after, .. } => {
                Some(retry_after.unwrap_or_default())
            }
            // The connection has failed, and the server may still have the file.
            Self::Http(HttpError::Unreachable { .. } | HttpError::Refused { .. })
            | Self::Interrupted { transient: true, .. } => Some(Duration::ZERO),
            _ => None,
        }
    }

    fn is_refused_connection(&self) -> bool {
        matches!(self, Self::Http(HttpError::Refused { .. }))
    }
}
