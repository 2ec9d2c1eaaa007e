//! Tests that other clients read boxes from `boxbuild push`, and that `boxbuild pull` reads the copies that they write.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use box_layout::OpenBox;
use box_registry::{BOX_MANIFEST_TYPE, PLAIN_DIGEST};
use ocipkg::distribution::Client;
use ocipkg::{Name, Reference};
use serde_json::Value;
use testbed::prerequisites::oras;
use testbed::{Workspace, program};
use testkit::TestBox;
use testkit::test_box::{BoxFiles, config, segment};

use crate::boxes::{boxbuild, printed};
use crate::host::compare;
use crate::pushed::Pushed;

/// The repository of the box, and the repository to which other clients copy it.
const FROM: &str = "team/box";
const TO: &str = "team/copy";

/// A box in a registry.
struct There {
    pushed: Pushed,
    files: TestBox,
    /// The digest of the box, and of the manifest in the registry, as the push has printed them.
    digests: [String; 2],
}

impl There {
    fn new() -> Self {
        let (pushed, files) =
            (Pushed::open(), TestBox::with_segments(&config(), vec![segment(7, 40)]));
        let reference = format!("{}/{FROM}:v1", pushed.registry.host());
        let args = ["push", files.path().to_str().unwrap(), &reference, "--json"];
        let report: Value =
            serde_json::from_str(&printed(&boxbuild(&pushed, "none", &args)).0).unwrap();
        let digests = ["box", "registry_digest"].map(|it| report[it].as_str().unwrap().to_owned());
        Self { pushed, files, digests }
    }

    fn reference(&self, name: &str) -> String {
        format!("{}/{name}:v1", self.pushed.registry.host())
    }

    /// Pulls another client's copy, and compares it byte for byte. Returns the digest of the manifest in the registry.
    fn pull(&self) -> String {
        let args = ["pull", &self.reference(TO), "--json"];
        let report = printed(&boxbuild(&self.pushed, "store", &args)).0;
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["box"], self.digests[0].as_str());
        assert!(report["fetched"].as_u64() > Some(0));
        compare(&self.files, &self.pushed.dir.path().join("store"));
        report["registry_digest"].as_str().unwrap().to_owned()
    }
}

fn skopeo(args: &[&str]) {
    program::run(Command::new("skopeo").arg("copy").args(args)).unwrap();
}

#[test]
fn skopeo_copies_a_box_to_another_repository() {
    let there = There::new();
    let [from, to] = [FROM, TO].map(|name| format!("docker://{}", there.reference(name)));
    skopeo(&["--src-tls-verify=false", "--dest-tls-verify=false", &from, &to]);
    assert_eq!(there.pull(), there.digests[1], "as it is");
}

#[test]
fn skopeo_carries_a_box_in_a_directory() {
    let there = There::new();
    let [from, to] = [FROM, TO].map(|name| format!("docker://{}", there.reference(name)));
    let layout = format!("oci:{}:v1", there.pushed.dir.path().join("carried").display());
    skopeo(&["--src-tls-verify=false", &from, &layout]);
    skopeo(&["--dest-tls-verify=false", &layout, &to]);
    assert_eq!(there.pull(), there.digests[1], "as it is");
}

#[test]
fn oras_reads_and_writes_a_box() {
    let there = There::new();
    let oras = oras(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    let through = tempfile::tempdir().unwrap();
    let [from, to] = [FROM, TO].map(|name| there.reference(name));
    let read = oras.copy(&from, &to, through.path()).unwrap();
    let read: Value = serde_json::from_str(&read).unwrap();
    assert_eq!(
        (&read["config"]["mediaType"], &read["config"]["digest"]),
        (&BOX_MANIFEST_TYPE.into(), &there.digests[0].as_str().into())
    );
    let sent = read["layers"].as_array().unwrap().iter().map(|layer| {
        let digest = layer["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let plain = layer["annotations"][PLAIN_DIGEST].as_str().unwrap().to_owned();
        (plain, fs::read(through.path().join(digest)).unwrap())
    });
    assert_same(&there.files, sent.collect());
    // skopeo serializes the manifest differently, so its digest in the registry differs. The box is the same.
    there.pull();
}

#[test]
fn ocipkg_reads_and_writes_a_box() {
    let there = There::new();
    let url = format!("http://{}", there.pushed.registry.host());
    let client = |name| Client::new(url.parse().unwrap(), Name::new(name).unwrap()).unwrap();
    let (mut from, mut to) = (client(FROM), client(TO));
    let tag = Reference::new("v1").unwrap();
    let manifest = from.get_manifest(&tag).unwrap();
    assert_eq!(manifest.config().digest().to_string(), there.digests[0]);
    let mut read = BTreeMap::new();
    for layer in manifest.layers() {
        let bytes = from.get_blob(layer.digest()).unwrap();
        assert_eq!(to.push_blob(&bytes).unwrap().0, *layer.digest());
        read.insert(layer.annotations().as_ref().unwrap()[PLAIN_DIGEST].clone(), bytes);
    }
    assert_same(&there.files, read);
    let config = from.get_blob(manifest.config().digest()).unwrap();
    to.push_blob(&config).unwrap();
    to.push_manifest(&tag, &manifest).unwrap();
    there.pull();
}

/// Compares the blobs that a client has read with the box. Each is plain or one zstd frame.
fn assert_same(files: &BoxFiles, read: BTreeMap<String, Vec<u8>>) {
    let opened = OpenBox::open(files.path()).unwrap();
    let blobs = opened.manifest.blobs();
    assert_eq!(read.len(), blobs.len());
    for blob in blobs {
        let plain = fs::read(files.blob_path(&blob.digest)).unwrap();
        let sent = &read[&blob.digest.to_string()];
        assert!(*sent == plain || zstd::decode_all(&**sent).unwrap() == plain, "{}", blob.digest);
    }
}
