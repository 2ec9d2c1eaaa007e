//! The build cache beside a box in a registry: decoded layers of the box's images, with which another host builds a similar box
//! without these layers.
//!
//! A build cache is a manifest whose `subject` is the registry's manifest of the box
//! ([image-spec](https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md#image-manifest-property-descriptions)), so it
//! changes neither the box nor the digest of its manifest, and hosts that run the box do not fetch it. Its layers are opaque to
//! this crate. Whoever may push to the repository may write a build cache, and its layers cannot be compared with the layers of the
//! images. Use it only if these people may also decide what is in the box.

use std::collections::BTreeMap;
use std::{fmt, io};

use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use oci_registry::{Pusher, Reference, Registry, Repository};

use crate::error::BoxRegistryError;
use crate::form::{Document, Sent, annotation};
use crate::origin::{Found, Origin as _, Repo};
use crate::push::{Destination, Pushed, Sender};
use crate::referrer::{EMPTY, described, empty};
use crate::remote::{Remote, RemoteBlob};
use crate::sink::Memory;

/// The artifact type of a build cache.
pub const CACHE_TYPE: &str = "application/vnd.boxbuild.cache.v1";
/// The media type of a decoded layer, before `+zstd`.
const LAYER_TYPE: &str = "application/vnd.boxbuild.cache.layer.v1";
/// The media type of the heads, before `+zstd`.
const HEADS_TYPE: &str = "application/vnd.boxbuild.cache.heads.v1";
/// The annotation of a build cache with the key of the build: 64 hexadecimal digits.
const KEY: &str = "vnd.boxbuild.cache.key";
/// The annotation of a build cache with the version of the decoder that made its layers, as decimal digits.
const DECODER: &str = "vnd.boxbuild.cache.decoder";
/// The annotation of a layer with the digest of the uncompressed layer of the image.
const DIFF_ID: &str = "vnd.boxbuild.cache.diff-id";
/// The annotation of a layer with the digest of its segment and the segment's size in bytes, separated by a space.
const SEGMENT: &str = "vnd.boxbuild.cache.segment";
/// The maximum size of all decoded layers together that are fetched or sent, in bytes. Larger ones are left out.
const MAX_LAYERS: u64 = 256 << 20;
/// The maximum size of the heads, in bytes. The builder makes no larger ones.
pub const MAX_HEADS: u64 = 8 << 20;

/// A build cache in a registry. Its layers are not fetched yet.
#[derive(Debug, Clone)]
pub struct BuildCache {
    /// The key of the build that made the box.
    pub key: String,
    layers: BTreeMap<Digest, RemoteLayer>,
    heads: Option<RemoteBlob>,
}

/// A decoded layer in a build cache.
#[derive(Debug, Clone)]
struct RemoteLayer {
    blob: RemoteBlob,
    segment: Option<(Digest, u64)>,
}

/// A decoded layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerContent {
    /// The decoded layer in the builder's form.
    pub bytes: Vec<u8>,
    /// The digest and the size of the layer's segment, a blob of the box.
    pub segment: Option<(Digest, u64)>,
}

/// The fetched part of a build cache.
#[derive(Debug, Default)]
pub struct CachedContent {
    /// The decoded layers, by the digest of the uncompressed layer.
    pub layers: BTreeMap<Digest, LayerContent>,
    /// The heads of segments in the builder's form.
    pub heads: Vec<u8>,
}

/// A box in a registry, and the build cache beside it.
#[derive(Debug)]
pub struct CachedBox {
    /// The repository of the box.
    pub repository: Repository,
    /// The box.
    pub remote: Remote,
    /// The build cache. `None` if the box has none of this decoder.
    pub cache: Option<BuildCache>,
}

impl CachedBox {
    /// Reads a box in a registry, and the build cache beside it. Of several build caches, returns the one with the key `key`,
    /// or else the last in the registry's list. Returns `None` if there is no such box. Asks the registry itself, and no mirror.
    ///
    /// # Errors
    /// [`BoxRegistryError::Registry`]; [`BoxRegistryError::NotABox`] and [`BoxRegistryError::Malformed`] for another artifact.
    pub fn find(
        registry: &Registry,
        repository: &Repository,
        reference: &Reference,
        (key, decoder): (&str, u32),
    ) -> Result<Option<Self>, BoxRegistryError> {
        let pusher = registry.pusher(repository)?;
        let Some(manifest) = pusher.manifest(reference)? else { return Ok(None) };
        let found = Found {
            what: format!("{repository}:{reference}"),
            media_type: manifest.media_type,
            digest: manifest.digest,
            bytes: manifest.bytes,
        };
        let remote = Remote::of(&Repo { registry, repository }, found)?;
        let mut named = caches(&pusher, &remote.registry_digest)?;
        let at = named.iter().position(|it| it.annotations.get(KEY).is_some_and(|it| it == key));
        let named = at.map(|at| named.swap_remove(at)).or_else(|| named.pop());
        let read = |it: Descriptor| pusher.manifest(&Reference::Digest(it.digest));
        let manifest = named.map(read).transpose()?.flatten();
        let cache = manifest.and_then(|it| BuildCache::parse(&it.bytes, decoder));
        Ok(Some(Self { repository: repository.clone(), remote, cache }))
    }
}

