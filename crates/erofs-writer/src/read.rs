//! Reads one file of an image, or the offsets of its files, without a mount.
//!
//! Only images from [`crate::ImageBuilder`] are supported. The reader refuses any deviation that Linux could interpret
//! differently, so it returns the bytes that Linux shows.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::directory::{self, ENTRY};
use crate::inode::{DIRECTORY, FLAT_INLINE, REGULAR, SIZE, TYPE};
use crate::tree::is_dot;
use crate::{BLOCK, BLOCK_SIZE, superblock, xattr};

/// The largest directory that [`read_file`] searches, in bytes.
const MAX_DIRECTORY: u64 = 1 << 20;

/// Why a file of an image is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The image cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// This version of the writer does not write such an image.
    #[error("it is not an image that this version writes: {0}")]
    Unknown(&'static str),
    /// No entry has this name, or the entry is not of the requested type.
    #[error("it has no such file")]
    Missing,
    /// The file or a directory of its path is too large.
    #[error("the file or its directory is too large")]
    TooLarge,
}

/// Reads a regular file of at most `limit` bytes from an image. `path` is its names from the root on, for example `etc` and
/// `motd`. Symbolic links are not followed.
///
/// # Errors
/// [`ReadError`].
pub fn read_file<'n>(
    image: &File,
    path: impl IntoIterator<Item = &'n [u8]>,
    limit: u64,
) -> Result<Vec<u8>, ReadError> {
    let mut inode = root(image)?;
    for name in path {
        inode.check_type(DIRECTORY)?;
        let directory = inode.data(image, MAX_DIRECTORY)?;
        inode = Inode::read(image, find(&directory, name)?)?;
    }
    inode.check_type(REGULAR)?;
    inode.data(image, limit)
}

/// Returns the size in bytes of a directory with these names. They can be in any order, and must not include `.` and `..`.
pub fn directory_size<'n>(names: impl Iterator<Item = &'n [u8]>) -> u64 {
    let mut names: Vec<&[u8]> = names.chain([b".".as_slice(), b".."]).collect();
    names.sort_unstable();
    directory::size(names.into_iter())
}

/// Reads the root directory's inode of an image.
///
/// # Errors
/// [`ReadError::Io`] and [`ReadError::Unknown`].
pub fn root(image: &File) -> Result<Inode, ReadError> {
    let mut first = [0; BLOCK];
    read(image, &mut first, 0)?;
    let root = superblock::root(&first).ok_or(ReadError::Unknown("its first block is another"))?;
    Inode::read(image, root.into())
}

/// An inode of an image.
#[derive(Debug, Clone)]
pub struct Inode {
    nid: u64,
    mode: u16,
    size: u64,
    /// The offset of the first data block. Without meaning if all data are in the tail.
    blocks: u64,
    /// The offset of the inline tail, if the data have one.
    tail: Option<u64>,
}

impl Inode {
    fn read(image: &File, nid: u64) -> Result<Self, ReadError> {
        let other = ReadError::Unknown("an inode is in another form");
        let Some(offset) = nid.checked_mul(32).filter(|it| *it >= BLOCK_SIZE) else {
            return Err(other);
        };
        let mut bytes = [0; SIZE];
        read(image, &mut bytes, offset)?;
        let after = offset + (SIZE + xattr::length(u16_at(&bytes, 2))) as u64;
        // Accept only `erofs_inode_extended` with plain or inline data, the only formats that the writer uses.
        let tail = match u16_at(&bytes, 0) {
            1 => None,
            format if format == 1 | FLAT_INLINE << 1 => Some(after),
            _ => return Err(other),
        };
        let blocks = u64::from(u32_at(&bytes, 16)) * BLOCK_SIZE;
        let size = u64::from(u32_at(&bytes, 12)) << 32 | u64::from(u32_at(&bytes, 8));
        Ok(Self { nid, mode: u16_at(&bytes, 4), size, blocks, tail })
    }

    /// Returns the number by which directories name the inode.
    pub const fn nid(&self) -> u64 {
        self.nid
    }

    /// Returns whether the inode is a directory.
    pub const fn is_directory(&self) -> bool {
        self.mode & TYPE == DIRECTORY
    }

    /// Returns the offset in the image of a regular file's first byte. `None` for an empty file and for other inodes.
    pub fn place(&self) -> Option<u64> {
        (self.mode & TYPE == REGULAR && self.size > 0).then_some(self.tail.unwrap_or(self.blocks))
    }

