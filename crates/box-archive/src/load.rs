//! Loads a file with boxes into the store: plans the missing blobs first, and then reads them.

use std::collections::{BTreeMap, BTreeSet};

use box_cache::Store;
use box_digest::Digest;
use box_registry::{
    BoxRegistryError, Deltas, RemoteBlob, RemoteDelta, fetch, keep_attachments, missing,
};

use crate::keep::{self, NameGiven, Names};
use crate::{Archive, ArchiveError, Boxed};

/// The plan of a load.
#[derive(Debug)]
pub struct Plan<'a> {
    archive: &'a Archive,
    /// The boxes to load.
    pub boxes: Vec<Boxed>,
    /// The blobs that the store lacks.
    pub missing: Vec<RemoteBlob>,
}

/// A box that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The box digest.
    pub digest: Digest,
    /// The names of the box in the file, and the outcome for each.
    pub names: Vec<(String, NameGiven)>,
    /// The number of the box's blobs.
    pub blobs: usize,
    /// The size of the box's blobs, in bytes.
    pub bytes: u64,
    /// The number of the box's blobs that the store lacked. If boxes share a blob, only the number of the first box includes it.
    pub new_blobs: usize,
    /// The size of these blobs, in bytes.
    pub new_bytes: u64,
    /// The number of the box's attachments in the file.
    pub attachments: usize,
    /// The number of them for which the store has no room.
    pub left_out: usize,
}

impl<'a> Plan<'a> {
    /// Determines which blobs of the boxes a store lacks, and checks that it has space for them. No blob is read.
    ///
    /// # Errors
    /// [`ArchiveError::Box`] and [`ArchiveError::Store`].
    pub fn new(
        archive: &'a Archive,
        boxes: Vec<Boxed>,
        store: &Store,
    ) -> Result<Self, ArchiveError> {
        let mut missing = missing(boxes.iter().map(|it| &it.remote), store)?;
        for blob in &mut missing {
            let delta = boxes.iter().find_map(|it| it.delta(blob));
            let Some((from, delta)) = delta else { continue };
            if !delta.is_for(store) {
                return Err(archive.needs(from));
            }
            *blob = delta.making(blob).unwrap_or_else(|| blob.clone());
        }
        let plan = Self { archive, boxes, missing };
        store.check_space(plan.new_bytes())?;
        Ok(plan)
    }

    /// Returns the number of all blobs of the boxes.
    pub fn blobs(&self) -> usize {
        self.all().len()
    }

    /// Returns the size of all blobs of the boxes, in bytes.
    pub fn bytes(&self) -> u64 {
        self.all().into_iter().fold(0, |all, (_, size)| all.saturating_add(size))
    }

    /// Returns the size of the missing blobs, in bytes.
    pub fn new_bytes(&self) -> u64 {
        self.missing.iter().fold(0, |all, it| all.saturating_add(it.plain.size))
    }

    /// Checks that no two boxes of the file have the same name and, with [`Names::Free`], that no other box of the store has one
    /// of the names.
    ///
    /// # Errors
    /// [`ArchiveError::Malformed`], [`ArchiveError::NameTaken`] and [`ArchiveError::Store`].
    pub fn check_names(&self, store: &Store, names: Names) -> Result<(), ArchiveError> {
        let all = self.boxes.iter().flat_map(|it| it.names.iter().map(move |name| (it, name)));
        let mut given = BTreeMap::new();
        for (it, name) in all.filter(|_| names != Names::None) {
            let digest = it.remote.digest;
            let Some(text) = keep::text(digest, name) else { continue };
            if given.insert(text, digest).is_some_and(|before| before != digest) {
                let reason = format!("two boxes of it have the name {name:?}");
                return Err(ArchiveError::Malformed {
                    what: self.archive.title().to_owned(),
                    reason,
                });
            }
            if names == Names::Free {
                keep::check(store, digest, name)?;
            }
        }
        Ok(())
    }

