use std::collections::BTreeSet;
use std::io::BufReader;

use box_digest::Digest;
use proptest::prelude::*;
use tar::{Builder, EntryType, Header};

use super::*;
use crate::{Compression, LayerErrorKind, LayerSource, Limits, MemorySegment, decode, read_plain};

const MIB: usize = 1 << 20;

/// The result of decoding a layer.
#[derive(Debug, PartialEq)]
struct Decoded {
    index: LayerIndex,
    pack: Vec<u8>,
    segment: Vec<u8>,
}

impl Decoded {
    /// Reads an archive through a buffer of `at_once` bytes.
    fn of(archive: &[u8], at_once: usize) -> Self {
        let (mut pack, mut segment) = (Vec::new(), MemorySegment::default());
        let archive = BufReader::with_capacity(at_once, archive);
        let index = read_plain(archive, &mut pack, &mut segment, &Limits::default()).unwrap();
        Self { index, pack, segment: segment.bytes }
    }

    fn of_files(files: &[Vec<u8>]) -> Self {
        Self::of(&archive(files), 8192)
    }

    /// Reads a compressed archive.
    fn of_blob(archive: &[u8], blob: &[u8]) -> Self {
        let (mut pack, mut segment) = (Vec::new(), MemorySegment::default());
        let (digest, size) = (Digest::of(blob), blob.len() as u64);
        let (compression, diff_id) = (Compression::None, Digest::of(archive));
        let source = LayerSource { digest, size, compression, diff_id };
        let index = decode(&source, blob, &mut pack, &mut segment, &Limits::default()).unwrap();
        Self { index: LayerIndex { archive_size: 0, ..index }, pack, segment: segment.bytes }
    }

    /// Returns whether each content is at its listed offset.
    fn is_consistent(&self) -> bool {
        let lies = |bytes: &[u8], (content, offset): &(Content, u64)| {
            let [start, size] = [*offset, content.size].map(|it| usize::try_from(it).unwrap());
            Content::of(&bytes[start..start + size]) == *content
        };
        let (index, segment) = (&self.index, &self.segment);
        index.contents.iter().all(|it| lies(&self.pack, it))
            && index.segment.iter().all(|it| lies(segment, it) && it.1 % SEGMENT_BLOCK == 0)
            && index.data_size() == self.pack.len() as u64
            && index.segment_size() == segment.len() as u64
    }
}

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(size);
    header
}

/// Makes an archive of these files, with numbered names.
fn archive(files: &[Vec<u8>]) -> Vec<u8> {
    let names: Vec<_> = (0..files.len()).map(|number| format!("file-{number}")).collect();
    named(names.iter().map(String::as_str).zip(files))
}

fn named<'a>(files: impl IntoIterator<Item = (&'a str, &'a Vec<u8>)>) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, data) in files {
        let mut header = header(EntryType::Regular, data.len() as u64);
        builder.append_data(&mut header, name, data.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Makes the content of a file, which differs for each seed.
fn file(size: usize, seed: u8) -> Vec<u8> {
    let mut bytes = vec![seed; size];
    bytes.iter_mut().step_by(499).zip(0..=250).for_each(|(byte, number)| *byte ^= number);
    bytes
}

/// Returns the expected pack and segment of a layer of these files.
fn model(files: &[Vec<u8>]) -> (Vec<u8>, Vec<u8>) {
    let mut seen = BTreeSet::new();
    let distinct = files.iter().filter(|it| seen.insert(*it));
    let (small, large): (Vec<_>, Vec<_>) = distinct.cloned().partition(|it| it.len() <= 2048);
    let mut segment = Vec::new();
    for file in &large {
        segment.extend_from_slice(file);
        segment.resize(segment.len().next_multiple_of(4096), 0);
    }
    if segment.len() < MIB {
        ([small, large].concat().concat(), Vec::new())
    } else {
        (small.concat(), segment)
    }
}

fn files() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let small = prop::sample::select(vec![0, 1, 2047, 2048, 2049, 4095, 4096, 4097]);
    let large =
        prop::sample::select(vec![MIB - 4097, MIB - 1, MIB, MIB + 1, MIB + 4096, 3 * MIB / 2]);
    let size = prop_oneof![4 => small, 1 => 0..200_000_usize, 3 => large];
    prop::collection::vec((size, 0..2_u8).prop_map(|(size, seed)| file(size, seed)), 0..10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn contents_are_where_the_model_has_them_however_they_come(
        files in files(),
        at_once in prop_oneof![1000..5000_usize, 4096..3 * MIB],
    ) {
        let archive = archive(&files);
        let decoded = Decoded::of(&archive, at_once);
        let (pack, segment) = model(&files);
        prop_assert!(decoded.pack == pack && decoded.segment == segment);
        prop_assert!(decoded.is_consistent());
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&archive).unwrap();
        let zstd = zstd::encode_all(archive.as_slice(), 1).unwrap();
        for blob in [gzip.finish().unwrap(), zstd] {
            prop_assert!(Decoded::of_blob(&archive, &blob) == decoded);
        }
    }
}

