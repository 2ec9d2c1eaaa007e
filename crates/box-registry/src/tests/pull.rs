//! Fetched and skipped blobs.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use box_contract::manifest::OCI_MANIFEST_TYPE;
use serde_json::{Value, json};
use test_server::registry::{Rules, error};
use test_server::{Early, Request, Step, length, reply};
use testkit::test_box::BoxFiles;

use super::stage::{NAME, Stage, TAG, layer_of, open, replace, segment, test_box, zstd};
use crate::*;

#[test]
fn a_plan_says_what_is_missing() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    stage.push(&files, None).unwrap();
    let (named, bytes) = segment(&files);
    stage.store.put(&bytes).unwrap();
    let before = stage.registry.lines().len();
    let plan = stage.plan().unwrap();
    // The registry's manifest, and the box's manifest.
    assert_eq!(stage.count(before, "GET"), 2);
    assert_eq!((plan.blobs(), plan.missing.len()), (8, 7));
    assert!(plan.missing.iter().all(|it| it.plain.digest != named.digest));
    let there = plan.remote.blobs.iter().find(|it| it.plain.digest == named.digest).unwrap();
    assert_eq!(plan.bytes() + there.size(), plan.total_bytes());
    let plain: u64 = plan.missing.iter().map(|it| it.plain.size).sum();
    assert!(plan.plain_bytes() == plain && plain > plan.bytes());
    let pulled = plan.fetch(&stage.client, &stage.store).unwrap();
    assert_eq!((pulled.blobs, pulled.bytes), (7, plan.bytes()));
    // The second pull fetches nothing.
    let before = stage.registry.lines().len();
    let again = stage.pull_and_compare(&files);
    assert_eq!((again.blobs, again.bytes), (0, 0));
    assert_eq!(stage.count(before, "GET"), 2);
}

#[test]
fn a_damaged_blob_in_the_store_is_mended() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    stage.push(&files, None).unwrap();
    stage.pull().unwrap();
    let (named, bytes) = segment(&files);
    let damaged = BoxFiles::of(&stage.store_path());
    damaged.replace(&stage.store_path().join("blobs").join(named.digest.hex()), &bytes[1..]);
    assert_eq!(stage.pull_and_compare(&files).blobs, 1);
    let mut other = bytes;
    other[7] ^= 1;
    damaged.replace(&stage.store_path().join("blobs").join(named.digest.hex()), &other);
    assert_eq!(stage.pull_and_compare(&files).blobs, 1);
}

/// Copies a box like `skopeo copy oci:… docker://…` and `oras cp --from-oci-layout`.
#[test]
fn a_box_that_was_copied_as_it_is_comes_and_is_the_same() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    let opened = open(&files);
    stage.registry.with(|held| {
        for blob in opened.manifest.blobs() {
            held.put_blob(NAME, &fs::read(files.blob_path(&blob.digest)).unwrap());
        }
        let manifest = fs::read(files.manifest_path()).unwrap();
        held.put_manifest(NAME, TAG, OCI_MANIFEST_TYPE, &manifest);
    });
    let plan = stage.plan().unwrap();
    assert_eq!((plan.remote.form, plan.remote.registry_digest), (Form::Plain, opened.digest));
    stage.pull_and_compare(&files);
    // A push recognizes the copied box.
    let pushed = stage.push(&files, None).unwrap();
    assert_eq!((pushed.form, pushed.bytes), (Form::Plain, 0));
    files.edit_config(|config| config["plan"]["vm"]["memory-mib"] = 512.into());
    let pushed = stage.push(&files, None).unwrap();
    assert_eq!((pushed.form, pushed.sent), (Form::Artifact, 1));
    stage.pull_and_compare(&files);
}

/// Compresses all layers of the registry's manifest again.
fn recompress(stage: &Stage, level: i32) {
    stage.edit(|held, document| {
        let ids = document["layers"].as_array().unwrap().clone();
        for layer in ids {
            let plain = layer["annotations"][PLAIN_DIGEST].as_str().unwrap().parse().unwrap();
            if !layer["mediaType"].as_str().unwrap().ends_with("+zstd") {
                continue;
            }
            let key = (NAME.to_owned(), layer["digest"].as_str().unwrap().to_owned());
            let bytes = zstd::stream::decode_all(&*held.blobs[&key]).unwrap();
            replace(held, layer_of(document, &plain), &zstd(&bytes, level));
        }
    });
}

#[test]
fn a_box_that_was_compressed_again_is_the_same() {
    for refuses in [None, Some(super::push::as_gitlab as fn(&str) -> bool)] {
        for level in [-5, 1, 19] {
            let (stage, files) = (Stage::new(Rules { refuses, ..Rules::default() }), test_box());
            let pushed = stage.push(&files, None).unwrap();
            recompress(&stage, level);
            let pulled = stage.pull_and_compare(&files);
            assert_ne!(pulled.registry_digest, pushed.registry_digest);
        }
    }
}