    /// Returns the digest of the older box for whose hosts the file is.
    fn since(&self) -> Option<Digest> {
        self.boxes.iter().find_map(|it| Some(it.deltas.as_ref()?.from))
    }

    fn all(&self) -> BTreeSet<(Digest, u64)> {
        let blobs = self.boxes.iter().flat_map(|it| &it.remote.blobs);
        blobs.map(|it| (it.plain.digest, it.plain.size)).collect()
    }

    /// Reads the blobs that the store lacks, and makes the boxes available by their digests and by the names that `names`
    /// selects.
    ///
    /// # Errors
    /// [`ArchiveError`]. Complete blobs stay in the store and are not read again. Only a complete box becomes available.
    pub fn load(&self, store: &Store, names: Names) -> Result<Vec<Loaded>, ArchiveError> {
        self.check_names(store, names)?;
        let named: Vec<_> = self.boxes.iter().flat_map(Boxed::stored).collect();
        let fetched = fetch(&self.archive.origin(&named), &self.missing, store);
        fetched.map_err(|error| match (error, self.since()) {
            (BoxRegistryError::Absent { .. }, Some(from)) => self.archive.needs(from),
            (error, _) => error.into(),
        })?;
        let keep = |it: &Boxed| {
            it.remote.keep_manifest(store)?;
            let kept = keep_attachments(store, &it.remote.digest, &it.attachments, &it.needed)?;
            Ok::<_, ArchiveError>(kept.left_out)
        };
        let left_out: Vec<_> = self.boxes.iter().map(keep).collect::<Result<_, _>>()?;
        // Until the boxes have their names, these values keep garbage collection from their blobs. If one box cannot be opened,
        // no box gets a name.
        let published = self.boxes.iter().map(|it| it.remote.publish_in(store));
        let _published: Vec<_> = published.collect::<Result<_, _>>()?;
        let mut new: BTreeSet<_> = self.missing.iter().map(|it| it.plain.digest).collect();
        let all = self.boxes.iter().zip(left_out);
        let loaded =
            |(it, left_out)| Ok(Loaded { left_out, ..loaded(it, &mut new, store, names)? });
        all.map(loaded).collect()
    }
}

impl Boxed {
    /// Returns the delta in the file that makes a blob of the box, and the digest of the older box.
    fn delta(&self, blob: &RemoteBlob) -> Option<(Digest, &RemoteDelta)> {
        let Deltas { from, all, .. } = self.deltas.as_ref()?;
        let delta = all.get(&blob.plain.digest)?;
        delta.making(blob).map(|_| (*from, delta))
    }
}

/// Gives a box its names, and reports the load. `new` has the loaded blobs that no earlier box has.
fn loaded(
    it: &Boxed,
    new: &mut BTreeSet<Digest>,
    store: &Store,
    names: Names,
) -> Result<Loaded, ArchiveError> {
    let (remote, digest) = (&it.remote, it.remote.digest);
    let given = |name: &String| {
        let text = keep::text(digest, name).unwrap_or_else(|| name.clone());
        Ok((text, keep::name(store, digest, name, names)?))
    };
    let wanted = it.names.iter().filter(|_| names != Names::None);
    let names = wanted.map(given).collect::<Result<_, ArchiveError>>()?;
    let sizes = |blobs: &[&RemoteBlob]| blobs.iter().map(|it| it.plain.size).sum();
    let all: Vec<_> = remote.blobs.iter().collect();
    let is_new = |it: &&RemoteBlob| new.remove(&it.plain.digest);
    let new: Vec<_> = remote.blobs.iter().filter(is_new).collect();
    let (bytes, new_bytes) = (sizes(&all), sizes(&new));
    let (blobs, new_blobs, attachments) = (all.len(), new.len(), it.attachments.len());
    Ok(Loaded { digest, names, blobs, bytes, new_blobs, new_bytes, attachments, left_out: 0 })
}
