//! Deltas beside a box in a registry or in a file with boxes: with them, a host that has an older box fetches less.
//!
//! The deltas from one box to another are a manifest whose `subject` is the manifest of the newer one
//! ([image-spec](https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md#image-manifest-property-descriptions)), so they
//! change neither that box nor its digest. Each layer is a delta ([`box_delta`]). Its annotations name the blob that it makes, as for
//! every stored blob, and the blobs of which it makes it.
//!
//! Whoever may push to the repository may write deltas. What a delta makes is hashed like every other blob, so a wrong one
//! costs time, and the blob is then fetched whole.

use std::collections::BTreeMap;

use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_delta::{MAX_SOURCES, Made};
use box_digest::Digest;
use oci_registry::{Reference, Registry, Repository};

use crate::error::BoxRegistryError;
use crate::form::{Coding, Document, Sent, annotation};
use crate::pack::FileContent;
use crate::push::{Destination, Pushed, Sender};
use crate::referrer::{EMPTY, described, empty};
use crate::remote::RemoteBlob;
use crate::sink::Sink;

/// The artifact type of a manifest with deltas.
pub const DELTAS_TYPE: &str = "application/vnd.boxbuild.deltas.v1";
/// The media type of a delta.
const DELTA_TYPE: &str = "application/vnd.boxbuild.delta.v1";
/// The annotation of a manifest with the digest of the older box.
const FROM: &str = "vnd.boxbuild.delta.from";
/// The annotation of a layer with the digests of the blobs of which the delta makes the new one, separated by spaces.
const SOURCES: &str = "vnd.boxbuild.delta.sources";
/// The maximum number of manifests with deltas that are read for a box: those from boxes of the store first, and of equals the last
/// ones of the list.
pub const MAX_DELTAS: usize = 4;
/// The maximum size of a manifest with deltas, in bytes. A delta is described with at most 3 kB, and a box has fewer than 300 blobs.
pub const MAX_DELTAS_MANIFEST: u64 = 1 << 20;

/// A delta in a registry or in a file with boxes. It is not fetched yet.
#[derive(Debug, Clone)]
pub struct RemoteDelta {
    /// The new blob, stored as the delta.
    pub blob: RemoteBlob,
    /// The digests of the blobs of which the delta makes it.
    pub sources: Vec<Digest>,
}

/// The deltas from one box to another.
#[derive(Debug, Clone)]
pub struct Deltas {
    /// The digest of the manifest of the newer box.
    pub subject: Digest,
    /// The digest of the older box.
    pub from: Digest,
    /// The deltas. At most one for each blob.
    pub all: BTreeMap<Digest, RemoteDelta>,
}

impl Deltas {
    /// Reads a manifest. Returns `None` if it has no deltas. Malformed ones are left out.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let document: Document = serde_json::from_slice(bytes).ok()?;
        let is_deltas = document.artifact_type.as_deref() == Some(DELTAS_TYPE);
        let subject = document.subject.filter(|_| is_deltas)?.digest;
        let from = document.annotations.get(FROM)?.parse().ok()?;
        let deltas = document.layers.iter().filter_map(RemoteDelta::of);
        let all = deltas.map(|it| (it.blob.plain.digest, it)).collect();
        Some(Self { subject, from, all })
    }

    /// Returns the descriptor that lists the manifest with these deltas, and the bytes of the manifest. `subject` is the manifest of
    /// the newer box, `from` the digest of the older one.
    pub fn manifest(subject: &Descriptor, from: &Digest, deltas: &[Made]) -> (Descriptor, Vec<u8>) {
        let document = Document {
            schema_version: 2,
            media_type: Some(OCI_MANIFEST_TYPE.to_owned()),
            artifact_type: Some(DELTAS_TYPE.to_owned()),
            config: empty(),
            layers: deltas.iter().map(layer).collect(),
            subject: Some(Descriptor::new(&*subject.media_type, subject.digest, subject.size)),
            annotations: [(FROM.to_owned(), from.to_string())].into(),
        };
        document.listed()
    }
}

/// Returns the descriptor of a delta.
fn layer(made: &Made) -> Descriptor {
    let sent = Sent { digest: made.digest, size: made.size, coding: Coding::Delta };
    let mut named = sent.descriptor(DELTA_TYPE, made.target);
    let sources: Vec<_> = made.sources.iter().map(ToString::to_string).collect();
    named.annotations.insert(SOURCES.to_owned(), sources.join(" "));
    named
}

