//! Many blobs at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use box_cache::{BlobId, Store, StoreError};
use box_image::Digest;

use super::blob::Download;
use super::retry::Stop;
use super::{Registry, RegistryError, Repository};

/// What the threads of one call share.
struct Work<'w, 'a> {
    registry: &'w Registry<'a>,
    repository: &'w Repository,
    store: &'w Store,
    /// Each blob once, with its size.
    blobs: Vec<(Digest, u64)>,
    next: AtomicUsize,
    stop: Stop,
    /// The error that ended the work.
    failure: Mutex<Option<RegistryError>>,
}

/// Fetches those blobs that the store does not hold.
pub(super) fn fetch(
    registry: &Registry<'_>,
    repository: &Repository,
    blobs: &[(Digest, u64)],
    store: &Store,
) -> Result<(), RegistryError> {
    let blobs = distinct(repository, blobs)?;
    let threads = registry.options.parallel.clamp(1, blobs.len().max(1));
    let work = Work {
        registry,
        repository,
        store,
        blobs,
        next: AtomicUsize::new(0),
        stop: Stop::default(),
        failure: Mutex::new(None),
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(|| work.run()))));
    work.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
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

impl Work<'_, '_> {
    /// Takes one blob after the other, until there is none or one failed.
    fn run(&self) {
        while !self.stop.is_stopped()
            && let Some(blob) = self.blobs.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(error) = self.fetch(*blob) {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                // The others end because of the first.
                failure.get_or_insert(error);
                self.stop.stop();
            }
        }
    }

    fn fetch(&self, (digest, size): (Digest, u64)) -> Result<(), RegistryError> {
        let blob = BlobId(*digest.as_bytes());
        match self.store.verify(&blob) {
            Ok(()) => {
                let held = self.store.size(&blob).ok_or(StoreError::Missing(blob))?;
                let wrong = || wrong_size(self.repository, &digest, size, held);
                if held == size { Ok(()) } else { Err(wrong()) }
            }
            Err(StoreError::Missing(_) | StoreError::Damaged { .. }) => {
                self.registry.each(self.repository, |session| {
                    Download::new(session, self.store, (digest, size), &self.stop).run()
                })
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn wrong_size(
    repository: &Repository,
    digest: &Digest,
    expected: u64,
    found: u64,
) -> RegistryError {
    let what = format!("the blob {digest} of {repository}");
    RegistryError::WrongSize { what, expected, found }
}
