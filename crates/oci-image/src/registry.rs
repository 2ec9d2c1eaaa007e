//! Images of a registry, whose documents and layers are kept in the store.
//!
//! A blob with a known digest is first looked up in the store, so an image that was read once needs no network. A tag is always
//! resolved by the registry.

use host_fs::FileError;
use std::fmt;
use std::fs::File;
use std::path::Path;

use box_cache::Store;
use box_contract::DEFAULT_TAG;
use box_digest::Digest;
use oci_registry::{Manifest, Reference, Registry, RegistryError, Repository, Tag};

use super::documents::{self, Blob, Document};
use super::error::SourceError;
use super::form::Form;
use super::source::{
    BlobSource, Bound, CONFIG, ImageStore, Opened, Tagged, check_size, wrong_digest,
};

/// The resources for opening images.
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    /// The directory to which the paths of references are relative.
    pub base: &'a Path,
    /// The resources for opening images of registries; `None` rejects such images.
    pub registries: Option<Registries<'a>>,
}

/// The resources for opening images of registries.
#[derive(Debug, Clone, Copy)]
pub struct Registries<'a> {
    /// The store for the images' documents and layers.
    pub store: &'a Store,
    /// The client that sends the requests.
    pub remote: &'a dyn Remote,
    /// Whether requests are forbidden.
    pub offline: bool,
}

impl<'a> Access<'a> {
    pub(super) fn repo(&self, repository: Repository) -> Result<Repo<'a>, SourceError> {
        let registries = self.registries.ok_or_else(|| SourceError::NotAsked {
            place: title(&repository),
            what: "the image is not in the store".to_owned(),
        })?;
        Ok(Repo { repository, registries })
    }
}

/// A client for registries. Its methods block, and several threads may call them.
pub trait Remote: fmt::Debug + Sync {
    /// Fetches a manifest or an index. If `reference` is a digest, the bytes are verified against it.
    ///
    /// # Errors
    /// [`RegistryError`].
    fn manifest(&self, from: &Repository, reference: &Reference)
    -> Result<Manifest, RegistryError>;

    /// Fetches the blobs that are missing or damaged in the store, and verifies them.
    ///
    /// # Errors
    /// [`RegistryError`].
    fn fetch(
        &self,
        from: &Repository,
        blobs: &[(Digest, u64)],
        store: &Store,
    ) -> Result<(), RegistryError>;
}

impl Remote for Registry {
    fn manifest(
        &self,
        from: &Repository,
        reference: &Reference,
    ) -> Result<Manifest, RegistryError> {
        self.manifest(from, reference)
    }

    fn fetch(
        &self,
        from: &Repository,
        blobs: &[(Digest, u64)],
        store: &Store,
    ) -> Result<(), RegistryError> {
        self.fetch_blobs(from, blobs, store)
    }
}

/// A repository, with the resources for reading it.
#[derive(Debug)]
pub(super) struct Repo<'a> {
    pub(super) repository: Repository,
    pub(super) registries: Registries<'a>,
}

impl Repo<'_> {
    /// Fetches a manifest or an index, and writes it to the store if it is valid.
    fn fetch_manifest(&self, reference: &Reference) -> Result<(Manifest, Document), SourceError> {
        let fetched = self.registries.remote.manifest(&self.repository, reference);
        let Manifest { bytes, media_type, digest } = fetched.map_err(failed)?;
        let document = documents::read_typed(&bytes, media_type).map_err(|message| {
            SourceError::malformed(&self.at(&digest), "a manifest or an index", &message)
        })?;
        // The digest is the store's, which computes it from the bytes. `Remote` is not trusted to have verified them.
        let digest = self.registries.store.put(&bytes)?;
        self.registries.store.note_fetched(&digest)?;
        Ok((Manifest { bytes, media_type, digest }, document))
    }

    /// Reads a manifest or an index from the store. Returns `None` if it is missing or damaged there.
    fn stored_manifest(
        &self,
        digest: &Digest,
        size: Option<u64>,
        document: Bound,
    ) -> Result<Option<Vec<u8>>, SourceError> {
        let store = self.registries.store;
        if let Some(found) = store.size(digest).filter(|found| *found > document.limit) {
            // The blob is too large for the memory, so it is hashed in pieces. If it is undamaged, `check` returns the error.
            // If it is damaged, it is fetched again.
            let checked = self.holds(digest).then(|| self.check(digest, (found, size), document));
            return checked.transpose().map(|_| None);
        }
        let Ok(bytes) = store.read(digest) else { return Ok(None) };
        store.note_fetched(digest)?;
        self.check(digest, (bytes.len() as u64, size), document)?;
        Ok(Some(bytes))
    }

    /// Checks `found`, the size of a document, against the declared `size`, if there is one, and against the limit.
    fn check(
        &self,
        digest: &Digest,
        (found, size): (u64, Option<u64>),
        document: Bound,
    ) -> Result<(), SourceError> {
        let blob = Blob { digest: *digest, size: size.unwrap_or(found) };
        check_size(self, blob, document.what, found)?;
        document.check(found, || self.at(digest))
    }

    /// Returns whether the store has an undamaged blob.
    fn holds(&self, digest: &Digest) -> bool {
        self.registries.store.verify(digest).is_ok()
    }

    fn stored(&self, digest: &Digest) -> Result<Opened, SourceError> {
        let file: File = self.registries.store.open_blob(digest)?;
        self.registries.store.note_fetched(digest)?;
        let size = file.metadata().map_err(FileError::of("read", self.at(digest)))?.len();
        Ok(Opened { reader: Box::new(file), size })
    }

    fn offline(&self, digest: &Digest) -> SourceError {
        let what = format!("{digest} is not in the store");
        SourceError::NotAsked { place: self.title(), what }
    }
}

