//! Writes OCI image layouts blob by blob. The blobs may be invalid, and larger than the memory.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use box_digest::{Digest, Hasher, Sha256};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

pub(crate) const GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub(crate) const ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
pub(crate) const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// A layout under construction, by its directory.
pub(crate) struct Layout(PathBuf);

impl Layout {
    /// Creates an empty layout in `directory`.
    pub(crate) fn new(directory: &Path) -> Self {
        fs::create_dir_all(directory.join("blobs/sha256")).unwrap();
        fs::write(directory.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        Self(directory.to_owned())
    }

    /// Adds a blob that `fill` streams, and returns its descriptor.
    pub(crate) fn stream(
        &self,
        media_type: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Value {
        let unnamed = self.0.join("unnamed");
        let mut out = Hashing { file: File::create(&unnamed).unwrap(), hasher: Hasher::default() };
        fill(&mut out).unwrap();
        let digest = out.hasher.digest();
        fs::rename(unnamed, self.0.join("blobs/sha256").join(digest.hex())).unwrap();
        json!({ "mediaType": media_type, "digest": digest, "size": out.hasher.count() })
    }

    /// Adds a blob, and returns its descriptor.
    pub(crate) fn blob(&self, media_type: &str, bytes: &[u8]) -> Value {
        self.stream(media_type, |out| out.write_all(bytes))
    }

    /// Overwrites the blob of the descriptor `named` with other bytes.
    pub(crate) fn put(&self, named: &Value, bytes: &[u8]) {
        let digest: Digest = named["digest"].as_str().unwrap().parse().unwrap();
        fs::write(self.0.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
    }

    /// Adds an image with these layers, and returns its manifest's descriptor.
    pub(crate) fn image(&self, layers: &[(Value, Digest)]) -> Value {
        let diff_ids: Vec<_> = layers.iter().map(|(_, diff_id)| diff_id).collect();
        let config = json!({
            "architecture": "amd64", "os": "linux",
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        });
        let config = self.blob(CONFIG, config.to_string().as_bytes());
        let layers: Vec<_> = layers.iter().map(|(layer, _)| layer).collect();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers,
        });
        self.blob(MANIFEST, manifest.to_string().as_bytes())
    }

    /// Writes `index.json`.
    pub(crate) fn index(&self, manifests: &[Value]) {
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
        fs::write(self.0.join("index.json"), index.to_string()).unwrap();
    }

    /// Writes an image of plain or gzipped tar archives, and the index. Returns the layers' digests.
    pub(crate) fn of_archives(&self, archives: &[Vec<u8>], compressed: bool) -> Vec<Digest> {
        let layer = |archive: &Vec<u8>| {
            let diff_id = Digest::of(archive);
            if !compressed {
                return (self.blob(TAR, archive), diff_id);
            }
            let layer = self.stream(GZIP, |out| {
                let mut encoder = GzEncoder::new(out, Compression::fast());
                encoder.write_all(archive)?;
                encoder.finish().map(drop)
            });
            (layer, diff_id)
        };
        let layers: Vec<_> = archives.iter().map(layer).collect();
        self.index(&[self.image(&layers)]);
        let named = |(layer, _): &(Value, Digest)| layer["digest"].as_str().unwrap().parse();
        layers.iter().map(|layer| named(layer).unwrap()).collect()
    }
}

struct Hashing {
    file: File,
    hasher: Hasher<Sha256>,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
