//! An image in a registry, and the same image in a layout directory, with which pulls are compared.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use box_cache::Store;
use box_digest::Digest;
use download::{NetworkOptions, Policy};
use oci_registry::{
    Manifest, Options, Reference, Registry, RegistryConfig, RegistryError, Repository, Tag,
};
use serde_json::Value;
use testbed::{DockerRegistry, Workspace};
use testkit::images::{Compression, Config, Image, Layer, LayerTar};

/// The image's repository and tag.
pub(crate) const NAME: &str = "team/app";
pub(crate) const TAG: &str = "v1";

/// A registry with an image, and a directory with the image's layout.
pub(crate) struct Pushed {
    pub(crate) registry: DockerRegistry,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Pushed {
    /// Starts a registry that needs no password.
    pub(crate) fn open() -> Self {
        Self::to(DockerRegistry::open(&Workspace::find(), &mut |line| println!("{line}")).unwrap())
    }

    /// Starts a registry that requires a password.
    pub(crate) fn closed() -> Self {
        Self::to(
            DockerRegistry::closed(&Workspace::find(), &mut |line| println!("{line}")).unwrap(),
        )
    }

    /// Pushes an image of two layers to `registry`.
    fn to(registry: DockerRegistry) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let layout = dir.path().join("layout");
        image().write_layout(&layout, TAG, Compression::Gzip).unwrap();
        registry.push(&layout, TAG, &format!("{NAME}:{TAG}")).unwrap();
        let store = Store::open(&dir.path().join("store")).unwrap();
        Self { registry, dir, store }
    }

    /// Pushes the same image with uncompressed layers.
    pub(crate) fn push_plain(&self, tag: &str) {
        let layout = self.dir.path().join("layout");
        image().write_layout(&layout, tag, Compression::None).unwrap();
        self.registry.push(&layout, tag, &format!("{NAME}:{tag}")).unwrap();
    }

    /// Pushes an index with the image for amd64 and for arm64.
    pub(crate) fn push_index(&self, tag: &str) {
        let layout = self.dir.path().join("layout");
        let images = ["amd64", "arm64"].map(|it| image().architecture(it));
        Image::write_index(&images, &layout, tag).unwrap();
        self.registry.push(&layout, tag, &format!("{NAME}:{tag}")).unwrap();
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository::new(&self.registry.host(), NAME).unwrap()
    }

    /// Returns options that allow plain HTTP to the registry.
    pub(crate) fn options(&self) -> Options {
        let config = format!("[registry.\"{}\"]\nplain-http = true", self.registry.host());
        let config = RegistryConfig::parse(&config).unwrap();
        let policy = Policy { backoff: Duration::from_millis(1), ..Policy::default() };
        let network = NetworkOptions { policy, ..NetworkOptions::default() };
        Options { config, network, ..Options::default() }
    }

    /// Reads a blob from the layout.
    pub(crate) fn blob(&self, digest: &Digest) -> Vec<u8> {
        fs::read(self.dir.path().join("layout/blobs/sha256").join(digest.hex())).unwrap()
    }

    /// Pulls the image `tag`, and compares its manifest and blobs with the layout.
    pub(crate) fn pull(&self, options: Options, tag: &str) -> Result<Manifest, RegistryError> {
        let registry = Registry::new(options);
        let repository = self.repository();
        let manifest = registry.manifest(&repository, &tagged(tag))?;
        assert_eq!(manifest.bytes, self.blob(&manifest.digest));
        let (config, layers) = parts(&manifest);
        let blobs = [vec![config], layers].concat();
        registry.fetch_blobs(&repository, &blobs, &self.store)?;
        for (digest, _) in blobs {
            let stored = self.store.read(&digest).unwrap();
            assert!(stored == self.blob(&digest), "{digest}");
        }
        Ok(manifest)
    }

    /// Writes the file `name` into the directory that contains the layout.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

pub(crate) fn tagged(tag: &str) -> Reference {
    Reference::Tag(Tag::new(tag).unwrap())
}

/// Returns the digests and sizes in a manifest: the config's, and the layers'.
pub(crate) fn parts(manifest: &Manifest) -> ((Digest, u64), Vec<(Digest, u64)>) {
    let manifest: Value = serde_json::from_slice(&manifest.bytes).unwrap();
    let part = |it: &Value| -> (Digest, u64) {
        (it["digest"].as_str().unwrap().parse().unwrap(), it["size"].as_u64().unwrap())
    };
    (part(&manifest["config"]), manifest["layers"].as_array().unwrap().iter().map(part).collect())
}

/// Makes an image of two layers. One is larger than one read of the client, even compressed.
fn image() -> Image {
    let noise: Vec<u8> =
        (0_u32..400_000).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let large = Layer::new().file("/large", 0o644, noise).to_tar();
    let small: LayerTar = Layer::new().file("/small", 0o644, "small").to_tar();
    Image::new(Config::default()).with(large).with(small)
}
