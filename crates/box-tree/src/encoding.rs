//! The canonical bytes of an entry's attributes and content: in the tree digest, in the stored index
//! of a layer and in the listing of a box.
//!
//! Numbers are little-endian, byte strings are a u32 length and the bytes:
//!
//! ```text
//! 0 further name of an inode (number u32 of the entry that was its first)
//! 3 directory (meta), 4 file (meta, BLAKE3 32 bytes, size u64), 5 symlink (meta, target),
//! 6 char and 7 block device (meta, major u32, minor u32), 8 pipe (meta)
//! meta     mode u16, uid u32, gid u32, mtime i64, mtime_nsec u32, xattrs u32 (name, value)…
//! ```

use std::collections::BTreeMap;

use box_digest::Blake3Digest;

use crate::{Content, Inode, Kind, Leaf, Meta};

/// The tag of a further name of an inode.
pub const FURTHER_NAME: u8 = 0;
/// The tag of a directory.
pub const DIRECTORY: u8 = 3;
const FILE: u8 = 4;
const SYMLINK: u8 = 5;
const CHAR_DEVICE: u8 = 6;
const BLOCK_DEVICE: u8 = 7;
const FIFO: u8 = 8;

/// The maximum size of the names and values of one inode's extended attributes, in bytes.
pub const XATTR_BYTES: usize = 128 << 10;

/// The bytes end too early, or no [`Writer`] writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncated;

/// Appends encoded values to bytes.
#[derive(Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Writes a number in four bytes, little-endian.
    pub fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes a number in eight bytes, little-endian.
    pub fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes the number of elements or bytes that follow.
    pub fn length(&mut self, length: usize) {
        // The limits of layers keep every count and every byte string far below 2^32.
        self.u32(u32::try_from(length).unwrap_or(u32::MAX));
    }

    /// Writes a byte string.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Writes the hash and the size of a content.
    pub fn content(&mut self, content: &Content) {
        self.0.extend_from_slice(content.hash.as_bytes());
        self.u64(content.size);
    }

    /// Writes an inode if `first` is `None`. Otherwise writes a further name of the inode: `first` is the number of the
    /// entry with its first name.
    pub fn entry(&mut self, inode: &Inode, first: Option<u32>) {
        match (first, &inode.kind) {
            (Some(first), _) => {
                self.0.push(FURTHER_NAME);
                self.u32(first);
            }
            (None, Kind::Directory(_)) => self.directory(&inode.meta),
            (None, Kind::Leaf(leaf)) => self.leaf(&inode.meta, leaf),
        }
    }

    /// Writes a directory: its tag and attributes.
    pub fn directory(&mut self, meta: &Meta) {
        self.tagged(DIRECTORY, meta);
    }

    /// Writes a leaf: its tag, attributes and content.
    pub fn leaf(&mut self, meta: &Meta, leaf: &Leaf) {
        match leaf {
            Leaf::File(content) => {
                self.tagged(FILE, meta);
                self.content(content);
            }
            Leaf::Symlink(target) => {
                self.tagged(SYMLINK, meta);
                self.bytes(target);
            }
            Leaf::CharDevice(major, minor) => self.device(CHAR_DEVICE, meta, *major, *minor),
            Leaf::BlockDevice(major, minor) => self.device(BLOCK_DEVICE, meta, *major, *minor),
            Leaf::Fifo => self.tagged(FIFO, meta),
        }
    }

    fn device(&mut self, tag: u8, meta: &Meta, major: u32, minor: u32) {
        self.tagged(tag, meta);
        self.u32(major);
        self.u32(minor);
    }

    fn tagged(&mut self, tag: u8, meta: &Meta) {
        self.0.push(tag);
        self.0.extend_from_slice(&meta.mode.to_le_bytes());
        self.u32(meta.uid);
        self.u32(meta.gid);
        self.0.extend_from_slice(&meta.mtime.to_le_bytes());
        self.u32(meta.mtime_nsec);
        self.length(meta.xattrs.len());
        for (name, value) in &meta.xattrs {
            self.bytes(name);
            self.bytes(value);
        }
    }
}

/// Reads encoded values from bytes.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the beginning of bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns `true` if all bytes were read.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Truncated)?;
        self.0 = rest;
        Ok(*array)
    }

    /// Reads a byte.
    ///
    /// # Errors
    /// [`Truncated`].
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array().map(|[byte]| byte)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// [`Truncated`].
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// [`Truncated`].
    pub fn u64(&mut self) -> Result<u64, Truncated> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a byte string.
    ///
    /// # Errors
    /// [`Truncated`].
    pub fn bytes(&mut self) -> Result<&'a [u8], Truncated> {
        let length = usize::try_from(self.u32()?).map_err(|_| Truncated)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Reads a content.
    ///
    /// # Errors
    /// [`Truncated`].
    pub fn content(&mut self) -> Result<Content, Truncated> {
        Ok(Content { hash: Blake3Digest::from_bytes(self.array()?), size: self.u64()? })
    }

    /// Reads the content of a leaf, which follows its tag and attributes.
    ///
    /// # Errors
    /// [`Truncated`].
    pub fn leaf(&mut self, tag: u8) -> Result<Leaf, Truncated> {
        Ok(match tag {
            FILE => Leaf::File(self.content()?),
            SYMLINK => Leaf::Symlink(self.bytes()?.to_vec()),
            CHAR_DEVICE => Leaf::CharDevice(self.u32()?, self.u32()?),
            BLOCK_DEVICE => Leaf::BlockDevice(self.u32()?, self.u32()?),
            FIFO => Leaf::Fifo,
            _ => return Err(Truncated),
        })
    }

    /// Reads attributes.
    ///
    /// # Errors
    /// [`Truncated`], also for more than [`XATTR_BYTES`] of extended attributes.
    pub fn meta(&mut self) -> Result<Meta, Truncated> {
        let mut meta = Meta {
            mode: self.array().map(u16::from_le_bytes)?,
            uid: self.u32()?,
            gid: self.u32()?,
            mtime: self.array().map(i64::from_le_bytes)?,
            mtime_nsec: self.u32()?,
            xattrs: BTreeMap::new(),
        };
        let mut bytes = 0;
        for _ in 0..self.u32()? {
            let (name, value) = (self.bytes()?, self.bytes()?);
            bytes += name.len() + value.len();
            if bytes > XATTR_BYTES {
                return Err(Truncated);
            }
            meta.xattrs.insert(name.to_vec(), value.to_vec());
        }
        Ok(meta)
    }
}