    /// Reads the entries of a directory of at most `limit` bytes, sorted by name, without `.` and `..`.
    ///
    /// # Errors
    /// [`ReadError::Missing`] if the inode is not a directory, and the other errors of [`ReadError`].
    pub fn entries(&self, image: &File, limit: u64) -> Result<Vec<(Vec<u8>, Self)>, ReadError> {
        self.check_type(DIRECTORY)?;
        let directory = self.data(image, limit)?;
        let mut entries = Vec::new();
        for (nid, name) in sorted(&directory)? {
            if !is_dot(name) {
                entries.push((name.to_vec(), Self::read(image, nid)?));
            }
        }
        Ok(entries)
    }

    fn check_type(&self, expected: u16) -> Result<(), ReadError> {
        if self.mode & TYPE == expected { Ok(()) } else { Err(ReadError::Missing) }
    }

    fn data(&self, image: &File, limit: u64) -> Result<Vec<u8>, ReadError> {
        if self.size > limit {
            return Err(ReadError::TooLarge);
        }
        let size = usize::try_from(self.size).map_err(|_| ReadError::TooLarge)?;
        let mut bytes = vec![0; size];
        let whole = if self.tail.is_some() { size / BLOCK * BLOCK } else { size };
        let (blocks, tail) = bytes.split_at_mut(whole);
        read(image, blocks, self.blocks)?;
        if let Some(at) = self.tail {
            read(image, tail, at)?;
        }
        Ok(bytes)
    }
}

/// Returns the inode number of the entry `wanted`.
fn find(directory: &[u8], wanted: &[u8]) -> Result<u64, ReadError> {
    let found = sorted(directory)?.into_iter().find(|(_, name)| *name == wanted);
    found.map(|(nid, _)| nid).ok_or(ReadError::Missing)
}

/// Returns the entries of a directory. All names must be sorted, because Linux uses a binary search, which could
/// otherwise find another entry, or none.
fn sorted(directory: &[u8]) -> Result<Vec<(u64, &[u8])>, ReadError> {
    let malformed = || ReadError::Unknown("a directory is in another form");
    let mut all: Vec<(u64, &[u8])> = Vec::new();
    for block in directory.chunks(BLOCK) {
        all.extend(names(block).ok_or_else(malformed)?);
    }
    let first_is_empty = all.first().is_some_and(|(_, name)| name.is_empty());
    if first_is_empty || !all.is_sorted_by(|a, b| a.1 < b.1) { Err(malformed()) } else { Ok(all) }
}

