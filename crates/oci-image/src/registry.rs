//! Images of a registry, whose documents and layers are kept in the store.
//!
//! A blob that is named by a digest is looked for in the store first: an image that was read once needs the
//! network no more. Only what a tag means is always asked again.

use host_fs::FileError;
use std::fmt;
use std::fs::File;
use std::path::Path;

use box_cache::Store;
use box_contract::DEFAULT_TAG;
use box_digest::Digest;
use oci_layer::LayerSource;
use oci_registry::{Manifest, Reference, Registry, RegistryError, Repository, Tag};
use oci_spec::image::{Descriptor, MediaType};

use super::documents::{self, Blob};
use super::error::SourceError;
use super::form::Form;
use super::place::{Blobs, CONFIG, Opened, Place};

/// The means of opening images.
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    /// The directory that relative paths start from.
    pub base: &'a Path,
    /// The means of opening images of registries; `None` to refuse those.
    pub registries: Option<Registries<'a>>,
}

/// The means of opening images of registries.
#[derive(Debug, Clone, Copy)]
pub struct Registries<'a> {
    /// Where they are kept.
    pub store: &'a Store,
    /// How registries are asked.
    pub remote: &'a dyn Remote,
    /// Whether no network may be touched.
    pub offline: bool,
}

impl Access<'_> {
    pub(super) fn repo<'r>(&'r self, repository: &'r Repository) -> Result<Repo<'r>, SourceError> {
        let registries = self.registries.ok_or_else(|| SourceError::NotAsked {
            place: title(repository),
            what: "the image is not in the store".to_owned(),
        })?;
        Ok(Repo { repository, registries })
    }
}

/// A client for registries. Calls may come from several threads, and block.
pub trait Remote: fmt::Debug + Sync {
    /// Fetches a manifest or an index, verified against the digest that it is asked for by.
    ///
    /// # Errors
    /// [`RegistryError`].
    fn manifest(&self, from: &Repository, reference: &Reference)
    -> Result<Manifest, RegistryError>;

    /// Fetches those blobs that the store does not hold undamaged, each verified.
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

/// A repository, and what is needed to get at what it has.
#[derive(Debug)]
pub(super) struct Repo<'a> {
    pub(super) repository: &'a Repository,
    pub(super) registries: Registries<'a>,
}

impl Repo<'_> {
    /// Makes sure that the store holds blobs.
    fn fetch(&self, blobs: &[(Digest, u64)]) -> Result<(), SourceError> {
        if self.registries.offline {
            let missing = blobs.iter().find(|(digest, _)| !self.holds(digest));
            return missing.map_or(Ok(()), |(digest, _)| Err(self.offline(digest)));
        }
        let store = self.registries.store;
        self.registries.remote.fetch(self.repository, blobs, store).map_err(failed)?;
        Ok(blobs.iter().try_for_each(|(digest, _)| store.note_fetched(digest))?)
    }

    /// Makes sure that the store holds layers.
    pub(super) fn fetch_layers(&self, layers: &[&LayerSource]) -> Result<(), SourceError> {
        let blobs: Vec<_> = layers.iter().map(|layer| (layer.digest, layer.size)).collect();
        self.fetch(&blobs)
    }

    /// Fetches a manifest or an index into the store, if it is sound, and names it.
    fn fetch_manifest(&self, reference: &Reference) -> Result<Descriptor, SourceError> {
        let fetched = self.registries.remote.manifest(self.repository, reference);
        let Manifest { bytes, media_type, digest } = fetched.map_err(failed)?;
        let media_type = documents::media_type(&bytes, media_type).map_err(|message| {
            SourceError::malformed(&self.at(&digest), "a manifest or an index", &message)
        })?;
        self.registries.store.put(&bytes)?;
        self.registries.store.note_fetched(&digest)?;
        let blob = Blob { digest, size: bytes.len() as u64 };
        Ok(blob.named(MediaType::from(media_type.as_str())))
    }

    /// Whether the store has a blob whole.
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

/// Returns a repository as a reference names it, without a tag.
fn title(repository: &Repository) -> String {
    format!("{}{}/{}", Form::Registry.prefix(), repository.host(), repository.name())
}

/// Returns the error of a request that failed.
pub(super) fn failed(source: RegistryError) -> SourceError {
    SourceError::Registry(Box::new(source))
}

impl Blobs for Repo<'_> {
    fn title(&self) -> String {
        title(self.repository)
    }

    fn at(&self, digest: &Digest) -> String {
        format!("{digest} of {}", self.title())
    }

    fn open(&self, Blob { digest, size }: Blob) -> Result<Option<Opened>, SourceError> {
        // A damaged config is fetched again. A layer is hashed when it is fetched and when it is read.
        let is_here = match size {
            size if size <= CONFIG.limit => self.holds(&digest),
            _ => self.registries.store.size(&digest) == Some(size),
        };
        if !is_here {
            self.fetch(&[(digest, size)])?;
        }
        self.stored(&digest).map(Some)
    }
}

impl Place for Repo<'_> {
    fn tagged(&self, tag: Option<&str>) -> Result<Vec<Descriptor>, SourceError> {
        let tag = tag.unwrap_or(DEFAULT_TAG);
        if self.registries.offline {
            let what = format!("the tag {tag:?} has not been resolved yet");
            let place = self.title();
            return Err(SourceError::NotAsked { place, what });
        }
        let tag = Tag::new(tag).map_err(failed)?;
        Ok(vec![self.fetch_manifest(&Reference::Tag(tag))?])
    }

    fn open_manifest(&self, digest: &Digest) -> Result<Option<Opened>, SourceError> {
        if self.holds(digest) {
            return self.stored(digest).map(Some);
        }
        if self.registries.offline {
            return Err(self.offline(digest));
        }
        match self.fetch_manifest(&Reference::Digest(*digest)) {
            Ok(_) => self.stored(digest).map(Some),
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
