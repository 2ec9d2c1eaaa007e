//! An image, and the directory to which it is written (OCI image specification v1.1:
//! [image-layout.md](https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md),
//! [config.md](https://github.com/opencontainers/image-spec/blob/v1.1.0/config.md)).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use box_contract::manifest::OCI_INDEX_TYPE;
use box_contract::{Descriptor, Index, OciLayout};
use box_digest::Digest;
use serde_json::{Map, Value, json};

use super::blobs::LayoutDir;
use super::layer::LayerTar;
use super::types::Types;
use crate::{FileError, Result};

/// The annotation of the index's entry with the image's tag.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// The compression of an image's layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// The layers are compressed with gzip.
    Gzip,
    /// The layers are compressed with zstd.
    #[cfg(feature = "zstd")]
    Zstd,
    /// The layers are plain tar archives.
    None,
}

/// The field `config` of an image's config, which is about its program. Empty fields are left out.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The program and its fixed arguments.
    pub entrypoint: Vec<String>,
    /// The arguments after the entrypoint, which a user may replace.
    pub cmd: Vec<String>,
    /// The environment as `NAME=value`.
    pub env: Vec<String>,
    /// The working directory of the program.
    pub working_dir: String,
    /// The user and optionally the group, by name or number, such as `app` or `1000:1000`.
    pub user: String,
    /// The signal that asks the program to end, such as `SIGINT`.
    pub stop_signal: String,
    /// The labels by their keys.
    pub labels: BTreeMap<String, String>,
}

impl Config {
    fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value, empty: bool| {
            if !empty {
                fields.insert(name.to_owned(), value);
            }
        };
        put("Entrypoint", json!(self.entrypoint), self.entrypoint.is_empty());
        put("Cmd", json!(self.cmd), self.cmd.is_empty());
        put("Env", json!(self.env), self.env.is_empty());
        put("WorkingDir", json!(self.working_dir), self.working_dir.is_empty());
        put("User", json!(self.user), self.user.is_empty());
        put("StopSignal", json!(self.stop_signal), self.stop_signal.is_empty());
        put("Labels", json!(self.labels), self.labels.is_empty());
        Value::Object(fields)
    }
}

/// An image: its config and its layers, the lowest first. The platform is linux on amd64, unless another architecture is set.
#[derive(Debug, Clone)]
pub struct Image {
    layers: Vec<LayerTar>,
    config: Config,
    architecture: &'static str,
    types: Types,
}

impl Image {
    /// Starts an image without layers.
    pub const fn new(config: Config) -> Self {
        Self { layers: Vec::new(), config, architecture: "amd64", types: Types::OCI }
    }

    /// Sets the CPU architecture, in Go's spelling, such as `arm64`.
    #[must_use]
    pub const fn architecture(mut self, architecture: &'static str) -> Self {
        self.architecture = architecture;
        self
    }

    /// Uses Docker's media types instead of OCI's. The documents are otherwise the same.
    #[must_use]
    pub const fn with_docker_types(mut self) -> Self {
        self.types = Types::DOCKER;
        self
    }

    /// Adds a layer on top of the others.
    #[must_use]
    pub fn with(mut self, layer: LayerTar) -> Self {
        self.layers.push(layer);
        self
    }

    /// Writes images for several architectures into an OCI image layout directory under one tag, as a nested index,
    /// and returns the digest of the inner index.
    ///
    /// # Errors
    /// The errors of [`Self::write_layout`].
    pub fn write_index(images: &[Self], dir: &Path, tag: &str) -> Result<Digest> {
        let mut manifests = Vec::new();
        for image in images {
            let manifest = json!(image.write_blobs(dir, Compression::Gzip)?);
            let platform = json!({ "os": "linux", "architecture": image.architecture });
            let Value::Object(mut fields) = manifest else { continue };
            fields.insert("platform".to_owned(), platform);
            manifests.push(fields);
        }
        let index = json!({
            "schemaVersion": 2, "mediaType": OCI_INDEX_TYPE, "manifests": manifests,
        });
        tag_it(dir, LayoutDir::make(dir)?.put_json(OCI_INDEX_TYPE, &index)?, tag)
    }

