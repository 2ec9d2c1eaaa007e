//! A box in a registry or in a file with boxes: its verified manifest, and the stored blob of each of its blobs.

use std::collections::{BTreeMap, HashMap};

use box_cache::ActionLock;
use box_cache::{Publishing, Store};
use box_contract::manifest::{
    CONFIG_TYPE, DOCKER_INDEX_TYPE, INIT_TYPE, KERNEL_TYPE, MAX_CONFIG, OCI_INDEX_TYPE,
    OCI_MANIFEST_TYPE, documents,
};
use box_contract::rules::{MAX_INIT, MAX_KERNEL};
use box_contract::{BoxConfig, Descriptor, Manifest};
use box_digest::Digest;
use box_find::places_in;
use box_layout::{MAX_DOCUMENT, OpenBox};
use oci_registry::{Reference, Registry, Repository};
use safe_text::shown;

use crate::error::BoxRegistryError;
use crate::form::{Coding, DIGEST_LABEL, Document, Form, ImageConfig, Sent};
use crate::inflate::Inflating;
use crate::origin::{Found, Origin, Repo};
use crate::sink::{Memory, Sink};

/// The maximum size of the config of [`Form::Image`], in bytes.
const MAX_IMAGE_CONFIG: u64 = 1 << 20;

/// A box in a registry or in a file with boxes. Its blobs are not fetched yet.
#[derive(Debug, Clone)]
pub struct Remote {
    /// The sha256 of the registry's manifest: the digest in a reference such as `ghcr.io/acme/app@sha256:…`.
    pub registry_digest: Digest,
    /// The box digest: the sha256 of the box's manifest.
    pub digest: Digest,
    /// The form of the box.
    pub form: Form,
    /// The box's manifest, verified against the box digest.
    pub manifest: Manifest,
    /// The bytes of the box's manifest.
    pub manifest_bytes: Vec<u8>,
    /// The blobs of the manifest, without duplicates.
    pub blobs: Vec<RemoteBlob>,
}

/// A blob of a box in a registry.
#[derive(Debug, Clone)]
pub struct RemoteBlob {
    /// The descriptor of the plain (uncompressed) blob in the box's manifest.
    pub plain: Descriptor,
    pub(crate) sent: Sent,
}

impl RemoteBlob {
    /// Describes a blob that is stored uncompressed.
    pub(crate) const fn plain(plain: Descriptor) -> Self {
        let sent = Sent::plain(plain.digest, plain.size);
        Self { plain, sent }
    }

    /// Returns whether the blob is stored as a delta.
    pub fn is_delta(&self) -> bool {
        self.sent.coding == Coding::Delta
    }

    /// Returns the digest of the plain blob.
    pub(crate) const fn plain_digest(&self) -> Digest {
        self.plain.digest
    }

    /// Returns the sha256 of the stored bytes.
    pub const fn digest(&self) -> Digest {
        self.sent.digest
    }

    /// Returns the size of the stored bytes.
    pub const fn size(&self) -> u64 {
        self.sent.size
    }

    /// Returns the target that decompresses the blob into a sink.
    pub(crate) fn inflating<'s>(
        &self,
        sink: &'s dyn Sink,
        claim: Option<ActionLock>,
    ) -> Inflating<'s> {
        let (digest, size) = (self.plain.digest, self.plain.size);
        Inflating { sink, digest, size, coding: self.sent.coding, _claim: claim }
    }
}

/// Reads the manifests of one box.
struct Reader<'a> {
    origin: &'a dyn Origin,
    /// The description of the registry's manifest, for messages.
    what: String,
}

impl Remote {
    /// Reads the box of a reference: the registry's manifest, the box's manifest, and the config of [`Form::Image`].
    ///
    /// # Errors
    /// [`BoxRegistryError::Registry`], [`BoxRegistryError::NotABox`] and [`BoxRegistryError::Malformed`].
    pub fn read(
        registry: &Registry,
        repository: &Repository,
        reference: &Reference,
    ) -> Result<Self, BoxRegistryError> {
        let mark = if matches!(reference, Reference::Tag(_)) { ':' } else { '@' };
        let what = format!("{repository}{mark}{reference}");
        let manifest = registry.manifest(repository, reference)?;
        let found = Found {
            what,
            media_type: manifest.media_type,
            digest: manifest.digest,
            bytes: manifest.bytes,
        };
        Self::of(&Repo { registry, repository }, found)
    }

