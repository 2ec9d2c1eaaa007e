//! Copies images with `skopeo`, an independent writer of every form.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testbed::prerequisites::{Package, packages};
use testbed::program;
use testkit::images::LayoutDir;

/// Runs `skopeo copy` with these options. `from` and `to` are skopeo's references.
pub(crate) fn copy(options: &[&str], from: &str, to: &str) {
    packages(&[Package::Skopeo], &mut |line| println!("{line}")).unwrap();
    program::run(Command::new("skopeo").arg("copy").args(options).args([from, to])).unwrap();
}

/// Makes an OCI layout from skopeo's `dir:` copy, with the documents unchanged. They keep Docker's media types, which skopeo
/// itself does not write into a layout.
pub(crate) fn layout_of(dir: &Path, layout: &Path) {
    let target = LayoutDir::make(layout).unwrap();
    let manifest = fs::read(dir.join("manifest.json")).unwrap();
    let document: Value = serde_json::from_slice(&manifest).unwrap();
    let media_type = document["mediaType"].as_str().unwrap();
    assert!(media_type.contains("docker"), "{media_type}");
    let named = target.put(media_type, &manifest).unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().len() == 64 {
            target.put("", &fs::read(path).unwrap()).unwrap();
        }
    }
    target.finish(&json!({ "schemaVersion": 2, "manifests": [named] })).unwrap();
}
