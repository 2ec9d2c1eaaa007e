//! Pushes a box: compresses and sends only the blobs that the registry lacks.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use box_cache::Store;
use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use box_layout::{Blob, OpenBox};
use download::http::{Content, InMemory};
use oci_registry::{Manifest, Pusher, Reference, Registry, Repository, Tag, Uploaded};

use crate::attachments::{self, SentAttachments};
use crate::error::BoxRegistryError;
use crate::form::{
    BOX_MANIFEST_TYPE, DIGEST_LABEL, Document, Form, IMAGE_CONFIG_TYPE, ImageConfig, Layer, Sent,
    json,
};
use crate::known;
use crate::pack;
use crate::parallel;
use crate::parcel::Parcel;

/// The destination of a push.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    /// The repository to push to.
    pub repository: &'a Repository,
    /// The tag that the box gets.
    pub tag: &'a Tag,
    /// Another repository of the same registry that may have some of the blobs.
    pub mount_from: Option<&'a Repository>,
    /// Whether to trust the digests in the registry's manifest at the tag. Every user who may push to the tag can have written
    /// that manifest. If it is wrong, a push without `reuse` corrects it.
    pub reuse: bool,
    /// A directory for unnamed temporary files, which need as much space as the largest blob.
    pub scratch: &'a Path,
}

/// The result of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// The sha256 of the registry's manifest.
    pub registry_digest: Digest,
    /// The box digest.
    pub digest: Digest,
    /// The form of the box in the registry.
    pub form: Form,
    /// The number of sent bytes, including manifests.
    pub bytes: u64,
    /// The number of blobs that were sent.
    pub sent: usize,
    /// The number of blobs that the registry mounted from another repository.
    pub mounted: usize,
    /// The number of blobs that the registry had already.
    pub skipped: usize,
    /// The attachments of the box. The numbers above do not include them.
    pub attachments: SentAttachments,
    /// The box that the destination had before, if it was a box.
    pub before: Option<Digest>,
}

/// The box at the destination before the push.
struct There {
    registry_digest: Digest,
    box_digest: Option<Digest>,
    form: Form,
    /// The size of the plain (uncompressed) blob and the stored blob of each layer, by the digest of the plain blob.
    layers: BTreeMap<Digest, (u64, Sent)>,
}

/// A running push.
struct Push<'a> {
    parcel: &'a Parcel<'a>,
    sender: Sender<'a>,
    /// The store that remembers the compressed form of blobs.
    store: Option<&'a Store>,
    manifest: Descriptor,
    /// The number of blobs that are sent in parallel.
    parallel: usize,
}

/// Sends blobs and manifests to a repository, and counts them.
pub(crate) struct Sender<'a> {
    pub(crate) pusher: Pusher,
    to: &'a Destination<'a>,
    bytes: AtomicU64,
    sent: AtomicUsize,
    mounted: AtomicUsize,
}

/// Sends a blob, or mounts the copy of another repository. Returns `None` if the repository has the blob already.
pub(crate) fn upload(
    pusher: &Pusher,
    (digest, size): (Digest, u64),
    content: &dyn Content,
    mount_from: Option<&Repository>,
) -> Result<Option<Uploaded>, BoxRegistryError> {
    if pusher.has_blob(&digest, size)? {
        return Ok(None);
    }
    Ok(Some(pusher.upload(&digest, content, mount_from)?))
}

