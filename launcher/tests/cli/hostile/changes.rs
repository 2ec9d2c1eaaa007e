//! The changes to a box from which the attacks are composed.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use box_contract::manifest::{CONFIG_TYPE, OCI_MANIFEST_TYPE};
use serde_json::Value;
use testkit::damage::edit_layer;
use testkit::test_box::BoxFiles;

/// A file size that no program can read within the time limit: 1 TiB.
pub(super) const GIANT: u64 = 1 << 40;
/// How often a document repeats an element, such as a nested array. The document stays below the size limit of 1 MiB.
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

/// Replaces whatever is at `path` by a link to `target`.
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

/// Renames a directory, and creates a link to it at its old path.
pub(super) fn elsewhere(path: &Path) {
    let moved = path.with_extension("elsewhere");
    fs::rename(path, &moved).unwrap();
    symlink(moved, path).unwrap();
}

/// Extends a file to [`GIANT`] bytes by a hole, which uses no disk space.
pub(super) fn giant(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(GIANT).unwrap();
}

/// Extends a blob to [`GIANT`] bytes, and changes its size in the manifest accordingly.
pub(super) fn admitted(files: &BoxFiles, media_type: &str) {
    giant(&files.blob(media_type));
    edit_layer(files, media_type, |blob| blob["size"] = GIANT.into());
}

/// Replaces the content of a blob, and its digest and size in the manifest.
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

/// Replaces the content of the manifest, and its digest and size in the index.
pub(super) fn manifest(files: &BoxFiles, bytes: &[u8]) {
    let named = files.put(OCI_MANIFEST_TYPE, bytes);
    files.edit_index(|index| {
        index["manifests"][0]["digest"] = named.digest.to_string().into();
        index["manifests"][0]["size"] = named.size.into();
    });
}

/// Replaces the content of the config, and its digest and size in the manifest.
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
