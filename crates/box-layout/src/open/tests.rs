use std::fs;
use std::io::ErrorKind;

use testkit::TestBox;
use testkit::damage;
use testkit::test_box::config;

use box_image::manifest::{OCI_INDEX_TYPE, OCI_MANIFEST_TYPE};
use serde_json::{Value, json};

use super::*;

fn refusal(made: &TestBox) -> OpenError {
    OpenBox::open(made.path()).unwrap_err()
}

#[test]
fn a_good_box_opens() {
    let made = TestBox::new(&config());
    let opened = OpenBox::open(made.path()).unwrap();
    assert_eq!(opened.config, config());
    assert_eq!(opened.manifest, made.manifest);
    assert_eq!(opened.digest, made.index().manifests[0].digest);
    assert_eq!(opened.boot_blobs().map(Blob::role), ["rootfs", "init", "kernel"]);
    opened.boot_blobs().into_iter().for_each(|blob| blob.check_size().unwrap());
}

#[test]
fn every_damaged_box_is_refused_by_name() {
    for damage in damage::ALL {
        let made = TestBox::new(&config());
        (damage.apply)(&made);
        let error = refusal(&made).to_string();
        assert!(error.contains(damage.says), "{}: {error}", damage.name);
        assert!(!error.contains('\n'), "{}: {error}", damage.name);
    }
}