    /// Writes the image into an OCI image layout directory, which is made if it does not exist, and returns the
    /// manifest's digest. An image with the same tag in the directory is replaced, and images with other tags stay.
    ///
    /// # Errors
    /// The directory cannot be written, or contains a malformed index.
    pub fn write_layout(&self, dir: &Path, tag: &str, compression: Compression) -> Result<Digest> {
        tag_it(dir, self.write_blobs(dir, compression)?, tag)
    }

    /// Writes the image's blobs into an OCI image layout directory, without an entry in its index, and returns the
    /// manifest's descriptor.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn write_blobs(&self, dir: &Path, compression: Compression) -> Result<Descriptor> {
        let blobs = LayoutDir::make(dir)?;
        let layers = self.layers.iter().map(|layer| {
            let (suffix, bytes) = match compression {
                Compression::Gzip => (self.types.gzip, layer.gzip()),
                #[cfg(feature = "zstd")]
                Compression::Zstd => (self.types.zstd, layer.zstd()),
                Compression::None => ("", layer.bytes()),
            };
            blobs.put(&format!("{}{suffix}", self.types.layer), bytes)
        });
        let layers = layers.collect::<Result<Vec<_>>>()?;
        let config = blobs.put_json(self.types.config, &self.config_json())?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": self.types.manifest, "config": config, "layers": layers,
        });
        blobs.put_json(self.types.manifest, &manifest)
    }

    /// Returns the layers, the lowest first.
    pub(super) fn layers(&self) -> &[LayerTar] {
        &self.layers
    }

    /// Returns the config's document.
    pub(super) fn config_json(&self) -> Value {
        let diff_ids: Vec<_> = self.layers.iter().map(LayerTar::diff_id).collect();
        json!({
            "architecture": self.architecture,
            "os": "linux",
            "config": self.config.to_json(),
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        })
    }
}

/// Adds `named` to the index under a tag, and returns its digest.
fn tag_it(dir: &Path, mut named: Descriptor, tag: &str) -> Result<Digest> {
    named.annotations.insert(REF_NAME.to_owned(), tag.to_owned());
    let digest = named.digest;
    write_index(dir, named)?;
    Ok(digest)
}

/// Adds a tagged manifest to the index, which is sorted by tag. Replaces the entry with the same tag.
fn write_index(dir: &Path, manifest: Descriptor) -> Result<()> {
    let path = dir.join("index.json");
    let mut manifests = match fs::read(&path) {
        Ok(text) => parse_index(&path, &text)?.manifests,
        Err(_) => Vec::new(),
    };
    let tag = |entry: &Descriptor| entry.annotations.get(REF_NAME).cloned();
    manifests.retain(|entry| tag(entry) != tag(&manifest));
    manifests.push(manifest);
    manifests.sort_by_key(tag);
    let index = Index { schema_version: 2, media_type: OCI_INDEX_TYPE.to_owned(), manifests };
    write_document(&path, &json!(index))?;
    write_document(&dir.join("oci-layout"), &json!(OciLayout::default()))
}

fn parse_index(path: &Path, text: &[u8]) -> Result<Index> {
    serde_json::from_slice(text).map_err(|error| FileError::about("parse", path)(error.into()))
}

fn write_document(path: &Path, document: &Value) -> Result<()> {
    fs::write(path, document.to_string()).map_err(FileError::about("write", path))
}

#[cfg(test)]
mod tests {
    use super::super::Layer;
    use super::*;
    use std::process::Command;

    fn sample() -> Image {
        let config = Config {
            entrypoint: vec!["/bin/run".to_owned()],
            cmd: vec!["--flag".to_owned()],
            env: vec!["A=b".to_owned()],
            working_dir: "/work".to_owned(),
            user: "1000:1000".to_owned(),
            stop_signal: "SIGQUIT".to_owned(),
            labels: BTreeMap::from([("kind".to_owned(), "test".to_owned())]),
        };
        let lower = Layer::new()
            .dir("/bin", 0o755)
            .file("/bin/run", 0o755, "#!/bin/sh\n")
            .hardlink("/bin/same", "/bin/run")
            .dir("/old", 0o755)
            .file("/old/gone", 0o644, "x")
            .file("/gone", 0o644, "x");
        let upper = Layer::new()
            .whiteout("/gone")
            .dir("/old", 0o700)
            .opaque("/old")
            .file("/old/new", 0o600, "new")
            .symlink("/link", "old/new")
            .file("/bin/caps", 0o644, "")
            .xattr("user.note", "value");
        Image::new(config).with(lower.to_tar()).with(upper.to_tar())
    }

