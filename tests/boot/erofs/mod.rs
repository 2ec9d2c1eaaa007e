//! The guest's kernel lists exactly the tree that erofs-writer has written: the specimen, which has every edge case of the
//! format.
//!
//! The specimen replaces the rootfs of a box that `boxbuild build` has made. The launcher boots this box, and its init,
//! `list-init`, lists the rootfs. The specimen is tested as several files, which the VM gets as one disk, and as one file, as
//! in a box of epoch 3.

pub(crate) mod model;
mod specimen;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::LazyLock;
use std::{fs, iter};

use box_contract::manifest::{
    INIT_TYPE, METADATA_TYPE, OCI_MANIFEST_TYPE, ROOTFS_TYPE, SEGMENT_TYPE,
};
use box_contract::{Descriptor, Index};
use serde_json::Value;
use testkit::images::{Compression, Config, Image, Layer};
use testkit::test_box::BoxFiles;

use crate::files::listing::listed;
use crate::plans::copy;
use crate::scenario::{Scenario, Step, UNHURRIED, bake, blob, manifest, read_json, tools};
use model::Model;

const BOXFILE: &str = r#"box "erofs"
agent { image "oci:agent"; entrypoint "/none"; limits memory="64MiB"; }
vm memory="256MiB"
"#;

/// Builds a small box with the program `init` as its init.
pub(crate) fn build(directory: &Path, init: &Path, bundle: &Path) {
    build_from(BOXFILE, directory, init, bundle);
}

/// Like [`build`], from the Boxfile `boxfile`.
pub(crate) fn build_from(boxfile: &str, directory: &Path, init: &Path, bundle: &Path) {
    let layer = Layer::new().dir("/empty", 0o755).file("/none", 0o755, "");
    let image = Image::new(Config::default()).with(layer.to_tar());
    image.write_layout(&directory.join("agent"), "latest", Compression::None).unwrap();
    fs::write(directory.join("Boxfile"), boxfile).unwrap();
    bake(&directory.join("Boxfile"), init, bundle);
}

/// Adds a blob to a box.
fn put(bundle: &Path, media_type: &str, bytes: &[u8]) -> Descriptor {
    let digest = box_digest::Digest::of(bytes);
    let descriptor = Descriptor::new(media_type, digest, bytes.len() as u64);
    fs::write(blob(bundle, &descriptor), bytes).unwrap();
    descriptor
}

/// Replaces the rootfs of a box by `parts`, each with its media type. This changes the digest of the box.
pub(crate) fn replace_rootfs(bundle: &Path, parts: &[(&str, &[u8])]) {
    let files = BoxFiles::of(bundle);
    let parts: Vec<_> = parts.iter().map(|(kind, bytes)| files.put(kind, bytes)).collect();
    let mut manifest = files.manifest();
    manifest.layers.retain(|it| ![METADATA_TYPE, SEGMENT_TYPE].contains(&&*it.media_type));
    manifest.layers.splice(0..0, parts);
    files.seal(&manifest);
}

/// Replaces the blob of a box that has this media type, such as its init. This changes the digest of the box.
pub(crate) fn replace_blob(bundle: &Path, media_type: &str, bytes: &[u8]) {
    let mut manifest = manifest(bundle);
    let is_meant = |layer: &&mut Descriptor| layer.media_type == media_type;
    *manifest.layers.iter_mut().find(is_meant).unwrap() = put(bundle, media_type, bytes);
    let document = serde_json::to_vec(&manifest).unwrap();
    let descriptor = put(bundle, OCI_MANIFEST_TYPE, &document);
    let index = Index::of_box(descriptor.digest, descriptor.size);
    fs::write(bundle.join("index.json"), serde_json::to_vec(&index).unwrap()).unwrap();
}

/// The sizes of the specimen's segments in blocks, used in a cycle. Some files span several segments, and some segments contain
/// several files.
const SEGMENTS: [usize; 5] = [1, 2, 3, 50, 7];
/// The epoch of a box whose rootfs is one file.
const OLD_EPOCH: u32 = 3;