impl RemoteDelta {
    /// Reads the descriptor of a delta. A delta that is not worth its bytes is none.
    fn of(layer: &Descriptor) -> Option<Self> {
        let (digest, size) = annotation(layer).filter(|_| layer.media_type == DELTA_TYPE)?;
        let named = layer.annotations.get(SOURCES)?.split_ascii_whitespace();
        let sources: Vec<Digest> = named.map(str::parse).collect::<Result<_, _>>().ok()?;
        let plain = Descriptor::new(DELTA_TYPE, digest, size);
        let sent = Sent { digest: layer.digest, size: layer.size, coding: Coding::Delta };
        let is_sound = sources.len() <= MAX_SOURCES && sent.check(&plain).is_ok();
        is_sound.then_some(Self { blob: RemoteBlob { plain, sent }, sources })
    }

    /// Returns the blob of a box, stored as this delta. `None` if the delta makes another blob.
    pub fn making(&self, blob: &RemoteBlob) -> Option<RemoteBlob> {
        let is_it =
            (self.blob.plain.digest, self.blob.plain.size) == (blob.plain.digest, blob.plain.size);
        is_it.then(|| RemoteBlob { plain: blob.plain.clone(), sent: self.blob.sent })
    }

    /// Returns whether a sink has all blobs of which the delta makes the new one. They are not verified.
    pub fn is_for(&self, sink: &dyn Sink) -> bool {
        self.sources.iter().all(|it| matches!(sink.open(it), Some(Ok(_))))
    }
}

/// Returns the smallest form in which each of the `missing` blobs can be fetched into a sink, if it is a delta.
///
/// A registry that fails or has malformed deltas has none: the blobs can be fetched whole.
pub(crate) fn smallest(
    registry: &Registry,
    repository: &Repository,
    subject: &Digest,
    (missing, sink): (&[RemoteBlob], &dyn Sink),
) -> Vec<RemoteBlob> {
    let listed = registry.referrers(repository, subject, Some(DELTAS_TYPE)).unwrap_or_default();
    let is_small = |it: &&Descriptor| it.size <= MAX_DELTAS_MANIFEST;
    let mut last: Vec<_> = listed.all.iter().rev().filter(is_small).collect();
    // Those from a box of this store come first: others may be many, and are hardly of use.
    let is_from_here = |it: &Descriptor| {
        let from = it.annotations.get(FROM)?.parse().ok()?;
        sink.store().map(|store| store.has_box(&from))
    };
    last.sort_by_key(|it| is_from_here(it) != Some(true));
    let last = last.into_iter().take(MAX_DELTAS);
    let read = |it: &Descriptor| {
        let manifest = registry.manifest(repository, &Reference::Digest(it.digest)).ok()?;
        Deltas::of(&manifest.bytes).filter(|it| it.subject == *subject)
    };
    let found: Vec<_> = last.filter_map(read).collect();
    let smallest = |blob: &RemoteBlob| {
        let deltas = found.iter().filter_map(|it| it.all.get(&blob.plain.digest));
        let usable = deltas.filter(|it| it.blob.size() < blob.size() && it.is_for(sink));
        usable.min_by_key(|it| it.blob.size())?.making(blob)
    };
    missing.iter().filter_map(smallest).collect()
}

/// Returns whether the registry has deltas from the box `from` to a box that was pushed.
///
/// # Errors
/// The errors of [`push()`](crate::push()).
pub fn has_deltas(
    registry: &Registry,
    repository: &Repository,
    (pushed, from): (&Pushed, &Digest),
) -> Result<bool, BoxRegistryError> {
    let listed = registry.pusher(repository)?.referrers(&pushed.registry_digest)?;
    let from = from.to_string();
    let is_it = |it: &Descriptor| {
        it.artifact_type.as_deref() == Some(DELTAS_TYPE) && it.annotations.get(FROM) == Some(&from)
    };
    Ok(listed.all.iter().any(is_it))
}

/// Sends deltas from the box `from` beside a box that was pushed. Returns the number of bytes that were sent. A registry that refuses
/// manifests of this type gets none.
///
/// # Errors
/// The errors of [`push()`](crate::push()).
pub fn push_deltas(
    registry: &Registry,
    to: &Destination<'_>,
    (pushed, from): (&Pushed, &Digest),
    deltas: Vec<Made>,
) -> Result<u64, BoxRegistryError> {
    let digest = pushed.registry_digest;
    let sender = Sender::new(registry.pusher(to.repository)?, to);
    let Some(subject) = described(&sender.pusher, &digest)? else { return Ok(0) };
    let listed = Deltas::manifest(&subject, from, &deltas);
    for it in deltas {
        let sent = Sent { digest: it.digest, size: it.size, coding: Coding::Delta };
        sender.send(&sent, &FileContent::new(it.file, it.size))?;
    }
    sender.send_document(&empty().media_type, EMPTY)?;
    let size = listed.0.size;
    match sender.pusher.put_referrers(&digest, &[listed]) {
        Err(error) if error.is_refused_kind() => Ok(sender.bytes()),
        done => Ok(done.map(|()| sender.bytes() + size)?),
    }
}
