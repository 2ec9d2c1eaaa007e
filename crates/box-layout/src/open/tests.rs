use std::fs;
use std::io::ErrorKind;

use testkit::TestBox;
use testkit::damage;
use testkit::test_box::config;

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
    let found = testkit::digest::of_bytes(&fs::read(&path).unwrap());
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

#[test]
fn an_image_is_named_as_what_it_is() {
    let says = |edit: fn(&mut serde_json::Value)| {
        let made = TestBox::new(&config());
        made.edit_index(edit);
        refusal(&made).to_string()
    };
    // The OCI image-spec asks for no media type, and skopeo writes none.
    let plain: fn(&mut serde_json::Value) = |index| {
        index.as_object_mut().unwrap().remove("mediaType");
        index["manifests"][0].as_object_mut().unwrap().remove("artifactType");
    };
    let several: fn(&mut serde_json::Value) = |index| {
        index["manifests"][0].as_object_mut().unwrap().remove("artifactType");
        let first = index["manifests"][0].clone();
        index["manifests"].as_array_mut().unwrap().push(first);
    };
    for edit in [plain, several] {
        assert!(says(edit).ends_with(" is an OCI image, not a box"), "{}", says(edit));
    }
    // Of a box, the index is wrong.
    let damaged = says(|index| drop(index.as_object_mut().unwrap().remove("mediaType")));
    assert!(damaged.contains("missing field `mediaType`"), "{damaged}");
}