impl<'a> Sender<'a> {
    pub(crate) const fn new(pusher: Pusher, to: &'a Destination<'a>) -> Self {
        let (sent, mounted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { pusher, to, bytes: AtomicU64::new(0), sent, mounted }
    }

    /// Returns the number of bytes that were sent.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether the repository has a blob.
    pub(crate) fn has(&self, sent: &Sent) -> Result<bool, BoxRegistryError> {
        Ok(self.pusher.has_blob(&sent.digest, sent.size)?)
    }

    /// Sends a blob. Returns `None` if the registry has it already.
    pub(crate) fn send(
        &self,
        sent: &Sent,
        content: &dyn Content,
    ) -> Result<Option<Uploaded>, BoxRegistryError> {
        let named = (sent.digest, sent.size);
        let done = upload(&self.pusher, named, content, self.to.mount_from)?;
        if done == Some(Uploaded::Sent) {
            self.bytes.fetch_add(sent.size, Ordering::Relaxed);
        }
        Ok(done)
    }

    /// Compresses and sends a file of `size` bytes, whose digest must be `digest`.
    pub(crate) fn pack_and_send(
        &self,
        digest: Digest,
        file: File,
        size: u64,
    ) -> Result<Sent, BoxRegistryError> {
        let packed = pack::pack(file, size, self.to.scratch);
        let (found, packed) =
            packed.map_err(|source| BoxRegistryError::Compress { digest, source })?;
        if found != digest {
            let found = format!("it has the digest {found}");
            return Err(BoxRegistryError::Damaged { digest, found });
        }
        match self.send(&packed.sent, &packed.content)? {
            None => {}
            Some(Uploaded::Mounted) => drop(self.mounted.fetch_add(1, Ordering::Relaxed)),
            Some(Uploaded::Sent) => drop(self.sent.fetch_add(1, Ordering::Relaxed)),
        }
        Ok(packed.sent)
    }

    /// Returns an unnamed temporary file with these bytes.
    pub(crate) fn scratch_file(&self, bytes: &[u8]) -> io::Result<File> {
        let mut file = tempfile::tempfile_in(self.to.scratch)?;
        file.write_all(bytes)?;
        Ok(file)
    }

    /// Sends a small document uncompressed, and returns its descriptor.
    pub(crate) fn send_document(
        &self,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<Descriptor, BoxRegistryError> {
        let (digest, size) = (Digest::of(bytes), bytes.len() as u64);
        self.send(&Sent::plain(digest, size), &InMemory(bytes.into()))?;
        Ok(Descriptor::new(media_type, digest, size))
    }

    /// Mounts a blob that this host lacks, unless the repository has it already.
    fn mount(&self, plain: &Descriptor, sent: Sent) -> Result<Sent, BoxRegistryError> {
        if self.has(&sent)? {
            return Ok(sent);
        }
        let from = self.to.mount_from;
        let is_mounted = from.map(|from| self.pusher.mount(&sent.digest, from)).transpose()?;
        if is_mounted != Some(true) {
            let (digest, to) = (plain.digest, self.to.repository.to_string());
            return Err(BoxRegistryError::Elsewhere { digest, to });
        }
        self.mounted.fetch_add(1, Ordering::Relaxed);
        Ok(sent)
    }

    /// Writes a manifest under a reference, and returns its digest.
    pub(crate) fn put(
        &self,
        reference: &Reference,
        document: &Document,
    ) -> Result<Digest, BoxRegistryError> {
        let document = json(document);
        let digest = self.pusher.put_manifest(reference, OCI_MANIFEST_TYPE, &document)?;
        self.bytes.fetch_add(document.len() as u64, Ordering::Relaxed);
        Ok(digest)
    }
}

/// Pushes a box. If the registry's manifest at the destination is for the same box, and `reuse` is set, nothing is sent. A
/// registry that rejects the artifact gets the box as [`Form::Image`].
///
/// # Errors
/// [`BoxRegistryError`]. The blobs that were sent stay in the registry without a manifest, and the next push does not send them
/// again.
pub fn push(
    registry: &Registry,
    opened: &OpenBox,
    to: &Destination<'_>,
) -> Result<Pushed, BoxRegistryError> {
    push_parcel(registry, &Parcel::of(opened)?, to, None)
}

/// Pushes a box as [`push()`] does, and remembers in a store the compressed form of its blobs. A blob that was pushed or pulled
/// before, and that the registry still has, is not compressed again. Also sends the attachments that the store keeps for the box.
///
/// # Errors
/// The errors of [`push()`].
pub fn push_from(
    registry: &Registry,
    opened: &OpenBox,
    to: &Destination<'_>,
    store: &Store,
) -> Result<Pushed, BoxRegistryError> {
    push_parcel(registry, &Parcel::of(opened)?, to, Some(store))
}

/// Pushes a box as [`push_from()`] does. This host need not have all blobs of a [`Parcel::partial`].
///
/// # Errors
/// The errors of [`push()`]; [`BoxRegistryError::Elsewhere`] if the registry does not add a blob of the other box to the
/// destination's repository.
pub fn push_parcel(
    registry: &Registry,
    parcel: &Parcel<'_>,
    to: &Destination<'_>,
    store: Option<&Store>,
) -> Result<Pushed, BoxRegistryError> {
    let pushed = push_blobs(registry, parcel, to, store)?;
    store.map_or(Ok(pushed), |store| attachments::send_kept(registry, to.repository, store, pushed))
}

/// Sends the blobs and the manifest of a box.
fn push_blobs(
    registry: &Registry,
    parcel: &Parcel<'_>,
    to: &Destination<'_>,
    store: Option<&Store>,
) -> Result<Pushed, BoxRegistryError> {
    let pusher = registry.pusher(to.repository)?;
    let there = pusher.manifest(&Reference::Tag(to.tag.clone()))?;
    let there = there.as_ref().and_then(There::of);
    if let Some(there) = there.as_ref().filter(|it| to.reuse && it.is_of(parcel)) {
        return Ok(there.unchanged(parcel));
    }
    let push = Push { store, ..Push::new(registry, parcel, to, pusher) };
    let before = there.as_ref().and_then(|it| it.box_digest);
    let (form, held) = match there {
        Some(there) if to.reuse => (there.form, there.layers),
        Some(there) => (there.form, BTreeMap::new()),
        None => (Form::Artifact, BTreeMap::new()),
    };
    let pushed = match push.run(form, &held) {
        // The registry has lost a blob that its manifest lists, so send every blob that it lacks.
        Err(BoxRegistryError::Registry(error)) if error.is_missing_blob() && !held.is_empty() => {
            push.run(form, &BTreeMap::new())
        }
        done => done,
    };
    Ok(Pushed { before, ..pushed? })
}

impl There {
    /// Reads the manifest at the destination, if it is for a box in any form. Its layers are trusted, because a registry should
    /// reject a manifest whose blobs it lacks.
    fn of(manifest: &Manifest) -> Option<Self> {
        let document: Document = serde_json::from_slice(&manifest.bytes).ok()?;
        let form = Form::of(&document)?;
        let box_digest = match form {
            Form::Artifact => Some(document.config.digest),
            Form::Image => document.annotations.get(DIGEST_LABEL).and_then(|it| it.parse().ok()),
            Form::Plain => Some(manifest.digest),
        };
        let mut layers = document.annotated();
        if form == Form::Plain {
            for blob in [&document.config].into_iter().chain(&document.layers) {
                let sent = Sent::plain(blob.digest, blob.size);
                layers.insert(blob.digest, (blob.size, sent));
            }
        }
        Some(Self { registry_digest: manifest.digest, box_digest, form, layers })
    }

    /// Returns whether the destination has the same box, with a plausible stored blob for each of its blobs.
    fn is_of(&self, parcel: &Parcel<'_>) -> bool {
        let has = |it: &&Descriptor| reusable(&self.layers, it).is_some();
        self.box_digest == Some(parcel.digest) && parcel.manifest.blobs().iter().all(has)
    }

    fn unchanged(&self, parcel: &Parcel<'_>) -> Pushed {
        Pushed {
            registry_digest: self.registry_digest,
            digest: parcel.digest,
            form: self.form,
            bytes: 0,
            sent: 0,
            mounted: 0,
            skipped: parcel.manifest.blobs().len(),
            attachments: SentAttachments::default(),
            before: self.box_digest,
        }
    }
}

/// Returns the stored blob of `plain` at the destination, if its description is plausible.
fn reusable(held: &BTreeMap<Digest, (u64, Sent)>, plain: &Descriptor) -> Option<Sent> {
    let (size, sent) = held.get(&plain.digest)?;
    (*size == plain.size && sent.check(plain).is_ok()).then_some(*sent)
}

impl<'a> Push<'a> {
    fn new(
        registry: &Registry,
        parcel: &'a Parcel<'a>,
        to: &'a Destination<'a>,
        pusher: Pusher,
    ) -> Self {
        let size = parcel.manifest_bytes.len() as u64;
        let manifest = Descriptor::new(BOX_MANIFEST_TYPE, parcel.digest, size);
        let sender = Sender::new(pusher, to);
        Self { parcel, sender, store: None, manifest, parallel: registry.parallel() }
    }

    /// Sends the missing blobs, and then the registry's manifest.
    fn run(
        &self,
        form: Form,
        held: &BTreeMap<Digest, (u64, Sent)>,
    ) -> Result<Pushed, BoxRegistryError> {
        let Descriptor { digest, size, .. } = self.manifest;
        let sent = Sent::plain(digest, size);
        self.sender.send(&sent, &InMemory(self.parcel.manifest_bytes.as_slice().into()))?;
        let layers = parallel::each(&self.parcel.manifest.blobs(), self.parallel, |plain| {
            let sent = match reusable(held, plain) {
                Some(sent) => sent,
                None => match self.known(plain)? {
                    Some(sent) => sent,
                    None => self.add(plain)?,
                },
            };
            Ok::<_, BoxRegistryError>(Layer { plain, sent })
        })?;
        let first = Layer { plain: &self.manifest, sent };
        let layers: Vec<_> = [first].into_iter().chain(layers).collect();
        // A box that another tool has copied is replaced by an artifact.
        let form = if form == Form::Plain { Form::Artifact } else { form };
        match self.name(form, &layers) {
            Err(BoxRegistryError::Registry(error))
                if form == Form::Artifact && error.is_refused_kind() =>
            {
                self.name(Form::Image, &layers)
            }
            done => done,
        }
    }

    /// Returns the remembered compressed form of a blob, if the registry has it.
    fn known(&self, plain: &Descriptor) -> Result<Option<Sent>, BoxRegistryError> {
        let known = self.store.and_then(|store| known::recall(store, &plain.digest));
        match known.filter(|sent| sent.check(plain).is_ok()) {
            Some(sent) if self.sender.has(&sent)? => Ok(Some(sent)),
            _ => Ok(None),
        }
    }

    /// Adds a blob to the repository: sends this host's copy, or mounts the copy of another repository.
    fn add(&self, plain: &Descriptor) -> Result<Sent, BoxRegistryError> {
        match (self.parcel.open_blob(plain), self.parcel.elsewhere(plain)) {
            (Err(error), Some(sent)) if error.is_missing() => self.sender.mount(plain, sent),
            (blob, _) => self.pack_and_send(plain, blob?),
        }
    }

    /// Compresses and sends a blob.
    fn pack_and_send(&self, plain: &Descriptor, blob: Blob) -> Result<Sent, BoxRegistryError> {
        blob.check_size()?;
        let sent = self.sender.pack_and_send(plain.digest, blob.file, plain.size)?;
        if let Some(store) = self.store {
            known::remember(store, &plain.digest, plain.size, &sent);
        }
        Ok(sent)
    }

    /// Writes the registry's manifest in this form.
    fn name(&self, form: Form, layers: &[Layer<'_>]) -> Result<Pushed, BoxRegistryError> {
        let config = match form {
            Form::Image => self.send_image_config(layers)?,
            Form::Artifact | Form::Plain => self.manifest.clone(),
        };
        let tag = Reference::Tag(self.sender.to.tag.clone());
        let registry_digest = self.sender.put(&tag, &Document::of_box(form, config, layers))?;
        Ok(self.pushed(registry_digest, form))
    }

    fn pushed(&self, registry_digest: Digest, form: Form) -> Pushed {
        let Sender { sent, mounted, .. } = &self.sender;
        let [sent, mounted] = [sent, mounted].map(|it| it.load(Ordering::Relaxed));
        let skipped = self.parcel.manifest.blobs().len().saturating_sub(sent + mounted);
        let (digest, bytes) = (self.parcel.digest, self.sender.bytes());
        let attachments = SentAttachments::default();
        let before = None;
        Pushed { registry_digest, digest, form, bytes, sent, mounted, skipped, attachments, before }
    }

    fn send_image_config(&self, layers: &[Layer<'_>]) -> Result<Descriptor, BoxRegistryError> {
        self.sender.send_document(IMAGE_CONFIG_TYPE, &json(&ImageConfig::of_box(layers)))
    }
}
