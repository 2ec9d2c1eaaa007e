use std::fs;
use std::io::ErrorKind;

use testkit::TestBox;
use testkit::damage;
use testkit::test_box::{config, segment, set_blocks};

use box_contract::manifest::{METADATA_TYPE, OCI_INDEX_TYPE, OCI_MANIFEST_TYPE, SEGMENT_TYPE};
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
    let roles: Vec<_> = opened.boot_blobs().map(Blob::role).collect();
    assert_eq!(roles, ["kernel", "init", "metadata", "segment", "segment"]);
    opened.boot_blobs().for_each(|blob| blob.check_size().unwrap());
    assert_eq!(serde_json::from_slice::<BoxConfig>(&opened.config_bytes).unwrap(), opened.config);
    assert_eq!(Digest::of(&opened.config_bytes), opened.manifest.config.digest);
    let rootfs = &opened.rootfs;
    assert_eq!(rootfs.size(), (1 << 20) + 3 * 4096);
    rootfs.verify().and_then(|()| rootfs.check_size()).unwrap();
    opened.check_superblock().and_then(|()| opened.check_plan()).unwrap();
    let documents = Documents::read(made.path()).unwrap();
    let boots: Vec<_> = made.manifest.layers.iter().map(|it| documents.boots(it)).collect();
    assert_eq!(boots, [true, true, true, true, true, false, false]);
}

#[test]
fn a_box_of_epoch_3_opens_with_its_plan_in_the_rootfs() {
    let made = TestBox::epoch3(&config());
    let opened = OpenBox::open(made.path()).unwrap();
    let roles: Vec<_> = opened.boot_blobs().map(Blob::role).collect();
    assert_eq!(roles, ["kernel", "init", "rootfs"]);
    opened.check_plan().and_then(|()| opened.check_superblock()).unwrap();
    made.edit_config(|config| config["plan"]["name"] = "other".into());
    let error = OpenBox::open(made.path()).unwrap().check_plan().unwrap_err();
    assert!(matches!(error, OpenError::RootfsPlan { reason: None, .. }), "{error}");
    made.edit_config(|config| config["epoch"] = 4.into());
    let error = refusal(&made).to_string();
    assert!(
        error.contains("it names a rootfs sha256:") && error.contains("epoch 4 has"),
        "{error}"
    );
}

/// The digests match in all cases, so only the number of blocks can be wrong.
#[test]
fn an_image_that_claims_more_or_fewer_blocks_is_refused() {
    for (claimed, is_right) in
        [(258, false), (259, true), (260, false), (0, false), (u32::MAX, false)]
    {
        let made = TestBox::new(&config());
        let mut metadata = fs::read(made.blob(METADATA_TYPE)).unwrap();
        set_blocks(&mut metadata, claimed);
        let named = serde_json::to_value(made.put(METADATA_TYPE, &metadata)).unwrap();
        damage::edit_layer(&made, METADATA_TYPE, |it| *it = named);
        let opened = OpenBox::open(made.path()).unwrap();
        opened.rootfs.verify().unwrap();
        let Err(error) = opened.check_superblock() else {
            assert!(is_right, "{claimed}");
            continue;
        };
        let path = made.blob(METADATA_TYPE);
        let expected = format!(
            "the rootfs image that begins with {} says that it has {claimed} blocks of 4096 bytes, \
             but its parts have 259",
            path.display()
        );
        assert_eq!((error.to_string(), is_right), (expected, false));
    }
}

#[test]
fn a_part_that_is_damaged_is_named() {
    let refused = |damage: &dyn Fn(&TestBox, &Path)| {
        let made = TestBox::new(&config());
        let path = made.blobs(SEGMENT_TYPE)[1].clone();
        damage(&made, &path);
        let error = OpenBox::open(made.path()).unwrap().rootfs.verify().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} has ", path.display())), "{error}");
        error
    };
    assert!(refused(&|made, path| damage::flip(made, path)).contains("has the digest sha256:"));
    let cut = refused(&|_, path| {
        fs::File::options().write(true).open(path).unwrap().set_len(4096).unwrap();
    });
    assert!(cut.ends_with("has 4096 bytes, but its manifest says 8192"), "{cut}");
    let swapped = refused(&|made, path| made.replace(path, &segment(9, 2)));
    assert!(swapped.contains("has the digest sha256:"), "{swapped}");
}

#[test]
fn each_part_has_a_line_of_the_description() {
    let segments: Vec<_> = (0..40).map(|it| segment(it, 1)).collect();
    let made = TestBox::with_segments(&config(), segments);
    let opened = OpenBox::open(made.path()).unwrap();
    let text = opened.describe();
    assert_eq!(
        text.lines().filter(|it| it.starts_with("  segment     4.0 KiB  sha256:")).count(),
        40
    );
    assert!(text.contains("\n  metadata    1.0 MiB  sha256:"), "{text}");
    assert_eq!(opened.report()["blobs"].as_array().unwrap().len(), 45);
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
    assert_eq!(safe_text::shown(&error), error);
    made.edit_manifest(|manifest| manifest["artifactType"] = "a\u{1b}[2J\nb".into());
    assert!(refusal(&made).to_string().contains("\"a\u{fffd}[2J\u{fffd}b\""));
}

fn is_too_large(error: &OpenError) -> bool {
    matches!(error, OpenError::File { error, .. } if error.kind() == ErrorKind::FileTooLarge)
}

#[test]
fn a_config_has_room_for_a_plan_and_little_else() {
    let made = TestBox::new(&config());
    let limit = usize::try_from(MAX_CONFIG).unwrap();
    made.edit_config(|config| config["x"] = "x".repeat(limit).into());
    assert!(is_too_large(&refusal(&made)));
}

#[test]
fn a_blob_is_read_within_its_bound_and_compared() {
    let made = TestBox::new(&config());
    let opened = OpenBox::open(made.path()).unwrap();
    let listing = &made.manifest.layers[5];
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

/// Writes another manifest into a box's directory, and adds it to the index.
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
    other["layers"][5]["size"] = 1.into();
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
    (0..256).for_each(|number| {
        let mut image = image.clone();
        image["it"] = number.into();
        add_manifest(&made, &image);
    });
    assert!(refusal(&made).to_string().contains("names 257 manifests"));
}