    /// Reads the box of the manifest `found` in `origin`: the box's manifest, and the config of [`Form::Image`].
    ///
    /// # Errors
    /// As for [`Self::read`], and the errors of the origin.
    pub fn of(origin: &dyn Origin, found: Found) -> Result<Self, BoxRegistryError> {
        let reader = Reader { origin, what: found.what };
        if found.media_type.is_some_and(|it| it != OCI_MANIFEST_TYPE) {
            return Err(reader.other(match found.media_type {
                Some(OCI_INDEX_TYPE | DOCKER_INDEX_TYPE) => "an index of several images",
                _ => "an image",
            }));
        }
        let document: Document = serde_json::from_slice(&found.bytes)
            .map_err(|_| reader.other("a malformed OCI manifest"))?;
        let Some(form) = Form::of(&document) else {
            let kind = document.artifact_type.as_ref().unwrap_or(&document.config.media_type);
            return Err(reader.other(&format!("an artifact of the type {:?}", shown(kind))));
        };
        let (manifest_bytes, sent) = match form {
            Form::Artifact => (reader.document(&document.config)?, document.annotated()),
            Form::Image => reader.image(&document)?,
            Form::Plain => {
                let blobs = [&document.config].into_iter().chain(&document.layers);
                let sent =
                    blobs.filter_map(|it| Some((it.digest, (it.size, plain(it)?)))).collect();
                (found.bytes, sent)
            }
        };
        let manifest = reader.manifest(&manifest_bytes)?;
        let blobs = reader.blobs(&manifest, &sent)?;
        let (registry_digest, digest) = (found.digest, Digest::of(&manifest_bytes));
        Ok(Self { registry_digest, digest, form, manifest, manifest_bytes, blobs })
    }
}

impl Remote {
    /// Fetches the config of a box in a registry, and compares it with its digest.
    ///
    /// # Errors
    /// [`BoxRegistryError::Registry`] and [`BoxRegistryError::Malformed`].
    pub fn config(
        &self,
        registry: &Registry,
        repository: &Repository,
    ) -> Result<BoxConfig, BoxRegistryError> {
        let what = format!("{repository}@{}", self.registry_digest);
        let reader = Reader { origin: &Repo { registry, repository }, what };
        let config = self.manifest.config.digest;
        let blob = self.blobs.iter().find(|it| it.plain.digest == config);
        let blob = blob.ok_or_else(|| reader.malformed("it has no config"))?;
        let bytes = reader.fetch(blob, MAX_CONFIG)?;
        serde_json::from_slice(&bytes).map_err(|error| reader.malformed(error.to_string()))
    }

    /// Adds the box to the boxes of the store, if it can be opened. Its blobs and its manifest must be in the store. Until the
    /// returned value is dropped, garbage collection deletes none of these blobs. Name the box before dropping the value.
    ///
    /// # Errors
    /// [`BoxRegistryError::Store`] and [`BoxRegistryError::Open`].
    pub fn publish_in<'s>(&self, store: &'s Store) -> Result<Publishing<'s>, BoxRegistryError> {
        let (digest, size) = (self.digest, self.manifest_bytes.len() as u64);
        let blobs = self.blobs.iter().map(|it| (it.plain.digest, it.plain.size));
        let published = store.publish(&blobs.chain([(digest, size)]).collect::<Vec<_>>())?;
        let is_new = store.keep_box(&published, &digest, &documents(digest, size))?;
        let opened = OpenBox::open(places_in(store, &digest));
        if opened.is_err() && is_new {
            store.forget_box(&digest)?;
        }
        opened?;
        Ok(published)
    }
}

/// Returns the description of a stored blob that is not compressed.
fn plain(blob: &Descriptor) -> Option<Sent> {
    Some(Sent::plain(blob.digest, blob.size))
}

/// The plain size and the stored blob of each layer of a registry's manifest, by its plain digest.
type Sources = BTreeMap<Digest, (u64, Sent)>;

