//! Images of a registry, and the requests that they cause.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

use oci_registry::{Manifest, Reference, RegistryError, Repository};
use testkit::images::Compression;

use super::*;
use crate::{Registries, Remote};

/// A registry in memory, which records its requests.
#[derive(Debug)]
struct Shelf {
    blobs: BTreeMap<Digest, Vec<u8>>,
    tagged: Digest,
    asked: Mutex<Vec<String>>,
    /// The media type in its responses with manifests.
    media_type: Option<&'static str>,
}

impl Shelf {
    /// Copies the blobs of a layout.
    fn of(layout: &Path, tagged: Digest) -> Self {
        let files = fs::read_dir(layout.join("blobs/sha256")).unwrap();
        let blobs = files.map(|file| {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            (box_digest::Digest::of(&bytes), bytes)
        });
        let (blobs, media_type) = (blobs.collect(), Some(MANIFEST));
        Self { blobs, tagged, asked: Mutex::default(), media_type }
    }

    /// Moves the tag to another manifest.
    fn retag(&mut self, manifest: &[u8], media_type: Option<&'static str>) {
        self.tagged = box_digest::Digest::of(manifest);
        self.blobs.insert(self.tagged, manifest.to_vec());
        self.media_type = media_type;
    }

    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }

    /// Returns the requests since the last call.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Remote for Shelf {
    fn manifest(&self, _: &Repository, reference: &Reference) -> Result<Manifest, RegistryError> {
        let digest = match reference {
            Reference::Tag(_) => self.tagged,
            Reference::Digest(digest) => *digest,
        };
        self.note(match reference {
            Reference::Tag(_) => "tag".to_owned(),
            Reference::Digest(_) => "manifest".to_owned(),
        });
        let bytes = self.blobs.get(&digest).cloned().ok_or_else(|| RegistryError::NotFound {
            what: digest.to_string(),
            host: "registry.example.org".to_owned(),
            tag: None,
        })?;
        Ok(Manifest { bytes, media_type: self.media_type, digest })
    }

    fn fetch(
        &self,
        _: &Repository,
        blobs: &[(Digest, u64)],
        store: &Store,
    ) -> Result<(), RegistryError> {
        for (digest, size) in blobs {
            self.note("blob".to_owned());
            let bytes = &self.blobs[digest];
            assert_eq!(bytes.len() as u64, *size);
            store.put(bytes)?;
        }
        Ok(())
    }
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const REFERENCE: &str = "docker://registry.example.org/team/app:v1";

/// A registry with one image, and a store.
struct Scene {
    directory: tempfile::TempDir,
    shelf: Shelf,
    store: Store,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let layout = directory.path().join("a");
        let manifest = sample().write_layout(&layout, "v1", Compression::Gzip).unwrap();
        let store = Store::open(&directory.path().join("store")).unwrap();
        Self { shelf: Shelf::of(&layout, manifest), directory, store }
    }

    fn access(&self, offline: bool) -> Access<'_> {
        let registries = Registries { store: &self.store, remote: &self.shelf, offline };
        Access { base: Path::new(""), registries: Some(registries) }
    }

    fn open(&self, pinned: Option<Digest>, offline: bool) -> Result<Image<'_>, SourceError> {
        open(&reference(REFERENCE), pinned, Platform::LinuxAmd64, &self.access(offline))
    }

    fn refusal(&self, pinned: Option<Digest>) -> String {
        self.open(pinned, true).unwrap_err().to_string()
    }

    fn expected(&self) -> Blake3Digest {
        let image = opened(self.directory.path(), "oci:a").unwrap();
        tree(&image).unwrap()
    }
}

fn fetch(image: &Image<'_>) -> Result<(), SourceError> {
    image.fetch_layers(&image.layers.iter().collect::<Vec<_>>())
}

#[test]
fn what_was_fetched_once_needs_no_network() {
    let scene = Scene::new();
    let image = scene.open(None, false).unwrap();
    assert_eq!(image.manifest, scene.shelf.tagged);
    assert_eq!(scene.shelf.asked(), ["tag", "blob"], "the manifest and the config");
    fetch(&image).unwrap();
    scene.shelf.asked();
    let pinned = scene.open(Some(image.manifest), true).unwrap();
    fetch(&pinned).unwrap();
    assert_eq!(tree(&pinned).unwrap(), scene.expected());
    scene.open(Some(image.manifest), false).unwrap();
    assert_eq!(scene.shelf.asked(), [""; 0]);
}

