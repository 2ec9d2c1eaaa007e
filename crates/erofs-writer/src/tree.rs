//! The tree of an image: inodes, and their names in directories.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::printable;
use box_digest::Blake3Digest;

use crate::{Error, xattr};

/// The longest name in a directory, in bytes: `EROFS_NAME_LEN` of `fs/erofs/erofs_fs.h`, and
/// `NAME_MAX` of Linux.
pub const MAX_NAME: usize = 255;
/// The longest target of a symlink, in bytes: `PATH_MAX` of `include/uapi/linux/limits.h` without
/// the NUL byte.
pub const MAX_TARGET: usize = 4095;

/// The metadata of every inode, whatever its type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// The permission bits, set-id bits and sticky bit: at most 0o7777.
    pub mode: u16,
    /// The numeric user id.
    pub uid: u32,
    /// The numeric group id.
    pub gid: u32,
    /// The time of the last modification, in seconds since 1970. Linux shows it as the access and
    /// change time too.
    pub mtime: i64,
    /// The nanoseconds of the modification time: below 1000000000.
    pub mtime_nsec: u32,
    /// Extended attributes in any order: full names, such as `b"security.capability"`, and values.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The type of an inode, with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants describe their fields")]
pub enum Node {
    /// A directory; [`ImageBuilder::link`] fills it.
    Directory,
    /// A regular file: its size in bytes, and the digest of its bytes. The writer treats files with equal digests as equal,
    /// and never compares the bytes.
    File { size: u64, content: Blake3Digest },
    /// A symbolic link and its target: 1 to 4095 bytes, none of them NUL.
    Symlink { target: Vec<u8> },
    /// A character device: `major` is at most 4095, `minor` at most 1048575.
    CharDevice { major: u32, minor: u32 },
    /// A block device, with the bounds of a character device.
    BlockDevice { major: u32, minor: u32 },
    /// A named pipe, without data.
    Fifo,
    /// A Unix socket, without data.
    Socket,
}

/// The id of an inode in one [`ImageBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// Returns the id of the inode at a position: the inverse of [`index`](Self::index).
    pub(crate) fn at(index: usize) -> Self {
        Self(u32::try_from(index).expect("add() counts inodes with 32 bits"))
    }

    /// Returns the inode's position in the order in which inodes were added. The root has 0.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The entries of a directory, with `.` and `..`, sorted by their bytes as EROFS requires.
pub(crate) type Entries = BTreeMap<Box<[u8]>, NodeId>;

/// Returns whether `name` is `.` or `..`, which every directory has.
pub(crate) fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

/// An inode of the tree.
#[derive(Debug)]
pub(crate) struct Inode {
    /// The metadata, with `xattrs` moved to [`Self::xattrs`].
    pub(crate) meta: Meta,
    /// [`Meta::xattrs`], encoded by [`xattr::encode`].
    pub(crate) xattrs: Vec<u8>,
    pub(crate) node: Node,
    /// The link count: the number of names. A directory's names are the one in its parent, its `.`, and the `..` of each
    /// subdirectory.
    pub(crate) links: u32,
    /// The entries of a directory; empty for other inodes. A directory without `..` has no name yet.
    pub(crate) entries: Entries,
    /// Whether the inode was put last, with [`ImageBuilder::put_last`].
    pub(crate) is_last: bool,
}

impl Inode {
    fn new(mut meta: Meta, node: Node, id: NodeId) -> Result<Self, Error> {
        check_meta(&meta)?;
        check_node(&node)?;
        let mut entries = Entries::new();
        let mut links = 0;
        if node == Node::Directory {
            entries.insert(b".".as_slice().into(), id);
            links = 2;
        }
        let xattrs = xattr::encode(std::mem::take(&mut meta.xattrs))?;
        Ok(Self { meta, xattrs, node, links, entries, is_last: false })
    }

    /// Returns whether the inode has a name, or is the root.
    pub(crate) fn is_named(&self) -> bool {
        match self.node {
            Node::Directory => self.parent().is_some(),
            _ => self.links > 0,
        }
    }

    /// Returns the content of a regular file, and its size in bytes. `None` for other inodes.
    pub(crate) fn file(&self) -> Option<(Blake3Digest, u64)> {
        match self.node {
            Node::File { size, content } => Some((content, size)),
            _ => None,
        }
    }

    /// Returns the parent of a directory: its `..`. `None` if it has no name yet, or is not a directory.
    pub(crate) fn parent(&self) -> Option<NodeId> {
        self.entries.get(b"..".as_slice()).copied()
    }

    fn add_link(&mut self) -> Result<(), Error> {
        self.links = self.links.checked_add(1).ok_or(Error::TooLarge)?;
        Ok(())
    }
}

/// Collects the tree of an image, then writes it.
///
/// Add inodes, which have no name at first, and link them into directories, in any order. The order does not change the
/// image.
#[derive(Debug)]
pub struct ImageBuilder {
    pub(crate) inodes: Vec<Inode>,
}