/// Lists the build caches of a registry's manifest.
fn caches(pusher: &Pusher, subject: &Digest) -> Result<Vec<Descriptor>, BoxRegistryError> {
    let mut found = pusher.referrers(subject)?.all;
    found.retain(|it| it.artifact_type.as_deref() == Some(CACHE_TYPE));
    Ok(found)
}

impl BuildCache {
    /// Reads the manifest of a build cache. Returns `None` for another artifact, and for a build cache of another decoder.
    pub(crate) fn parse(bytes: &[u8], decoder: u32) -> Option<Self> {
        let document: Document = serde_json::from_slice(bytes).ok()?;
        let is_cache = document.artifact_type.as_deref() == Some(CACHE_TYPE);
        if !is_cache || document.annotations.get(DECODER)?.parse() != Ok(decoder) {
            return None;
        }
        let key = document.annotations.get(KEY)?.clone();
        let layers = document.layers.iter().filter_map(RemoteLayer::of).collect();
        let heads = document.layers.iter().find(|it| it.media_type.starts_with(HEADS_TYPE));
        let heads = heads.and_then(blob).filter(|it| it.plain.size <= MAX_HEADS);
        Some(Self { key, layers, heads })
    }

    /// Fetches the heads, and the layers of the images with these digests, as far as the cache has them.
    ///
    /// # Errors
    /// [`BoxRegistryError::Registry`] and [`BoxRegistryError::Sink`].
    pub fn fetch(
        &self,
        registry: &Registry,
        repository: &Repository,
        diff_ids: &[Digest],
    ) -> Result<CachedContent, BoxRegistryError> {
        let mut left = MAX_LAYERS;
        let mut fits = |it: &RemoteLayer| {
            let room = left.checked_sub(it.blob.plain.size);
            left = room.unwrap_or(left);
            room.is_some()
        };
        let wanted = diff_ids.iter().filter_map(|id| Some((*id, self.layers.get(id)?)));
        let wanted: BTreeMap<_, _> = wanted.filter(|(_, layer)| fits(layer)).collect();
        if wanted.is_empty() {
            return Ok(CachedContent::default());
        }
        let blobs = wanted.values().map(|it| &it.blob).chain(&self.heads);
        let found = fetch_all(&Repo { registry, repository }, blobs)?;
        let take = |blob: &RemoteBlob| found.get(&blob.digest()).map(Memory::take);
        let heads = self.heads.as_ref().and_then(take).unwrap_or_default();
        let layer = |(id, it): (Digest, &RemoteLayer)| {
            Some((id, LayerContent { bytes: take(&it.blob)?, segment: it.segment }))
        };
        Ok(CachedContent { layers: wanted.into_iter().filter_map(layer).collect(), heads })
    }
}

/// Fetches blobs into memory, by the digests of their stored bytes.
fn fetch_all<'b>(
    origin: &Repo<'_>,
    blobs: impl Iterator<Item = &'b RemoteBlob>,
) -> Result<BTreeMap<Digest, Memory>, BoxRegistryError> {
    let blobs: BTreeMap<_, _> = blobs.map(|it| (it.digest(), it)).collect();
    let memory: BTreeMap<_, _> = blobs.keys().map(|it| (*it, Memory::default())).collect();
    let wanted: Vec<_> = blobs.values().map(|it| (it.digest(), it.size())).collect();
    origin.fetch(&wanted, &|digest| Ok(Some(blobs[digest].inflating(&memory[digest], None))))?;
    Ok(memory)
}

impl RemoteLayer {
    fn descriptor(&self, diff_id: &Digest) -> Descriptor {
        let mut named = descriptor(LAYER_TYPE, &self.blob);
        named.annotations.insert(DIFF_ID.to_owned(), diff_id.to_string());
        if let Some((digest, size)) = self.segment {
            named.annotations.insert(SEGMENT.to_owned(), format!("{digest} {size}"));
        }
        named
    }

