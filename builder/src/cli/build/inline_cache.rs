//! The inline cache of `boxbuild build --push`: what the registry has of an earlier build.
//!
//! A host that has built nothing takes the decoded layers of an earlier build from the build cache beside the box in the registry. It
//! then fetches no layer, and the segments of the layers stay in the registry: the new box is only there. If the inputs are the
//! same as of the box in the registry, nothing is built at all.

use std::sync::Arc;
use std::{env, io};

use box_cache::Store;
use box_contract::manifest::FORMAT_EPOCH;
use box_contract::{BoxConfig, ErrorCode, RemoteName};
use box_digest::Digest;
use box_find::places_in;
use box_registry::{
    BoxRegistryError, CacheToPush, CachedBox, CachedContent, Destination, LayerContent, MakeHeads,
    Parcel, Pushed, push_cache,
};
use boxbuild::pack::Segment;
use boxbuild::{CachedLayer, CachedLayers, Resolved};
use oci_layer::DECODER_EPOCH;
use oci_registry::{Reference, Registry, Repository};
use safe_text::with_causes;

use crate::cli::failure::Failure;
use crate::cli::stages::Stages;
use crate::cli::terminal;
use crate::cli::transfer::{repository_and_tag, send_beside};

/// Whether a build uses results of earlier builds.
#[derive(Debug, clap::Args)]
pub(crate) struct CacheOptions {
    /// With --push, take decoded layers from this box of the same registry [default: the box at the destination of --push]
    #[arg(long, value_name = "HOST/NAME:TAG", value_parser = RemoteName::parse, requires = "push")]
    cache_from: Option<RemoteName>,
    /// Decode every layer and write the rootfs again: use no result of an earlier build, neither of the store nor of the registry
    #[arg(long, conflicts_with = "cache_from")]
    pub(crate) no_cache: bool,
}

impl CacheOptions {
    /// Returns the box whose build cache a build with `--push TO` uses.
    ///
    /// # Errors
    /// The box is in another registry, which cannot copy its blobs to the destination.
    pub(crate) fn source<'a>(&'a self, to: &'a RemoteName) -> Result<Source<'a>, Failure> {
        let Some(from) = &self.cache_from else { return Ok(Source { name: to, is_named: false }) };
        if from.host == to.host {
            return Ok(Source { name: from, is_named: true });
        }
        let message = format!("{from} is in another registry than {to}");
        let help = "name a box of the same registry with --cache-from: its blobs are not fetched, but copied there";
        Err(Failure::new((ErrorCode::Usage, help), message))
    }
}

/// The box whose build cache a build uses.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    name: &'a RemoteName,
    /// Whether `--cache-from` names it.
    is_named: bool,
}

/// A box in the registry, and what a build takes of the build cache beside it.
pub(crate) struct Inline<'a> {
    client: &'a Registry,
    found: CachedBox,
    /// The key of the build.
    key: String,
    as_json: bool,
}