#[test]
fn a_tag_is_asked_for_each_time_and_never_offline() {
    let scene = Scene::new();
    let image = scene.open(None, false).unwrap();
    scene.open(None, false).unwrap();
    assert_eq!(scene.shelf.asked(), ["tag", "blob", "tag"]);
    let found = [
        scene.refusal(None),
        scene.refusal(Some(Digest::from_bytes([0x77; 32]))),
        fetch(&scene.open(Some(image.manifest), true).unwrap())
            .unwrap_err()
            .to_string()
            .replace(&image.layers[0].digest.to_string(), "sha256:DIGEST"),
    ];
    insta::assert_snapshot!(found.join("\n"), @r#"
    docker://registry.example.org/team/app: the tag "v1" has not been resolved yet, and the network is off (--offline)
    docker://registry.example.org/team/app: sha256:7777777777777777777777777777777777777777777777777777777777777777 is not in the store, and the network is off (--offline)
    docker://registry.example.org/team/app: sha256:DIGEST is not in the store, and the network is off (--offline)
    "#);
    assert_eq!(scene.shelf.asked(), [""; 0]);
}

#[test]
fn damage_in_the_store_is_mended() {
    let scene = Scene::new();
    let image = scene.open(None, false).unwrap();
    for digest in [image.manifest, image.config_digest] {
        let path = scene.directory.path().join("store/blobs").join(digest.hex());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "damaged").unwrap();
        scene.open(Some(image.manifest), false).unwrap();
    }
    assert_eq!(scene.shelf.asked(), ["tag", "blob", "manifest", "blob"]);
}

#[test]
fn a_pin_that_the_registry_forgot_is_gone() {
    let scene = Scene::new();
    let error = scene.open(Some(Digest::from_bytes([7; 32])), false).unwrap_err();
    assert!(matches!(error, SourceError::Gone { .. }), "{error}");
}

/// A manifest that is malformed, or that other programs could read differently
/// ([CVE-2021-41190](https://nvd.nist.gov/vuln/detail/CVE-2021-41190)), is rejected before it is stored.
#[test]
fn an_ambiguous_manifest_is_refused() {
    let both = r#"{"schemaVersion": 2, "manifests": [], "layers": []}"#;
    let own = format!(r#"{{"schemaVersion": 2, "mediaType": "{MANIFEST}", "layers": []}}"#);
    let mut found = Vec::new();
    for (text, media_type) in [
        (both, Some(MANIFEST)),
        (both, Some(INDEX)),
        (own.as_str(), Some(INDEX)),
        (r#"{"manifests": []}"#, Some(MANIFEST)),
        (r#"{"layers": []}"#, Some(INDEX)),
        ("{}", None),
        ("<html>", None),
        ("[2, null, null, [], null, null]", Some(INDEX)),
        (r#"{"mediaType": "a", "mediaType": "b"}"#, Some(INDEX)),
    ] {
        let mut scene = Scene::new();
        scene.shelf.retag(text.as_bytes(), media_type);
        let digest = scene.shelf.tagged;
        for pinned in [None, Some(digest)] {
            let error = scene.open(pinned, false).unwrap_err();
            assert!(matches!(error, SourceError::Malformed(_)), "{text}: {error}");
            let stored = scene.store.verify(&digest);
            assert!(stored.is_err(), "{text}");
            if pinned.is_none() {
                found.push(error.to_string().replace(&digest.to_string(), "DIGEST"));
            }
        }
    }
    insta::assert_snapshot!(found.join("\n"), @r#"
    DIGEST of docker://registry.example.org/team/app cannot be read as a manifest or an index: it is a manifest and an index at once
    DIGEST of docker://registry.example.org/team/app cannot be read as a manifest or an index: it is a manifest and an index at once
    DIGEST of docker://registry.example.org/team/app cannot be read as a manifest or an index: its own mediaType is "application/vnd.oci.image.manifest.v1+json", but it is described as "application/vnd.oci.image.index.v1+json"
    DIGEST of docker://registry.example.org/team/app cannot be read as a manifest or an index: it is described as a manifest, but is an index
    DIGEST of docker://registry.example.org/team/app cannot be read as a manifest or an index: it is described as an index, but is a manifest
    DIGEST of docker://registry.example.org/team/app cannot be read as a manifest or an index: it names no config
    DIGEST of docker://registry.example.org/team/app cannot be read as a manifest or an index: expected value at line 1 column 1
    DIGEST of docker://registry.example.org/team/app cannot be read as a manifest or an index: expected an object at line 1 column 1
    DIGEST of docker://registry.example.org/team/app cannot be read as a manifest or an index: duplicate field `mediaType` at line 1 column 30
    "#);
}

#[test]
fn the_type_is_the_registrys_or_the_documents_own() {
    let mut scene = Scene::new();
    let manifest = scene.shelf.blobs[&scene.shelf.tagged].clone();
    let config = scene.open(None, false).unwrap().config_digest;
    scene.shelf.retag(&manifest, None);
    assert_eq!(scene.open(None, false).unwrap().config_digest, config);
}

#[test]
fn a_config_that_is_larger_than_any_is_not_asked_for() {
    let mut scene = Scene::new();
    let manifest = scene.shelf.blobs[&scene.shelf.tagged].clone();
    let mut manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    manifest["config"]["size"] = (8 << 20 | 1).into();
    scene.shelf.retag(manifest.to_string().as_bytes(), Some(MANIFEST));
    let error = scene.open(None, false).unwrap_err();
    assert!(matches!(error, SourceError::TooLarge { .. }), "{error}");
    assert_eq!(scene.shelf.asked(), ["tag"]);
}
