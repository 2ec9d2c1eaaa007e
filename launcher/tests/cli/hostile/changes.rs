//! Changes to a box that its attacks are made of.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use box_contract::manifest::{CONFIG_TYPE, OCI_MANIFEST_TYPE};
use serde_json::Value;
use testkit::damage::edit_layer;
use testkit::test_box::BoxFiles;

/// The size of a file that nobody can read to its end: a tebibyte.
pub(super) const GIANT: u64 = 1 << 40;
/// How deep a document is nested, and how many keys it has, at the most that fits the limit of a document.
pub(super) const MANY: usize = 100_000;

pub(super) fn index(files: &BoxFiles) -> PathBuf {
    files.path().join("index.json")
}

pub(super) fn blobs(files: &BoxFiles) -> PathBuf {
    files.path().join("blobs")
}

pub(super) fn config(files: &BoxFiles) -> PathBuf {
    files.blob_path(&files.manifest().config.digest)
}

pub(super) fn remove(path: &Path) {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
}

/// Puts a link in the place of what is there.
pub(super) fn instead(path: &Path, target: impl AsRef<Path>) {
    remove(path);
    symlink(target, path).unwrap();
}

pub(super) fn instead_directory(path: &Path) {
    remove(path);
    fs::create_dir(path).unwrap();
}

pub(super) fn socket(path: &Path) {
    remove(path);
    drop(UnixListener::bind(path).unwrap());
}

/// Moves a directory away, and makes a link to it in its place.
pub(super) fn elsewhere(path: &Path) {
    let moved = path.with_extension("elsewhere");
    fs::rename(path, &moved).unwrap();
    symlink(moved, path).unwrap();
}

/// Makes a file giant, without a byte on the disk.
pub(super) fn giant(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(GIANT).unwrap();
}

/// Makes a blob giant, and the manifest say so.
pub(super) fn admitted(files: &BoxFiles, media_type: &str) {
    giant(&files.blob(media_type));
    edit_layer(files, media_type, |blob| blob["size"] = GIANT.into());
}

/// Replaces a blob by another that the manifest names rightly.
pub(super) fn blob(files: &BoxFiles, media_type: &str, bytes: &[u8]) {
    let named = serde_json::to_value(files.put(media_type, bytes)).unwrap();
    edit_layer(files, media_type, |blob| *blob = named);
}

pub(super) fn size(files: &BoxFiles, size: Value) {
    files.edit_index(|index| index["manifests"][0]["size"] = size);
}

pub(super) fn digest(files: &BoxFiles, digest: &str) {
    files.edit_index(|index| index["manifests"][0]["digest"] = digest.into());
}

pub(super) fn machine(files: &BoxFiles, vm: &Value) {
    files.edit_config(|config| config["plan"]["vm"] = vm.clone());
}

/// Puts bytes in the place of the manifest, which the index names rightly.
pub(super) fn manifest(files: &BoxFiles, bytes: &[u8]) {
    let named = files.put(OCI_MANIFEST_TYPE, bytes);
    files.edit_index(|index| {
        index["manifests"][0]["digest"] = named.digest.to_string().into();
        index["manifests"][0]["size"] = named.size.into();
    });
}

/// Puts bytes in the place of the config, which the manifest names rightly.
pub(super) fn config_of(files: &BoxFiles, bytes: &[u8]) {
    let named = serde_json::to_value(files.put(CONFIG_TYPE, bytes)).unwrap();
    files.edit_manifest(|manifest| manifest["config"] = named);
}

pub(super) fn deep() -> Vec<u8> {
    "[{\"a\":".repeat(MANY).into_bytes()
}

pub(super) fn many_keys() -> Value {
    (0..MANY / 2).map(|number| (format!("k{number}"), Value::from(1))).collect()
}