/// Returns the repository as a reference without a tag, such as `docker://registry.example.org/team/app`.
fn title(repository: &Repository) -> String {
    format!("{}{}/{}", Form::Registry.prefix(), repository.host(), repository.name())
}

/// Returns the error of a failed request.
pub(super) fn failed(source: RegistryError) -> SourceError {
    SourceError::Registry(Box::new(source))
}

impl BlobSource for Repo<'_> {
    fn title(&self) -> String {
        title(&self.repository)
    }

    fn at(&self, digest: &Digest) -> String {
        format!("{digest} of {}", self.title())
    }

    fn open(&self, Blob { digest, size }: Blob) -> Result<Option<Opened>, SourceError> {
        // A blob of at most `CONFIG.limit` bytes is hashed here, and fetched again if it is damaged. For a larger one, which can
        // only be a layer, the size is enough: layers are hashed when they are fetched and when they are read.
        let is_here = match size {
            size if size <= CONFIG.limit => self.holds(&digest),
            _ => self.registries.store.size(&digest) == Some(size),
        };
        if !is_here {
            self.fetch(&[Blob { digest, size }])?;
        }
        self.stored(&digest).map(Some)
    }

    fn fetch(&self, blobs: &[Blob]) -> Result<(), SourceError> {
        let Registries { store, remote, offline } = self.registries;
        if offline {
            let missing = blobs.iter().find(|blob| !self.holds(&blob.digest));
            return missing.map_or(Ok(()), |blob| Err(self.offline(&blob.digest)));
        }
        let wanted: Vec<_> = blobs.iter().map(|blob| (blob.digest, blob.size)).collect();
        remote.fetch(&self.repository, &wanted, store).map_err(failed)?;
        Ok(blobs.iter().try_for_each(|blob| store.note_fetched(&blob.digest))?)
    }

    fn open_present(&self, blob: Blob) -> Option<Opened> {
        let file = self.registries.store.open_blob(&blob.digest).ok()?;
        Some(Opened { reader: Box::new(file), size: blob.size })
    }
}

impl ImageStore for Repo<'_> {
    fn tagged(&self, tag: Option<&str>) -> Result<Tagged, SourceError> {
        let tag = tag.unwrap_or(DEFAULT_TAG);
        if self.registries.offline {
            let what = format!("the tag {tag:?} has not been resolved yet");
            let place = self.title();
            return Err(SourceError::NotAsked { place, what });
        }
        let tag = Tag::new(tag).map_err(failed)?;
        let (Manifest { bytes, digest, .. }, document) =
            self.fetch_manifest(&Reference::Tag(tag))?;
        Ok(Tagged::Judged(Blob { digest, size: bytes.len() as u64 }, document))
    }

    fn read_manifest(
        &self,
        digest: &Digest,
        size: Option<u64>,
        document: Bound,
    ) -> Result<Option<Vec<u8>>, SourceError> {
        if let Some(bytes) = self.stored_manifest(digest, size, document)? {
            return Ok(Some(bytes));
        }
        if self.registries.offline {
            return Err(self.offline(digest));
        }
        match self.fetch_manifest(&Reference::Digest(*digest)) {
            Ok((Manifest { digest: found, .. }, _)) if found != *digest => {
                Err(wrong_digest(self.at(digest), document.what, found, *digest))
            }
            Ok((Manifest { bytes, .. }, _)) => {
                self.check(digest, (bytes.len() as u64, size), document)?;
                Ok(Some(bytes))
            }
            Err(SourceError::Registry(source))
                if matches!(*source, RegistryError::NotFound { .. }) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn form(&self) -> Form {
        Form::Registry
    }
}
