//! Compressed layers: how a stream may go on, and how it must end.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use oci_layer::{Compression, LayerSource};

use super::*;

/// Reads a blob as a layer with this content.
fn read(blob: &[u8], compression: Compression, content: &LayerTar) -> Result<usize, String> {
    let (digest, diff_id) = (testkit::digest::of_bytes(blob), content.diff_id());
    let layer = LayerSource { digest, size: blob.len() as u64, compression, diff_id };
    let read = decode(&layer, blob, &mut io::sink(), &Limits::default());
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
            let said = read(&[&parts, behind].concat(), compression, &content).unwrap_err();
            assert!(said.starts_with("it cannot be read: "), "{compression:?} {behind:?}: {said}");
        }
        let cut = read(&parts[..parts.len() - 1], compression, &content);
        assert!(cut.is_err(), "{compression:?}");
    }
}

#[test]
fn a_layer_is_read_as_the_type_that_it_was_named_as() {
    let content = layer("name", "content");
    for (blob, compression) in [
        (content.bytes(), Compression::Gzip),
        (content.gzip(), Compression::Zstd),
        (content.zstd(), Compression::None),
        (b"".as_slice(), Compression::Gzip),
        (b"", Compression::Zstd),
    ] {
        let said = read(blob, compression, &content).unwrap_err();
        assert!(!said.is_empty(), "{compression:?}");
    }
}
