//! Pulls a box: what is missing is known first, and then fetched.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use box_cache::ActionLock;
use box_digest::Digest;
use oci_registry::{Reference, Registry, Repository};

use crate::error::BoxRegistryError;
use crate::known;
use crate::origin::{Origin, Repo};
use crate::parallel;
use crate::remote::{Remote, RemoteBlob};
use crate::sink::Sink;

/// What a pull will do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the box is.
    pub repository: Repository,
    /// The box.
    pub remote: Remote,
    /// The blobs that the sink lacks.
    pub missing: Vec<RemoteBlob>,
}

/// What a pull has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulled {
    /// The sha256 of the registry's manifest.
    pub registry_digest: Digest,
    /// The box digest.
    pub digest: Digest,
    /// How many blobs were fetched.
    pub blobs: usize,
    /// How many bytes of blobs were fetched.
    pub bytes: u64,
}

/// Finds out what a reference leads to, and which of its blobs a sink lacks. No blob is fetched.
///
/// # Errors
/// Those of [`Remote::read`], and [`BoxRegistryError::Sink`].
pub fn plan(
    registry: &Registry,
    repository: &Repository,
    reference: &Reference,
    sink: &dyn Sink,
) -> Result<Plan, BoxRegistryError> {
    let remote = Remote::read(registry, repository, reference)?;
    let missing = missing([&remote], sink)?;
    Ok(Plan { repository: repository.clone(), remote, missing })
}

/// How long a blob is waited for that another process fetches.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many blobs are hashed or read at once.
pub const AT_ONCE: usize = 4;

/// Returns the blobs of boxes that a sink lacks, each once.
///
/// # Errors
/// [`BoxRegistryError::Sink`].
pub fn missing<'r>(
    boxes: impl IntoIterator<Item = &'r Remote>,
    sink: &dyn Sink,
) -> Result<Vec<RemoteBlob>, BoxRegistryError> {
    let mut seen = HashSet::new();
    let blobs = boxes.into_iter().flat_map(|it| &it.blobs);
    let blobs: Vec<_> = blobs.filter(|it| seen.insert(it.plain.digest)).collect();
    let lacks = |blob: &&RemoteBlob| {
        let (digest, size) = (blob.plain.digest, blob.plain.size);
        let has = sink.has(&digest, size);
        let has = has.map_err(|source| BoxRegistryError::Sink { digest, source })?;
        Ok::<_, BoxRegistryError>((!has).then(|| (*blob).clone()))
    };
    Ok(parallel::each(&blobs, AT_ONCE, lacks)?.into_iter().flatten().collect())
}

/// What was fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetched {
    /// How many blobs.
    pub blobs: usize,
    /// How many bytes, as they travel.
    pub bytes: u64,
}

/// Fetches blobs of an origin into a sink, and remembers how they were compressed: a push to where they came from need not compress
/// them.
///
/// A blob that another process puts into the same store at this moment is waited for, and is not fetched then. Each thread
/// waits only while it fetches nothing, so that no two wait for each other.
///
/// # Errors
/// [`BoxRegistryError`]. What is complete stays in the sink.
pub fn fetch(
    origin: &dyn Origin,
    missing: &[RemoteBlob],
    sink: &dyn Sink,
) -> Result<Fetched, BoxRegistryError> {
    let by_digest: BTreeMap<_, _> = missing.iter().map(|it| (it.digest(), it)).collect();
    if by_digest.len() < missing.len() {
        let (what, reason) = ("what is fetched".to_owned(), "two blobs of it travel as one");
        return Err(BoxRegistryError::Malformed { what, reason: reason.to_owned() });
    }
    let wanted: Vec<_> = missing.iter().map(|it| (it.digest(), it.size())).collect();
    let (bytes, begun) = (AtomicU64::new(0), Mutex::new(HashSet::new()));
    origin.fetch(&wanted, &|digest| {
        let blob = by_digest[digest];
        let claim = claim(blob, sink)?;
        if claim.is_some() && sink.has(&blob.plain.digest, blob.plain.size)? {
            return Ok(None);
        }
        bytes.fetch_add(blob.size(), Ordering::Relaxed);
        begun.lock().unwrap_or_else(PoisonError::into_inner).insert(*digest);
        Ok(Some(blob.inflating(sink, claim)))
    })?;
    // These were inflated, and verified by that.
    let begun = begun.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = sink.store() {
        for RemoteBlob { plain, sent } in missing.iter().filter(|it| begun.contains(&it.digest())) {
            known::remember(store, &plain.digest, plain.size, sent);
        }
    }
    Ok(Fetched { blobs: begun.len(), bytes: bytes.into_inner() })
}

