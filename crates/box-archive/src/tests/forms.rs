//! Boxes in the forms of registries, as skopeo and oras copy them into archives.

use box_contract::manifest::{ARTIFACT_TYPE, OCI_MANIFEST_TYPE};
use box_registry::{BOX_MANIFEST_TYPE, DIGEST_LABEL, Form, PLAIN_DIGEST, PLAIN_SIZE};
use serde_json::{Value, json};

use super::*;

/// An archive that is being written.
#[derive(Default)]
struct Made(Vec<(String, Vec<u8>)>);

impl Made {
    fn blob(&mut self, media_type: &str, bytes: &[u8]) -> Value {
        let digest = Digest::of(bytes);
        self.0.push((box_contract::manifest::blob_name(&digest), bytes.to_vec()));
        json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() })
    }

    fn json(&mut self, media_type: &str, document: &Value) -> Value {
        self.blob(media_type, &serde_json::to_vec(document).unwrap())
    }

    /// Adds a plain blob as a zstd frame.
    fn layer(&mut self, media_type: &str, bytes: &[u8]) -> Value {
        let frame = zstd::stream::encode_all(bytes, 3).unwrap();
        let mut layer = self.blob(&format!("{media_type}+zstd"), &frame);
        layer["annotations"] =
            json!({ PLAIN_DIGEST: Digest::of(bytes), PLAIN_SIZE: bytes.len().to_string() });
        layer
    }

    /// Ends the archive with the index, like skopeo.
    fn finish(mut self, manifests: &[Value]) -> Vec<u8> {
        let index = json!({ "schemaVersion": 2, "manifests": manifests });
        self.0.push(("index.json".to_owned(), serde_json::to_vec(&index).unwrap()));
        self.0.push(("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()));
        tar_of(&self.0)
    }
}

/// Returns an archive of a box in this form, and the box digest.
fn made(form: Form) -> (Vec<u8>, Digest) {
    let (files, mut made) = (&boxes(&["one"])[0], Made::default());
    let manifest = fs::read(files.manifest_path()).unwrap();
    let digest = Digest::of(&manifest);
    let manifest_type = if form == Form::Image { "x" } else { BOX_MANIFEST_TYPE };
    let named = made.blob(manifest_type, &manifest);
    let layer = |made: &mut Made, blob: &box_contract::Descriptor| {
        made.layer(&blob.media_type, &fs::read(files.blob_path(&blob.digest)).unwrap())
    };
    let own = files.manifest();
    let layers: Vec<_> = own.blobs().into_iter().map(|it| layer(&mut made, it)).collect();
    let document = if form == Form::Artifact {
        json!({ "schemaVersion": 2, "mediaType": OCI_MANIFEST_TYPE, "artifactType": ARTIFACT_TYPE,
                "config": named, "layers": layers })
    } else {
        let ids = own.blobs().into_iter().map(|it| it.digest);
        let ids: Vec<_> = [digest].into_iter().chain(ids).collect();
        let config = made.json(
            "application/vnd.oci.image.config.v1+json",
            &json!({ "architecture": "amd64", "os": "linux", "config": { "Labels": { DIGEST_LABEL: digest } },
                     "rootfs": { "type": "layers", "diff_ids": ids } }),
        );
        let layers: Vec<_> = [named].into_iter().chain(layers).collect();
        json!({ "schemaVersion": 2, "mediaType": OCI_MANIFEST_TYPE, "config": config, "layers": layers })
    };
    let named = made.json(OCI_MANIFEST_TYPE, &document);
    (made.finish(&[named]), digest)
}

#[test]
fn each_form_of_a_registry_is_the_same_box() {
    for form in [Form::Artifact, Form::Image] {
        let stage = Stage::new();
        let (bytes, digest) = made(form);
        let loaded = stage.load_file(&bytes).unwrap();
        assert_eq!((loaded[0].digest, loaded[0].new_blobs), (digest, 8), "{form:?}");
        assert_eq!(stage.found(), [(digest, None)]);
        let archive = Archive::open(&stage.path("boxes.tar")).unwrap();
        let only = archive.one_box(None).unwrap();
        assert_eq!(only.remote.form, form);
        // The digest of the registry's manifest is accepted too.
        archive.one_box(Some(only.remote.registry_digest)).unwrap();
    }
}

#[test]
fn an_order_that_a_stream_cannot_have_is_named() {
    let (bytes, _) = made(Form::Artifact);
    let error = Stage::new().load_stream(&bytes).unwrap_err();
    assert!(matches!(error, ArchiveError::NotAStream { .. }), "{error}");
    // The index comes first, and the box's manifest is a blob.
    let mut members = members(&bytes);
    members.rotate_right(2);
    members.swap(0, 1);
    let manifest = members.pop().unwrap();
    members.insert(2, manifest);
    let error = Stage::new().load_stream(&tar_of(&members)).unwrap_err();
    let is_later = matches!(error, ArchiveError::Box(box_registry::BoxRegistryError::Later { .. }));
    assert!(is_later, "{error}");
    Stage::new().load_file(&tar_of(&members)).unwrap();
}

#[test]
fn what_is_no_box_is_passed_over_beside_one() {
    let stage = Stage::new();
    let boxes = boxes(&["one"]);
    let documents = documents(&boxes);
    let mut bytes = Vec::new();
    Bundle::of([(&documents[0], None)]).unwrap().write_archive(&mut bytes).unwrap();
    let mut all = members(&bytes);
    let mut image = Made::default();
    let config = image.json("application/vnd.oci.image.config.v1+json", &json!({}));
    let image_manifest = json!({ "schemaVersion": 2, "mediaType": OCI_MANIFEST_TYPE, "config": config, "layers": [] });
    let named = image.json(OCI_MANIFEST_TYPE, &image_manifest);
    let alone = Made(image.0.clone()).finish(std::slice::from_ref(&named));
    all.extend(image.0);
    let mut index: Value = serde_json::from_slice(&all[1].1).unwrap();
    index["manifests"].as_array_mut().unwrap().insert(0, named);
    all[1].1 = serde_json::to_vec(&index).unwrap();
    let loaded = stage.load_file(&tar_of(&all)).unwrap();
    assert_eq!(loaded.iter().map(|it| it.digest).collect::<Vec<_>>(), [documents[0].digest]);
    let error = Stage::new().load_file(&alone).unwrap_err();
    assert!(matches!(error, ArchiveError::NotABox { .. }), "{error}");
    assert!(error.to_string().ends_with(" is an image, not a box"), "{error}");
}
