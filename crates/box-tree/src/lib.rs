#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod content;
mod digest;
pub mod encoding;
pub mod erofs;
mod field;
mod graft;
pub mod listing;
mod lookup;
pub mod memory;
pub mod path;
mod trail;
mod walk;

use std::collections::BTreeMap;
use std::io::{self, Write};

pub use content::{Content, CopyError};
pub use digest::{Names, TREE_EPOCH, entries};
pub use erofs_writer::{MAX_NAME, MAX_TARGET, MAX_XATTR_NAME, is_known_xattr};
pub use field::{Field, FieldDifference};
pub use graft::Absorbed;
pub use listing::Origin;
pub use lookup::{MAX_DETOURS, Unreached};
pub use trail::Trail;
pub use walk::{Follow, LookupError, Step, Walk};

/// Reads the bytes of the files of a tree.
pub trait ReadContent {
    /// Reads at most the first `limit` bytes of a content, and writes them to `out`. Verifies the
    /// content only if it is not longer than `limit`.
    ///
    /// # Errors
    /// If the content is missing or damaged, or cannot be read or written.
    fn copy_head(&mut self, content: Content, limit: u64, out: &mut dyn Write) -> io::Result<()>;

    /// Writes a content to `out`, and verifies it.
    ///
    /// # Errors
    /// As [`Self::copy_head`].
    fn copy_content(&mut self, content: Content, out: &mut dyn Write) -> io::Result<()> {
        self.copy_head(content, content.size, out)
    }

    /// Reads at most the first `limit` bytes of a content, like [`Self::copy_head`].
    ///
    /// # Errors
    /// As [`Self::copy_head`].
    fn read_head(&mut self, content: Content, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.copy_head(content, limit, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a small content whole.
    ///
    /// # Errors
    /// As [`Self::copy_content`], and if the content has more than `limit` bytes.
    fn read(&mut self, content: Content, limit: u64) -> io::Result<Vec<u8>> {
        if content.size > limit {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too large"));
        }
        self.read_head(content, limit)
    }
}

/// A name in a directory: bytes without `/` or NUL, neither empty nor `.` nor `..`.
pub type Name = Box<[u8]>;

/// Returns whether bytes are a valid [`Name`] on Linux: `b"a b"` is, for example, and `b".."` and
/// `b"a/b"` are not.
pub fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && name.len() <= MAX_NAME
        && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// Identifies an inode within its [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeId(u32);

impl InodeId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Owner, permissions, time and extended attributes of an inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// Permission bits with set-uid, set-gid and sticky: `0o0000` to `0o7777`.
    pub mode: u16,
    /// The numeric user id.
    pub uid: u32,
    /// The numeric group id.
    pub gid: u32,
    /// Modification time in seconds since 1970.
    pub mtime: i64,
    /// Nanoseconds within the second, 0 to 999,999,999.
    pub mtime_nsec: u32,
    /// Extended attributes by their full names.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Meta {
    /// Returns metadata with the permissions `mode`, owned by root, with the mtime 0.
    pub const fn root_owned(mode: u16) -> Self {
        Self { mode, uid: 0, gid: 0, mtime: 0, mtime_nsec: 0, xattrs: BTreeMap::new() }
    }

    /// Returns the approximate memory of the extended attributes: their bytes, and 64 for each.
    pub fn xattrs_cost(&self) -> usize {
        self.xattrs.iter().map(|(name, value)| name.len() + value.len() + 64).sum()
    }
}

/// The type of an inode other than a directory, with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaf {
    /// A regular file; its bytes are elsewhere.
    File(Content),
    /// A symbolic link to this target.
    Symlink(Vec<u8>),
    /// A character device: major and minor number.
    CharDevice(u32, u32),
    /// A block device: major and minor number.
    BlockDevice(u32, u32),
    /// A named pipe, without data.
    Fifo,
}

/// The type of an inode, with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A directory and its names.
    Directory(BTreeMap<Name, InodeId>),
    /// An inode without entries.
    Leaf(Leaf),
}

/// A file, directory or special file, under one name or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inode {
    /// Owner, permissions, time, attributes.
    pub meta: Meta,
    /// The type, with its specific data.
    pub kind: Kind,
    /// The entry's origin. No digest depends on it.
    pub origin: Origin,
}

