//! Tests with small images that would need much memory. Each is refused or read within the memory limit, and a refused image
//! leaves nothing in the store.

use std::io::{self, Write};

use box_digest::Digest;
use flate2::Compression;
use flate2::write::GzEncoder;
use oci_layer::Limits;
use serde_json::{Value, json};
use testbed::promises::HOSTILE_MEMORY;

use crate::layout::{GZIP, INDEX, Layout, MANIFEST, ZSTD};
use crate::outcome::Outcome;
use crate::run::Work;

const MEBIBYTE: usize = 1 << 20;

/// Writes one image, reads it in a separate process, and returns the outcome.
fn explode(name: &str, write: impl FnOnce(&Layout)) -> Outcome {
    let work = Work::new();
    write(&Layout::new(&work.layout(name)));
    let mut report = work.probe();
    println!("{name}: {} KiB, {}", report.peak, report.outcomes[0].text);
    HOSTILE_MEMORY.check(report.peak as f64 / 1024.0);
    let outcome = report.outcomes.remove(0);
    assert_eq!(outcome.left, 0, "{name}");
    outcome
}

/// Returns a function that writes an image with one gzip layer.
fn of_layer(fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> impl FnOnce(&Layout) {
    move |layout| {
        let layer = layout.stream(GZIP, fill);
        layout.index(&[layout.image(&[(layer, Digest::of(b"never reached"))])]);
    }
}

fn refused(name: &str, kind: &str, write: impl FnOnce(&Layout)) {
    let outcome = explode(name, write);
    assert!(outcome.tree.is_none(), "{name}");
    assert!(outcome.kind.contains(kind), "{name}: {} is not {kind}", outcome.kind);
}

/// Expects that the image is accepted, with a tree of `entries` entries including the root.
fn done(name: &str, entries: usize, write: impl FnOnce(&Layout)) {
    let outcome = explode(name, write);
    assert_eq!(outcome.tree, Some(vec![entries.to_string()]), "{name}: {}", outcome.text);
}

/// Returns a tar header in the ustar format.
pub(crate) fn header(kind: u8, name: &str, link: &str, size: impl AsRef<[u8]>) -> [u8; 512] {
    let mut header = [0; 512];
    let fields = [(0, name), (100, "0000644"), (108, "0000000"), (116, "0000000"), (157, link)];
    for (at, text) in fields.into_iter().chain([(136, "00000000000")]) {
        header[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    header[124..][..size.as_ref().len()].copy_from_slice(size.as_ref());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    // All bytes after the magic and the version are zero.
    let sum: u32 = header[..265].iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Writes a gzip member with `header`, and one per MiB with `byte` repeated. Each takes about 1 KiB.
fn grows(out: &mut dyn Write, header: &[u8], byte: u8, mebibytes: usize) -> io::Result<()> {
    out.write_all(&gzip(header))?;
    let one = gzip(&vec![byte; MEBIBYTE]);
    (0..mebibytes).try_for_each(|_| out.write_all(&one))
}

/// Writes `count` members with numbered names, and the end of the archive.
fn numbered(out: &mut dyn Write, kind: u8, link: &str, count: u32) -> io::Result<()> {
    let mut member = header(kind, "evil-0000000", link, "00000000000");
    let sum: u32 = member.iter().map(|byte| u32::from(*byte)).sum();
    // The checksum is computed with its own field as spaces.
    let sum = sum - member[148..156].iter().map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
    for number in 0..count {
        let digits = format!("{number:07}");
        member[5..12].copy_from_slice(digits.as_bytes());
        let more: u32 = digits.bytes().map(|digit| u32::from(digit - b'0')).sum();
        member[148..156].copy_from_slice(format!("{:06o}\0 ", sum + more).as_bytes());
        out.write_all(&member)?;
    }
    out.write_all(&[0; 1024])
}

#[test]
fn ten_gibibytes_of_zeros_in_ten_mebibytes() {
    let file = header(b'0', "evil", "", b"\x80\0\0\0\0\0\0\x02\x80\0\0\0");
    let bomb = of_layer(|out| grows(out, &file, 0, 10 << 10));
    refused("gzip", "bytes when it is uncompressed", bomb);
}

#[test]
fn a_window_of_two_gibibytes() {
    refused("zstd", "", |layout| {
        // RFC 8878: the magic number, a window of 2 GiB, and blocks that repeat one byte for 128 KiB.
        let mut frame = b"\x28\xb5\x2f\xfd\x00\xa8".to_vec();
        (0..8192).for_each(|_| frame.extend([0x02, 0x00, 0x10, 0x00]));
        frame.extend([0x03, 0x00, 0x10, 0x00]);
        let layer = layout.blob(ZSTD, &frame);
        layout.index(&[layout.image(&[(layer, Digest::of(b"never reached"))])]);
    });
}

#[test]
fn a_million_files() {
    let bomb = of_layer(|out| {
        let mut encoder = GzEncoder::new(out, Compression::fast());
        numbered(&mut encoder, b'0', "", 1_000_000)?;
        encoder.finish().map(drop)
    });
    refused("files", "it has more than 400000 entries", bomb);
}

#[test]
fn as_many_files_as_a_layer_may_have() {
    let most = u32::try_from(Limits::default().entries).unwrap();
    done("most", Limits::default().entries + 1, |layout| {
        let mut archive = Vec::new();
        numbered(&mut archive, b'0', "", most).unwrap();
        layout.of_archives(&[archive], true);
    });
}

#[test]
fn a_sparse_file_of_eight_exbibytes() {
    let size = b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff";
    refused("sparse", "sparse files are not supported", |layout| {
        layout.of_archives(&[header(b'S', "evil", "", size).to_vec()], true);
    });
}

#[test]
fn an_extended_header_of_a_gibibyte() {
    let header = header(b'x', "evil", "", "10000000000");
    let bomb = of_layer(|out| grows(out, &header, b'a', 1024));
    refused("header", "bytes in its extended header", bomb);
}

#[test]
fn a_path_of_64_kibibytes() {
    let bomb = of_layer(|out| {
        let header = header(b'L', "evil", "", "00000200000");
        out.write_all(&gzip(&[&header[..], &b"evil/ab/".repeat(8192)].concat()))
    });
    refused("path", "bytes in its extended header", bomb);
}

#[test]
fn a_tree_of_ten_thousand_levels() {
    refused("deep", "the path is too deep", |layout| {
        let mut archive = Vec::new();
        for level in 1..=10_000usize {
            let path = "d/".repeat(level) + "\0";
            archive.extend(header(b'L', "evil", "", format!("{:011o}", path.len())));
            archive.extend(path.into_bytes());
            archive.resize(archive.len().next_multiple_of(512), 0);
            archive.extend(header(b'5', "evil", "", "00000000000"));
        }
        layout.of_archives(&[archive], true);
    });
}

#[test]
fn a_hundred_thousand_names_of_one_file() {
    done("links", 100_001, |layout| {
        let mut archive = header(b'0', "evil", "", "00000000000").to_vec();
        numbered(&mut archive, b'1', "evil", 100_000 - 1).unwrap();
        layout.of_archives(&[archive], true);
    });
}

#[test]
fn two_hundred_layers() {
    done("layers", 200 * 6 + 1, |layout| {
        let layer = |number: usize| {
            let file = |name: u8| {
                let name = format!("evil-{number}/{}", char::from(name));
                header(b'0', &name, "", "00000000000")
            };
            (b'a'..=b'e').flat_map(file).collect()
        };
        let layers: Vec<Vec<u8>> = (0..200).map(layer).collect();
        layout.of_archives(&layers, true);
    });
}

#[test]
fn a_manifest_of_a_hundred_mebibytes() {
    refused("manifest", "TooLarge", |layout| {
        let manifest = layout.stream(MANIFEST, |out| {
            out.write_all(b"{\"schemaVersion\":2,\"x\":\"")?;
            (0..100).try_for_each(|_| out.write_all(&vec![b'x'; MEBIBYTE]))?;
            out.write_all(b"\"}")
        });
        layout.index(&[manifest]);
    });
}

#[test]
fn an_index_of_ten_thousand_images() {
    let many = |layout: &Layout| {
        let mut image = layout.image(&[]);
        image["platform"] = json!({ "os": "linux", "architecture": "amd64" });
        let others = (0..9_999).map(|number: u32| {
            let digest = Digest::of(&number.to_le_bytes());
            json!({
                "mediaType": MANIFEST, "digest": digest, "size": 1,
                "platform": { "os": "linux", "architecture": "riscv64" },
            })
        });
        let manifests: Vec<Value> = others.chain([image]).collect();
        layout.index(&manifests);
    };
    let outcome = explode("index", many);
    assert_eq!(outcome.tree, Some(Vec::new()), "{}", outcome.text);
    let longer = |layout: &Layout| {
        let image = layout.image(&[]);
        layout.index(&vec![image; 100_000]);
    };
    refused("long-index", "TooLarge", longer);
}

#[test]
fn an_index_that_names_itself() {
    // No blob can contain its own digest, so this index contains the digest of an empty blob that it replaces.
    refused("self", "Damaged", |layout| {
        let index = |itself: &Value| json!({ "schemaVersion": 2, "manifests": [itself] });
        let mut itself = layout.blob(INDEX, b"");
        for _ in 0..3 {
            let text = index(&itself).to_string();
            itself["size"] = json!(text.len());
        }
        layout.put(&itself, index(&itself).to_string().as_bytes());
        layout.index(&[itself]);
    });
    refused("nested", "Malformed", |layout| {
        let mut inner = layout.image(&[]);
        for _ in 0..100 {
            let text = json!({ "schemaVersion": 2, "manifests": [inner] }).to_string();
            inner = layout.blob(INDEX, text.as_bytes());
        }
        layout.index(&[inner]);
    });
}
