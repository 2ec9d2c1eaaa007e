//! Images without content, for tests.

use std::sync::Arc;

use box_contract::Platform;
use box_digest::Digest;
use oci_layer::{Compression, LayerSource};

use crate::documents::Blob;
use crate::source::{BlobSource, Opened};
use crate::{Image, SourceError};

/// A source without blobs.
#[derive(Debug)]
struct Nowhere;

impl BlobSource for Nowhere {
    fn title(&self) -> String {
        "nowhere".to_owned()
    }

    fn at(&self, digest: &Digest) -> String {
        digest.to_string()
    }

    fn open(&self, _: Blob) -> Result<Option<Opened>, SourceError> {
        Ok(None)
    }
}

impl Image<'_> {
    /// Returns an image with these digests, whose blobs do not exist.
    pub fn sample(manifest: Digest, layers: &[Digest]) -> Self {
        let layer = |digest: &Digest| LayerSource {
            digest: *digest,
            size: 100,
            compression: Compression::None,
            diff_id: *digest,
        };
        Self {
            source: Arc::new(Nowhere),
            platform: Platform::LinuxAmd64,
            manifest,
            manifest_size: 10,
            config_digest: manifest,
            config_size: 1,
            process: oci_spec::image::Config::default(),
            layers: layers.iter().map(layer).collect(),
        }
    }
}
