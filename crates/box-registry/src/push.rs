//! Pushes a box: compresses and sends only the blobs that the registry lacks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use box_cache::Store;
use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use box_layout::{MAX_DOCUMENT, OpenBox};
use download::http::{Content, InMemory};
use host_fs::read::read_open;
use oci_registry::{Manifest, Pusher, Reference, Registry, Repository, Tag, Uploaded};

use crate::attachments::{self, SentAttachments};
use crate::error::BoxRegistryError;
use crate::form::{
    BOX_MANIFEST_TYPE, DIGEST_LABEL, Document, Form, IMAGE_CONFIG_TYPE, ImageConfig, Layer, Sent,
};
use crate::known;
use crate::pack;
use crate::parallel;

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
    opened: &'a OpenBox,
    to: &'a Destination<'a>,
    /// The store that remembers the compressed form of blobs.
    store: Option<&'a Store>,
    pusher: Pusher,
    manifest: Descriptor,
    manifest_bytes: Vec<u8>,
    /// The number of blobs that are sent in parallel.
    parallel: usize,
    bytes: AtomicU64,
    sent: AtomicUsize,
    mounted: AtomicUsize,
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
    push_with(registry, opened, to, None)
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
    let pushed = push_with(registry, opened, to, Some(store))?;
    attachments::send_kept(registry, to.repository, store, pushed)
}

