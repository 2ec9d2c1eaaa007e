//! Files over 4 GiB, and the largest image. Their zero bytes are neither allocated nor stored.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::{Bound, RangeBounds};

use box_digest::Blake3Digest;
use erofs_rs::EroFS;
use erofs_rs::backend::Image;
use erofs_writer::{ContentSource, ImageBuilder, Node, Summary};
use tempfile::NamedTempFile;

use crate::model::meta;
use crate::tools;

static ZEROS: [u8; 64 << 20] = [0; 64 << 20];

fn is_zeros(bytes: &[u8]) -> bool {
    bytes.as_ptr() == ZEROS.as_ptr()
}

/// Contents of an `a`, zero bytes, and a `z` at the end.
struct Hollow;

impl ContentSource for Hollow {
    fn copy(&mut self, _: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"a")?;
        let mut left = size - 2;
        while left > 0 {
            let piece = left.min(ZEROS.len() as u64);
            out.write_all(&ZEROS[..usize::try_from(piece).unwrap()])?;
            left -= piece;
        }
        out.write_all(b"z")
    }
}

/// Writes an image whose root has files of these sizes, `a`, `b` and so on.
fn write(sizes: &[u64], out: &mut dyn Write) -> Summary {
    let mut builder = ImageBuilder::new(meta()).unwrap();
    for (&size, number) in sizes.iter().zip(0..) {
        let node = Node::File { size, content: Blake3Digest::from_bytes([number; 32]) };
        let id = builder.add(meta(), node).unwrap();
        builder.link(builder.root(), &[b'a' + number], id).unwrap();
    }
    builder.write(out, &mut Hollow).unwrap()
}

/// The written bytes by their offsets, without most of the zeros.
#[derive(Debug, Default)]
struct Holes {
    kept: BTreeMap<u64, Vec<u8>>,
    length: u64,
}

impl Write for Holes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Keeps up to a block of zero bytes, so that the block in which they start can be read.
        let kept = if is_zeros(bytes) { &bytes[..bytes.len().min(4096)] } else { bytes };
        match self.kept.last_entry() {
            Some(mut last) if last.key() + last.get().len() as u64 == self.length => {
                last.get_mut().extend_from_slice(kept);
            }
            _ => drop(self.kept.insert(self.length, kept.to_vec())),
        }
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Image for Holes {
    fn get<R: RangeBounds<u64>>(&self, range: R) -> Option<&[u8]> {
        let (Bound::Included(&start), Bound::Excluded(&end)) =
            (range.start_bound(), range.end_bound())
        else {
            return None;
        };
        let (&offset, bytes) = self.kept.range(..=start).next_back()?;
        let within = |position: u64| usize::try_from(position - offset).ok();
        bytes.get(within(start)?..within(end)?)
    }

    fn len(&self) -> u64 {
        self.length
    }
}

/// Checks the size, the first and the last byte of every file.
fn check(sizes: &[u64], image: Holes) {
    assert_eq!(image.length % 4096, 0);
    let blocks = image.length / 4096;
    let image = EroFS::new(image).unwrap();
    assert_eq!(image.super_block().block_count(), blocks);
    let mut found = Vec::new();
    for entry in image.walk_dir("/").unwrap() {
        let entry = entry.unwrap();
        let size = entry.inode.data_size();
        let file = image.open_inode_file(entry.inode).unwrap();
        let mut byte = [0];
        assert_eq!(file.read_at(&mut byte, 0).unwrap(), 1);
        assert_eq!(byte, *b"a", "of {size}");
        assert_eq!(file.read_at(&mut byte, size - 1).unwrap(), 1);
        assert_eq!(byte, *b"z", "of {size}");
        found.push(size);
    }
    assert_eq!(found, sizes);
}

#[test]
fn files_around_4_gib() {
    let sizes = [(1 << 32) - 1, 1 << 32, (1 << 32) + 1, 5 << 30, (1 << 40) + 12_345];
    let mut image = Holes::default();
    let summary = write(&sizes, &mut image);
    assert_eq!(summary.size, image.length);
    check(&sizes, image);
}

/// 2^32 - 1 blocks: one less than 16 TiB.
#[test]
fn the_largest_image() {
    let rest = 3;
    let big = (u64::from(u32::MAX) - 2 - rest) * 4096;
    let sizes = [big, rest * 4096];
    let mut image = Holes::default();
    let summary = write(&sizes, &mut image);
    assert_eq!(summary.size, u64::from(u32::MAX) * 4096);
    check(&sizes, image);
}

/// A file that has holes instead of the zero bytes.
struct Sparse(File);

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !is_zeros(bytes) {
            return self.0.write(bytes);
        }
        self.0.seek(SeekFrom::Current(bytes.len().try_into().unwrap()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn erofs_utils_reads_a_file_over_4_gib() {
    let sizes = [(5 << 30) + 1, (1 << 20) + 1];
    let image = NamedTempFile::new().unwrap();
    let mut out = Sparse(image.reopen().unwrap());
    let summary = write(&sizes, &mut out);
    assert_eq!(summary.size, out.0.metadata().unwrap().len());
    tools::check_file(image.path());
    let text = tools::run("dump.erofs", &["--path=/a".as_ref(), image.path().as_ref()]);
    assert!(text.contains(&format!("Size: {} ", sizes[0])), "{text}");
    let text =
        tools::run("dump.erofs", &["-e".as_ref(), "--path=/b".as_ref(), image.path().as_ref()]);
    let start = 2 * 4096 + sizes[0].next_multiple_of(4096);
    assert!(text.contains(&format!("{start}..")), "{text}");
}