const ROOT: NodeId = NodeId(0);

impl ImageBuilder {
    /// Starts a tree that has only its root directory.
    ///
    /// # Errors
    /// The errors of [`add`](Self::add).
    pub fn new(root: Meta) -> Result<Self, Error> {
        let mut builder = Self { inodes: Vec::new() };
        builder.add(root, Node::Directory)?;
        builder.inodes[ROOT.index()].entries.insert(b"..".as_slice().into(), ROOT);
        Ok(builder)
    }

    /// Returns the root directory.
    pub fn root(&self) -> NodeId {
        ROOT
    }

    /// Adds an inode that has no name yet.
    ///
    /// # Errors
    /// [`Error::InvalidMode`], [`Error::InvalidTime`], [`Error::InvalidTarget`],
    /// [`Error::InvalidDevice`], and the errors of extended attributes.
    pub fn add(&mut self, meta: Meta, node: Node) -> Result<NodeId, Error> {
        let id = NodeId(u32::try_from(self.inodes.len()).map_err(|_| Error::TooLarge)?);
        self.inodes.push(Inode::new(meta, node, id)?);
        Ok(id)
    }

    /// Puts an inode last. The image stores the inodes that were put last, and their data, after all other inodes and data.
    /// A change of such an inode then moves no other inode or data, except the data of directories that contain such an
    /// inode. A no-op for the root, which is always the first inode.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn put_last(&mut self, node: NodeId) -> Result<(), Error> {
        self.get(node)?;
        self.inodes[node.index()].is_last = node != ROOT;
        Ok(())
    }

    /// Gives an inode a name in a directory.
    ///
    /// An inode that is not a directory may have several names: hard links.
    ///
    /// # Errors
    /// [`Error::InvalidName`], [`Error::DuplicateName`], [`Error::NotADirectory`],
    /// [`Error::DirectoryLinkedTwice`], [`Error::UnknownNode`].
    pub fn link(&mut self, directory: NodeId, name: &[u8], node: NodeId) -> Result<(), Error> {
        check_name(name)
            .map_err(|problem| Error::InvalidName { name: printable(name), problem })?;
        self.check_link(directory, name, node)?;
        let inode = &mut self.inodes[node.index()];
        if inode.node == Node::Directory {
            inode.entries.insert(b"..".as_slice().into(), directory);
            self.inodes[directory.index()].add_link()?;
        } else {
            inode.add_link()?;
        }
        self.inodes[directory.index()].entries.insert(name.into(), node);
        Ok(())
    }

    fn check_link(&self, directory: NodeId, name: &[u8], node: NodeId) -> Result<(), Error> {
        let holder = self.get(directory)?;
        let inode = self.get(node)?;
        let text = || printable(name);
        if holder.node != Node::Directory {
            return Err(Error::NotADirectory { node: directory, name: text() });
        }
        if holder.entries.contains_key(name) {
            return Err(Error::DuplicateName { name: text() });
        }
        if inode.node == Node::Directory && inode.is_named() {
            return Err(Error::DirectoryLinkedTwice { node, name: text() });
        }
        Ok(())
    }

    fn get(&self, node: NodeId) -> Result<&Inode, Error> {
        self.inodes.get(node.index()).ok_or(Error::UnknownNode { node })
    }
}

fn check_name(name: &[u8]) -> Result<(), &'static str> {
    match name {
        b"" => Err("is empty"),
        b"." | b".." => Err("is taken in every directory"),
        _ if name.len() > MAX_NAME => Err("is longer than 255 bytes"),
        _ if name.contains(&b'/') => Err("has a slash"),
        _ if name.contains(&0) => Err("has a NUL byte"),
        _ => Ok(()),
    }
}

fn check_meta(meta: &Meta) -> Result<(), Error> {
    if meta.mode > 0o7777 {
        return Err(Error::InvalidMode { mode: meta.mode });
    }
    if meta.mtime_nsec >= 1_000_000_000 {
        return Err(Error::InvalidTime { nanoseconds: meta.mtime_nsec });
    }
    Ok(())
}

fn check_node(node: &Node) -> Result<(), Error> {
    match node {
        Node::Symlink { target } => check_target(target)
            .map_err(|problem| Error::InvalidTarget { length: target.len(), problem }),
        &Node::CharDevice { major, minor } | &Node::BlockDevice { major, minor }
            if major > 0xFFF || minor > 0xF_FFFF =>
        {
            Err(Error::InvalidDevice { major, minor })
        }
        _ => Ok(()),
    }
}

