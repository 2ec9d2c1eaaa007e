//! Archives in the format of `docker save`.

use box_digest::Digest;
use serde_json::{Value, json};

use super::layer::{Layer, LayerTar};
use super::layout::{Compression, Image};

/// The layout of an archive of `docker save`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// Before version 25: `HEX.json`, and `ID/layer.tar` for each layer. A repeated layer is a symbolic link to its first
    /// occurrence.
    Legacy,
    /// Since version 25: `blobs/sha256/HEX`. The compression of layers depends on docker's storage.
    Modern(Compression),
}

impl Image {
    /// Returns an archive of images. Each image has a list of names, such as `app:v1`.
    pub fn docker_archive(images: &[(&Self, &[&str])], form: Saved) -> LayerTar {
        let mut archive = Layer::new();
        let mut list = Vec::new();
        for (image, names) in images {
            let (grown, config, layers) = save(archive, image, form);
            archive = grown;
            list.push(json!({ "Config": config, "RepoTags": names, "Layers": layers }));
        }
        archive.file("manifest.json", 0o644, Value::from(list).to_string()).to_tar()
    }
}

/// Adds an image to `archive`. Returns the archive, and the file names of the image's config and layers.
fn save(mut archive: Layer, image: &Image, form: Saved) -> (Layer, String, Vec<String>) {
    let mut names = Vec::new();
    for layer in image.layers() {
        let (name, bytes) = stored(layer, form, names.len());
        let first = image.layers().iter().position(|it| it.bytes() == layer.bytes());
        archive = match (form, first) {
            _ if archive.has(&name) => archive,
            (Saved::Legacy, Some(first)) if first < names.len() => {
                archive.symlink(&name, &format!("../{}", names[first]))
            }
            _ => archive.file(&name, 0o644, bytes),
        };
        names.push(name);
    }
    let config = image.config_json().to_string();
    let hex = Digest::of(config.as_bytes()).hex();
    let name = match form {
        Saved::Legacy => format!("{hex}.json"),
        Saved::Modern(_) => format!("blobs/sha256/{hex}"),
    };
    let archive = if archive.has(&name) { archive } else { archive.file(&name, 0o644, config) };
    (archive, name, names)
}

/// Returns the name and the bytes of a layer's file.
fn stored(layer: &LayerTar, form: Saved, number: usize) -> (String, &[u8]) {
    let bytes = match form {
        Saved::Legacy | Saved::Modern(Compression::None) => layer.bytes(),
        Saved::Modern(Compression::Gzip) => layer.gzip(),
        #[cfg(feature = "zstd")]
        Saved::Modern(Compression::Zstd) => layer.zstd(),
    };
    let name = match form {
        // As in docker, the ID differs for two equal layers of an image, so it depends on the position.
        Saved::Legacy => {
            let id = Digest::of(format!("{number} {}", layer.diff_id()).as_bytes());
            format!("{}/layer.tar", id.hex())
        }
        Saved::Modern(_) => format!("blobs/sha256/{}", Digest::of(bytes).hex()),
    };
    (name, bytes)
}
