//! Valid and invalid descriptions of layers in a manifest.

use serde_json::{Value, json};

use super::refused::{made, with};
use super::*;

const GIB: u64 = 1 << 30;

/// Adds layers of these sizes, whose blobs do not exist.
fn sized(manifest: &mut Value, config: &mut Value, sizes: &[u64]) {
    let digests: Vec<_> =
        (1u8..).take(sizes.len()).map(|it| Digest::from_bytes([it; 32])).collect();
    let layer = |(digest, size): (&Digest, &u64)| json!({ "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": size });
    manifest["layers"] = digests.iter().zip(sizes).map(layer).collect();
    config["rootfs"]["diff_ids"] = json!(digests);
}

#[test]
fn the_sizes_of_layers_are_bounded_before_any_is_fetched() {
    let most = [&[16 * GIB; 3][..], &[10 * GIB, 6 * GIB]].concat();
    let allowed = made(|manifest, config| sized(manifest, config, &most));
    assert_eq!(opened(allowed.path(), "oci:a").unwrap().layers.len(), 5);
    let found = [
        with(|manifest, config| sized(manifest, config, &[5, 16 * GIB + 1])),
        with(|manifest, config| sized(manifest, config, &[u64::MAX, u64::MAX])),
        with(|manifest, config| sized(manifest, config, &[&most[..], &[1]].concat())),
    ];
    insta::assert_snapshot!(found.join("\n"), @"
    layer 2 of the image in a has 17179869185 bytes; a layer may have 17179869184
    layer 1 of the image in a has 18446744073709551615 bytes; a layer may have 17179869184
    the image in a has 68719476737 bytes of layers; an image may have 68719476736
    ");
}

#[test]
fn a_layer_is_named_in_one_way() {
    let again = |change: fn(&mut Value, &mut Value)| {
        with(|manifest, config| {
            let mut layer = manifest["layers"][0].clone();
            let mut diff_id = config["rootfs"]["diff_ids"][0].clone();
            change(&mut layer, &mut diff_id);
            manifest["layers"].as_array_mut().unwrap().push(layer);
            config["rootfs"]["diff_ids"].as_array_mut().unwrap().push(diff_id);
        })
    };
    let found = [
        again(|layer, _| layer["size"] = json!(layer["size"].as_u64().unwrap() + 77)),
        again(|layer, _| {
            layer["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar+gzip");
        }),
        again(|_, diff_id| *diff_id = json!(Digest::from_bytes([1; 32]))),
    ];
    insta::assert_snapshot!(found.join("\n"), @"
    the image in a is inconsistent: its layers 1 and 2 are both sha256:DIGEST, but of different sizes
    the image in a is inconsistent: its layers 1 and 2 are both sha256:DIGEST, but of different compressions
    the image in a is inconsistent: its layers 1 and 2 are both sha256:DIGEST, but of different diff_ids
    ");
}

#[test]
fn a_layer_may_be_named_again_by_the_other_family_of_types() {
    let twice = made(|manifest, config| {
        let mut layer = manifest["layers"][0].clone();
        layer["mediaType"] = json!("application/vnd.docker.image.rootfs.diff.tar");
        manifest["layers"].as_array_mut().unwrap().push(layer);
        let diff_id = config["rootfs"]["diff_ids"][0].clone();
        config["rootfs"]["diff_ids"].as_array_mut().unwrap().push(diff_id);
    });
    assert_eq!(opened(twice.path(), "oci:a").unwrap().layers.len(), 2);
}
