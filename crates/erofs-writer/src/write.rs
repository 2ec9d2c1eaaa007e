//! Writing the planned image, part after part.

use std::io::Write;

use crate::directory::{self, Entry};
use crate::layout::{Layout, Place};
use crate::sink::Sink;
use crate::superblock::Superblock;
use crate::tree::{Inode, Node};
use crate::{BLOCK_SIZE, Contents, Error, ImageBuilder, identity, inode, walk};

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The image's size in bytes, a multiple of 4096.
    pub size: u64,
    /// The number of inodes: of files, directories and all else, each counted once.
    pub inodes: u64,
    /// The volume's UUID: a digest of the whole tree, contents by their ids.
    pub uuid: [u8; 16],
    /// Bytes of files that were not written again because an equal content was there already.
    pub shared_bytes: u64,
}

impl ImageBuilder {
    /// Writes the image to `out`, from its first byte to its last, and flushes it.
    ///
    /// The same tree gives the same bytes. Everything that can be wrong with the tree is found
    /// before the first byte is written. Memory grows with the number of inodes and names, never
    /// with the size of contents.
    ///
    /// # Errors
    /// Of the tree: what was wrong with the root's [`Meta`](crate::Meta), [`Error::Unreachable`],
    /// [`Error::Cycle`], [`Error::ContentSizeMismatch`], [`Error::TooLarge`]. While writing:
    /// [`Error::Write`], [`Error::Content`], [`Error::ContentTooShort`],
    /// [`Error::ContentTooLong`]; `out` then holds a part of an image.
    pub fn write(self, out: &mut dyn Write, contents: &mut dyn Contents) -> Result<Summary, Error> {
        let root = self.root();
        if let Some(defect) = self.defect {
            return Err(defect);
        }
        let inodes = &self.inodes;
        let layout = Layout::new(inodes, walk::order(inodes, root)?)?;
        let summary = summarize(inodes, &layout);
        let root_nid = u16::try_from(layout.places[root.index()].nid())
            .expect("the root is the first inode of the second block");
        let (blocks, uuid) = (layout.blocks, summary.uuid);
        let superblock = Superblock { root_nid, inodes: summary.inodes, blocks, uuid };
        let mut image = Image { inodes, layout: &layout, sink: Sink::new(out), contents };
        image.sink.put(&superblock.encode())?;
        image.write_inodes()?;
        image.write_tree_data()?;
        image.write_contents()?;
        image.sink.finish()?;
        Ok(summary)
    }
}

fn summarize(inodes: &[Inode], layout: &Layout) -> Summary {
    Summary {
        size: u64::from(layout.blocks) * BLOCK_SIZE,
        inodes: inodes.len() as u64,
        uuid: identity::uuid(inodes, &layout.order),
        shared_bytes: layout.shared_bytes,
    }
}

/// An image that is being written.
struct Image<'a> {
    inodes: &'a [Inode],
    layout: &'a Layout,
    sink: Sink<'a>,
    contents: &'a mut dyn Contents,
}

impl<'a> Image<'a> {
    /// Returns the inodes in their order, with their places.
    fn placed(&self) -> impl Iterator<Item = (&'a Inode, Place)> + use<'a> {
        let Self { inodes, layout, .. } = *self;
        layout.order.iter().map(|id| (&inodes[id.index()], layout.places[id.index()]))
    }

    fn write_inodes(&mut self) -> Result<(), Error> {
        for (number, (inode, place)) in (1..).zip(self.placed()) {
            self.sink.pad_to(place.offset)?;
            self.sink.put(&inode::encode(inode, number, place.data))?;
            self.sink.put(&inode.xattrs)?;
            if place.data.tail > 0 {
                self.write_tail(inode)?;
            }
        }
        self.sink.pad_to(u64::from(self.layout.first_data_block) * BLOCK_SIZE)
    }

    fn write_tail(&mut self, inode: &'a Inode) -> Result<(), Error> {
        match &inode.node {
            Node::File { size, content } => self.sink.copy(self.contents, *content, *size),
            Node::Symlink { target } => self.sink.put(target),
            _ => match self.directory_blocks(inode).last() {
                Some(block) => self.sink.put(&block),
                None => Ok(()),
            },
        }
    }

    /// Writes what directories and symlinks have beyond their tail.
    fn write_tree_data(&mut self) -> Result<(), Error> {
        for (inode, place) in self.placed() {
            let blocks = (place.data.size - place.data.tail as u64).div_ceil(BLOCK_SIZE);
            let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
            match &inode.node {
                Node::Directory => {
                    for block in self.directory_blocks(inode).take(blocks) {
                        self.sink.put(&block)?;
                        self.sink.finish_block()?;
                    }
                }
                Node::Symlink { target } if blocks > 0 => {
                    self.sink.put(target)?;
                    self.sink.finish_block()?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn directory_blocks(&self, inode: &'a Inode) -> impl Iterator<Item = Vec<u8>> + use<'a> {
        let Self { inodes, layout, .. } = *self;
        directory::blocks(inode.entries.iter().map(move |(name, child)| Entry {
            name,
            nid: layout.places[child.index()].nid(),
            file_type: directory::file_type(&inodes[child.index()].node),
        }))
    }

    fn write_contents(&mut self) -> Result<(), Error> {
        for stored in &self.layout.contents {
            self.sink.copy(self.contents, stored.content, stored.size)?;
            self.sink.finish_block()?;
        }
        Ok(())
    }
}