fn check_target(target: &[u8]) -> Result<(), &'static str> {
    match target {
        b"" => Err("points nowhere"),
        _ if target.len() > MAX_TARGET => Err("is longer than the 4095 that Linux follows"),
        _ if target.contains(&0) => Err("has a NUL byte"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> ImageBuilder {
        ImageBuilder::new(Meta::default()).unwrap()
    }

    fn add(builder: &mut ImageBuilder, node: Node) -> NodeId {
        builder.add(Meta::default(), node).unwrap()
    }

    #[test]
    fn names_that_no_directory_can_hold_are_refused() {
        let mut builder = builder();
        let fifo = add(&mut builder, Node::Fifo);
        let long = [b'x'; 256];
        for name in [b"".as_slice(), b".", b"..", b"a/b", b"/", b"a\0b", &long] {
            let error = builder.link(builder.root(), name, fifo).unwrap_err();
            assert!(matches!(error, Error::InvalidName { .. }), "{error}");
        }
        for name in [b"...".as_slice(), b"\xFF\n", &long[1..]] {
            builder.link(builder.root(), name, fifo).unwrap();
        }
        assert_eq!(builder.inodes[fifo.index()].links, 3);
    }

    #[test]
    fn a_name_is_given_once() {
        let mut builder = builder();
        let fifo = add(&mut builder, Node::Fifo);
        builder.link(builder.root(), b"a", fifo).unwrap();
        let error = builder.link(builder.root(), b"a", fifo).unwrap_err();
        assert!(matches!(error, Error::DuplicateName { .. }), "{error}");
        assert_eq!(builder.inodes[fifo.index()].links, 1);
    }

    #[test]
    fn only_directories_hold_names() {
        let mut builder = builder();
        let fifo = add(&mut builder, Node::Fifo);
        let error = builder.link(fifo, b"a", fifo).unwrap_err();
        assert!(matches!(error, Error::NotADirectory { .. }), "{error}");
    }

    #[test]
    fn a_directory_has_one_name_and_the_root_none() {
        let mut builder = builder();
        let directory = add(&mut builder, Node::Directory);
        builder.link(builder.root(), b"a", directory).unwrap();
        for node in [directory, builder.root()] {
            let error = builder.link(directory, b"b", node).unwrap_err();
            assert!(matches!(error, Error::DirectoryLinkedTwice { .. }), "{error}");
        }
    }

    #[test]
    fn an_id_of_another_builder_is_refused() {
        let mut other = builder();
        let foreign = add(&mut other, Node::Fifo);
        let mut builder = builder();
        for (directory, node) in [(builder.root(), foreign), (foreign, builder.root())] {
            let error = builder.link(directory, b"a", node).unwrap_err();
            assert!(matches!(error, Error::UnknownNode { .. }), "{error}");
        }
    }

    #[test]
    fn links_are_counted_as_unix_counts_them() {
        let mut builder = builder();
        let outer = add(&mut builder, Node::Directory);
        let inner = add(&mut builder, Node::Directory);
        let fifo = add(&mut builder, Node::Fifo);
        builder.link(outer, b"inner", inner).unwrap();
        builder.link(builder.root(), b"outer", outer).unwrap();
        builder.link(inner, b"fifo", fifo).unwrap();
        builder.link(outer, b"fifo", fifo).unwrap();
        let links = |id: NodeId| builder.inodes[id.index()].links;
        assert_eq!([builder.root(), outer, inner, fifo].map(links), [3, 3, 2, 2]);
        assert_eq!(builder.inodes[inner.index()].parent(), Some(outer));
        assert_eq!(builder.inodes[ROOT.index()].parent(), Some(ROOT));
    }

    #[test]
    fn what_an_inode_cannot_say_is_refused() {
        let mut builder = builder();
        let mode = Meta { mode: 0o10000, ..Meta::default() };
        let error = builder.add(mode, Node::Fifo).unwrap_err();
        assert!(matches!(error, Error::InvalidMode { mode: 0o10000 }), "{error}");
        let time = Meta { mtime_nsec: 1_000_000_000, ..Meta::default() };
        let error = builder.add(time, Node::Fifo).unwrap_err();
        assert!(matches!(error, Error::InvalidTime { .. }), "{error}");
        for target in [Vec::new(), vec![b'x'; 4096], b"a\0".to_vec()] {
            let error = builder.add(Meta::default(), Node::Symlink { target }).unwrap_err();
            assert!(matches!(error, Error::InvalidTarget { .. }), "{error}");
        }
        for (major, minor) in [(4096, 0), (0, 1 << 20)] {
            for node in [Node::CharDevice { major, minor }, Node::BlockDevice { major, minor }] {
                let error = builder.add(Meta::default(), node).unwrap_err();
                assert!(matches!(error, Error::InvalidDevice { .. }), "{error}");
            }
        }
    }

    #[test]
    fn a_refused_inode_leaves_no_trace() {
        let mut builder = builder();
        let bad = Meta { xattrs: vec![(b"other.x".to_vec(), Vec::new())], ..Meta::default() };
        assert!(builder.add(bad, Node::Fifo).is_err());
        assert_eq!(builder.inodes.len(), 1);
    }
}
