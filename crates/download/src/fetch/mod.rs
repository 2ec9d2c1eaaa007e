//! Downloads: a URL and the sha256 of what it must give become a blob in the store.
//!
//! ```text
//! options   –          FetchOptions, Progress
//! client    RemoteUrl → the last answer behind its redirects
//! download  answers   → a verified blob
//! ```
//!
//! **The digest decides.** The store names its blobs by sha256, and so does a Boxfile its
//! downloads. So the store is asked first, by the digest alone: a file that it holds undamaged is
//! never asked of a network again, under whatever URL. Nothing gets its name in the store before
//! its last byte was hashed; a download that fails leaves nothing behind.
//!
//! **What is sent.** `GET`, `Host`, `User-Agent: boxbuild/VERSION`, `Accept: */*`,
//! `Accept-Encoding: identity`, and for the rest of a broken download `Range` and `If-Range`. No
//! cookies, no referrer, no credentials: a URL that has some is refused, also where a redirect leads.
//! Nothing is read from the environment: a proxy is used when [`FetchOptions::proxy`] names one.

mod client;
mod download;
mod error;
mod options;
#[cfg(test)]
mod tests;

use box_cache::{BlobId, Store, StoreError};
use box_image::Digest;

pub use crate::http::{HttpError, RemoteUrl, UrlError};
pub use error::FetchError;
pub use options::{FetchOptions, Progress};

/// A file that the store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    /// The blob, whose name is the file's sha256.
    pub blob: BlobId,
    /// The file's size in bytes.
    pub size: u64,
    /// Whether it came over the network just now; otherwise the store had it.
    pub downloaded: bool,
}

/// Returns the file with this sha256: from the store if it is there, else from its URL.
///
/// Blocks the thread, for long where the network is slow. Memory does not grow with the file. A
/// copy in the store that is damaged is replaced.
///
/// Not for a thread that runs asynchronous tasks: the client has its own runtime, and tokio does
/// not let one wait inside another.
///
/// # Errors
/// [`FetchError`]; the store is then as it was.
pub fn fetch(
    url: &RemoteUrl,
    sha256: &Digest,
    store: &Store,
    options: &FetchOptions<'_>,
) -> Result<Fetched, FetchError> {
    let blob = BlobId(*sha256.as_bytes());
    let held = match store.verify(&blob) {
        Ok(()) => return stored(url, blob, store, options),
        Err(StoreError::Missing(_)) => "not in the store",
        Err(StoreError::Damaged { .. }) => "damaged in the store",
        Err(error) => return Err(error.into()),
    };
    if options.offline {
        return Err(FetchError::Offline { url: url.clone(), sha256: *sha256, held });
    }
    let size = download::download(url, sha256, store, options)?;
    Ok(Fetched { blob, size, downloaded: true })
}

/// Returns a blob that was verified just now.
fn stored(
    url: &RemoteUrl,
    blob: BlobId,
    store: &Store,
    options: &FetchOptions<'_>,
) -> Result<Fetched, FetchError> {
    let size = store.size(&blob).ok_or(StoreError::Missing(blob))?;
    options.check_size(url, size)?;
    Ok(Fetched { blob, size, downloaded: false })
}
