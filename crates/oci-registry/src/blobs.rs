//! Blobs: verified, several at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

use box_cache::{Store, StoreError};
use box_digest::Digest;
use download::{Cancel, Download, DownloadError, FinalResponse, Size, Source};
use reqwest::header::HeaderMap;

use crate::client::Registry;
use crate::error::RegistryError;
use crate::name::Repository;
use crate::refusal;
use crate::server::Resource;
use crate::session::Session;

/// The state that the threads of one call share.
struct Work<'w> {
    registry: &'w Registry,
    repository: &'w Repository,
    store: &'w Store,
    /// Each blob once, with its size.
    blobs: Vec<(Digest, u64)>,
    next: AtomicUsize,
    cancel: Cancel,
    /// The error that ended the work.
    failure: Mutex<Option<RegistryError>>,
}

/// A blob on one server.
#[derive(Debug)]
struct Blob<'s> {
    session: &'s Session,
    resource: Resource,
}

impl Registry {
    /// Fetches those blobs that the store does not hold undamaged, several at once. Memory does not
    /// grow with them. How large a blob may be at most, the caller decides: `blobs` has the sizes.
    ///
    /// # Errors
    /// [`RegistryError`]: the first one; the other downloads are then canceled. An incomplete blob
    /// leaves nothing; those that are complete stay, and need not be fetched again.
    pub fn fetch_blobs(
        &self,
        repository: &Repository,
        blobs: &[(Digest, u64)],
        store: &Store,
    ) -> Result<(), RegistryError> {
        let blobs = distinct(repository, blobs)?;
        let threads = self.options.parallel.clamp(1, blobs.len().max(1));
        let work = Work {
            registry: self,
            repository,
            store,
            blobs,
            next: AtomicUsize::new(0),
            cancel: Cancel::default(),
            failure: Mutex::new(None),
        };
        thread::scope(|scope| {
            // Where no thread can be had, the others fetch what there is.
            (1..threads).for_each(|_| drop(Builder::new().spawn_scoped(scope, || work.run())));
            work.run();
        });
        work.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// Returns each blob once, in the order in which they are first named.
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

impl Work<'_> {
    /// Takes one blob after the other, until there are no more or one failed.
    fn run(&self) {
        while !self.cancel.is_canceled()
            && let Some(&(digest, size)) = self.blobs.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(error) = self.fetch(digest, size) {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                // The others end because of the first.
                failure.get_or_insert(error);
                self.cancel.cancel();
            }
        }
    }

    fn fetch(&self, digest: Digest, size: u64) -> Result<(), RegistryError> {
        match self.store.verify(&digest) {
            Ok(held) if held == size => Ok(()),
            Ok(held) => Err(wrong_size(self.repository, &digest, size, held)),
            Err(StoreError::Missing(_) | StoreError::Damaged { .. }) => {
                self.registry.each(self.repository, |session| self.download(session, digest, size))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn download(&self, session: &Session, digest: Digest, size: u64) -> Result<(), RegistryError> {
        let what = format!("the blob {digest} of {}", session.server.repository);
        let resource = Resource { what, path: format!("blobs/{digest}"), reference: None };
        let download = Download {
            source: &Blob { session, resource },
            store: self.store,
            digest,
            size: Size::Exactly(size),
            network: &session.server.options.network,
            cancel: &self.cancel,
        };
        download.run(session.attempts()).map(drop)
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

fn wrong_size(
    repository: &Repository,
    digest: &Digest,
    expected: u64,
    found: u64,
) -> RegistryError {
    let what = format!("the blob {digest} of {repository}");
    DownloadError::WrongSize { what, expected, found }.into()
}
