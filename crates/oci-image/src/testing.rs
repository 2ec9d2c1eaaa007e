//! Images without content, for tests.

use std::sync::Arc;

use box_digest::Digest;
use boxfile_spec::Platform;
use oci_layer::{Compression, LayerSource};

use crate::image::Home;
use crate::place::{Blobs, Opened};
use crate::{Image, SourceError};

/// A place that has nothing.
#[derive(Debug)]
struct Nowhere;

impl Blobs for Nowhere {
    fn title(&self) -> String {
        "nowhere".to_owned()
    }

    fn at(&self, digest: &Digest) -> String {
        digest.to_string()
    }

    fn open(&self, _: &Digest, _: u64) -> Result<Option<Opened>, SourceError> {
        Ok(None)
    }
}

impl Image {
    /// Returns an image that has no blobs.
    ///
    /// # Panics
    /// Never: the config is a constant.
    pub fn sample(manifest: Digest, layers: &[Digest]) -> Self {
        let layer = |digest: &Digest| LayerSource {
            digest: *digest,
            size: 100,
            compression: Compression::None,
            diff_id: *digest,
        };
        let config = r#"{"architecture":"amd64","os":"linux","rootfs":{"diff_ids":[]}}"#;
        Self {
            home: Home::Local(Arc::new(Nowhere)),
            platform: Platform::LinuxAmd64,
            manifest,
            manifest_size: 10,
            config_digest: manifest,
            config_size: 1,
            config: serde_json::from_str(config).expect("a constant"),
            layers: layers.iter().map(layer).collect(),
        }
    }
}
