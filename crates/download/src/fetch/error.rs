//! Why a file cannot be fetched.

use std::io;

use box_cache::StoreError;
use box_image::Digest;

use crate::http::{HttpError, RemoteUrl, UrlError};

/// Why a file cannot be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The store has no sound copy, and the network may not be asked.
    #[error(
        "{url} ({sha256}) is {held} and --offline forbids the network; \
         build once without --offline"
    )]
    Offline {
        /// Where it would come from.
        url: RemoteUrl,
        /// What it would be.
        sha256: Digest,
        /// What is wrong with the store's copy.
        held: &'static str,
    },
    /// There is no answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server refuses, or cannot.
    #[error("{url} gives \"{status}\" instead of a file")]
    Status {
        /// What was asked for, behind all redirects.
        url: String,
        /// The status: its number and its usual name.
        status: String,
        /// Whether asking again may help: the server is at fault, or too busy.
        passing: bool,
    },
    /// A redirect leads to something that is never fetched.
    #[error("{url} redirects to {to:?}")]
    Redirect {
        /// The declared URL.
        url: RemoteUrl,
        /// Where to, without its query.
        to: String,
        /// Why it is never fetched.
        source: UrlError,
    },
    /// A redirect leads from https to http.
    #[error("{url} redirects from https to {to:?}, where anybody could change or watch the answer")]
    Downgrade {
        /// The declared URL.
        url: RemoteUrl,
        /// Where to, without its query.
        to: String,
    },
    /// One redirect leads to another, without an end.
    #[error("{url} redirects more than {limit} times")]
    TooManyRedirects {
        /// The declared URL.
        url: RemoteUrl,
        /// How many are followed.
        limit: usize,
    },
    /// The connection ended before the file did.
    #[error("the download of {url} broke off after {received} bytes")]
    Truncated {
        /// The declared URL.
        url: RemoteUrl,
        /// Bytes until then.
        received: u64,
        /// Why.
        source: io::Error,
    },
    /// The file has more bytes than any file may.
    #[error("{url} has more than the {limit} bytes that a file may have")]
    TooLarge {
        /// The declared URL.
        url: RemoteUrl,
        /// The most bytes.
        limit: u64,
    },
    /// The size is not the known one.
    #[error(
        "{url} should have {expected} bytes, but gives {found}; \
         if the file was meant to change, write its new size and sha256"
    )]
    WrongSize {
        /// The declared URL.
        url: RemoteUrl,
        /// The known size in bytes.
        expected: u64,
        /// The bytes that there are, or that came before the download was ended.
        found: u64,
    },
    /// The content is not the declared one.
    #[error(
        "{url} is another file: expected {expected}, got {found}; \
         if the file was meant to change, write the new sha256"
    )]
    WrongDigest {
        /// The declared URL.
        url: RemoteUrl,
        /// The declared content.
        expected: Digest,
        /// The content that came.
        found: Digest,
    },
    /// What came cannot be written to the store.
    #[error("the download of {url} cannot be written to the store")]
    Write {
        /// The declared URL.
        url: RemoteUrl,
        /// Why not.
        source: io::Error,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl FetchError {
    /// Whether the next try may go better: the connection or the server failed, nothing else.
    pub(super) const fn is_passing(&self) -> bool {
        match self {
            Self::Http(error) => error.is_passing(),
            Self::Truncated { .. } | Self::Status { passing: true, .. } => true,
            _ => false,
        }
    }
}
