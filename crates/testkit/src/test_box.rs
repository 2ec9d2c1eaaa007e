//! A box for tests: valid documents and blobs of a few bytes, or the files of a real one.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::io::{self, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use box_digest::{Blake3Digest, Digest};
use box_image::manifest::{
    CONFIG_TYPE, FORMAT_EPOCH, INIT_TYPE, KERNEL_TYPE, LISTING_TYPE, OCI_MANIFEST_TYPE, ROOTFS_TYPE,
};
use box_image::plan::PLAN_PATH;
use box_image::wire::PROTOCOL;
use box_image::{
    AgentKind, BoxConfig, Budget, Capabilities, ComponentPlan, Descriptor, Health, Index, Layout,
    Limits, Manifest, Namespaces, NetworkPlan, OciLayout, Restart, Rlimits, RunPlan, User, Vm,
};
use erofs_writer::{Contents, ImageBuilder, Meta, Node};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;

/// A config with both components and no limits on the start.
pub fn config() -> BoxConfig {
    let agent = ComponentPlan {
        root: "/roots/agent".into(),
        argv: vec!["/agent".into()],
        env: Vec::new(),
        launch_env: Vec::new(),
        workdir: "/".into(),
        user: User::ROOT,
        hostname: "agent-host".into(),
        namespaces: Namespaces::default(),
        limits: Limits { memory_bytes: 1 << 26, cpu_weight: 100, pids: 64 },
        rlimits: Rlimits::default(),
        capabilities: Capabilities::default(),
        autostart: false,
        restart: Restart::default(),
        stop_signal: None,
        port: Some(4088),
        health: Some(Health::Tcp { port: 4088 }),
    };
    let business = ComponentPlan { port: None, health: None, ..agent.clone() };
    let plan = RunPlan {
        name: "test".into(),
        layout: Layout::Split,
        agent_kind: AgentKind::OciImage,
        tools: Vec::new(),
        agent,
        business: Some(business),
        skills: Vec::new(),
        shares: Vec::new(),
        scratch: Vec::new(),
        network: NetworkPlan::default(),
        secrets: Vec::new(),
        task: None,
        logs: None,
        caps: Vec::new(),
        sandbox: None,
        vm: Vm { cpus: 1, memory_mib: 256 },
        budget: Budget::default(),
    };
    let (tree, kernel_version) = (Blake3Digest::from_bytes([0; 32]), String::new());
    BoxConfig { epoch: FORMAT_EPOCH, tree, plan, kernel_version, protocol: Some(PROTOCOL) }
}

/// Returns a rootfs that has nothing but the plan.
pub fn rootfs(plan: &RunPlan) -> Vec<u8> {
    let text = serde_json::to_vec(plan).unwrap();
    let mut image = ImageBuilder::new(Meta::default()).unwrap();
    let mut directory = image.root();
    let (path, name) = PLAN_PATH.rsplit_once('/').unwrap();
    for name in path.split('/').skip(1) {
        let child = image.add(Meta::default(), Node::Directory).unwrap();
        image.link(directory, name.as_bytes(), child).unwrap();
        directory = child;
    }
    let (size, content) = (text.len() as u64, Blake3Digest::of(&text));
    let file = image.add(Meta::default(), Node::File { size, content }).unwrap();
    image.link(directory, name.as_bytes(), file).unwrap();
    let mut out = Vec::new();
    image.write(&mut out, &mut OneFile(text)).unwrap();
    out
}

/// The data of an image's only file.
struct OneFile(Vec<u8>);

impl Contents for OneFile {
    fn copy(&mut self, _: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.0)
    }
}

/// The files of a box, to be read and changed.
#[derive(Debug, Clone)]
pub struct BoxFiles(PathBuf);

impl BoxFiles {
    /// Takes the box in a directory.
    pub fn of(directory: &Path) -> Self {
        Self(directory.to_owned())
    }