    /// Runs an installed program to its end, and returns its standard output.
    fn run(command: &mut Command) -> Vec<u8> {
        let name = command.get_program().display().to_string();
        let output = command.output();
        let output =
            output.unwrap_or_else(|it| panic!("{name}: {it}; run: apt-get install {name}"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {}\n{message}", output.status);
        output.stdout
    }

    #[test]
    fn skopeo_reads_the_image() {
        let directory = tempfile::tempdir().unwrap();
        for compression in [Compression::Gzip, Compression::None] {
            sample().write_layout(directory.path(), "v1", compression).unwrap();
            let name = format!("oci:{}:v1", directory.path().display());
            let text = run(Command::new("skopeo").args(["inspect", &name]));
            let seen: Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(seen["Architecture"], "amd64");
            assert_eq!(seen["Labels"]["kind"], "test");
            assert_eq!(seen["Layers"].as_array().unwrap().len(), 2);
        }
    }

    #[test]
    fn skopeo_reads_one_tag_for_two_architectures() {
        let directory = tempfile::tempdir().unwrap();
        let images = ["amd64", "arm64"].map(|it| sample().architecture(it));
        Image::write_index(&images, directory.path(), "v1").unwrap();
        let name = format!("oci:{}:v1", directory.path().display());
        for architecture in ["amd64", "arm64"] {
            let mut skopeo = Command::new("skopeo");
            skopeo.args(["--override-arch", architecture, "inspect", &name]);
            let seen: Value = serde_json::from_slice(&run(&mut skopeo)).unwrap();
            assert_eq!(seen["Architecture"], architecture);
        }
    }

    #[test]
    fn umoci_unpacks_what_was_declared() {
        let directory = tempfile::tempdir().unwrap();
        let (layout, bundle) = (directory.path().join("layout"), directory.path().join("bundle"));
        sample().write_layout(&layout, "v1", Compression::Gzip).unwrap();
        let image = format!("{}:v1", layout.display());
        let mut umoci = Command::new("umoci");
        umoci.args(["unpack", "--rootless", "--image", &image]).arg(&bundle);
        run(&mut umoci);
        let root = bundle.join("rootfs");
        assert_eq!(fs::read(root.join("bin/same")).unwrap(), b"#!/bin/sh\n");
        assert_eq!(fs::read(root.join("link")).unwrap(), b"new");
        assert!(!root.join("gone").exists());
        assert!(!root.join("old/gone").exists());
        let runtime: Value =
            serde_json::from_slice(&fs::read(bundle.join("config.json")).unwrap()).unwrap();
        assert_eq!(runtime["process"]["args"], json!(["/bin/run", "--flag"]));
        assert_eq!(runtime["process"]["cwd"], "/work");
    }

    #[test]
    fn the_same_declaration_gives_the_same_digest() {
        let write = |compression| {
            let directory = tempfile::tempdir().unwrap();
            sample().write_layout(directory.path(), "v1", compression).unwrap()
        };
        assert_eq!(write(Compression::Gzip), write(Compression::Gzip));
        assert_ne!(write(Compression::Gzip), write(Compression::None));
    }

    #[test]
    fn tags_share_a_directory_and_a_layer() {
        let directory = tempfile::tempdir().unwrap();
        let base = Layer::new().file("/base", 0o644, "base").to_tar();
        let with = |name: &str| {
            let upper = Layer::new().file("/name", 0o644, name).to_tar();
            Image::new(Config::default()).with(base.clone()).with(upper)
        };
        for tag in ["b", "a", "b"] {
            with(tag).write_layout(directory.path(), tag, Compression::Gzip).unwrap();
        }
        let path = directory.path().join("index.json");
        let index = parse_index(&path, &fs::read(&path).unwrap()).unwrap();
        let tags: Vec<_> = index.manifests.iter().map(|m| &m.annotations[REF_NAME]).collect();
        assert_eq!(tags, ["a", "b"]);
        let blobs = fs::read_dir(directory.path().join("blobs/sha256")).unwrap().count();
        assert_eq!(blobs, 2 * 2 + 3, "two manifests, two configs, and three layers");
    }
}
