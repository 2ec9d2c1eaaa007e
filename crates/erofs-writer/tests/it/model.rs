//! The declaration of a tree, from which tests build an image, and with which they compare it.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use box_digest::Blake3Digest;
use erofs_writer::{Behind, ContentSource, ImageBuilder, Meta, Node, NodeId, Summary};

/// Inodes and their names. Inode 0 is the root.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) inodes: Vec<(Meta, Kind)>,
    pub(crate) links: Vec<Link>,
}

/// One name of an inode.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) directory: usize,
    pub(crate) name: Vec<u8>,
    pub(crate) inode: usize,
}

/// The type of an inode, with the bytes of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File(Vec<u8>),
    Symlink(Vec<u8>),
    CharDevice(u32, u32),
    BlockDevice(u32, u32),
    Fifo,
    Socket,
}

/// The bytes of the files of a tree.
#[derive(Debug, Default)]
pub(crate) struct Store(pub(crate) HashMap<Blake3Digest, Vec<u8>>);

impl Store {
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Node {
        let content = Blake3Digest::of(bytes);
        self.0.insert(content, bytes.to_vec());
        Node::File { size: bytes.len() as u64, content }
    }
}

impl ContentSource for Store {
    /// Writes pieces of 1021 bytes, which fit no block, as a store that decompresses might.
    fn copy(&mut self, content: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()> {
        let bytes = self.0.get(content).ok_or(io::ErrorKind::NotFound)?;
        assert_eq!(bytes.len() as u64, size);
        bytes.chunks(1021).try_for_each(|piece| out.write_all(piece))
    }
}

/// Permissions and an owner for inodes whose metadata do not matter to the test.
pub(crate) fn meta() -> Meta {
    Meta { mode: 0o755, uid: 1, gid: 2, mtime: 1_700_000_000, mtime_nsec: 7, xattrs: Vec::new() }
}

impl Tree {
    /// Makes a tree whose root has these children.
    pub(crate) fn flat(children: impl IntoIterator<Item = (Vec<u8>, Kind)>) -> Self {
        let mut tree = Self { inodes: vec![(meta(), Kind::Directory)], links: Vec::new() };
        for (name, kind) in children {
            tree.add(0, name, meta(), kind);
        }
        tree
    }

    /// Adds an inode with one name.
    pub(crate) fn add(
        &mut self,
        directory: usize,
        name: impl Into<Vec<u8>>,
        meta: Meta,
        kind: Kind,
    ) -> usize {
        let inode = self.inodes.len();
        self.inodes.push((meta, kind));
        self.links.push(Link { directory, name: name.into(), inode });
        inode
    }

    /// Returns the inode of each path. The root's path is empty.
    pub(crate) fn paths(&self) -> BTreeMap<Vec<u8>, usize> {
        let mut children: HashMap<usize, Vec<&Link>> = HashMap::new();
        self.links.iter().for_each(|link| children.entry(link.directory).or_default().push(link));
        let mut paths = BTreeMap::from([(Vec::new(), 0)]);
        let mut pending = vec![(Vec::new(), 0)];
        while let Some((path, inode)) = pending.pop() {
            for link in children.get(&inode).into_iter().flatten() {
                let below = [path.as_slice(), b"/", &link.name].concat();
                paths.insert(below.clone(), link.inode);
                if self.inodes[link.inode].1 == Kind::Directory {
                    pending.push((below, link.inode));
                }
            }
        }
        paths
    }

    /// Returns the link count that `stat` shows for the inode.
    pub(crate) fn nlink(&self, inode: usize) -> usize {
        if self.inodes[inode].1 != Kind::Directory {
            return self.links.iter().filter(|link| link.inode == inode).count();
        }
        let is_child =
            |link: &&Link| link.directory == inode && self.inodes[link.inode].1 == Kind::Directory;
        2 + self.links.iter().filter(is_child).count()
    }

    /// Writes the image, adding inodes and links in the tree's order.
    pub(crate) fn image(&self) -> (Vec<u8>, Summary) {
        self.written(self.builder())
    }

