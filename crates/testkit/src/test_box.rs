//! Makes a box for tests, with valid documents and blobs of a few bytes. Also reads and changes the files of any box.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::io::{self, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use box_contract::manifest::{
    CONFIG_TYPE, FORMAT_EPOCH, INIT_TYPE, KERNEL_TYPE, LISTING_TYPE, METADATA_TYPE, METADATA_UNIT,
    OCI_MANIFEST_TYPE, ROOTFS_TYPE, SEGMENT_TYPE, SEGMENTED_EPOCH,
};
use box_contract::plan::PLAN_PATH;
use box_contract::wire::PROTOCOL;
use box_contract::{
    AgentKind, BoxConfig, Budget, Capabilities, ComponentPlan, Descriptor, Health, Index, Layout,
    Limits, Manifest, Namespaces, NetworkPlan, OciLayout, Restart, Rlimits, RunPlan,
    SystemDirectories, User, Vm,
};
use box_digest::{Blake3Digest, Digest};
use erofs_writer::{Behind, ContentSource, ImageBuilder, Meta, Node};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;

/// Returns a config with both components and without budgets.
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
        system: SystemDirectories::default(),
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
        volumes: Vec::new(),
        disk_bytes: None,
        network: NetworkPlan::default(),
        publish: Vec::new(),
        secrets: Vec::new(),
        services: Vec::new(),
        ssh_agent: None,
        task: None,
        logs: None,
        caps: Vec::new(),
        sandbox: None,
        mcp: Vec::new(),
        agents: Vec::new(),
        hooks: Vec::new(),
        vm: Vm { cpus: 1, memory_mib: 256 },
        budget: Budget::default(),
    };
    let (tree, kernel_version) = (Blake3Digest::from_bytes([0; 32]), String::new());
    BoxConfig { epoch: FORMAT_EPOCH, tree, plan, kernel_version, protocol: Some(PROTOCOL) }
}

/// The number of segments of a [`TestBox`].
const SEGMENTS: u8 = 2;
/// The offset of the superblock in an EROFS. The offsets of its checksum and of its number of blocks follow.
const SUPERBLOCK: usize = 1024;
const CHECKSUM: usize = SUPERBLOCK + 4;
const BLOCKS: usize = SUPERBLOCK + 36;
/// The size of a block of an EROFS, in bytes. The checksum covers the first block from the superblock on.
const BLOCK: usize = 4096;

/// Returns the metadata of a rootfs with an empty root directory. `segments` is the size of all its segments in bytes.
pub fn metadata(segments: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let image = ImageBuilder::new(Meta::default()).unwrap();
    let behind = Behind { alignment: METADATA_UNIT, size: segments, place: &|_| None };
    image.write_before(&mut out, &mut OneFile(Vec::new()), &behind).unwrap();
    out
}