#[test]
fn a_segment_has_at_least_a_mebibyte() {
    let blocks = |count: u8| (0..count).map(|seed| file(4096, seed)).collect::<Vec<_>>();
    let with = |size| [blocks(255), vec![file(size, 255)]].concat();
    let sizes = |files: &[Vec<u8>]| {
        let Decoded { pack, segment, .. } = Decoded::of_files(files);
        (pack.len(), segment.len())
    };
    assert_eq!(sizes(&blocks(255)), (MIB - 4096, 0));
    assert_eq!(sizes(&with(2048)), (MIB - 2048, 0));
    for size in [2049, 4096] {
        assert_eq!(sizes(&with(size)), (0, MIB), "{size}");
    }
    assert_eq!(sizes(&[file(MIB - 4096, 1)]), (MIB - 4096, 0));
    assert_eq!(sizes(&[file(MIB - 4095, 1)]), (0, MIB));
    assert_eq!(sizes(&vec![file(4096, 1); 300]), (4096, 0), "the same content");
}

#[test]
fn nothing_but_contents_changes_a_segment() {
    let files = [file(MIB, 1), file(5000, 2), file(3 * MIB / 2, 3)];
    let expected = Decoded::of_files(&files).segment;
    let mut builder = Builder::new(Vec::new());
    builder.append_data(&mut header(EntryType::Directory, 0), "d", &[][..]).unwrap();
    for (name, data) in ["z", "d/y", "x"].into_iter().zip(&files) {
        let mut header = header(EntryType::Regular, data.len() as u64);
        header.set_mode(0o4755);
        header.set_uid(1000);
        header.set_mtime(1_700_000_000);
        builder.append_pax_extensions([("SCHILY.xattr.user.note", &b"kept"[..])]).unwrap();
        builder.append_data(&mut header, name, data.as_slice()).unwrap();
        builder.append_data(&mut header, format!("{name}-again"), data.as_slice()).unwrap();
        let small = &mut self::header(EntryType::Regular, 5);
        builder.append_data(small, format!("{name}-small"), &b"hello"[..]).unwrap();
    }
    builder.append_link(&mut header(EntryType::Link, 0), "hard", "z").unwrap();
    let decoded = Decoded::of(&builder.into_inner().unwrap(), 8192);
    assert!(decoded.segment == expected);
    let [first, second, third] = files;
    assert!(Decoded::of_files(&[second, first, third]).segment != expected);
}

#[test]
fn what_is_overwritten_is_in_a_segment_and_what_is_no_file_is_not() {
    let [first, second] = [file(MIB, 1), file(MIB, 2)];
    let decoded = Decoded::of(&named([("a", &first), ("a", &second)]), 8192);
    assert!(decoded.segment == [first.as_slice(), &second].concat());
    let decoded = Decoded::of(&named([("a", &first), (".wh.b", &second)]), 8192);
    assert!(decoded.segment == first);
}

/// A store that is full after some calls.
struct Full(usize);

impl Full {
    fn call(&mut self) -> io::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(())
    }
}

impl SegmentSink for Full {
    fn write_all(&mut self, _: &[u8]) -> io::Result<()> {
        self.call()
    }

    fn mark(&mut self) -> io::Result<()> {
        self.call()
    }

    fn back_to_mark(&mut self) -> io::Result<()> {
        self.call()
    }
}

#[test]
fn a_sink_that_fails_is_an_error() {
    let files = [file(MIB + 1, 1), file(4096, 2), file(MIB + 1, 1)];
    let archive = archive(&files);
    let read = |calls| {
        let (limits, mut sink) = (Limits::default(), Full(calls));
        read_plain(archive.as_slice(), &mut io::sink(), &mut sink, &limits)
    };
    let is_full = |calls: &usize| matches!(read(*calls), Err(LayerErrorKind::Store(_)));
    let calls = (0..100).take_while(is_full).count();
    assert!((8..100).contains(&calls), "{calls}");
}