    /// Reads the descriptor of a decoded layer, and returns the layer with its diff_id.
    fn of(named: &Descriptor) -> Option<(Digest, Self)> {
        if !named.media_type.starts_with(LAYER_TYPE) {
            return None;
        }
        let segment = match named.annotations.get(SEGMENT) {
            None => None,
            Some(text) => {
                let (digest, size) = text.split_once(' ')?;
                Some((digest.parse().ok()?, size.parse().ok()?))
            }
        };
        let diff_id = named.annotations.get(DIFF_ID)?.parse().ok()?;
        Some((diff_id, Self { blob: blob(named)?, segment }))
    }
}

/// Returns the blob of a descriptor with the annotations of a compressed blob.
fn blob(named: &Descriptor) -> Option<RemoteBlob> {
    let (digest, size) = annotation(named)?;
    let (plain, sent) = (Descriptor::new(LAYER_TYPE, digest, size), Sent::of(named).ok()?);
    let may_be = size <= MAX_LAYERS && sent.check(&plain).is_ok();
    may_be.then_some(RemoteBlob { plain, sent })
}

/// Returns the decoded layer with a diff_id. `None` if this host has only its form in another build cache.
pub type ReadLayer<'a> = &'a dyn Fn(&Digest) -> io::Result<Option<LayerContent>>;

/// Returns the heads of segments.
pub type MakeHeads<'a> = &'a dyn Fn() -> io::Result<Vec<u8>>;

/// The build cache that a push adds beside a box.
pub struct CacheToPush<'a> {
    /// The key of the build that made the box.
    pub key: String,
    /// The version of the decoder that made the layers.
    pub decoder: u32,
    /// The diff_ids of the layers, without duplicates.
    pub layers: &'a [Digest],
    /// Reads a layer that is in neither the repository nor `known`.
    pub read: ReadLayer<'a>,
    /// Makes the heads of segments, which takes time. `None` if `known` has them. Called only if the cache is sent.
    pub heads: Option<MakeHeads<'a>>,
    /// A build cache whose layers this one can have.
    pub known: Option<&'a BuildCache>,
}

impl fmt::Debug for CacheToPush<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheToPush").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Adds a build cache to a box that was pushed, unless the box has one with the same key. Returns the number of bytes that were sent.
/// Sends no manifest if the cache would be incomplete, or if the registry refuses manifests of this type.
///
/// # Errors
/// The errors of [`push()`](crate::push()).
pub fn push_cache(
    registry: &Registry,
    to: &Destination<'_>,
    pushed: &Pushed,
    cache: &CacheToPush<'_>,
) -> Result<u64, BoxRegistryError> {
    let digest = pushed.registry_digest;
    let sender = Sender::new(registry.pusher(to.repository)?, to);
    let known = caches(&sender.pusher, &digest)?;
    if known.iter().any(|it| it.annotations.get(KEY) == Some(&cache.key)) {
        return Ok(0);
    }
    let Some(subject) = described(&sender.pusher, &digest)? else { return Ok(0) };
    let Some(document) = add_blobs(&sender, cache, subject)? else { return Ok(sender.bytes()) };
    let listed = document.listed();
    let size = listed.0.size;
    match sender.pusher.put_referrers(&digest, &[listed]) {
        Err(error) if error.is_refused_kind() => Ok(sender.bytes()),
        done => Ok(done.map(|()| sender.bytes() + size)?),
    }
}

/// Sends the blobs of a build cache, and returns the cache's manifest. `None` if a layer is neither on this host nor in the
/// repository, so that the cache would be incomplete.
fn add_blobs(
    sender: &Sender<'_>,
    cache: &CacheToPush<'_>,
    subject: Descriptor,
) -> Result<Option<Document>, BoxRegistryError> {
    let (mut layers, mut left) = (Vec::new(), MAX_LAYERS);
    for diff_id in cache.layers {
        let Some(layer) = add_layer(sender, cache, diff_id)? else { return Ok(None) };
        let Some(rest) = left.checked_sub(layer.blob.plain.size) else { continue };
        left = rest;
        layers.push(layer.descriptor(diff_id));
    }
    let known = cache.known.and_then(|it| it.heads.clone());
    let heads = match (cache.heads, known) {
        (Some(make), _) => {
            let digest = subject.digest;
            let heads = make().map_err(|source| BoxRegistryError::Compress { digest, source })?;
            send(sender, &heads)?
        }
        (None, Some(known)) if sender.has(&known.sent)? => known,
        (None, _) => return Ok(None),
    };
    layers.push(descriptor(HEADS_TYPE, &heads));
    let config = sender.send_document(&empty().media_type, EMPTY)?;
    let annotations = [(KEY, cache.key.clone()), (DECODER, cache.decoder.to_string())];
    Ok(Some(Document {
        schema_version: 2,
        media_type: Some(OCI_MANIFEST_TYPE.to_owned()),
        artifact_type: Some(CACHE_TYPE.to_owned()),
        config,
        layers,
        subject: Some(subject),
        annotations: annotations.map(|(key, value)| (key.to_owned(), value)).into(),
    }))
}