fn push_with(
    registry: &Registry,
    opened: &OpenBox,
    to: &Destination<'_>,
    store: Option<&Store>,
) -> Result<Pushed, BoxRegistryError> {
    let pusher = registry.pusher(to.repository)?;
    let there = pusher.manifest(&Reference::Tag(to.tag.clone()))?;
    let there = there.as_ref().and_then(There::of);
    if let Some(there) = there.as_ref().filter(|it| to.reuse && it.is_of(opened)) {
        return Ok(there.unchanged(opened));
    }
    let push = Push { store, ..Push::new(registry, opened, to, pusher)? };
    let (form, held) = match there {
        Some(there) if to.reuse => (there.form, there.layers),
        Some(there) => (there.form, BTreeMap::new()),
        None => (Form::Artifact, BTreeMap::new()),
    };
    match push.run(form, &held) {
        // The registry has lost a blob that its manifest lists, so send every blob that it lacks.
        Err(BoxRegistryError::Registry(error)) if error.is_missing_blob() && !held.is_empty() => {
            push.run(form, &BTreeMap::new())
        }
        done => done,
    }
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
                let sent = Sent { digest: blob.digest, size: blob.size, is_zstd: false };
                layers.insert(blob.digest, (blob.size, sent));
            }
        }
        Some(Self { registry_digest: manifest.digest, box_digest, form, layers })
    }

    /// Returns whether the destination has the same box, with a plausible stored blob for each of its blobs.
    fn is_of(&self, opened: &OpenBox) -> bool {
        let has = |it: &&Descriptor| reusable(&self.layers, it).is_some();
        self.box_digest == Some(opened.digest) && opened.manifest.blobs().iter().all(has)
    }

    fn unchanged(&self, opened: &OpenBox) -> Pushed {
        let skipped = opened.manifest.blobs().len();
        let (registry_digest, digest, form) = (self.registry_digest, opened.digest, self.form);
        let attachments = SentAttachments::default();
        Pushed {
            registry_digest,
            digest,
            form,
            bytes: 0,
            sent: 0,
            mounted: 0,
            skipped,
            attachments,
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
        opened: &'a OpenBox,
        to: &'a Destination<'a>,
        pusher: Pusher,
    ) -> Result<Self, BoxRegistryError> {
        let manifest_bytes = manifest_bytes(opened)?;
        let size = manifest_bytes.len() as u64;
        let manifest = Descriptor::new(BOX_MANIFEST_TYPE, opened.digest, size);
        let (sent, mounted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (parallel, bytes) = (registry.parallel(), AtomicU64::new(0));
        let store = None;
        Ok(Self {
            opened,
            to,
            store,
            pusher,
            manifest,
            manifest_bytes,
            parallel,
            bytes,
            sent,
            mounted,
        })
    }

    /// Sends the missing blobs, and then the registry's manifest.
    fn run(
        &self,
        form: Form,
        held: &BTreeMap<Digest, (u64, Sent)>,
    ) -> Result<Pushed, BoxRegistryError> {
        let Descriptor { digest, size, .. } = self.manifest;
        let sent = Sent { digest, size, is_zstd: false };
        self.send(&sent, &InMemory(self.manifest_bytes.as_slice().into()))?;
        let layers = parallel::each(&self.opened.manifest.blobs(), self.parallel, |plain| {
            let sent = match reusable(held, plain) {
                Some(sent) => sent,
                None => match self.known(plain)? {
                    Some(sent) => sent,
                    None => self.pack_and_send(plain)?,
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
            Some(sent) if self.pusher.has_blob(&sent.digest, sent.size)? => Ok(Some(sent)),
            _ => Ok(None),
        }
    }

    /// Compresses and sends a blob.
    fn pack_and_send(&self, plain: &Descriptor) -> Result<Sent, BoxRegistryError> {
        let blob = self.opened.open_blob(plain)?;
        blob.check_size()?;
        let digest = plain.digest;
        let packed = pack::pack(blob.file, plain.size, self.to.scratch);
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
        if let Some(store) = self.store {
            known::remember(store, &digest, plain.size, &packed.sent);
        }
        Ok(packed.sent)
    }

    /// Sends a blob. Returns `None` if the registry has it already.
    fn send(
        &self,
        sent: &Sent,
        content: &dyn Content,
    ) -> Result<Option<Uploaded>, BoxRegistryError> {
        if self.pusher.has_blob(&sent.digest, sent.size)? {
            return Ok(None);
        }
        let done = self.pusher.upload(&sent.digest, content, self.to.mount_from)?;
        if done == Uploaded::Sent {
            self.bytes.fetch_add(sent.size, Ordering::Relaxed);
        }
        Ok(Some(done))
    }

    /// Writes the registry's manifest in this form.
    fn name(&self, form: Form, layers: &[Layer<'_>]) -> Result<Pushed, BoxRegistryError> {
        let config = match form {
            Form::Image => self.send_image_config(layers)?,
            Form::Artifact | Form::Plain => self.manifest.clone(),
        };
        let document = json(&Document::of_box(form, config, layers));
        let tag = Reference::Tag(self.to.tag.clone());
        let registry_digest = self.pusher.put_manifest(&tag, OCI_MANIFEST_TYPE, &document)?;
        self.bytes.fetch_add(document.len() as u64, Ordering::Relaxed);
        Ok(self.pushed(registry_digest, form))
    }

    fn pushed(&self, registry_digest: Digest, form: Form) -> Pushed {
        let [sent, mounted] = [&self.sent, &self.mounted].map(|it| it.load(Ordering::Relaxed));
        let skipped = self.opened.manifest.blobs().len().saturating_sub(sent + mounted);
        let (digest, bytes) = (self.opened.digest, self.bytes.load(Ordering::Relaxed));
        let attachments = SentAttachments::default();
        Pushed { registry_digest, digest, form, bytes, sent, mounted, skipped, attachments }
    }

    fn send_image_config(&self, layers: &[Layer<'_>]) -> Result<Descriptor, BoxRegistryError> {
        let config = json(&ImageConfig::of_box(layers));
        let (digest, size) = (Digest::of(&config), config.len() as u64);
        let sent = Sent { digest, size, is_zstd: false };
        self.send(&sent, &InMemory(config.into()))?;
        Ok(Descriptor::new(IMAGE_CONFIG_TYPE, digest, size))
    }
}

/// Serializes a document. The documents of this crate have no value that JSON cannot express, so this does not fail.
fn json(document: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_default()
}

/// Reads the bytes of the box's manifest.
fn manifest_bytes(opened: &OpenBox) -> Result<Vec<u8>, BoxRegistryError> {
    let digest = opened.digest;
    let blob = opened.open_blob(&Descriptor::new(OCI_MANIFEST_TYPE, digest, 0))?;
    let damaged = |found: String| BoxRegistryError::Damaged { digest, found };
    let bytes = read_open(&blob.file, MAX_DOCUMENT).map_err(|error| damaged(error.to_string()))?;
    let found = Digest::of(&bytes);
    if found != digest {
        return Err(damaged(format!("it has the digest {found}")));
    }
    Ok(bytes)
}
