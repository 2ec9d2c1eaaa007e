//! Sent and skipped blobs.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use box_contract::manifest::{ARTIFACT_TYPE, KERNEL_TYPE};
use serde_json::json;
use test_server::registry::{Rules, error};
use test_server::{Early, Request};

use super::stage::{NAME, Stage, layer_of, open, replace, segment, tag, test_box, zstd};
use crate::*;

/// Rejects the same manifests as GitLab: artifact types, and unknown types of configs and layers.
pub(super) fn as_gitlab(manifest: &str) -> bool {
    manifest.contains("artifactType")
        || manifest.contains("vnd.boxbuild.box.v1")
        || manifest.contains("vnd.boxbuild.segment")
}

#[test]
fn a_box_goes_and_comes() {
    for (rules, form) in [
        (Rules::default(), Form::Artifact),
        (Rules { closed: true, ..Rules::default() }, Form::Artifact),
        (Rules { refuses: Some(as_gitlab), ..Rules::default() }, Form::Image),
    ] {
        let (stage, files) = (Stage::new(rules), test_box());
        let pushed = stage.push(&files, None).unwrap();
        let blobs = open(&files).manifest.blobs().len();
        assert_eq!((pushed.form, pushed.digest), (form, open(&files).digest));
        assert_eq!((pushed.sent, pushed.mounted, pushed.skipped), (blobs, 0, 0));
        let pulled = stage.pull_and_compare(&files);
        assert_eq!((pulled.registry_digest, pulled.blobs), (pushed.registry_digest, blobs));
        assert!(pulled.bytes < pushed.bytes);
    }
}

#[test]
fn the_config_of_the_artifact_is_the_manifest_of_the_box() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    stage.push(&files, None).unwrap();
    let (document, opened) = (stage.document(), open(&files));
    assert_eq!(document["artifactType"], ARTIFACT_TYPE);
    assert_eq!(document["config"]["digest"], json!(opened.digest));
    assert_eq!(document["config"]["mediaType"], BOX_MANIFEST_TYPE);
    let key = (NAME.to_owned(), opened.digest.to_string());
    let bytes = stage.registry.with(|held| held.blobs[&key].clone());
    assert_eq!(bytes, fs::read(files.manifest_path()).unwrap());
    // Each blob occurs once, the box's config first.
    let layers = document["layers"].as_array().unwrap();
    let plain: Vec<_> = layers.iter().map(|it| it["annotations"][PLAIN_DIGEST].clone()).collect();
    let named: Vec<_> = opened.manifest.blobs().iter().map(|it| json!(it.digest)).collect();
    assert_eq!(plain, named);
    // A large blob is compressed, unless zstd does not make it smaller.
    let kind = |role| {
        let blob = opened.manifest.blobs().into_iter().find(|it| it.role() == role).unwrap();
        let at = plain.iter().position(|it| *it == json!(blob.digest)).unwrap();
        layers[at]["mediaType"].as_str().unwrap()
    };
    assert_eq!(kind("metadata"), "application/vnd.boxbuild.metadata.v1+zstd");
    assert_eq!(kind("kernel"), KERNEL_TYPE);
}

#[test]
fn two_machines_push_the_same() {
    let digests = [(), ()]
        .map(|()| Stage::new(Rules::default()).push(&test_box(), None).unwrap().registry_digest);
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn what_is_there_is_one_request() {
    for refuses in [None, Some(as_gitlab as fn(&str) -> bool)] {
        let (stage, files) = (Stage::new(Rules { refuses, ..Rules::default() }), test_box());
        let first = stage.push(&files, None).unwrap();
        let before = stage.registry.lines().len();
        let again = stage.push(&files, None).unwrap();
        assert_eq!(stage.lines_since(before), ["GET manifests/v1"]);
        assert_eq!((again.bytes, again.sent, again.skipped), (0, 0, first.sent));
        assert_eq!(again.registry_digest, first.registry_digest);
    }
}

#[test]
fn a_changed_config_sends_itself_and_the_manifests() {
    for refuses in [None, Some(as_gitlab as fn(&str) -> bool)] {
        let (stage, files) = (Stage::new(Rules { refuses, ..Rules::default() }), test_box());
        let first = stage.push(&files, None).unwrap();
        files.edit_config(|config| config["plan"]["vm"]["memory-mib"] = 512.into());
        let before = stage.registry.lines().len();
        let again = stage.push(&files, None).unwrap();
        assert_eq!((again.sent, again.skipped), (1, first.sent - 1));
        // The box's manifest and its config, and for GitLab the config of an image. The blobs of the old manifest need no HEAD
        // request.
        let documents = if refuses.is_some() { 3 } else { 2 };
        assert_eq!(stage.count(before, "POST"), documents);
        assert_eq!(stage.count(before, "HEAD"), documents);
        assert_eq!(stage.count(before, "PUT blobs"), documents);
        assert_eq!(stage.count(before, "PUT manifests"), 1, "the form is known");
        assert_eq!(stage.count(before, "GET"), 1);
        assert_ne!(again.digest, first.digest);
        stage.pull_and_compare(&files);
    }
}

#[test]
fn blobs_without_a_manifest_are_not_sent_again() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    let first = stage.push(&files, None).unwrap();
    stage.registry.with(|held| held.manifests.clear());
    let again = stage.push(&files, None).unwrap();
    assert_eq!((again.sent, again.skipped), (0, first.sent));
    assert_eq!(again.registry_digest, first.registry_digest);
}

