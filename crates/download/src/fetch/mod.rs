//! Downloads: a URL and the sha256 of its file become a blob in the store.
//!
//! **The digest decides.** The store names its blobs by sha256, and so does a Boxfile its
//! downloads. So the store is asked first, by the digest alone: a file that it holds undamaged is
//! never requested from a network again, under whatever URL. Nothing gets its name in the store
//! before its last byte was hashed; a download that fails leaves nothing.
//!
//! **What is sent.** `GET`, `Host`, `User-Agent: boxbuild/VERSION`, `Accept: */*`,
//! `Accept-Encoding: identity`, and for the rest of a broken download `Range` and `If-Range`. No
//! cookies, no referrer, no credentials: a URL that has some is refused, also where a redirect leads.
//! Nothing is read from the environment: a proxy is used when [`NetworkOptions::proxy`] names one.

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

/// How a file is fetched.
#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    /// Take files from the store only.
    pub offline: bool,
    /// The file's size.
    pub size: Size,
    /// How the network is used.
    pub network: NetworkOptions,
}

/// A file that the store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    /// The blob, whose name is the file's sha256.
    pub blob: Digest,
    /// The file's size in bytes.
    pub size: u64,
    /// Whether it came over the network just now; otherwise the store had it.
    pub downloaded: bool,
}

/// Why a file cannot be fetched.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum FetchError {
    /// The store has no sound copy, and the network may not be used.
    #[error("{url} ({sha256}) is {held}, and the network is off (--offline)")]
    Offline { url: RemoteUrl, sha256: Digest, held: &'static str },
    /// The download failed.
    #[error(transparent)]
    Download(#[from] DownloadError),
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
    // No idle connections: the next attempt must not meet one that broke.
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
