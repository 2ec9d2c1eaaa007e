//! A box for these tests to inspect, and ways to damage it.

use std::fs;
use std::path::PathBuf;

use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_contract::{Index, Manifest};
use box_digest::Digest;
use testkit::images::{Config, Entry, Image, Kind, Layer};

use crate::checkout::{Checkout, WHOLE};

/// A name that is not UTF-8, and has an escape sequence that clears a terminal.
pub(crate) const WILD: &[u8] = b"agent/wild\xff\x1b[2J";

/// Makes a checkout whose agent's image has entries of all types and with all attributes.
pub(crate) fn checkout() -> Checkout {
    let checkout = Checkout::new();
    let base =
        Layer::new().mtime(1_700_000_000).dir("/usr", 0o755).file("/usr/base", 0o644, "base");
    let program = Layer::new()
        .mtime(1_700_000_001)
        .dir("/agent", 0o755)
        .file("/agent/run", 0o4755, "# /bin/sh\n")
        .hardlink("/agent/alias", "/agent/run")
        .owner(1000, 1001)
        .file("/agent/notes", 0o600, "notes")
        .xattr("user.note", "kept")
        .symlink("/agent/link", "notes")
        .fifo("/agent/pipe", 0o600)
        .device("/agent/null", 0o666, 1, 3)
        .entry(Entry {
            name: WILD.to_vec(),
            kind: Kind::File(b"wild".to_vec()),
            mode: 0o644,
            uid: 0,
            gid: 0,
            mtime: 0,
            xattrs: Vec::new(),
        });
    let entrypoint = vec!["/agent/run".to_owned()];
    let image = Image::new(Config { entrypoint, ..Config::default() });
    fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    checkout.image("agent", &image.with(base.to_tar()).with(program.to_tar()));
    checkout
}

/// Makes the same checkout as [`checkout`], and builds its box to `test.box`.
pub(crate) fn built() -> Checkout {
    let checkout = checkout();
    checkout.built(WHOLE);
    checkout
}

/// Returns the path of a blob of the box `test.box`.
pub(crate) fn blob(checkout: &Checkout, digest: &Digest) -> PathBuf {
    checkout.path("test.box/blobs/sha256").join(digest.hex())
}

/// Returns the manifest of the box `test.box`.
pub(crate) fn manifest(checkout: &Checkout) -> Manifest {
    let index: Index = serde_json::from_str(&checkout.read("test.box/index.json")).unwrap();
    let bytes = fs::read(blob(checkout, &index.manifests[0].digest)).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Replaces the manifest of the box `test.box`, and updates its index.
pub(crate) fn reseal(checkout: &Checkout, manifest: &Manifest) {
    let bytes = serde_json::to_vec(manifest).unwrap();
    let digest = box_digest::Digest::of(&bytes);
    fs::write(blob(checkout, &digest), &bytes).unwrap();
    let index = Index::of_box(digest, bytes.len() as u64);
    assert_eq!(index.manifests[0].media_type, OCI_MANIFEST_TYPE);
    checkout.write("test.box/index.json", serde_json::to_vec(&index).unwrap());
}
