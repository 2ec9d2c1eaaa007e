//! The guest's kernel shows the tree that erofs-writer was given: one of every edge of the format, entry
//! by entry.
//!
//! The image takes the place of the rootfs in a box that is otherwise built as always, so what
//! boots it is the launcher, and what lists it is `list-init`.

pub(crate) mod model;
mod specimen;

use std::fs;
use std::path::Path;

use box_image::manifest::{OCI_MANIFEST_TYPE, ROOTFS_TYPE};
use box_image::{Descriptor, Index};
use serde_json::Value;
use testkit::images::{Compression, Config, Image, Layer};

use crate::scenario::{Scenario, UNHURRIED, bake, blob, manifest, read_json, tools};

const BOXFILE: &str = r#"box "erofs"
agent { image "oci:agent"; entrypoint "/none"; limits memory="64MiB"; }
vm memory="256MiB"
"#;

/// Builds a small box around an init.
pub(crate) fn build(directory: &Path, init: &Path, bundle: &Path) {
    build_from(BOXFILE, directory, init, bundle);
}

/// Like [`build`], from another Boxfile.
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

/// Puts an image in the place of a box's rootfs; the box gets another digest by it.
pub(crate) fn replace_rootfs(bundle: &Path, image: &[u8]) {
    replace_blob(bundle, ROOTFS_TYPE, image);
}

/// Puts something in the place of what a box has of a type.
pub(crate) fn replace_blob(bundle: &Path, media_type: &str, bytes: &[u8]) {
    let mut manifest = manifest(bundle);
    let is_meant = |layer: &&mut Descriptor| layer.media_type == media_type;
    *manifest.layers.iter_mut().find(is_meant).unwrap() = put(bundle, media_type, bytes);
    let document = serde_json::to_vec(&manifest).unwrap();
    let descriptor = put(bundle, OCI_MANIFEST_TYPE, &document);
    let index = Index::of_box(descriptor.digest, descriptor.size);
    fs::write(bundle.join("index.json"), serde_json::to_vec(&index).unwrap()).unwrap();
}

#[test]
fn the_guests_kernel_shows_every_edge_of_the_format() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("erofs.box");
    build(dir.path(), &tools().programs.list_init, &bundle);
    let config: Value = read_json(&blob(&bundle, &manifest(&bundle).config));
    // The launcher compares the two plans before it boots.
    let model = specimen::specimen(config["plan"].to_string().into_bytes());
    let expected = model.lines();
    replace_rootfs(&bundle, &model.image());
    let steps = Scenario::default()
        .step_within(
            UNHURRIED,
            "list",
            &format!("boxlaunch run --startup-timeout {UNHURRIED} --budget off /erofs"),
        )
        .start(&tools().host.clone().file(&bundle, "/erofs"));
    let step = &steps["list"];
    assert_eq!(step.status, 0, "{}", step.stderr);
    let listed: Vec<Value> =
        step.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (listed, expected) in listed.iter().zip(&expected) {
        assert_eq!(listed, expected);
    }
    assert_eq!(listed.len(), expected.len());
}