/// The starts of the three boxes whose rootfs is the specimen, and the specimen. `extents` has it in several files, `raw` in
/// one, and `old` in one with the init of epoch 3.
static STARTS: LazyLock<(BTreeMap<String, Step>, Model)> = LazyLock::new(|| {
    let (dir, boxes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |name: &str| boxes.path().join(name);
    build(dir.path(), &tools().programs.list_init, &path("extents"));
    // The store has times and paths, and would make each start another one.
    fs::remove_dir_all(path("store")).unwrap();
    let config: Value = read_json(&blob(&path("extents"), &manifest(&path("extents")).config));
    // For a box of epoch 3, the launcher compares the plan in the rootfs with the config's plan.
    let model = || specimen::specimen(config["plan"].to_string().into_bytes());
    let parts = model().parts(&SEGMENTS);
    assert!(parts.len() > 10, "{} parts", parts.len());
    copy(&path("extents"), &path("raw"));
    let kinds = [METADATA_TYPE].into_iter().chain(iter::repeat(SEGMENT_TYPE));
    let segmented: Vec<_> = kinds.zip(parts.iter().map(|part| &**part)).collect();
    replace_rootfs(&path("extents"), &segmented);
    make_old(&path("raw"), &parts.concat());
    copy(&path("raw"), &path("old"));
    replace_blob(&path("old"), INIT_TYPE, &fs::read(&tools().programs.old_init).unwrap());
    let run = format!("boxlaunch run --startup-timeout {UNHURRIED} --budget off");
    let names = ["extents", "raw", "old"];
    let step = |scenario: Scenario, name: &str| {
        scenario.step_within(UNHURRIED, name, &format!("{run} /boxes/{name}"))
    };
    let scenario = names.into_iter().fold(Scenario::default(), step);
    (scenario.start(&tools().host.clone().disk(boxes.path(), "/boxes")), model())
});

/// Turns a box into one of epoch 3 with the rootfs `rootfs`.
fn make_old(bundle: &Path, rootfs: &[u8]) {
    replace_rootfs(bundle, &[(ROOTFS_TYPE, rootfs)]);
    BoxFiles::of(bundle).edit_config(|config| config["epoch"] = OLD_EPOCH.into());
}

/// Compares the guest's listing of the box `name` with the specimen. Returns the inode number of each path.
#[track_caller]
fn assert_told(name: &str) -> Vec<u64> {
    let (steps, model) = &*STARTS;
    let (listed, numbers) = listed(&steps[name]);
    let expected = model.lines();
    for (listed, expected) in listed.iter().zip(&expected) {
        assert_eq!(listed, expected, "{name}");
    }
    assert_eq!(listed.len(), expected.len(), "{name}");
    let inodes = model.inodes();
    let distinct = inodes.iter().collect::<HashSet<_>>().len();
    let pairs: HashSet<_> = inodes.iter().zip(&numbers).collect();
    let of_kernel = numbers.iter().collect::<HashSet<_>>().len();
    assert_eq!((pairs.len(), of_kernel), (distinct, distinct), "{name}: each inode has one number");
    numbers
}

fn the_guests_kernel_shows_every_edge_of_the_format() {
    assert_told("raw");
}

/// Fails if the bytes of a disk of several files differ from the concatenated files.
fn the_guests_kernel_shows_the_same_on_a_disk_of_several_files() {
    assert_eq!(assert_told("extents"), assert_told("raw"));
}

/// Fails if the first root lacks a file that the init of epoch 3 reads there. `old-init` replaces that init, which is no longer
/// in this repository.
fn a_box_of_epoch_3_starts_with_the_plan_in_its_rootfs() {
    let step = &STARTS.0["old"];
    assert_eq!((step.status, step.stdout.as_str()), (0, "\"erofs\"\n"), "{step:?}");
}

tests![
    the_guests_kernel_shows_every_edge_of_the_format,
    the_guests_kernel_shows_the_same_on_a_disk_of_several_files,
    a_box_of_epoch_3_starts_with_the_plan_in_its_rootfs
];
