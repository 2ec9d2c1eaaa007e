//! A registry, a box, and a store.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use box_cache::Store;
use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use box_layout::OpenBox;
use download::{NetworkOptions, Policy};
use oci_registry::{Options, Reference, Registry, RegistryConfig, Repository, Tag};
use serde_json::{Value, json};
use test_server::registry::{self, Held, Rules};
use testkit::TestBox;
use testkit::test_box::{BoxFiles, config};

use crate::*;

/// The repository of the tests, and the tag of the box in it.
pub(super) const NAME: &str = "team/app";
pub(super) const TAG: &str = "v1";

/// The servers and directories of a test.
pub(super) struct Stage {
    pub(super) registry: registry::Registry,
    pub(super) client: Registry,
    pub(super) store: Store,
    dir: tempfile::TempDir,
}

pub(super) fn test_box() -> TestBox {
    TestBox::new(&config())
}

pub(super) fn tag() -> Reference {
    Reference::Tag(Tag::new(TAG).unwrap())
}

pub(super) fn open(files: &BoxFiles) -> OpenBox {
    OpenBox::open(files.path()).unwrap()
}

/// Compresses with any level.
pub(super) fn zstd(bytes: &[u8], level: i32) -> Vec<u8> {
    zstd::stream::encode_all(bytes, level).unwrap()
}

impl Stage {
    pub(super) fn new(rules: Rules) -> Self {
        let registry = registry::Registry::start(rules);
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store")).unwrap();
        let client = client(&registry);
        Self { registry, client, store, dir }
    }

    pub(super) fn repository(&self, name: &str) -> Repository {
        Repository::new(&self.registry.host(), name).unwrap()
    }

    /// Pushes a box, and mounts blobs from another repository if there is one.
    pub(super) fn push(
        &self,
        files: &BoxFiles,
        mount_from: Option<&str>,
    ) -> Result<Pushed, BoxRegistryError> {
        self.push_to(files, mount_from, true)
    }

    /// Pushes a box, and remembers the compressed form of its blobs in the store.
    pub(super) fn push_from(&self, files: &BoxFiles) -> Result<Pushed, BoxRegistryError> {
        let (repository, tag) = (self.repository(NAME), Tag::new(TAG).unwrap());
        let (repository, tag, scratch) = (&repository, &tag, self.dir.path());
        let to = Destination { repository, tag, mount_from: None, reuse: true, scratch };
        push_from(&self.client, &open(files), &to, &self.store)
    }

    /// Adds a build cache to a box that was pushed.
    pub(super) fn push_cache(
        &self,
        pushed: &Pushed,
        cache: &CacheToPush<'_>,
    ) -> Result<u64, BoxRegistryError> {
        let (repository, tag) = (&self.repository(NAME), &Tag::new(TAG).unwrap());
        let scratch = self.dir.path();
        let to = Destination { repository, tag, mount_from: None, reuse: true, scratch };
        push_cache(&self.client, &to, pushed, cache)
    }

    /// Pushes a box; `reuse` sets whether the existing manifest is trusted.
    pub(super) fn push_to(
        &self,
        files: &BoxFiles,
        mount_from: Option<&str>,
        reuse: bool,
    ) -> Result<Pushed, BoxRegistryError> {
        let from = mount_from.map(|name| self.repository(name));
        let (repository, tag) = (self.repository(NAME), Tag::new(TAG).unwrap());
        let to = Destination {
            repository: &repository,
            tag: &tag,
            mount_from: from.as_ref(),
            reuse,
            scratch: self.dir.path(),
        };
        push(&self.client, &open(files), &to)
    }

    pub(super) fn plan(&self) -> Result<Plan, BoxRegistryError> {
        plan(&self.client, &self.repository(NAME), &tag(), &self.store)
    }

    /// Pulls the box into the store.
    pub(super) fn pull(&self) -> Result<Pulled, BoxRegistryError> {
        self.plan()?.fetch(&self.client, &self.store)
    }

    /// Pulls the box, and compares the store's content with it.
    pub(super) fn pull_and_compare(&self, files: &BoxFiles) -> Pulled {
        let pulled = self.pull().unwrap();
        let opened = open(files);
        assert_eq!(pulled.digest, opened.digest);
        let blobs = opened.manifest.blobs().into_iter().map(|it| it.digest);
        for digest in blobs.chain([opened.digest]) {
            let expected = fs::read(files.blob_path(&digest)).unwrap();
            assert!(self.store.read(&digest).unwrap() == expected, "{digest}");
        }
        pulled
    }

    /// Returns the requests after the first `before`, with shortened paths and digests.
    pub(super) fn lines_since(&self, before: usize) -> Vec<String> {
        let lines = self.registry.lines().split_off(before);
        lines.into_iter().map(|line| line.replace(&format!("/v2/{NAME}/"), "")).collect()
    }

    /// Returns how many of the requests after the first `before` have this method.
    pub(super) fn count(&self, before: usize, method: &str) -> usize {
        self.lines_since(before).iter().filter(|line| line.starts_with(method)).count()
    }

    /// Returns the registry's manifest.
    pub(super) fn document(&self) -> Value {
        self.registry.with(|held| document(held))
    }

    /// Changes the registry's manifest.
    pub(super) fn edit(&self, change: impl FnOnce(&mut Held, &mut Value)) {
        self.registry.with(|held| {
            let mut found = document(held);
            change(held, &mut found);
            held.put_manifest(NAME, TAG, OCI_MANIFEST_TYPE, found.to_string().as_bytes());
        });
    }

    pub(super) fn store_path(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// Returns the number of incomplete files in the store.
    pub(super) fn unfinished(&self) -> usize {
        fs::read_dir(self.store_path().join("tmp")).unwrap().count()
    }

    pub(super) fn stored(&self) -> usize {
        fs::read_dir(self.store_path().join("blobs")).unwrap().count()
    }
}

fn document(held: &Held) -> Value {
    let (_, bytes) = &held.manifests[&(NAME.to_owned(), TAG.to_owned())];
    serde_json::from_slice(bytes).unwrap()
}

fn client(registry: &registry::Registry) -> Registry {
    let config = format!("[registry.\"{}\"]\nplain-http = true", registry.host());
    let config = RegistryConfig::parse(&config).unwrap();
    let policy = Policy { backoff: Duration::from_millis(1), tries: 3, ..Policy::default() };
    let network = NetworkOptions { policy, ..NetworkOptions::default() };
    Registry::new(Options { config, network, ..Options::default() })
}

/// Returns the layer with this plain digest.
pub(super) fn layer_of<'v>(document: &'v mut Value, plain: &Digest) -> &'v mut Value {
    let mut layers = document["layers"].as_array_mut().unwrap().iter_mut();
    layers.find(|it| it["annotations"][PLAIN_DIGEST] == plain.to_string()).unwrap()
}

/// Replaces the bytes of a layer.
pub(super) fn replace(held: &mut Held, layer: &mut Value, bytes: &[u8]) {
    layer["digest"] = json!(held.put_blob(NAME, bytes));
    layer["size"] = json!(bytes.len());
}

/// Returns the largest segment of a box, and its bytes.
pub(super) fn segment(files: &BoxFiles) -> (Descriptor, Vec<u8>) {
    let manifest = files.manifest();
    let found = manifest.layers.iter().max_by_key(|it| (it.role() == "segment", it.size)).unwrap();
    (found.clone(), fs::read(files.blob_path(&found.digest)).unwrap())
}
