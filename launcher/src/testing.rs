//! A box for the unit tests: valid documents and blobs of a few bytes.

use std::fs;
use std::path::{Path, PathBuf};

use box_image::manifest::{
    CONFIG_TYPE, FORMAT_EPOCH, INIT_TYPE, KERNEL_TYPE, OCI_MANIFEST_TYPE, ROOTFS_TYPE,
};
use box_image::{
    AgentKind, BoxConfig, Budget, ComponentPlan, Descriptor, Digest, Health, Index, Layout, Limits,
    Manifest, Namespaces, NetworkPlan, OciLayout, Rlimits, RunPlan, User, Vm,
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// A config with both components and no limits on the start.
pub(crate) fn config() -> BoxConfig {
    let agent = ComponentPlan {
        root: "/roots/agent".into(),
        argv: vec!["/agent".into()],
        env: Vec::new(),
        workdir: "/".into(),
        user: User::ROOT,
        hostname: "agent-host".into(),
        namespaces: Namespaces::default(),
        limits: Limits { memory_bytes: 1 << 27, cpu_weight: 100, pids: 64 },
        rlimits: Rlimits::default(),
        autostart: false,
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
    let (tree, kernel_version) = ("blake3:00".into(), String::new());
    BoxConfig { epoch: FORMAT_EPOCH, tree, plan, kernel_version }
}

/// A box in a directory of its own.
pub(crate) struct TestBox {
    dir: TempDir,
    pub(crate) manifest: Manifest,
}

impl TestBox {
    /// Writes a box with this config.
    pub(crate) fn new(config: &BoxConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("blobs/sha256")).unwrap();
        write_json(&dir.path().join("oci-layout"), &OciLayout::default());
        let config = serde_json::to_vec(config).unwrap();
        let blob = |kind, bytes: &[u8]| add_blob(dir.path(), kind, bytes);
        let manifest = Manifest::new(
            blob(CONFIG_TYPE, &config),
            vec![
                blob(ROOTFS_TYPE, b"a root file system"),
                blob(INIT_TYPE, b"an init"),
                blob(KERNEL_TYPE, b"a kernel"),
            ],
        );
        let made = Self { dir, manifest };
        made.seal(&made.manifest);
        made
    }

    /// Makes `manifest` the box's manifest.
    pub(crate) fn seal(&self, manifest: &Manifest) {
        let bytes = serde_json::to_vec(manifest).unwrap();
        let named = add_blob(self.path(), OCI_MANIFEST_TYPE, &bytes);
        self.write_index(&Index::of_box(named.digest, named.size));
    }

    pub(crate) fn write_index(&self, index: &Index) {
        write_json(&self.path().join("index.json"), index);
    }

    pub(crate) fn read_index(&self) -> Index {
        serde_json::from_slice(&fs::read(self.path().join("index.json")).unwrap()).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns where the blob of a media type lies.
    pub(crate) fn blob(&self, media_type: &str) -> PathBuf {
        self.blob_path(&self.manifest.blob(media_type).unwrap().digest)
    }

    pub(crate) fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.path().join("blobs/sha256").join(digest.hex())
    }
}

fn add_blob(dir: &Path, media_type: &str, bytes: &[u8]) -> Descriptor {
    let digest = Digest::from_bytes(Sha256::digest(bytes).into());
    fs::write(dir.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
    Descriptor::new(media_type, digest, bytes.len() as u64)
}

fn write_json(path: &Path, value: &impl Serialize) {
    fs::write(path, serde_json::to_vec(value).unwrap()).unwrap();
}