#[test]
fn a_changed_document_is_named_with_both_digests() {
    let made = TestBox::new(&config());
    let expected = made.manifest.config.digest;
    let path = made.blob_path(&expected);
    damage::flip(&made, &path);
    let error = refusal(&made);
    assert!(matches!(error, OpenError::Different { .. }));
    let found = box_digest::Digest::of(&fs::read(&path).unwrap());
    let message =
        format!("{} has the digest {found}, but its manifest says {expected}", path.display());
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_truncated_document_is_named_with_both_sizes() {
    let made = TestBox::new(&config());
    let path = made.manifest_path();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = refusal(&made);
    assert!(matches!(error, OpenError::Different { .. }));
    let (found, expected) = (bytes.len() - 1, bytes.len());
    let message = format!("{} has {found} bytes, but its manifest says {expected}", path.display());
    assert_eq!(error.to_string(), message);
}

#[test]
fn errors_say_what_is_there_instead_of_a_layout() {
    let dir = tempfile::tempdir().unwrap();
    let message = |path: &Path| OpenBox::open(path).unwrap_err().to_string();
    let missing = dir.path().join("missing");
    assert_eq!(message(&missing), format!("there is no {}", missing.display()));
    let here = dir.path().display();
    assert_eq!(message(dir.path()), format!("{here} is not a box: it has no file `oci-layout`"));
    fs::write(dir.path().join("file"), "").unwrap();
    let file = dir.path().join("file");
    assert_eq!(message(&file), format!("{} is not a box: it is not a directory", file.display()));
}

#[test]
fn foreign_text_is_one_harmless_line() {
    let made = TestBox::new(&config());
    made.edit_config(|config| config["\u{1b}]0;x\u{7}\n\u{9b}error: all is well"] = true.into());
    let error = refusal(&made).to_string();
    assert!(
        error.contains("unknown field `\u{fffd}]0;x\u{fffd}\u{fffd}\u{fffd}error: all"),
        "{error}"
    );
    assert_eq!(box_image::text::shown(&error), error);
    made.edit_manifest(|manifest| manifest["artifactType"] = "a\u{1b}[2J\nb".into());
    assert!(refusal(&made).to_string().contains("\"a\u{fffd}[2J\u{fffd}b\""));
}

fn is_too_large(error: &OpenError) -> bool {
    matches!(error, OpenError::File { error, .. } if error.kind() == ErrorKind::FileTooLarge)
}

#[test]
fn a_config_has_room_for_a_plan_and_little_else() {
    let made = TestBox::new(&config());
    let limit = usize::try_from(CONFIG_LIMIT).unwrap();
    made.edit_config(|config| config["x"] = "x".repeat(limit).into());
    assert!(is_too_large(&refusal(&made)));
}

#[test]
fn a_blob_is_read_within_its_bound_and_compared() {
    let made = TestBox::new(&config());
    let opened = OpenBox::open(made.path()).unwrap();
    let listing = &made.manifest.layers[3];
    assert_eq!(opened.read_blob(listing, 100).unwrap(), b"a listing");
    let error = opened.read_blob(listing, 8).unwrap_err();
    assert!(is_too_large(&error), "{error:?}");
    damage::flip(&made, &made.blob_path(&listing.digest));
    assert!(matches!(opened.read_blob(listing, 100), Err(OpenError::Different { .. })));
    assert!(opened.open_blob(listing).unwrap().check_size().is_ok());
}

/// Removes a field of an object.
fn remove(object: &mut Value, name: &str) {
    object.as_object_mut().unwrap().remove(name).unwrap();
}

/// Writes another manifest into a box's directory, and names it in the index, too.
fn add_manifest(made: &TestBox, manifest: &Value) {
    let named = made.put(OCI_MANIFEST_TYPE, &serde_json::to_vec(manifest).unwrap());
    let named =
        json!({ "mediaType": named.media_type, "digest": named.digest, "size": named.size });
    made.edit_index(|index| index["manifests"].as_array_mut().unwrap().push(named));
}

#[test]
fn the_index_of_another_tool_is_accepted() {
    let tag = |index: &mut Value, tag: &str| {
        index["manifests"][0]["annotations"] = json!({ "org.opencontainers.image.ref.name": tag });
    };
    // The OCI image-spec asks for neither media type of the index nor artifact type, and skopeo writes neither.
    let skopeo = |index: &mut Value| {
        remove(index, "mediaType");
        remove(&mut index["manifests"][0], "artifactType");
    };
    let edits: [&dyn Fn(&mut Value); 7] = [
        &skopeo,
        &|index| {
            skopeo(index);
            tag(index, "v1");
        },
        &|index| {
            tag(index, "one");
            let mut second = index["manifests"][0].clone();
            second["annotations"]["org.opencontainers.image.ref.name"] = "two".into();
            index["manifests"].as_array_mut().unwrap().push(second);
        },
        &|index| remove(&mut index["manifests"][0], "mediaType"),
        &|index| index["manifests"][0]["artifactType"] = "application/vnd.example".into(),
        &|index| {
            index["manifests"][0]["platform"] = json!({ "architecture": "amd64", "os": "linux" });
            index["annotations"] = json!({ "org.opencontainers.image.created": "2026-01-01" });
        },
        &|index| index["manifests"][0]["annotations"] = Value::Null,
    ];
    for (number, edit) in edits.iter().enumerate() {
        let made = TestBox::new(&config());
        let digest = OpenBox::open(made.path()).unwrap().digest;
        made.edit_index(edit);
        let opened = OpenBox::open(made.path());
        assert_eq!(opened.unwrap().digest, digest, "edit {number}");
        assert!(crate::names_one_box(made.path()), "edit {number}");
    }
}

#[test]
fn a_box_beside_images_is_found_and_one_of_several_boxes_is_not_guessed() {
    let made = TestBox::new(&config());
    let digest = OpenBox::open(made.path()).unwrap().digest;
    add_manifest(&made, &json!({ "schemaVersion": 2, "layers": [] }));
    assert_eq!(OpenBox::open(made.path()).unwrap().digest, digest);
    assert!(!crate::names_one_box(made.path()), "what else is there must not be replaced");
    let mut other = serde_json::to_value(&made.manifest).unwrap();
    other["layers"][3]["size"] = 1.into();
    add_manifest(&made, &other);
    let error = refusal(&made);
    assert!(matches!(&error, OpenError::Boxes { names, .. } if names.len() == 2), "{error}");
    assert!(error.to_string().contains(&digest.to_string()), "{error}");
}

#[test]
fn a_layout_of_images_is_named_as_what_it_is() {
    let image = json!({ "schemaVersion": 2, "layers": [] });
    for count in 1..3 {
        let made = TestBox::new(&config());
        made.edit_index(|index| index["manifests"] = json!([]));
        (0..count).for_each(|it| {
            add_manifest(&made, &json!({ "schemaVersion": 2, "layers": [], "it": it }));
        });
        let error = refusal(&made).to_string();
        assert!(error.ends_with(" is an OCI image, not a box"), "{error}");
    }
    for media_type in [
        OCI_INDEX_TYPE,
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    ] {
        let made = TestBox::new(&config());
        made.edit_index(|index| index["manifests"][0]["mediaType"] = media_type.into());
        let error = refusal(&made).to_string();
        assert!(error.ends_with(" is an OCI image, not a box"), "{error}");
    }
    let made = TestBox::new(&config());
    (0..64).for_each(|it| {
        let mut image = image.clone();
        image["it"] = it.into();
        add_manifest(&made, &image);
    });
    assert!(refusal(&made).to_string().contains("names 65 manifests"));
}