/// Returns the entries of a directory's block. `None` if the block is malformed.
fn names(block: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let start = |entry: &[u8]| usize::from(u16_at(entry, 8));
    let count = start(block.get(..ENTRY)?) / ENTRY;
    // Refuses a block without entries, such as one of zeros.
    if count == 0 {
        return None;
    }
    let entries: Vec<&[u8]> = block.get(..count * ENTRY)?.chunks(ENTRY).collect();
    let mut starts: Vec<usize> = entries.iter().map(|entry| start(entry)).collect();
    // The last name ends with the directory, or before the zeros that pad the block.
    let names = block.get(count * ENTRY..)?;
    let length = names.iter().position(|byte| *byte == 0).unwrap_or(names.len());
    starts.push(count * ENTRY + length);
    let ranges = starts.windows(2).map(|pair| Range { start: pair[0], end: pair[1] });
    let nid = |entry: &[u8]| u64::from(u32_at(entry, 4)) << 32 | u64::from(u32_at(entry, 0));
    entries.iter().zip(ranges).map(|(entry, at)| Some((nid(entry), block.get(at)?))).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn read(image: &File, bytes: &mut [u8], offset: u64) -> Result<(), ReadError> {
    image.read_exact_at(bytes, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadError::Unknown("it ends early"),
        _ => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use box_digest::Blake3Digest;

    use super::*;
    use crate::{ContentSource, ImageBuilder, Meta, Node};

    /// Contents that repeat one byte, which depends on `size`.
    struct Bytes;

    fn bytes(size: u64) -> Vec<u8> {
        vec![size.to_le_bytes()[0] | 1; usize::try_from(size).unwrap()]
    }

    impl ContentSource for Bytes {
        fn copy(&mut self, _: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()> {
            out.write_all(&bytes(size))
        }
    }

    const SIZES: [u64; 7] = [0, 1, 4000, 4095, 4096, 4097, 10_000];

    /// Returns an image with a file `dir/N` for each size N. The directory has enough other names for several blocks.
    fn image() -> Vec<u8> {
        let mut image = ImageBuilder::new(Meta::default()).unwrap();
        let xattrs = vec![(b"user.a".to_vec(), b"value".to_vec())];
        let meta = Meta { xattrs, ..Meta::default() };
        let directory = image.add(meta.clone(), Node::Directory).unwrap();
        image.link(image.root(), b"dir", directory).unwrap();
        for size in SIZES {
            let node = Node::File { size, content: Blake3Digest::of(&bytes(size)) };
            let file = image.add(meta.clone(), node).unwrap();
            image.link(directory, size.to_string().as_bytes(), file).unwrap();
        }
        for at in 0..400 {
            let fifo = image.add(Meta::default(), Node::Fifo).unwrap();
            image.link(directory, format!("fifo-{at}").as_bytes(), fifo).unwrap();
        }
        let mut out = Vec::new();
        image.write(&mut out, &mut Bytes).unwrap();
        out
    }

    fn read_of(image: &[u8], path: &str) -> Result<Vec<u8>, ReadError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(image).unwrap();
        read_file(&file, path.split('/').map(str::as_bytes), 1 << 20)
    }

    #[test]
    fn files_of_all_sizes_read_back() {
        let image = image();
        for size in SIZES {
            assert_eq!(read_of(&image, &format!("dir/{size}")).unwrap(), bytes(size), "{size}");
        }
        for missing in ["dir", "dir/5", "dir/fifo-7", "dir/1/1", "di", "dir/", "dirr"] {
            let error = read_of(&image, missing).unwrap_err();
            assert!(matches!(error, ReadError::Missing), "{missing}: {error}");
        }
    }

    #[test]
    fn a_file_over_the_limit_is_not_read() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&image()).unwrap();
        let read = |limit| read_file(&file, [b"dir".as_slice(), b"4096"], limit);
        assert_eq!(read(4096).unwrap().len(), 4096);
        assert!(matches!(read(4095), Err(ReadError::TooLarge)));
    }

    #[test]
    fn what_linux_could_read_otherwise_is_refused() {
        let image = image();
        let refused = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut image = image.clone();
            change(&mut image);
            matches!(read_of(&image, "dir/1"), Err(ReadError::Unknown(_)))
        };
        let at = |name: &[u8]| image.windows(name.len()).position(|it| it == name).unwrap();
        // A feature flag; names that are not in order; an image that is cut off.
        assert!(refused(&|image| image[1024 + 80] = 1));
        assert!(refused(&|image| image[at(b"fifo-10fifo-100")] = b'g'));
        assert!(refused(&|image| image.truncate(5000)));
        // The root inode in another layout.
        let block = image[..BLOCK].try_into().unwrap();
        let root = usize::from(superblock::root(block).unwrap()) * 32;
        assert!(refused(&|image| image[root] = 0));
        assert!(refused(&|image| image[root] = 1 | 4 << 1));
    }

    #[test]
    fn a_directory_of_empty_blocks_is_refused() {
        assert!(names(&[0; BLOCK]).is_none());
        assert!(sorted(&[0; 2 * BLOCK]).is_err());
    }

    #[test]
    fn the_size_of_a_directory_follows_from_its_names() {
        let image = image();
        let names: Vec<_> = SIZES.map(|size| size.to_string()).into_iter().collect();
        let fifos: Vec<_> = (0..400).map(|at| format!("fifo-{at}")).collect();
        let names = names.iter().chain(&fifos).map(String::as_bytes);
        let size = directory_size(names);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&image).unwrap();
        let root = root(&file).unwrap();
        let (_, directory) = root.entries(&file, BLOCK_SIZE).unwrap().remove(0);
        assert_eq!(directory.entries(&file, size).unwrap().len(), 407);
        assert!(matches!(directory.entries(&file, size - 1), Err(ReadError::TooLarge)));
    }

    #[test]
    fn no_changed_byte_of_the_structures_panics() {
        let image = image();
        for at in (1024..1152).chain(BLOCK..image.len().min(5 * BLOCK)).step_by(3) {
            let mut image = image.clone();
            image[at] ^= 0xFF;
            drop(read_of(&image, "dir/1"));
        }
    }
}