impl Inode {
    /// Returns the type: `file`, `directory`, `symlink`, `char-device`, `block-device` or `fifo`.
    pub const fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Directory(_) => "directory",
            Kind::Leaf(Leaf::File(_)) => "file",
            Kind::Leaf(Leaf::Symlink(_)) => "symlink",
            Kind::Leaf(Leaf::CharDevice(..)) => "char-device",
            Kind::Leaf(Leaf::BlockDevice(..)) => "block-device",
            Kind::Leaf(Leaf::Fifo) => "fifo",
        }
    }

    /// Returns the content of a regular file.
    pub const fn content(&self) -> Option<&Content> {
        match &self.kind {
            Kind::Leaf(Leaf::File(content)) => Some(content),
            _ => None,
        }
    }

    /// Returns the target of a symbolic link.
    pub fn target(&self) -> Option<&[u8]> {
        match &self.kind {
            Kind::Leaf(Leaf::Symlink(target)) => Some(target),
            _ => None,
        }
    }

    /// Returns the major and minor number of a device.
    pub const fn device(&self) -> Option<(u32, u32)> {
        match &self.kind {
            Kind::Leaf(Leaf::CharDevice(major, minor) | Leaf::BlockDevice(major, minor)) => {
                Some((*major, *minor))
            }
            _ => None,
        }
    }

    /// Shows the numbers of a device, as `/sys/dev` does: `1:3`.
    pub fn device_numbers(&self) -> Option<String> {
        self.device().map(|(major, minor)| format!("{major}:{minor}"))
    }

    /// Returns an empty directory that the builder makes.
    pub const fn directory(meta: Meta) -> Self {
        Self { meta, kind: Kind::Directory(BTreeMap::new()), origin: Origin::Generated }
    }

    /// Returns an inode of another type that the builder makes.
    pub const fn leaf(meta: Meta, leaf: Leaf) -> Self {
        Self { meta, kind: Kind::Leaf(leaf), origin: Origin::Generated }
    }

    /// Returns the same inode with this origin.
    #[must_use]
    pub fn from(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// Returns the names of a directory. `None` for any other type.
    pub const fn names(&self) -> Option<&BTreeMap<Name, InodeId>> {
        match &self.kind {
            Kind::Directory(names) => Some(names),
            Kind::Leaf(_) => None,
        }
    }
}

/// A file tree. It always has a root, which is a directory.
#[derive(Debug, Clone)]
pub struct Tree {
    /// All inodes that were added. An inode without a name is not part of the tree.
    inodes: Vec<Inode>,
    /// The number of names in the symbolic links that were followed while the tree was made.
    detours: usize,
}

impl Default for Tree {
    /// Returns an empty tree. Its root has the attributes of the root of an image that has no entry
    /// for it: `0755`, owned by root, mtime 0.
    fn default() -> Self {
        Self { inodes: vec![Inode::directory(Meta::root_owned(0o755))], detours: 0 }
    }
}

impl Tree {
    /// The root directory, which every tree has.
    pub const ROOT: InodeId = InodeId(0);

    /// Returns the inode with this id.
    pub fn inode(&self, id: InodeId) -> &Inode {
        &self.inodes[id.index()]
    }

    /// Returns an inode to change.
    pub fn inode_mut(&mut self, id: InodeId) -> &mut Inode {
        &mut self.inodes[id.index()]
    }

    /// Adds an inode without a name.
    pub fn add(&mut self, inode: Inode) -> InodeId {
        // Neither the layers of an image nor a listing have as many as 2^32 inodes.
        let id = u32::try_from(self.inodes.len()).unwrap_or(u32::MAX);
        self.inodes.push(inode);
        InodeId(id)
    }

    /// Returns the number of inodes that were added, including inodes without a name.
    pub const fn made(&self) -> usize {
        self.inodes.len()
    }

    /// Returns the inode of a name in a directory.
    pub fn child(&self, directory: InodeId, name: &[u8]) -> Option<InodeId> {
        self.inode(directory).names()?.get(name).copied()
    }

    /// Gives an inode a name in a directory, replacing an entry of that name.
    ///
    /// A no-op if `directory` is not a directory.
    pub fn link(&mut self, directory: InodeId, name: &[u8], inode: InodeId) {
        if let Kind::Directory(names) = &mut self.inode_mut(directory).kind {
            names.insert(name.into(), inode);
        }
    }

    /// Gives an inode other attributes, and the origin of the entry that has them.
    pub fn set_meta(&mut self, inode: InodeId, meta: &Meta, origin: Origin) {
        let inode = self.inode_mut(inode);
        (inode.meta, inode.origin) = (meta.clone(), origin);
    }

    /// Removes a name from a directory, with all entries below it.
    pub fn unlink(&mut self, directory: InodeId, name: &[u8]) {
        if let Kind::Directory(names) = &mut self.inode_mut(directory).kind {
            names.remove(name);
        }
    }

    /// Removes all names from a directory.
    pub fn clear(&mut self, directory: InodeId) {
        if let Kind::Directory(names) = &mut self.inode_mut(directory).kind {
            names.clear();
        }
    }

    /// Returns the directory of this name. Makes it if there is no entry, and in place of an entry that is not a directory.
    pub fn ensure_directory(&mut self, directory: InodeId, name: &[u8]) -> InodeId {
        match self.child(directory, name) {
            Some(child) if self.inode(child).names().is_some() => child,
            _ => {
                let child = self.add(Inode::directory(Meta::root_owned(0o755)));
                self.link(directory, name, child);
                child
            }
        }
    }
}
