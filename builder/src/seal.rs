//! Sealing: writes the config and the manifest of a box whose other blobs are in the store, and computes the box
//! digest.

use box_cache::{Store, StoreError};
use box_contract::manifest::{
    CONFIG_TYPE, FORMAT_EPOCH, INIT_TYPE, KERNEL_TYPE, LISTING_TYPE, METADATA_TYPE,
    OCI_MANIFEST_TYPE, SEGMENT_TYPE,
};
use box_contract::wire::PROTOCOL;
use box_contract::{BoxConfig, Descriptor, Manifest, RunPlan};
use box_digest::{Blake3Digest, Digest};
use serde::{Deserialize, Serialize};

use crate::BuildError;

/// A sealed box: its blobs are in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The box digest: sha256 of the manifest.
    pub manifest: Digest,
    /// The manifest's size in bytes.
    pub manifest_size: u64,
    /// The config's digest and its size in bytes.
    pub config: (Digest, u64),
    /// The digest of the root tree.
    pub tree: Blake3Digest,
    /// The size of the rootfs in bytes.
    pub rootfs_size: u64,
    /// The other blobs and their sizes, in this order: metadata, segments, init, kernel and listing.
    pub layers: Vec<(Digest, u64)>,
}

impl Sealed {
    /// Returns the manifest and the config, and the size of each.
    pub const fn documents(&self) -> [(Digest, u64); 2] {
        [(self.manifest, self.manifest_size), self.config]
    }

    /// Returns every blob of the box and its size.
    pub fn blobs(&self) -> Vec<(Digest, u64)> {
        [&self.documents()[..], &self.layers].concat()
    }

    /// Reads the run plan of the box.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn plan(&self, store: &Store) -> Result<RunPlan, BuildError> {
        let config: BoxConfig = serde_json::from_slice(&store.read(&self.config.0)?)?;
        Ok(config.plan)
    }
}

/// A blob that is in the store already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) blob: Digest,
    pub(crate) size: u64,
}

impl Stored {
    /// Puts bytes into the store.
    pub(crate) fn put(store: &Store, bytes: &[u8]) -> Result<Self, StoreError> {
        Self::put_pieces(store, &[bytes])
    }

    /// Puts a concatenation of pieces into the store.
    pub(crate) fn put_pieces(store: &Store, pieces: &[&[u8]]) -> Result<Self, StoreError> {
        let size = pieces.iter().map(|piece| piece.len() as u64).sum();
        Ok(Self { blob: store.put_pieces(pieces)?, size })
    }

    fn descriptor(self, media_type: &str) -> Descriptor {
        Descriptor::new(media_type, self.blob, self.size)
    }
}

/// The parts of a box that its manifest names.
#[derive(Debug)]
pub(crate) struct BoxParts {
    pub(crate) plan: RunPlan,
    pub(crate) tree: Blake3Digest,
    pub(crate) kernel_version: String,
    pub(crate) metadata: Stored,
    /// The segments, in the order in which they follow the metadata.
    pub(crate) segments: Vec<Stored>,
    pub(crate) init: Stored,
    pub(crate) kernel: Stored,
    pub(crate) listing: Stored,
}

/// Writes the config and the manifest to the store.
pub(crate) fn seal(store: &Store, parts: BoxParts) -> Result<Sealed, BuildError> {
    let config = BoxConfig {
        epoch: FORMAT_EPOCH,
        tree: parts.tree,
        plan: parts.plan,
        kernel_version: parts.kernel_version,
        // The pipeline refuses an init without the mark of this protocol.
        protocol: Some(PROTOCOL),
    };
    let config = document(store, &config)?.descriptor(CONFIG_TYPE);
    let BoxParts { metadata, segments, init, kernel, listing, .. } = parts;
    let rootfs_size = segments.iter().fold(metadata.size, |size, segment| size + segment.size);
    let layers: Vec<_> = [metadata.descriptor(METADATA_TYPE)]
        .into_iter()
        .chain(segments.into_iter().map(|segment| segment.descriptor(SEGMENT_TYPE)))
        .chain([
            init.descriptor(INIT_TYPE),
            kernel.descriptor(KERNEL_TYPE),
            listing.descriptor(LISTING_TYPE),
        ])
        .collect();
    let manifest = document(store, &Manifest::new(config.clone(), layers.clone()))?
        .descriptor(OCI_MANIFEST_TYPE);
    Ok(Sealed {
        manifest: manifest.digest,
        manifest_size: manifest.size,
        config: (config.digest, config.size),
        tree: parts.tree,
        rootfs_size,
        layers: layers.into_iter().map(|blob| (blob.digest, blob.size)).collect(),
    })
}

fn document(store: &Store, document: &impl Serialize) -> Result<Stored, BuildError> {
    Ok(Stored::put(store, &serde_json::to_vec(document)?)?)
}
