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
/// `what` is the name of the file for messages. No message has a password, a token, or a part of a
/// URL that could be one: of a redirect only the server is named.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum DownloadError {
    /// There is no response.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server refuses, or fails.
    #[error(
        "{host} answers \"{status}{}\" for {what}{}",
        reason.map(|it| format!(", {it}")).unwrap_or_default(),
        retry_after.map(|it| format!(" and asks to wait {} s", it.as_secs())).unwrap_or_default()
    )]
    Status {
        what: String,
        host: String,
        status: StatusCode,
        /// The server's error code, where it is a known one.
        reason: Option<&'static str>,
        /// Whether a retry may help: the server is at fault, or too busy.
        transient: bool,
        retry_after: Option<Duration>,
    },
    /// A redirect leads to a URL that is never requested, or is one too many.
    #[error("the request for {what} is redirected {how}")]
    Redirect { what: String, how: String },
    /// A redirect leads from https to http.
    #[error(
        "the request for {what} is redirected from https to {to}, \
         where anybody could change or watch the response"
    )]
    Downgrade { what: String, to: String },
    /// The connection ended before the file did, or the file does not come fast enough. A retry may
    /// help where it is `transient`: not where the time for all of them is over.
    #[error("{how}")]
    Interrupted { how: String, transient: bool, source: Option<io::Error> },
    /// The file is larger than allowed.
    #[error("{what} is larger than the {limit} bytes that it may have")]
    TooLarge { what: String, limit: u64 },
    /// The size is not the expected one; `found` may be what was received before the download ended.
    #[error("{what} should have {expected} bytes, but has {found}")]
    WrongSize { what: String, expected: u64, found: u64 },
    /// The content is not the expected one.
    #[error("{what} is damaged, or another file: its digest is {found}, not {expected}")]
    WrongDigest { what: String, expected: Digest, found: Digest },
    /// The content cannot be what it is said to be, whatever its digest is.
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
    /// Returns whether the fault is on this machine, so that no other server can help.
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
            // The connection failed, nothing else.
            Self::Http(HttpError::Unreachable { .. })
            | Self::Interrupted { transient: true, .. } => Some(Duration::ZERO),
            _ => None,
        }
    }
}