    /// Returns the box's directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a blob.
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.0.join("blobs/sha256").join(digest.hex())
    }

    /// Returns the path of the one blob of a media type.
    pub fn blob(&self, media_type: &str) -> PathBuf {
        self.blob_path(&self.manifest().blob(media_type).unwrap().digest)
    }

    /// Returns the path of the manifest.
    pub fn manifest_path(&self) -> PathBuf {
        self.blob_path(&self.index().manifests[0].digest)
    }

    /// Reads `index.json`, which names the manifest.
    pub fn index(&self) -> Index {
        read_json(&self.0.join("index.json"))
    }

    /// Reads the manifest that the index names.
    pub fn manifest(&self) -> Manifest {
        read_json(&self.manifest_path())
    }

    /// Replaces a file, which may be a hard link to one that must stay.
    pub fn replace(&self, path: &Path, bytes: &[u8]) {
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Writes a blob and names it.
    pub fn put(&self, media_type: &str, bytes: &[u8]) -> Descriptor {
        let digest = Digest::of(bytes);
        let path = self.blob_path(&digest);
        if !path.exists() {
            fs::write(path, bytes).unwrap();
        }
        Descriptor::new(media_type, digest, bytes.len() as u64)
    }

    /// Makes a document the box's manifest.
    pub fn seal(&self, manifest: &impl Serialize) {
        let named = self.put(OCI_MANIFEST_TYPE, &serde_json::to_vec(manifest).unwrap());
        self.write_index(&Index::of_box(named.digest, named.size));
    }

    /// Replaces `index.json`, without any check.
    pub fn write_index(&self, index: &impl Serialize) {
        fs::write(self.0.join("index.json"), serde_json::to_vec(index).unwrap()).unwrap();
    }

    /// Changes `index.json` as a JSON value, so that it may become malformed.
    pub fn edit_index(&self, edit: impl FnOnce(&mut Value)) {
        let mut index = read_json(&self.0.join("index.json"));
        edit(&mut index);
        self.write_index(&index);
    }

    /// Changes the manifest, and the index so that it names the new one.
    pub fn edit_manifest(&self, edit: impl FnOnce(&mut Value)) {
        let mut manifest = read_json(&self.manifest_path());
        edit(&mut manifest);
        self.seal(&manifest);
    }

    /// Changes the config, and manifest and index so that they name the new ones.
    pub fn edit_config(&self, edit: impl FnOnce(&mut Value)) {
        let mut config = read_json(&self.blob_path(&self.manifest().config.digest));
        edit(&mut config);
        let config = serde_json::to_vec(&config).unwrap();
        let config = serde_json::to_value(self.put(CONFIG_TYPE, &config)).unwrap();
        self.edit_manifest(|manifest| manifest["config"] = config);
    }
}

/// A box in a directory of its own.
#[derive(Debug)]
pub struct TestBox {
    files: BoxFiles,
    /// The manifest that it was made with.
    pub manifest: Manifest,
    _directory: TempDir,
}

impl TestBox {
    /// Writes a box with this config.
    pub fn new(config: &BoxConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = BoxFiles::of(directory.path());
        fs::create_dir_all(directory.path().join("blobs/sha256")).unwrap();
        let layout = serde_json::to_vec(&OciLayout::default()).unwrap();
        fs::write(directory.path().join("oci-layout"), layout).unwrap();
        let manifest = Manifest::new(
            files.put(CONFIG_TYPE, &serde_json::to_vec(config).unwrap()),
            vec![
                files.put(ROOTFS_TYPE, &rootfs(&config.plan)),
                files.put(INIT_TYPE, b"an init"),
                files.put(KERNEL_TYPE, b"a kernel"),
                files.put(LISTING_TYPE, b"a listing"),
                files.put("application/vnd.example.notes", b"notes"),
            ],
        );
        files.seal(&manifest);
        Self { files, manifest, _directory: directory }
    }
}

impl Deref for TestBox {
    type Target = BoxFiles;

    fn deref(&self) -> &BoxFiles {
        &self.files
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> T {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
