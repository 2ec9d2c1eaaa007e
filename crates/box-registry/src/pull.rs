//! Pulls a box: plans the missing blobs first, and then fetches them.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use box_cache::{ActionLock, Store};
use box_contract::manifest::LISTING_TYPE;
use box_digest::Digest;
use box_find::places_in;
use box_layout::Documents;
use oci_registry::{Reference, Registry, Repository};

use crate::delta;
use crate::error::BoxRegistryError;
use crate::known;
use crate::origin::{Origin, Repo};
use crate::parallel;
use crate::remote::{Remote, RemoteBlob};
use crate::sink::Sink;

/// The plan of a pull.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The repository of the box.
    pub repository: Repository,
    /// The box in the registry.
    pub remote: Remote,
    /// The blobs that the sink lacks.
    pub missing: Vec<RemoteBlob>,
    /// Those of them that are fetched as deltas ([`Self::with_deltas`]).
    pub deltas: Vec<RemoteBlob>,
}

/// The result of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulled {
    /// The sha256 of the registry's manifest.
    pub registry_digest: Digest,
    /// The box digest.
    pub digest: Digest,
    /// How many blobs were fetched.
    pub blobs: usize,
    /// The size of the fetched blobs as the registry stores them, in bytes.
    pub bytes: u64,
    /// The number of deltas that could not be fetched or applied, so that their blobs were fetched whole.
    pub failed_deltas: usize,
}

/// Resolves a reference to a box, and determines which of its blobs a sink lacks. Fetches only the documents of
/// [`Remote::read`].
///
/// # Errors
/// The errors of [`Remote::read`], and [`BoxRegistryError::Sink`].
pub fn plan(
    registry: &Registry,
    repository: &Repository,
    reference: &Reference,
    sink: &dyn Sink,
) -> Result<Plan, BoxRegistryError> {
    Plan::of(repository.clone(), Remote::read(registry, repository, reference)?, sink)
}

/// How long to wait for a blob that another process is fetching.
const PATIENCE: Duration = Duration::from_secs(120);
/// The size of missing blobs from which a registry is asked for deltas, in bytes. Fewer take hardly longer than the question.
const MIN_MISSING: u64 = 256 << 10;
/// The number of deltas that are fetched and applied in parallel. Each needs up to 41 MiB of memory, and a download 32 MiB.
const DELTAS_AT_ONCE: usize = 2;
/// The number of blobs that are hashed or read in parallel.
pub const AT_ONCE: usize = 4;

/// Returns the blobs of boxes that a sink lacks, without duplicates.
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

/// The amount that was fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The number of blobs.
    pub blobs: usize,
    /// The size of the stored blobs, in bytes.
    pub bytes: u64,
}

