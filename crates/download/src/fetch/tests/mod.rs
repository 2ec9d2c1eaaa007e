//! Downloads from a real server on the loopback device.

mod answers;
mod broken;
mod redirects;
mod server;
mod stored;

use std::path::PathBuf;
use std::time::Duration;

use box_cache::Store;
use box_digest::Digest;
use test_server::roots;

use super::*;
use crate::Progress;
use crate::http::HttpError;
use crate::retry::Policy;

const DATA: &[u8] = b"the agent's binary";

/// A store, empty at first, into which [`DATA`] is fetched.
struct Case {
    dir: tempfile::TempDir,
    store: Store,
}

impl Case {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        Self { dir, store }
    }

    /// Fetches [`DATA`]. A failure must leave nothing in the store.
    fn fetch(&self, url: &str, options: &FetchOptions) -> Result<Fetched, FetchError> {
        let before = self.files();
        let fetched = fetch(&url.parse().unwrap(), &digest(DATA), &self.store, options);
        match fetched {
            Ok(fetched) => {
                assert_eq!(self.store.read(&fetched.blob).unwrap(), DATA);
                assert_eq!(fetched.size, DATA.len() as u64);
            }
            Err(_) => assert_eq!(self.files(), before, "a failure left something"),
        }
        fetched
    }

    /// Returns every file of the store.
    fn files(&self) -> Vec<PathBuf> {
        let list = |name: &str| std::fs::read_dir(self.dir.path().join(name)).unwrap();
        let mut files: Vec<_> = ["blobs", "tmp", "actions"]
            .into_iter()
            .flat_map(list)
            .map(|it| it.unwrap().path())
            .collect();
        files.sort();
        files
    }

    fn blob_path(&self) -> PathBuf {
        self.dir.path().join("blobs").join(Digest::of(DATA).hex())
    }
}

/// Fetches [`DATA`] into a new store.
fn fetch_new(url: &str, options: &FetchOptions) -> Result<Fetched, FetchError> {
    Case::new().fetch(url, options)
}

fn digest(bytes: &[u8]) -> Digest {
    Digest::of(bytes)
}

/// Returns options for three attempts with pauses of milliseconds, and enough time for a response.
fn quick() -> FetchOptions {
    patient(Duration::from_secs(30))
}

/// Returns the options of [`quick`] with another patience.
fn patient(patience: Duration) -> FetchOptions {
    let backoff = Duration::from_millis(1);
    let policy = Policy { patience, backoff, tries: 3, ..Policy::default() };
    reached(NetworkOptions { policy, ..NetworkOptions::default() })
}

/// Returns options with these network options.
fn reached(network: NetworkOptions) -> FetchOptions {
    FetchOptions { network, ..FetchOptions::default() }
}

/// Returns the texts of an error and its causes.
fn chain(error: &FetchError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