impl Reader<'_> {
    fn other(&self, found: &str) -> BoxRegistryError {
        BoxRegistryError::NotABox { what: self.what.clone(), found: found.to_owned() }
    }

    fn malformed(&self, reason: impl Into<String>) -> BoxRegistryError {
        BoxRegistryError::Malformed { what: self.what.clone(), reason: reason.into() }
    }

    /// Fetches a document that is stored uncompressed.
    fn document(&self, named: &Descriptor) -> Result<Vec<u8>, BoxRegistryError> {
        self.fetch(&RemoteBlob::plain(named.clone()), MAX_DOCUMENT)
    }

    /// Fetches a document into memory.
    fn fetch(&self, blob: &RemoteBlob, limit: u64) -> Result<Vec<u8>, BoxRegistryError> {
        let size = blob.plain.size;
        if size > limit {
            let reason = format!("its document has {size} bytes, and at most {limit} are allowed");
            return Err(self.malformed(reason));
        }
        blob.sent.check(&blob.plain).map_err(|reason| self.malformed(reason))?;
        let memory = Memory::default();
        let wanted = [(blob.sent.digest, blob.sent.size)];
        self.origin.fetch(&wanted, &|_| Ok(Some(blob.inflating(&memory, None))))?;
        Ok(memory.take())
    }

    /// Reads the box's manifest and the stored blobs of [`Form::Image`]. The image's config has the digests of the plain layers
    /// in their order, even if the annotations are lost.
    fn image(&self, document: &Document) -> Result<(Vec<u8>, Sources), BoxRegistryError> {
        if document.config.size > MAX_IMAGE_CONFIG {
            return Err(self.other("an image"));
        }
        let config = self.document(&document.config)?;
        let config: ImageConfig =
            serde_json::from_slice(&config).map_err(|_| self.other("an image"))?;
        let digest = config.config.labels.get(DIGEST_LABEL).and_then(|it| it.parse().ok());
        let digest: Digest = digest.ok_or_else(|| self.other("an image"))?;
        let (layers, ids) = (&document.layers, &config.rootfs.diff_ids);
        if layers.len() != ids.len() {
            return Err(self.malformed("its layers are not those of its config"));
        }
        let mut places = Sources::new();
        let sizes = document.annotated();
        for (layer, id) in layers.iter().zip(ids) {
            let sent = Sent::of(layer).map_err(|reason| self.malformed(reason))?;
            let known = sizes.get(id).map(|(size, _)| *size);
            // Without the annotation, only the box's manifest has the plain size of a compressed layer, and it is not read yet.
            let size =
                known.unwrap_or(if sent.coding == Coding::Zstd { UNKNOWN } else { sent.size });
            places.entry(*id).or_insert((size, sent));
        }
        let manifest = self.first(&digest, &places)?;
        Ok((manifest, places))
    }

    /// Fetches the box's manifest, which is a layer of the image.
    fn first(&self, digest: &Digest, places: &Sources) -> Result<Vec<u8>, BoxRegistryError> {
        let Some((size, sent)) = places.get(digest).copied() else {
            return Err(self.malformed("it has no layer for the box's manifest"));
        };
        if size == UNKNOWN {
            return Err(self.malformed("the size of the box's manifest is not known"));
        }
        let plain = Descriptor::new(OCI_MANIFEST_TYPE, *digest, size);
        self.fetch(&RemoteBlob { plain, sent }, MAX_DOCUMENT)
    }

    /// Parses the box's manifest. Most of its rules are checked when the box is opened.
    fn manifest(&self, bytes: &[u8]) -> Result<Manifest, BoxRegistryError> {
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|_| self.malformed("the manifest of its box is malformed"))?;
        let manifest: Manifest = serde_json::from_slice(bytes)
            .map_err(|_| self.malformed("the manifest of its box has no artifact type"))?;
        let is_box = Form::of(&document) == Some(Form::Plain)
            && (manifest.schema_version, &*manifest.media_type) == (2, OCI_MANIFEST_TYPE);
        if is_box {
            Ok(manifest)
        } else {
            Err(self.malformed("the manifest that it names is not the one of a box"))
        }
    }

    /// Returns the stored blob of each blob of a box.
    fn blobs(
        &self,
        manifest: &Manifest,
        places: &Sources,
    ) -> Result<Vec<RemoteBlob>, BoxRegistryError> {
        let mut sizes = HashMap::new();
        let mut blobs = Vec::new();
        for plain in manifest.blobs() {
            if sizes.insert(plain.digest, plain.size).is_some() {
                return Err(self.malformed(format!("the blob {} has two sizes", plain.digest)));
            }
            let limit = limit(&plain.media_type);
            if plain.size > limit {
                let (digest, size) = (plain.digest, plain.size);
                let reason =
                    format!("the blob {digest} has {size} bytes, and at most {limit} are allowed");
                return Err(self.malformed(reason));
            }
            let Some(&(size, sent)) = places.get(&plain.digest) else {
                return Err(
                    self.malformed(format!("it has no layer for the blob {}", plain.digest))
                );
            };
            if size != plain.size && size != UNKNOWN {
                let (digest, named) = (plain.digest, plain.size);
                let reason =
                    format!("the blob {digest} has {named} bytes, and its layer says {size}");
                return Err(self.malformed(reason));
            }
            sent.check(plain).map_err(|reason| self.malformed(reason))?;
            blobs.push(RemoteBlob { plain: plain.clone(), sent });
        }
        Ok(blobs)
    }
}

/// The plain size of a layer in [`Sources`] if it is not known.
const UNKNOWN: u64 = u64::MAX;

/// Returns the maximum size of a blob of this media type, in bytes.
fn limit(media_type: &str) -> u64 {
    match media_type {
        CONFIG_TYPE => MAX_CONFIG,
        INIT_TYPE => MAX_INIT,
        KERNEL_TYPE => MAX_KERNEL,
        _ => UNKNOWN - 1,
    }
}