    /// Writes the image, adding inodes and links in the order of these indices.
    pub(crate) fn image_in_order(&self, inodes: &[usize], links: &[usize]) -> (Vec<u8>, Summary) {
        self.written(self.builder_in_order(inodes, links))
    }

    fn written(&self, (builder, mut store): (ImageBuilder, Store)) -> (Vec<u8>, Summary) {
        let mut out = Vec::new();
        let summary = builder.write(&mut out, &mut store).unwrap();
        assert_eq!(summary.size, out.len() as u64);
        assert_eq!(summary.inodes, self.inodes.len() as u64);
        (out, summary)
    }

    /// Writes the image with some inodes put last and some contents behind it. Bit `n` of `last` selects the inodes `n`,
    /// `n + 64` and so on, and `behind` the contents. Returns the written part and the contents behind it.
    pub(crate) fn image_in_parts(&self, last: u64, behind: u64) -> (Vec<u8>, Vec<u8>) {
        let ((mut builder, ids), mut store) = self.builder_with_ids();
        let is_set = |bits: u64, at: usize| bits >> (at % 64) & 1 == 1;
        ids.iter()
            .enumerate()
            .filter(|(at, _)| is_set(last, *at))
            .for_each(|(_, id)| builder.put_last(*id).unwrap());
        let (mut places, mut rest) = (HashMap::new(), Vec::new());
        for (at, (content, bytes)) in BTreeMap::from_iter(&store.0).into_iter().enumerate() {
            if is_set(behind, at) {
                places.insert(*content, rest.len() as u64);
                rest.extend_from_slice(bytes);
                rest.resize(rest.len().next_multiple_of(4096), 0);
            }
        }
        let place = |content: &Blake3Digest| places.get(content).copied();
        let behind = Behind { alignment: 1 << 20, size: rest.len() as u64, place: &place };
        let mut out = Vec::new();
        let summary = builder.write_before(&mut out, &mut store, &behind).unwrap();
        assert_eq!((summary.size, summary.size % (1 << 20)), (out.len() as u64, 0));
        (out, rest)
    }

    /// Returns the builder of the image, and the contents.
    pub(crate) fn builder(&self) -> (ImageBuilder, Store) {
        let inodes: Vec<_> = (1..self.inodes.len()).collect();
        let links: Vec<_> = (0..self.links.len()).collect();
        self.builder_in_order(&inodes, &links)
    }

    fn builder_with_ids(&self) -> ((ImageBuilder, Vec<NodeId>), Store) {
        let inodes: Vec<_> = (1..self.inodes.len()).collect();
        let links: Vec<_> = (0..self.links.len()).collect();
        self.builder_of(&inodes, &links)
    }

    fn builder_in_order(&self, inodes: &[usize], links: &[usize]) -> (ImageBuilder, Store) {
        let ((builder, _), store) = self.builder_of(inodes, links);
        (builder, store)
    }

    fn builder_of(
        &self,
        inodes: &[usize],
        links: &[usize],
    ) -> ((ImageBuilder, Vec<NodeId>), Store) {
        let mut store = Store::default();
        let mut builder = ImageBuilder::new(self.inodes[0].0.clone()).unwrap();
        let mut ids: Vec<NodeId> = vec![builder.root(); self.inodes.len()];
        for &inode in inodes {
            let (meta, kind) = &self.inodes[inode];
            ids[inode] = builder.add(meta.clone(), kind.node(&mut store)).unwrap();
        }
        for &link in links {
            let Link { directory, name, inode } = &self.links[link];
            builder.link(ids[*directory], name, ids[*inode]).unwrap();
        }
        ((builder, ids), store)
    }
}

impl Kind {
    fn node(&self, store: &mut Store) -> Node {
        match self {
            Self::Directory => Node::Directory,
            Self::File(bytes) => store.put(bytes),
            Self::Symlink(target) => Node::Symlink { target: target.clone() },
            &Self::CharDevice(major, minor) => Node::CharDevice { major, minor },
            &Self::BlockDevice(major, minor) => Node::BlockDevice { major, minor },
            Self::Fifo => Node::Fifo,
            Self::Socket => Node::Socket,
        }
    }
}
