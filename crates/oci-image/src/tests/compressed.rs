//! Compressed layers: streams with several frames, and streams that end wrongly.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use oci_layer::{Compression, LayerSource};

use super::*;

/// Decodes a blob as a layer with this content.
fn read(blob: &[u8], compression: Compression, content: &LayerTar) -> Result<usize, String> {
    let (digest, diff_id) = (box_digest::Digest::of(blob), content.diff_id());
    let layer = LayerSource { digest, size: blob.len() as u64, compression, diff_id };
    let read = decode(&layer, blob, &mut io::sink(), &mut io::sink(), &Limits::default());
    read.map(|index| index.changes.len()).map_err(|error| error.kind.to_string())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

#[test]
fn a_stream_may_have_several_parts_and_nothing_after_them() {
    let content = layer("name", "content");
    let (one, two) = content.bytes().split_at(700);
    for (compression, compress) in
        [(Compression::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Compression::Zstd, zstd)]
    {
        let parts = [compress(one), compress(b""), compress(two)].concat();
        assert_eq!(read(&parts, compression, &content), Ok(2), "{compression:?}");
        let behind: [&[u8]; 4] = [b"\0", &[0; 512], b"garbage", &parts[..3]];
        for behind in behind {
            let message = read(&[&parts, behind].concat(), compression, &content).unwrap_err();
            assert!(
                message.starts_with("it cannot be read: "),
                "{compression:?} {behind:?}: {message}"
            );
        }
        let cut = read(&parts[..parts.len() - 1], compression, &content);
        assert!(cut.is_err(), "{compression:?}");
    }
}

#[test]
fn a_layer_is_read_by_its_first_bytes_whatever_its_label() {
    let content = layer("name", "content");
    let skippable = [b"\x5f\x2a\x4d\x18\x01\0\0\0x", content.zstd()].concat();
    let all = [Compression::None, Compression::Gzip, Compression::Zstd];
    for label in all {
        for blob in [content.bytes(), content.gzip(), content.zstd(), &skippable] {
            assert_eq!(read(blob, label, &content), Ok(2), "{label:?}");
        }
        let message = read(b"", label, &content).unwrap_err();
        assert!(message.contains("but the image's config names"), "{label:?}: {message}");
    }
}

#[test]
fn a_wrong_label_is_named() {
    use testkit::images::LayoutDir;
    let directory = tempfile::tempdir().unwrap();
    let content = layer("name", "content");
    for (suffix, blob, expected) in [
        ("", content.gzip(), Some((Compression::None, Compression::Gzip))),
        ("+gzip", content.bytes(), Some((Compression::Gzip, Compression::None))),
        ("+gzip", content.zstd(), Some((Compression::Gzip, Compression::Zstd))),
        ("+zstd", content.zstd(), None),
    ] {
        let layout = LayoutDir::make(&directory.path().join("a")).unwrap();
        let put = |kind: &str, bytes: &[u8]| {
            layout.put(&format!("application/vnd.oci.image.{kind}"), bytes).unwrap()
        };
        let config = serde_json::json!({ "architecture": "amd64", "os": "linux", "config": {},
            "rootfs": { "type": "layers", "diff_ids": [content.diff_id()] } });
        let config = put("config.v1+json", config.to_string().as_bytes());
        let layer = put(&format!("layer.v1.tar{suffix}"), blob);
        let manifest =
            serde_json::json!({ "schemaVersion": 2, "config": config, "layers": [layer] });
        let manifest = put("manifest.v1+json", manifest.to_string().as_bytes());
        layout.finish(&serde_json::json!({ "schemaVersion": 2, "manifests": [manifest] })).unwrap();
        let image = opened(directory.path(), "oci:a").unwrap();
        let found = image.mislabelled();
        let found = found.iter().map(|it| (it.number, it.label, it.found));
        assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(expected.map(|(a, b)| (1, a, b))));
        tree(&image).unwrap();
        std::fs::remove_dir_all(directory.path().join("a")).unwrap();
    }
}