#[test]
fn an_image_without_annotations_comes() {
    let rules = Rules { refuses: Some(super::push::as_gitlab), ..Rules::default() };
    let (stage, files) = (Stage::new(rules), test_box());
    stage.push(&files, None).unwrap();
    stage.edit(|_, document| {
        document["annotations"] = json!({});
        let layers = document["layers"].as_array_mut().unwrap();
        layers.iter_mut().for_each(|it| it["annotations"] = json!({}));
    });
    stage.pull_and_compare(&files);
}

/// A later version may add layers, such as indexes and deltas.
#[test]
fn further_layers_are_passed_over() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    stage.push(&files, None).unwrap();
    stage.edit(|held, document| {
        let digest = held.put_blob(NAME, b"an index");
        let more = json!({ "mediaType": "application/vnd.example", "digest": digest, "size": 8 });
        document["layers"].as_array_mut().unwrap().push(more);
    });
    let pulled = stage.pull_and_compare(&files);
    assert_eq!(pulled.blobs, 8);
}

/// Returns the paths of the layers that were requested after the first `before` requests.
fn fetched(stage: &Stage, before: usize) -> Vec<String> {
    let lines = stage.lines_since(before);
    lines.into_iter().filter(|line| line.starts_with("GET blobs/")).collect()
}

#[test]
fn a_pull_that_ended_between_blobs_goes_on_with_the_rest() {
    let files = test_box();
    let limit = Arc::new(AtomicUsize::new(usize::MAX));
    let (left, gets) = (Arc::clone(&limit), AtomicUsize::new(0));
    // The registry rejects the requests after `limit` blobs.
    let deed = move |request: &Request, _: usize| {
        let is_blob = request.method() == "GET" && request.path().contains("/blobs/");
        let number = is_blob.then(|| gets.fetch_add(1, Ordering::Relaxed))?;
        let end = || {
            // The earlier blobs arrive first, even on a busy host.
            std::thread::sleep(std::time::Duration::from_millis(500));
            Early { after: 0, reply: error("403 Forbidden", "DENIED") }
        };
        (number >= left.load(Ordering::Relaxed)).then(end)
    };
    let stage = Stage::new(Rules { deed: Some(Box::new(deed)), ..Rules::default() });
    stage.push(&files, None).unwrap();
    // Four blobs: the box's manifest, and three of its eight blobs.
    limit.store(4, Ordering::Relaxed);
    let failure = stage.pull().unwrap_err();
    assert!(matches!(failure, BoxRegistryError::Registry(_)), "{failure}");
    let stored = stage.stored();
    assert!((1..=3).contains(&stored) && stage.unfinished() == 0, "{stored}");
    let digest = open(&files).digest;
    assert!(stage.store.read(&digest).is_err(), "a box that is not whole has no manifest");
    limit.store(usize::MAX, Ordering::Relaxed);
    let before = stage.registry.lines().len();
    let pulled = stage.pull_and_compare(&files);
    assert_eq!(pulled.blobs, 8 - stored);
    assert_eq!(fetched(&stage, before).len(), 1 + pulled.blobs);
}

/// The first response for the segment has half of it.
#[test]
fn a_blob_that_breaks_off_is_resumed_within_its_frame() {
    let files = test_box();
    let held = Arc::new(OnceLock::<(String, Vec<u8>)>::new());
    let known = Arc::clone(&held);
    let deed = move |request: &Request, before: usize| {
        let (path, bytes) = known.get()?;
        let wanted = request.method() == "GET" && request.path() == path && before == 0;
        let reply = || reply("200 OK", &[&length(bytes.len())], &bytes[..bytes.len() / 2]);
        // The client does not hang up, so `Early` must not wait for it.
        let steps =
            || [reply(), vec![Step::Pause(Duration::from_millis(50)), Step::Break]].concat();
        wanted.then(|| Early { after: 0, reply: steps() })
    };
    let stage = Stage::new(Rules { deed: Some(Box::new(deed)), ..Rules::default() });
    stage.push(&files, None).unwrap();
    let (named, _) = segment(&files);
    let layer = layer_of(&mut stage.document(), &named.digest)["digest"].clone();
    let digest = layer.as_str().unwrap().to_owned();
    let key = (NAME.to_owned(), digest.clone());
    let bytes = stage.registry.with(|held| held.blobs[&key].clone());
    let half = bytes.len() / 2;
    held.set((format!("/v2/{NAME}/blobs/{digest}"), bytes)).unwrap();
    stage.pull_and_compare(&files);
    let requests = stage.registry.requests();
    let asked = requests.iter().filter(|it| it.method() == "GET" && it.path().ends_with(&digest));
    let ranges: Vec<_> = asked.map(|it| it.header("range").map(str::to_owned)).collect();
    assert_eq!(ranges, [None, Some(format!("bytes={half}-"))]);
}

#[test]
fn both_digests_lead_to_the_box() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    let pushed = stage.push(&files, None).unwrap();
    let reference = oci_registry::Reference::Digest(pushed.registry_digest);
    let remote = Remote::read(&stage.client, &stage.repository(NAME), &reference).unwrap();
    assert_eq!((remote.registry_digest, remote.digest), (pushed.registry_digest, pushed.digest));
    let document: Value = serde_json::from_slice(&remote.manifest_bytes).unwrap();
    assert_eq!(document["layers"].as_array().unwrap().len() + 1, remote.blobs.len());
}