impl<'a> Inline<'a> {
    /// Reads the box of `source` in the registry. Returns `None` if there is no box.
    pub(crate) fn find(
        source: Source<'_>,
        key: String,
        client: &'a Registry,
        as_json: bool,
    ) -> Result<Option<Self>, Failure> {
        let name = source.name;
        // A digest names the registry's manifest here, because a tag may have moved since.
        let tag = name.tag.clone().filter(|_| name.digest.is_none());
        let reference = Reference::of(&RemoteName { tag, ..name.clone() })?;
        let repository = Repository::of(name)?;
        let found = CachedBox::find(client, &repository, &reference, (&key, DECODER_EPOCH));
        match found {
            Ok(Some(found)) => Ok(Some(Self { client, found, key, as_json })),
            Ok(None) if source.is_named => {
                // The first build of a main branch has nothing to take layers from.
                terminal::note(&format!(
                    "note: the registry has no box {name}: every layer is decoded here"
                ));
                Ok(None)
            }
            Ok(None) => Ok(None),
            // The push replaces whatever is at its destination.
            Err(BoxRegistryError::NotABox { .. } | BoxRegistryError::Malformed { .. })
                if !source.is_named =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether the box in the registry was built from the same inputs.
    pub(crate) fn is_same(&self) -> bool {
        self.found.cache.as_ref().is_some_and(|it| it.key == self.key)
    }

    /// Fetches the decoded layers with these diff_ids. If that fails, the build decodes the layers.
    pub(crate) fn layers(&self, missing: &[Digest]) -> CachedLayers {
        let Some(cache) = &self.found.cache else { return CachedLayers::default() };
        let stages = Stages::new(self.as_json);
        stages.begin("reading the build cache");
        let content = cache.fetch(self.client, &self.found.repository, missing);
        stages.end();
        let CachedContent { layers, heads } = content.unwrap_or_else(|error| {
            terminal::detail("cache", format!("not used: {}", with_causes(&error)));
            CachedContent::default()
        });
        let (taken, all) = (layers.len(), missing.len());
        terminal::detail(
            "cache",
            format!("took {taken} of {all} missing layers from the registry"),
        );
        let layers = layers.into_iter().map(|(id, layer)| (id, self.cached(layer)));
        CachedLayers::new(layers, &heads)
    }

    fn cached(&self, LayerContent { bytes, segment }: LayerContent) -> CachedLayer {
        let is_segment_elsewhere = segment.is_some_and(|it| self.has_segment(it));
        let segment = segment.map(|(blob, size)| Segment { blob, size });
        CachedLayer { bytes: Arc::new(bytes), segment, is_segment_elsewhere }
    }

    fn has_segment(&self, (digest, size): (Digest, u64)) -> bool {
        let mut blobs = self.found.remote.blobs.iter();
        blobs.any(|it| it.plain.digest == digest && it.plain.size == size)
    }

    /// Pushes a box of which the registry has blobs that this host lacks. `built` is the digest of a new box. `None` pushes the
    /// box that the registry has.
    pub(crate) fn push(
        &self,
        built: Option<Digest>,
        to: &RemoteName,
        store: &Store,
    ) -> Result<Pushed, Failure> {
        let Self { found, client, as_json, .. } = self;
        let parcel = match built {
            Some(digest) => Parcel::partial(places_in(store, &digest), digest, &found.remote)?,
            None => Parcel::copy_of(places_in(store, &found.remote.digest), &found.remote),
        };
        send_beside(&parcel, to, client, (true, Some(store), Some(&found.repository)), *as_json)
    }

    /// Returns the config of the box in the registry.
    pub(crate) fn config(&self) -> Result<BoxConfig, Failure> {
        let CachedBox { repository, remote, .. } = &self.found;
        Ok(remote.config(self.client, repository)?)
    }

    /// Returns the digest of the box in the registry, and the size of its rootfs in bytes.
    pub(crate) fn box_in_registry(&self) -> (Digest, u64) {
        let CachedBox { remote, .. } = &self.found;
        let parts = remote.manifest.rootfs(FORMAT_EPOCH).unwrap_or_default();
        (remote.digest, parts.iter().map(|it| it.size).sum())
    }
}

/// Adds a build cache beside a pushed box, so that another host can build a similar box without the layers. `heads` is `None` if
/// `inline` has them, and is not called if the box has a cache already. Returns the number of bytes that were sent: none if a layer
/// is neither decoded on this host nor in the build
/// cache of `inline`.
pub(crate) fn add_cache(
    (resolved, heads): (&Resolved<'_>, Option<MakeHeads<'_>>),
    (to, pushed): (&RemoteName, &Pushed),
    client: &Registry,
    inline: Option<&Inline<'_>>,
    as_json: bool,
) -> Result<u64, Failure> {
    let layers = resolved.diff_ids();
    let stages = Stages::new(as_json);
    stages.begin("sending the build cache");
    let read = |id: &Digest| {
        let layer = resolved.decoded_layer(id).map_err(io::Error::other)?;
        Ok(layer.map(|CachedLayer { bytes, segment, .. }| LayerContent {
            bytes: Arc::unwrap_or_clone(bytes),
            segment: segment.map(|it| (it.blob, it.size)),
        }))
    };
    let cache = CacheToPush {
        key: resolved.key().hex(),
        decoder: DECODER_EPOCH,
        layers: &layers,
        read: &read,
        heads,
        known: inline.and_then(|it| it.found.cache.as_ref()),
    };
    let (repository, tag) = repository_and_tag(to)?;
    let scratch = env::temp_dir();
    let mount_from = inline.map(|it| &it.found.repository);
    let to = Destination {
        repository: &repository,
        tag: &tag,
        mount_from,
        reuse: true,
        scratch: &scratch,
    };
    let sent = push_cache(client, &to, pushed, &cache)?;
    stages.end();
    Ok(sent)
}
