//! Fetches a file by its URL and its sha256, as a blob of the store.
//!
//! **Integrity.** The store names blobs by their sha256, and a Boxfile declares the sha256 of its downloads. So the store is
//! searched first: if it has an undamaged file with this digest, the URL is not requested. A file gets its name in the store
//! after its digest is verified. A failed download leaves no file.
//!
//! **Requests.** They are GETs with the headers `Host`, `User-Agent: boxbuild/VERSION`, `Accept: */*` and
//! `Accept-Encoding: identity`. A request that resumes a download also has `Range`, and `If-Range` if there is an entity tag. No
//! request has cookies, a referrer or credentials: a URL with credentials is rejected, also in a redirect. The proxy is
//! [`NetworkOptions::proxy`], because the environment is not read.

#[cfg(test)]
mod tests;

use box_cache::{Store, StoreError};
use box_digest::Digest;
use reqwest::header::HeaderMap;

use crate::download::{Download, Source};
use crate::error::DownloadError;
use crate::http::{Client, NetworkOptions};
pub use crate::http::{RemoteUrl, UrlError};
use crate::request::{FinalResponse, Request, RequestUrl};
use crate::retry::{Attempts, Cancel};
use crate::size::Size;

/// The options of a fetch.
#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    /// Whether the network must not be used, so that only a file in the store is returned.
    pub offline: bool,
    /// The required size.
    pub size: Size,
    /// The network options.
    pub network: NetworkOptions,
}

/// A file in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    /// The blob, named by the file's sha256.
    pub blob: Digest,
    /// The file's size in bytes.
    pub size: u64,
    /// Whether the file was downloaded now. Otherwise the store had it.
    pub downloaded: bool,
}

/// An error of a fetch.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum FetchError {
    /// The store has no undamaged copy, and the network must not be used.
    #[error("{url} ({sha256}) is {held}, and the network is off (--offline)")]
    Offline { url: RemoteUrl, sha256: Digest, held: &'static str },
    /// The download failed.
    #[error(transparent)]
    Download(#[from] DownloadError),
}

/// Returns the file with this sha256 from the store. If the store does not have it, or only a damaged copy, downloads it.
///
/// The function blocks the thread, for long if the network is slow, and uses constant memory. Do not call it from an asynchronous
/// task: the client has its own tokio runtime, and tokio does not allow one runtime to block inside another.
///
/// # Errors
/// [`FetchError`]. A failed download leaves the store unchanged.
pub fn fetch(
    url: &RemoteUrl,
    sha256: &Digest,
    store: &Store,
    options: &FetchOptions,
) -> Result<Fetched, FetchError> {
    let blob = *sha256;
    let what = url.without_query();
    let held = match store.verify(&blob) {
        Ok(size) => {
            options.size.check(&what, size, true)?;
            store.note_fetched(&blob).map_err(DownloadError::from)?;
            return Ok(Fetched { blob, size, downloaded: false });
        }
        Err(StoreError::Missing(_)) => "not in the store",
        Err(StoreError::Damaged { .. }) => "damaged in the store",
        Err(error) => return Err(DownloadError::from(error).into()),
    };
    if options.offline {
        return Err(FetchError::Offline { url: url.clone(), sha256: *sha256, held });
    }
    let network = &options.network;
    // Keeps no idle connections, so that the next attempt does not get a broken one.
    let client = Client::new(network, None, 0).map_err(DownloadError::from)?;
    let download = Download {
        source: &File { client, url, what },
        target: store,
        digest: *sha256,
        size: options.size,
        network,
        cancel: &Cancel::default(),
    };
    let size = download
        .run(Attempts::new(&network.policy).observed(&url.host(), network.retry.as_ref()))?;
    store.note_fetched(&blob).map_err(DownloadError::from)?;
    Ok(Fetched { blob, size, downloaded: true })
}

/// A file at a URL.
#[derive(Debug)]
struct File<'a> {
    client: Client,
    url: &'a RemoteUrl,
    what: String,
}

impl Source for File<'_> {
    type Error = DownloadError;

    fn what(&self) -> &str {
        &self.what
    }

    fn is_immutable(&self) -> bool {
        false
    }

    fn get(&self, headers: HeaderMap) -> Result<FinalResponse, DownloadError> {
        Request::get(&self.what, RequestUrl::named(self.url.clone()), headers).send(&self.client)
    }

    fn refusal(&self, response: FinalResponse) -> DownloadError {
        response.status_error(&self.what)
    }
}