/// Fetches blobs of an origin into a sink, and remembers their compressed form. A later push to the same registry need not
/// compress them.
///
/// If another process is fetching a blob into the same store, waits at most two minutes for that process instead of fetching the
/// blob. A thread waits only while it fetches nothing, so there is no deadlock.
///
/// # Errors
/// [`BoxRegistryError`]. Complete blobs stay in the sink.
pub fn fetch(
    origin: &dyn Origin,
    missing: &[RemoteBlob],
    sink: &dyn Sink,
) -> Result<Fetched, BoxRegistryError> {
    let by_digest: BTreeMap<_, _> = missing.iter().map(|it| (it.digest(), it)).collect();
    if by_digest.len() < missing.len() {
        let (what, reason) = ("what is fetched".to_owned(), "two of its blobs are stored as one");
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
    // Remember only the blobs whose target was requested: they have been decompressed and verified.
    let begun = begun.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = sink.store() {
        for RemoteBlob { plain, sent } in missing.iter().filter(|it| begun.contains(&it.digest())) {
            known::remember(store, &plain.digest, plain.size, sent);
        }
    }
    Ok(Fetched { blobs: begun.len(), bytes: bytes.into_inner() })
}

impl Plan {
    /// Determines which blobs of a box in a repository a sink lacks.
    ///
    /// # Errors
    /// [`BoxRegistryError::Sink`].
    pub fn of(
        repository: Repository,
        remote: Remote,
        sink: &dyn Sink,
    ) -> Result<Self, BoxRegistryError> {
        let missing = missing([&remote], sink)?;
        Ok(Self { repository, remote, missing, deltas: Vec::new() })
    }

    /// Looks for deltas that make missing blobs of blobs that the sink has. If few bytes are missing, the registry is not asked.
    #[must_use]
    pub fn with_deltas(self, registry: &Registry, sink: &dyn Sink) -> Self {
        if self.bytes() < MIN_MISSING {
            return self;
        }
        let subject = &self.remote.registry_digest;
        let deltas = delta::smallest(registry, &self.repository, subject, (&self.missing, sink));
        Self { deltas, ..self }
    }

    /// Returns the number of blobs of the box.
    pub fn blobs(&self) -> usize {
        self.remote.blobs.len()
    }

    /// Returns how many bytes will be fetched.
    pub fn bytes(&self) -> u64 {
        let as_delta: BTreeMap<_, _> = self.deltas.iter().map(|it| (it.plain.digest, it)).collect();
        let smallest = |it| as_delta.get(&RemoteBlob::plain_digest(it)).copied().unwrap_or(it);
        sum(self.missing.iter().map(|it| smallest(it).size()))
    }

    /// Returns how many bytes would be fetched for all blobs of the box.
    pub fn total_bytes(&self) -> u64 {
        sum(self.remote.blobs.iter().map(RemoteBlob::size))
    }

    /// Returns how many plain bytes the sink lacks.
    pub fn plain_bytes(&self) -> u64 {
        sum(self.missing.iter().map(|it| it.plain.size))
    }

    /// Reads the documents of the box: fetches its config and its listing if the store lacks them, and no other blob. The box does
    /// not become one of the store.
    ///
    /// # Errors
    /// The errors of [`Self::fetch`]; [`BoxRegistryError::Open`] if a document is malformed.
    pub fn documents(
        &self,
        registry: &Registry,
        store: &Store,
    ) -> Result<Documents, BoxRegistryError> {
        let manifest = &self.remote.manifest;
        let listing = manifest.blob(LISTING_TYPE).map(|it| it.digest);
        let wanted: Vec<_> = [manifest.config.digest].into_iter().chain(listing).collect();
        self.fetch_only(&wanted, (registry, store))?;
        let places = places_in(store, &self.remote.digest);
        Ok(Documents::of_manifest(places, &self.remote.manifest_bytes)?)
    }

    /// Fetches those blobs of the box with these plain digests that the store lacks.
    ///
    /// # Errors
    /// The errors of [`Self::fetch`].
    pub fn fetch_only(
        &self,
        wanted: &[Digest],
        (registry, store): (&Registry, &Store),
    ) -> Result<Fetched, BoxRegistryError> {
        let is_wanted = |it: &&RemoteBlob| wanted.contains(&it.plain.digest);
        let wanted: Vec<_> = self.missing.iter().filter(is_wanted).cloned().collect();
        store.check_space(sum(wanted.iter().map(|it| it.plain.size)))?;
        fetch(&Repo { registry, repository: &self.repository }, &wanted, store)
    }

    /// Fetches the missing blobs in parallel, and then the box's manifest, so a sink with the manifest has the whole box. After
    /// an interrupted pull, complete blobs are not fetched again.
    ///
    /// If another process is fetching a blob into the same store, waits at most two minutes for that process instead of fetching
    /// the blob. A thread waits only while it fetches nothing, so there is no deadlock between two pulls.
    ///
    /// # Errors
    /// [`BoxRegistryError::Store`] if the store has no space for the box, before anything is fetched;
    /// [`BoxRegistryError::Registry`] and [`BoxRegistryError::Sink`]. Complete blobs stay in the sink.
    pub fn fetch(&self, registry: &Registry, sink: &dyn Sink) -> Result<Pulled, BoxRegistryError> {
        let Self { repository, remote, .. } = self;
        let needed = self.plain_bytes().saturating_add(self.scratch_bytes());
        sink.store().map_or(Ok(()), |store| store.check_space(needed))?;
        let origin = Repo { registry, repository };
        let (some, made) = self.fetch_deltas(&origin, sink)?;
        let is_left = |it: &&RemoteBlob| !made.contains(&it.plain.digest);
        let left: Vec<_> = self.missing.iter().filter(is_left).cloned().collect();
        let fetched = fetch(&origin, &left, sink)?;
        remote.keep_manifest(sink)?;
        let (blobs, bytes) = (some.blobs + fetched.blobs, some.bytes + fetched.bytes);
        let (registry_digest, digest) = (remote.registry_digest, remote.digest);
        let failed_deltas = self.deltas.len() - made.len();
        Ok(Pulled { registry_digest, digest, blobs, bytes, failed_deltas })
    }
}

impl Plan {
    /// Returns how many bytes the deltas may take while they are applied: as many as are fetched at once, of the largest ones.
    fn scratch_bytes(&self) -> u64 {
        let mut sizes: Vec<_> = self.deltas.iter().map(RemoteBlob::size).collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        sum(sizes.into_iter().take(DELTAS_AT_ONCE))
    }

    /// Fetches the deltas of the plan, and makes their blobs. Returns what was fetched, and the digests of the blobs that the sink now
    /// has. A delta that cannot be fetched or applied is no error: its blob is fetched whole next, and then tells what is wrong.
    fn fetch_deltas(
        &self,
        origin: &Repo<'_>,
        sink: &dyn Sink,
    ) -> Result<(Fetched, HashSet<Digest>), BoxRegistryError> {
        let fetch = |it: &RemoteBlob| {
            let fetched = fetch(origin, std::slice::from_ref(it), sink);
            Ok::<_, BoxRegistryError>(fetched.ok().map(|fetched| (it.plain.digest, fetched)))
        };
        let fetched = parallel::each(&self.deltas, DELTAS_AT_ONCE, fetch)?;
        let (mut all, mut made) = (Fetched::default(), HashSet::new());
        for (digest, Fetched { blobs, bytes }) in fetched.into_iter().flatten() {
            (all.blobs, all.bytes) = (all.blobs + blobs, all.bytes + bytes);
            made.insert(digest);
        }
        Ok((all, made))
    }
}

impl Remote {
    /// Writes the box's manifest to a sink that has all its blobs. A sink with the manifest has the whole box.
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

/// Claims a blob, and waits while another process has claimed it. The wait is limited, because the other process may read from a
/// slow stream. It does no harm if both processes fetch the blob.
fn claim(blob: &RemoteBlob, sink: &dyn Sink) -> io::Result<Option<ActionLock>> {
    let Some(store) = sink.store() else { return Ok(None) };
    let key = known::key("pull", &blob.plain.digest);
    store.lock_action_within(&key, PATIENCE).map_err(io::Error::other)
}

fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}
