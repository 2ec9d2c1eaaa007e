//! Downloads blobs in parallel, verified, into the store or another target.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

use box_cache::{Store, StoreError};
use box_digest::Digest;
use download::{Cancel, Download, DownloadError, DraftError, FinalResponse, Size, Source, Target};
use reqwest::header::HeaderMap;

use crate::client::Registry;
use crate::error::RegistryError;
use crate::name::Repository;
use crate::refusal;
use crate::server::Resource;
use crate::session::Session;

/// The state that the threads of one call share.
struct Work<F> {
    /// The blobs and their sizes, without duplicates.
    blobs: Vec<(Digest, u64)>,
    /// Fetches one blob.
    fetch: F,
    next: AtomicUsize,
    cancel: Cancel,
    /// The first error. It cancels all downloads.
    failure: Mutex<Option<RegistryError>>,
}

/// A blob on one server.
#[derive(Debug)]
struct Blob<'s> {
    session: &'s Session,
    resource: Resource,
}

impl Registry {
    /// Fetches the blobs that are missing or damaged in the store, in parallel and within constant memory. `blobs` has the exact
    /// size of each blob; the caller limits the sizes.
    ///
    /// # Errors
    /// The first [`RegistryError`], which cancels the other downloads. Incomplete blobs are discarded. Complete blobs stay in
    /// the store and are not fetched again.
    pub fn fetch_blobs(
        &self,
        repository: &Repository,
        blobs: &[(Digest, u64)],
        store: &Store,
    ) -> Result<(), RegistryError> {
        let work = Work::new(distinct(repository, blobs)?, |digest, size, cancel: &Cancel| {
            match store.verify(&digest) {
                Ok(held) if held == size => Ok(()),
                Ok(held) => Err(wrong_size(repository, &digest, size, held)),
                Err(StoreError::Missing(_) | StoreError::Damaged { .. }) => {
                    let blob = Wanted { repository, digest, size, cancel, is_quiet: false };
                    self.fetch_blob(&blob, store)
                }
                Err(error) => Err(error.into()),
            }
        });
        work.done_by(self.options.parallel)
    }

    /// Fetches blobs in parallel, each into the target that `target` returns for its digest. The fetched bytes are verified, even
    /// if the target keeps other bytes, such as the decompressed blob. `target` is called right before a blob is fetched, and
    /// returns `None` for a blob that is no longer needed. The target is dropped after the blob is complete or has failed.
    ///
    /// # Errors
    /// As [`Self::fetch_blobs`].
    pub fn fetch_into<T: Target>(
        &self,
        repository: &Repository,
        blobs: &[(Digest, u64)],
        target: impl Fn(&Digest) -> Result<Option<T>, DraftError> + Sync,
    ) -> Result<(), RegistryError> {
        let work = Work::new(distinct(repository, blobs)?, |digest, size, cancel: &Cancel| {
            let made = target(&digest).map_err(|error| error.of(&named(repository, &digest)))?;
            let Some(target) = made else { return Ok(()) };
            let blob = Wanted { repository, digest, size, cancel, is_quiet: false };
            self.fetch_blob(&blob, &target)
        });
        work.done_by(self.options.parallel)
    }

    /// Fetches a blob into a target, as [`Self::fetch_into`] does, but without a report of the progress. A user is not shown the
    /// documents that are fetched to look at them, because anybody may have added many.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn fetch_quietly<T: Target>(
        &self,
        repository: &Repository,
        (digest, size): (Digest, u64),
        target: &T,
    ) -> Result<(), RegistryError> {
        let cancel = &Cancel::default();
        self.fetch_blob(&Wanted { repository, digest, size, cancel, is_quiet: true }, target)
    }

    fn fetch_blob<T: Target>(&self, blob: &Wanted<'_>, target: &T) -> Result<(), RegistryError> {
        self.each(blob.repository, |session| {
            let what = named(&session.server.repository, &blob.digest);
            let path = format!("blobs/{}", blob.digest);
            let resource = Resource { what, path, reference: None };
            let mut network = session.server.options.network.clone();
            network.progress = network.progress.filter(|_| !blob.is_quiet);
            let download = Download {
                source: &Blob { session, resource },
                target,
                digest: blob.digest,
                size: Size::Exactly(blob.size),
                network: &network,
                cancel: blob.cancel,
            };
            download.run(session.attempts()).map(drop)
        })
    }
}

/// A blob to fetch.
struct Wanted<'a> {
    repository: &'a Repository,
    digest: Digest,
    size: u64,
    cancel: &'a Cancel,
    /// Whether the progress is not reported.
    is_quiet: bool,
}

/// Returns each blob once, in the order of the first occurrences.
fn distinct(
    repository: &Repository,
    blobs: &[(Digest, u64)],
) -> Result<Vec<(Digest, u64)>, RegistryError> {
    let mut sizes = BTreeMap::new();
    let mut distinct = Vec::new();
    for &(digest, size) in blobs {
        match sizes.insert(digest, size) {
            None => distinct.push((digest, size)),
            Some(before) if before == size => {}
            Some(before) => return Err(wrong_size(repository, &digest, before, size)),
        }
    }
    Ok(distinct)
}

impl<F: Fn(Digest, u64, &Cancel) -> Result<(), RegistryError> + Sync> Work<F> {
    fn new(blobs: Vec<(Digest, u64)>, fetch: F) -> Self {
        let (next, cancel) = (AtomicUsize::new(0), Cancel::default());
        Self { blobs, fetch, next, cancel, failure: Mutex::new(None) }
    }

    /// Fetches all blobs with at most `parallel` threads.
    fn done_by(self, parallel: usize) -> Result<(), RegistryError> {
        let threads = parallel.clamp(1, self.blobs.len().max(1));
        thread::scope(|scope| {
            // If a thread cannot be started, the other threads do its work.
            (1..threads).for_each(|_| drop(Builder::new().spawn_scoped(scope, || self.run())));
            self.run();
        });
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Fetches one blob after the other until none is left, or a blob of any thread has failed.
    fn run(&self) {
        while !self.cancel.is_canceled()
            && let Some(&(digest, size)) = self.blobs.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(error) = (self.fetch)(digest, size, &self.cancel) {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                // Keep only the first error, because later errors are consequences of it.
                failure.get_or_insert(error);
                self.cancel.cancel();
            }
        }
    }
}

impl Source for Blob<'_> {
    type Error = RegistryError;

    fn what(&self) -> &str {
        &self.resource.what
    }

    fn is_immutable(&self) -> bool {
        true
    }

    fn get(&self, headers: HeaderMap) -> Result<FinalResponse, RegistryError> {
        self.session.get(&self.resource, &headers)
    }

    fn refusal(&self, response: FinalResponse) -> RegistryError {
        refusal::of(&self.session.server, &self.resource, response)
    }
}

/// Returns the description of a blob for messages.
fn named(repository: &Repository, digest: &Digest) -> String {
    format!("the blob {digest} of {repository}")
}

fn wrong_size(
    repository: &Repository,
    digest: &Digest,
    expected: u64,
    found: u64,
) -> RegistryError {
    let what = named(repository, digest);
    DownloadError::WrongSize { what, expected, found }.into()
}