impl Plan {
    /// Returns how many blobs the box has.
    pub fn blobs(&self) -> usize {
        self.remote.blobs.len()
    }

    /// Returns how many bytes will be fetched.
    pub fn bytes(&self) -> u64 {
        sum(self.missing.iter().map(RemoteBlob::size))
    }

    /// Returns how many bytes would be fetched for all blobs.
    pub fn total_bytes(&self) -> u64 {
        sum(self.remote.blobs.iter().map(RemoteBlob::size))
    }

    /// Returns how many bytes the sink needs for what it lacks.
    pub fn plain_bytes(&self) -> u64 {
        sum(self.missing.iter().map(|it| it.plain.size))
    }

    /// Fetches what the sink lacks, several blobs at once, and last the box's manifest: a sink that has that has the box. What a
    /// pull that was interrupted has completed is not fetched again by the next one.
    ///
    /// A blob that another process fetches into the same store at this moment is waited for, and is not fetched then. Each thread
    /// waits only while it fetches nothing, so that no two pulls wait for each other.
    ///
    /// # Errors
    /// [`BoxRegistryError::Store`] before anything is fetched if the store has no room for the box,
    /// [`BoxRegistryError::Registry`] and [`BoxRegistryError::Sink`]. What is complete stays in the sink.
    pub fn fetch(&self, registry: &Registry, sink: &dyn Sink) -> Result<Pulled, BoxRegistryError> {
        let Self { repository, remote, missing } = self;
        sink.store().map_or(Ok(()), |store| store.check_space(self.plain_bytes()))?;
        let fetched = fetch(&Repo { registry, repository }, missing, sink)?;
        remote.keep_manifest(sink)?;
        let Fetched { blobs, bytes } = fetched;
        let (registry_digest, digest) = (remote.registry_digest, remote.digest);
        Ok(Pulled { registry_digest, digest, blobs, bytes })
    }
}

impl Remote {
    /// Keeps the box's manifest in a sink that has all its blobs: a sink that has that has the box.
    ///
    /// # Errors
    /// [`BoxRegistryError::Sink`].
    pub fn keep_manifest(&self, sink: &dyn Sink) -> Result<(), BoxRegistryError> {
        let Self { digest, manifest_bytes, .. } = self;
        let keep = || {
            let size = manifest_bytes.len() as u64;
            if sink.has(digest, size)? {
                return Ok(());
            }
            let mut draft = sink.draft(size)?;
            draft.write_all(manifest_bytes)?;
            draft.commit(digest)
        };
        keep().map_err(|source| BoxRegistryError::Sink { digest: *digest, source })
    }
}

/// Keeps other processes from fetching a blob into the same store, and waits while one does. A process that reads from a slow stream
/// is not waited for without end: a blob that two fetch is the same.
fn claim(blob: &RemoteBlob, sink: &dyn Sink) -> io::Result<Option<ActionLock>> {
    let Some(store) = sink.store() else { return Ok(None) };
    let key = known::key("pull", &blob.plain.digest);
    store.lock_action_within(&key, PATIENCE).map_err(io::Error::other)
}

fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}
