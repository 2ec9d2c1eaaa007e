//! The exact bytes of frames and documents.

use std::io::Write;

use box_digest::Digest;
use test_server::registry::Rules;

use super::stage::{NAME, Stage, test_box};
use crate::pack::{LEVEL, pack};

fn plain() -> Vec<u8> {
    (0..400_000_u32).flat_map(|it| ((it / 7).wrapping_mul(it) % 251).to_le_bytes()).collect()
}

/// A new version of zstd may compress to other bytes. A push of a box that is already in a registry then sends it again, once.
#[test]
fn the_bytes_of_a_frame_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plain");
    let plain = plain();
    std::fs::write(&path, &plain).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let (digest, packed) = pack(file, plain.len() as u64, dir.path()).unwrap();
    assert_eq!(digest, Digest::of(&plain));
    insta::assert_snapshot!(format!("{} {}", packed.sent.size, packed.sent.digest), @"15195 sha256:06e52a9795542fdf913a04e91dab73cbc20cf944957ddae89f7521f5960e3776");
}

#[test]
fn a_frame_does_not_depend_on_how_its_content_is_read() {
    let plain = plain();
    let frames = [1000, 8192, 70_000, plain.len()].map(|piece| {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL).unwrap();
        encoder.set_pledged_src_size(Some(plain.len() as u64)).unwrap();
        plain.chunks(piece).for_each(|it| encoder.write_all(it).unwrap());
        Digest::of(&encoder.finish().unwrap())
    });
    assert!(frames.iter().all(|it| *it == frames[0]), "{frames:?}");
}

#[test]
fn the_image_is_one_that_tools_understand() {
    let rules = Rules { refuses: Some(super::push::as_gitlab), ..Rules::default() };
    let (stage, files) = (Stage::new(rules), test_box());
    stage.push(&files, None).unwrap();
    let document = stage.document();
    let layers = document["layers"].as_array().unwrap();
    let key = (NAME.to_owned(), document["config"]["digest"].as_str().unwrap().to_owned());
    let config = stage.registry.with(|held| held.blobs[&key].clone());
    let config: oci_config::Config = serde_json::from_slice(&config).unwrap();
    assert_eq!(config.rootfs.diff_ids.len(), layers.len());
    // The config has the digest of each layer's plain bytes.
    for (layer, id) in layers.iter().zip(&config.rootfs.diff_ids) {
        let key = (NAME.to_owned(), layer["digest"].as_str().unwrap().to_owned());
        let bytes = stage.registry.with(|held| held.blobs[&key].clone());
        let plain = match layer["mediaType"].as_str().unwrap() {
            "application/vnd.oci.image.layer.v1.tar" => bytes,
            "application/vnd.oci.image.layer.v1.tar+zstd" => {
                zstd::stream::decode_all(&*bytes).unwrap()
            }
            other => panic!("{other}"),
        };
        assert_eq!(Digest::of(&plain).to_string(), *id);
    }
}

/// The format of the OCI image-spec, independent of the code under test.
mod oci_config {
    #[derive(serde::Deserialize)]
    pub(super) struct Config {
        pub(super) rootfs: Rootfs,
    }

    #[derive(serde::Deserialize)]
    pub(super) struct Rootfs {
        pub(super) diff_ids: Vec<String>,
    }
}
