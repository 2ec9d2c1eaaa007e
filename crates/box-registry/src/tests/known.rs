//! The compressed form of blobs that a store remembers.

use std::fs;

use test_server::registry::Rules;
use testkit::TestBox;
use testkit::test_box::{BoxFiles, config, segment as blocks};

use super::stage::{NAME, Stage, layer_of, replace, segment, zstd};
use crate::*;

/// Returns a box with a segment that is large enough to be remembered.
fn large() -> TestBox {
    TestBox::with_segments(&config(), vec![blocks(3, 300)])
}

/// Damages the segment, so that compressing it fails.
fn damage(files: &BoxFiles) {
    let (named, mut bytes) = segment(files);
    bytes[0] ^= 1;
    let path = files.blob_path(&named.digest);
    fs::remove_file(&path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Removes the tag from the registry.
fn forget_tag(stage: &Stage) {
    stage.registry.with(|held| held.manifests.clear());
}

#[test]
fn what_was_pushed_and_is_there_is_not_compressed_again() {
    let (stage, files) = (Stage::new(Rules::default()), large());
    let first = stage.push_from(&files).unwrap();
    let right = segment(&files).1;
    damage(&files);
    forget_tag(&stage);
    let again = stage.push_from(&files).unwrap();
    assert_eq!((again.registry_digest, again.sent), (first.registry_digest, 0));
    // If the record or the registry's blob is missing, the blob is compressed.
    forget_tag(&stage);
    let error = stage.push(&files, None).unwrap_err();
    assert!(matches!(error, BoxRegistryError::Damaged { .. }), "{error}");
    stage.registry.with(|held| held.blobs.clear());
    let error = stage.push_from(&files).unwrap_err();
    assert!(matches!(error, BoxRegistryError::Damaged { .. }), "{error}");
    fs::write(files.blob_path(&segment(&files).0.digest), right).unwrap();
    let mended = stage.push_from(&files).unwrap();
    assert!(mended.registry_digest == first.registry_digest && mended.sent > 0);
    stage.pull_and_compare(&files);
}

#[test]
fn what_was_pulled_goes_back_as_it_came() {
    let (stage, files) = (Stage::new(Rules::default()), large());
    stage.push(&files, None).unwrap();
    // Another tool has compressed it with another level.
    let (named, bytes) = segment(&files);
    stage.edit(|held, document| {
        replace(held, layer_of(document, &named.digest), &zstd(&bytes, 9));
    });
    let other = layer_of(&mut stage.document(), &named.digest)["digest"].clone();
    stage.pull_and_compare(&files);
    damage(&files);
    forget_tag(&stage);
    let pushed = stage.push_from(&files).unwrap();
    assert_eq!(pushed.sent, 0);
    assert_eq!(layer_of(&mut stage.document(), &named.digest)["digest"], other);
    let key = (NAME.to_owned(), other.as_str().unwrap().to_owned());
    assert!(stage.registry.with(|held| held.blobs.contains_key(&key)));
}