/// Sets the number of blocks in the superblock of an EROFS, and corrects its checksum.
pub fn set_blocks(image: &mut [u8], blocks: u32) {
    let image = &mut image[..BLOCK];
    image[BLOCKS..BLOCKS + 4].copy_from_slice(&blocks.to_le_bytes());
    image[CHECKSUM..CHECKSUM + 4].fill(0);
    // The kernel does not invert the checksum at the end, so the inversion of `crc32c` is undone.
    let checksum = !crc32c::crc32c(&image[SUPERBLOCK..]);
    image[CHECKSUM..CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// Returns a segment of `blocks` blocks. Its content depends on `number`.
pub fn segment(number: u8, blocks: usize) -> Vec<u8> {
    let bytes = (0_u8..=u8::MAX).map(|at| at.wrapping_mul(7).wrapping_add(number));
    bytes.cycle().take(blocks * BLOCK).collect()
}

/// Returns a rootfs of epoch 3 that contains only the plan.
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

/// The content of the only file of an EROFS.
struct OneFile(Vec<u8>);

impl ContentSource for OneFile {
    fn copy(&mut self, _: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.0)
    }
}

/// The files of a box, with functions that read and change them.
#[derive(Debug, Clone)]
pub struct BoxFiles(PathBuf);

impl BoxFiles {
    /// Returns the files of the box in a directory.
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

    /// Returns the path of the only blob of a media type.
    pub fn blob(&self, media_type: &str) -> PathBuf {
        self.blob_path(&self.manifest().blob(media_type).unwrap().digest)
    }

    /// Returns the paths of the blobs of a media type, in the manifest's order.
    pub fn blobs(&self, media_type: &str) -> Vec<PathBuf> {
        let manifest = self.manifest();
        let named = manifest.layers.iter().filter(|it| it.media_type == media_type);
        named.map(|it| self.blob_path(&it.digest)).collect()
    }

    /// Returns the path of the manifest.
    pub fn manifest_path(&self) -> PathBuf {
        self.blob_path(&self.index().manifests[0].digest)
    }

    /// Reads `index.json`, which has the descriptor of the manifest.
    pub fn index(&self) -> Index {
        read_json(&self.0.join("index.json"))
    }

    /// Reads the manifest.
    pub fn manifest(&self) -> Manifest {
        read_json(&self.manifest_path())
    }

    /// Replaces a file without changing other hard links to it.
    pub fn replace(&self, path: &Path, bytes: &[u8]) {
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Writes a blob and returns its descriptor.
    pub fn put(&self, media_type: &str, bytes: &[u8]) -> Descriptor {
        let digest = Digest::of(bytes);
        let path = self.blob_path(&digest);
        if !path.exists() {
            fs::write(path, bytes).unwrap();
        }
        Descriptor::new(media_type, digest, bytes.len() as u64)
    }

    /// Writes `manifest` as a blob, and an index that refers to this blob.
    pub fn seal(&self, manifest: &impl Serialize) {
        let named = self.put(OCI_MANIFEST_TYPE, &serde_json::to_vec(manifest).unwrap());
        self.write_index(&Index::of_box(named.digest, named.size));
    }

    /// Replaces `index.json`, without any check.
    pub fn write_index(&self, index: &impl Serialize) {
        fs::write(self.0.join("index.json"), serde_json::to_vec(index).unwrap()).unwrap();
    }

    /// Changes `index.json` as a JSON value, so that it can become malformed.
    pub fn edit_index(&self, edit: impl FnOnce(&mut Value)) {
        let mut index = read_json(&self.0.join("index.json"));
        edit(&mut index);
        self.write_index(&index);
    }

    /// Changes the manifest, and the index so that it refers to the new manifest.
    pub fn edit_manifest(&self, edit: impl FnOnce(&mut Value)) {
        let mut manifest = read_json(&self.manifest_path());
        edit(&mut manifest);
        self.seal(&manifest);
    }

    /// Changes the config, and the manifest and the index so that they refer to the new documents.
    pub fn edit_config(&self, edit: impl FnOnce(&mut Value)) {
        let mut config = read_json(&self.blob_path(&self.manifest().config.digest));
        edit(&mut config);
        let config = serde_json::to_vec(&config).unwrap();
        let config = serde_json::to_value(self.put(CONFIG_TYPE, &config)).unwrap();
        self.edit_manifest(|manifest| manifest["config"] = config);
    }
}

/// A box in a temporary directory.
#[derive(Debug)]
pub struct TestBox {
    files: BoxFiles,
    /// The original manifest.
    pub manifest: Manifest,
    _directory: TempDir,
}

impl TestBox {
    /// Writes a box with this config. Before [`SEGMENTED_EPOCH`] its rootfs is one blob with the plan; from then on it is metadata
    /// and segments.
    pub fn new(config: &BoxConfig) -> Self {
        if config.epoch < SEGMENTED_EPOCH {
            return Self::with(config, |files| vec![files.put(ROOTFS_TYPE, &rootfs(&config.plan))]);
        }
        Self::with_segments(config, (1..=SEGMENTS).map(|it| segment(it, it.into())).collect())
    }

    /// Writes a box of epoch 3, whose rootfs has the plan of the config.
    pub fn epoch3(config: &BoxConfig) -> Self {
        Self::new(&BoxConfig { epoch: 3, ..config.clone() })
    }

    /// Writes a box whose rootfs has these segments.
    pub fn with_segments(config: &BoxConfig, segments: Vec<Vec<u8>>) -> Self {
        let size = segments.iter().map(|it| it.len() as u64).sum();
        Self::with(config, |files| {
            let metadata = files.put(METADATA_TYPE, &metadata(size));
            let segments = segments.iter().map(|it| files.put(SEGMENT_TYPE, it));
            [metadata].into_iter().chain(segments).collect()
        })
    }

    /// Writes a box whose rootfs consists of the blobs that `parts` writes.
    fn with(config: &BoxConfig, parts: impl FnOnce(&BoxFiles) -> Vec<Descriptor>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = BoxFiles::of(directory.path());
        fs::create_dir_all(directory.path().join("blobs/sha256")).unwrap();
        let layout = serde_json::to_vec(&OciLayout::default()).unwrap();
        fs::write(directory.path().join("oci-layout"), layout).unwrap();
        let config = files.put(CONFIG_TYPE, &serde_json::to_vec(config).unwrap());
        let mut layers = parts(&files);
        layers.extend([
            files.put(INIT_TYPE, b"an init"),
            files.put(KERNEL_TYPE, b"a kernel"),
            files.put(LISTING_TYPE, b"a listing"),
            files.put("application/vnd.example.notes", b"notes"),
        ]);
        let manifest = Manifest::new(config, layers);
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