/// Adds a layer of a build cache to the repository. `None` if it is neither on this host nor in the repository.
fn add_layer(
    sender: &Sender<'_>,
    cache: &CacheToPush<'_>,
    diff_id: &Digest,
) -> Result<Option<RemoteLayer>, BoxRegistryError> {
    if let Some(known) = cache.known.and_then(|it| it.layers.get(diff_id))
        && sender.has(&known.blob.sent)?
    {
        return Ok(Some(known.clone()));
    }
    let content = (cache.read)(diff_id);
    let content =
        content.map_err(|source| BoxRegistryError::Compress { digest: *diff_id, source })?;
    let Some(LayerContent { bytes, segment }) = content else { return Ok(None) };
    Ok(Some(RemoteLayer { blob: send(sender, &bytes)?, segment }))
}

/// Compresses and sends bytes.
fn send(sender: &Sender<'_>, bytes: &[u8]) -> Result<RemoteBlob, BoxRegistryError> {
    let (digest, size) = (Digest::of(bytes), bytes.len() as u64);
    let file = sender.scratch_file(bytes);
    let file = file.map_err(|source| BoxRegistryError::Compress { digest, source })?;
    let sent = sender.pack_and_send(digest, file, size)?;
    Ok(RemoteBlob { plain: Descriptor::new(LAYER_TYPE, digest, size), sent })
}

fn descriptor(media_type: &str, blob: &RemoteBlob) -> Descriptor {
    blob.sent.descriptor(media_type, (blob.plain.digest, blob.plain.size))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::form::{PLAIN_DIGEST, PLAIN_SIZE};

    fn cache() -> Value {
        let layer = |kind: &str| {
            json!({
                "mediaType": format!("{kind}+zstd"), "digest": Digest::of(b"stored"), "size": 100,
                "annotations": {
                    PLAIN_DIGEST: Digest::of(b"plain"), PLAIN_SIZE: "1000",
                    DIFF_ID: Digest::of(b"layer"), SEGMENT: format!("{} 4096", Digest::of(b"segment")),
                },
            })
        };
        json!({
            "schemaVersion": 2, "artifactType": CACHE_TYPE, "config": empty(),
            "layers": [layer(LAYER_TYPE), layer(HEADS_TYPE)],
            "annotations": { KEY: "key", DECODER: "7" },
        })
    }

    fn parse(cache: &Value) -> Option<BuildCache> {
        BuildCache::parse(cache.to_string().as_bytes(), 7)
    }

    #[test]
    fn a_cache_of_another_decoder_is_none() {
        let found = parse(&cache()).unwrap();
        assert_eq!((&*found.key, found.layers.len(), found.heads.is_some()), ("key", 1, true));
        let layer = &found.layers[&Digest::of(b"layer")];
        assert_eq!(layer.segment, Some((Digest::of(b"segment"), 4096)));
        for (field, value) in
            [("/annotations/vnd.boxbuild.cache.decoder", "8"), ("/artifactType", "x")]
        {
            let mut other = cache();
            *other.pointer_mut(field).unwrap() = value.into();
            assert!(parse(&other).is_none(), "{field}");
        }
        assert!(BuildCache::parse(b"{}", 7).is_none());
    }

    #[test]
    fn a_malformed_layer_is_left_out() {
        for (field, value) in [
            (DIFF_ID, "sha256:7"),
            (SEGMENT, "4096"),
            (SEGMENT, "sha256:7 4096"),
            (PLAIN_SIZE, "-1"),
            (PLAIN_SIZE, "99999999999"),
            // The stored blob is much larger than the plain one.
            (PLAIN_SIZE, "1"),
        ] {
            let mut other = cache();
            other["layers"][0]["annotations"][field] = value.into();
            if value == "1" {
                other["layers"][0]["size"] = 10_000.into();
            }
            assert!(parse(&other).unwrap().layers.is_empty(), "{field} {value}");
        }
    }
}
