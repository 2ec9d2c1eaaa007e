//! Targets for the documents of images.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use box_contract::{ImageRef, Platform};
use box_digest::Digest;
use oci_image::{Access, Image, open};
use serde_json::json;
use tempfile::TempDir;

use super::in_memory;

/// Separates the manifest in an input from the image's config.
const SEPARATOR: &[u8] = b"\n--\n";

thread_local! {
    /// The layout to which the inputs are written, in `/dev/shm` if that exists.
    static LAYOUT: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Opens a layout with these bytes as `index.json`.
pub fn index(bytes: &[u8]) {
    with_layout(|layout| {
        fs::write(layout.join("index.json"), bytes).expect("the index can be written");
        check(layout, opened(layout));
    });
}

/// Opens an image with the manifest and the config in the input. In the manifest, `CONFIG` is replaced with the config's digest,
/// and `4242` with its size.
pub fn manifest(bytes: &[u8]) {
    let at = bytes.windows(SEPARATOR.len()).position(|part| part == SEPARATOR);
    let (manifest, config) =
        at.map_or((bytes, &b"{}"[..]), |at| (&bytes[..at], &bytes[at + SEPARATOR.len()..]));
    with_layout(|layout| {
        let config = blob(layout, config);
        let text = String::from_utf8_lossy(manifest);
        let text = text.replace("CONFIG", &config.0.to_string()).replace("4242", &config.1);
        let (digest, size) = blob(layout, text.as_bytes());
        let size: u64 = size.parse().expect("a size");
        let index = json!({ "schemaVersion": 2, "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": digest, "size": size,
        }]});
        fs::write(layout.join("index.json"), index.to_string()).expect("the index can be written");
        check(layout, opened(layout));
        for named in [config.0, digest] {
            let _gone = fs::remove_file(layout.join("blobs/sha256").join(named.hex()));
        }
    });
}

/// Returns access to layouts by absolute paths, without a registry.
fn access() -> Access<'static> {
    Access { base: Path::new(""), registries: None }
}

fn opened(layout: &Path) -> Result<Image<'static>, String> {
    let path = layout.display().to_string();
    let reference = ImageRef::OciLayout { path, tag: None, digest: None };
    open(&reference, None, Platform::LinuxAmd64, &access()).map_err(|error| error.to_string())
}

fn check(layout: &Path, opened: Result<Image<'static>, String>) {
    match opened {
        Ok(image) => {
            assert!(image.layers.len() <= 256);
            assert!(image.size() >= image.manifest_size);
            assert!(image.layers.iter().all(|layer| image.open_layer(layer).is_err()));
        }
        Err(text) => {
            let place = layout.to_string_lossy();
            assert!(text.contains(&*place), "it does not say where: {text}");
        }
    }
}

/// Writes a blob, and returns its digest and size.
fn blob(layout: &Path, bytes: &[u8]) -> (Digest, String) {
    let digest = Digest::of(bytes);
    let path = layout.join("blobs/sha256").join(digest.hex());
    fs::write(path, bytes).expect("a blob can be written");
    (digest, bytes.len().to_string())
}

fn with_layout(run: impl FnOnce(&Path)) {
    LAYOUT.with_borrow_mut(|layout| run(layout.get_or_insert_with(new_layout).path()));
}

fn new_layout() -> TempDir {
    let directory = in_memory();
    let version = r#"{"imageLayoutVersion":"1.0.0"}"#;
    fs::write(directory.path().join("oci-layout"), version).expect("a layout can be written");
    fs::create_dir_all(directory.path().join("blobs/sha256")).expect("a layout can be written");
    directory
}