/// The registry rejects uploads after `limit` blobs.
#[test]
fn a_push_that_ended_between_blobs_goes_on_with_the_rest() {
    let limit = Arc::new(AtomicUsize::new(4));
    let (left, puts) = (Arc::clone(&limit), AtomicUsize::new(0));
    let deed = move |request: &Request, _: usize| {
        let is_blob = request.method() == "PUT" && request.path().contains("/blobs/");
        let number = is_blob.then(|| puts.fetch_add(1, Ordering::Relaxed))?;
        let end = || Early { after: usize::MAX, reply: error("403 Forbidden", "DENIED") };
        (number >= left.load(Ordering::Relaxed)).then(end)
    };
    let rules = Rules { deed: Some(Box::new(deed)), ..Rules::default() };
    let (stage, files) = (Stage::new(rules), test_box());
    let failure = stage.push(&files, None).unwrap_err().to_string();
    assert!(failure.contains("does not allow the upload of the blob"), "{failure}");
    assert!(stage.registry.with(|held| held.manifests.is_empty()), "half a box has no name");
    limit.store(usize::MAX, Ordering::Relaxed);
    // One of the four blobs was the box's manifest.
    let again = stage.push(&files, None).unwrap();
    assert_eq!((again.sent, again.skipped), (8 - 3, 3));
    stage.pull_and_compare(&files);
}

#[test]
fn another_repository_of_the_registry_gives_its_blobs() {
    let (stage, files) = (Stage::new(Rules { mounts: true, ..Rules::default() }), test_box());
    let first = stage.push(&files, None).unwrap();
    stage.registry.with(|held| {
        held.manifests.clear();
        let all = std::mem::take(&mut held.blobs).into_iter();
        held.blobs = all.map(|((_, digest), bytes)| (("base".to_owned(), digest), bytes)).collect();
    });
    let again = stage.push(&files, Some("base")).unwrap();
    assert_eq!((again.sent, again.mounted), (0, first.sent));
    assert_eq!(again.registry_digest, first.registry_digest);
    stage.pull_and_compare(&files);
}

/// A registry whose garbage collector has deleted a blob of a manifest.
#[test]
fn what_the_registry_has_lost_is_sent_again() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    let first = stage.push(&files, None).unwrap();
    files.edit_config(|config| config["plan"]["vm"]["memory-mib"] = 512.into());
    stage.registry.with(|held| held.blobs.clear());
    let again = stage.push(&files, None).unwrap();
    assert_eq!((again.sent, again.skipped), (first.sent, 0));
    stage.pull_and_compare(&files);
}

/// The manifest has annotations for another blob.
#[test]
fn a_manifest_that_lies_is_mended_by_a_push_that_does_not_believe_it() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    let first = stage.push(&files, None).unwrap();
    let (named, _) = segment(&files);
    stage.edit(|held, document| {
        replace(held, layer_of(document, &named.digest), &zstd(b"other", 3));
    });
    assert_eq!(stage.push(&files, None).unwrap().bytes, 0);
    assert!(stage.pull().is_err());
    let mended = stage.push_to(&files, None, false).unwrap();
    // The blobs exist; only the manifest was wrong.
    assert_eq!((mended.sent, mended.registry_digest), (0, first.registry_digest));
    stage.pull_and_compare(&files);
}

#[test]
fn what_cannot_be_so_is_not_believed() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    let first = stage.push(&files, None).unwrap();
    let (named, _) = segment(&files);
    stage.edit(|_, document| {
        layer_of(document, &named.digest)["annotations"][PLAIN_SIZE] = json!("4096");
    });
    let mended = stage.push(&files, None).unwrap();
    assert_eq!((mended.sent, mended.registry_digest), (0, first.registry_digest));
    stage.pull_and_compare(&files);
}

#[test]
fn something_else_at_the_destination_is_replaced() {
    for text in ["{}", "{\"schemaVersion\":2,\"manifests\":[]}", "[1]"] {
        let (stage, files) = (Stage::new(Rules::default()), test_box());
        stage.registry.with(|held| {
            let kind = "application/vnd.oci.image.manifest.v1+json";
            held.put_manifest(NAME, "v1", kind, text.as_bytes());
        });
        stage.push(&files, None).unwrap();
        stage.pull_and_compare(&files);
    }
}

#[test]
fn a_damaged_box_is_not_pushed() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    let kernel = files.blob(KERNEL_TYPE);
    files.replace(&kernel, b"a Kernel");
    let failure = stage.push(&files, None).unwrap_err();
    assert!(matches!(failure, BoxRegistryError::Damaged { .. }), "{failure}");
    files.replace(&kernel, b"a longer kernel");
    let failure = stage.push(&files, None).unwrap_err();
    assert!(matches!(failure, BoxRegistryError::Open(_)), "{failure}");
    assert!(stage.registry.with(|held| held.manifests.is_empty()));
}

#[test]
fn a_registry_that_takes_neither_form_is_named() {
    let stage = Stage::new(Rules { refuses: Some(|_| true), ..Rules::default() });
    let failure = stage.push(&test_box(), None).unwrap_err();
    let text = format!(
        "registry {0} refuses the manifest of {0}/{NAME}:{1}: it answers \"400 Bad Request, MANIFEST_INVALID\"",
        stage.registry.host(),
        tag()
    );
    assert_eq!(failure.to_string(), text);
    assert_eq!(stage.count(0, "PUT manifests"), 2);
}
