//! Writes the planned image, one [`Part`] after the other.

use std::io::Write;

use crate::directory::{self, DirectoryEntry};
use crate::layout::{ImageLayout, Part};
use crate::sink::Sink;
use crate::tree::{Inode, Node};
use crate::{
    BLOCK_SIZE, Behind, ContentSource, Error, ImageBuilder, identity, inode, superblock, walk,
};

/// The size and the identity of a written image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The size of the written part in bytes, a multiple of 4096.
    pub size: u64,
    /// The number of inodes, including directories and devices.
    pub inodes: u64,
    /// The volume's UUID: a digest of the whole tree, with the digests of the contents.
    pub uuid: [u8; 16],
    /// Bytes of files above [`MAX_INLINE_FILE`](crate::MAX_INLINE_FILE) that share the blocks of another file with an equal
    /// content.
    pub shared_bytes: u64,
}

impl ImageBuilder {
    /// Writes the image to `out`, from its first byte to its last, and flushes it.
    ///
    /// The same tree gives the same bytes. All errors of the tree are returned before the first byte is written. Memory
    /// grows with the number of inodes and names, never with the size of contents.
    ///
    /// # Errors
    /// Of the tree: [`Error::Unreachable`], [`Error::Cycle`], [`Error::ContentSizeMismatch`], [`Error::TooLarge`].
    /// While writing: [`Error::Write`], [`Error::Content`], [`Error::ContentTooShort`], [`Error::ContentTooLong`].
    /// After an error while writing, `out` contains an incomplete image.
    pub fn write(
        self,
        out: &mut dyn Write,
        contents: &mut dyn ContentSource,
    ) -> Result<Summary, Error> {
        self.write_before(out, contents, &Behind::NOTHING)
    }

    /// Writes an image without the contents that the caller has already. Append these contents as `behind` describes them,
    /// and the image is complete.
    ///
    /// # Errors
    /// The errors of [`Self::write`], and [`Error::Misplaced`].
    pub fn write_before(
        self,
        out: &mut dyn Write,
        contents: &mut dyn ContentSource,
        behind: &Behind<'_>,
    ) -> Result<Summary, Error> {
        let inodes = &self.inodes;
        let layout = ImageLayout::new(inodes, walk::order(inodes, self.root())?, behind)?;
        let summary = Summary {
            size: u64::from(layout.own_blocks) * BLOCK_SIZE,
            inodes: inodes.len() as u64,
            uuid: identity::uuid(inodes, &layout.order),
            shared_bytes: layout.shared_bytes,
        };
        let root_nid = u16::try_from(layout.places[self.root().index()].nid())
            .expect("the root is the first inode of the second block");
        let (blocks, uuid) = (layout.blocks, summary.uuid);
        let mut image = Image { inodes, layout: &layout, sink: Sink::new(out), contents };
        image.sink.put(&superblock::encode(root_nid, summary.inodes, blocks, uuid))?;
        for part in &layout.parts {
            image.write_inodes(part)?;
            image.write_trees(part)?;
            image.write_contents(part)?;
        }
        image.sink.fill_to(summary.size)?;
        image.sink.finish()?;
        Ok(summary)
    }
}

/// An image that is being written.
struct Image<'a> {
    inodes: &'a [Inode],
    layout: &'a ImageLayout,
    sink: Sink<'a>,
    contents: &'a mut dyn ContentSource,
}

impl<'a> Image<'a> {
    fn write_inodes(&mut self, part: &Part) -> Result<(), Error> {
        for at in part.inodes.clone() {
            let id = self.layout.order[at];
            let (inode, place) = (&self.inodes[id.index()], self.layout.places[id.index()]);
            // `ImageBuilder::add` accepts 2^32 inodes. The last number then does not fit, because `i_ino` starts at 1.
            let number = u32::try_from(at + 1).map_err(|_| Error::TooLarge)?;
            self.sink.pad_to(place.offset)?;
            self.sink.put(&inode::encode(inode, number, place.data))?;
            self.sink.put(&inode.xattrs)?;
            if place.data.tail > 0 {
                self.write_tail(inode)?;
            }
        }
        self.sink.pad_to(u64::from(part.first_data_block) * BLOCK_SIZE)
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

    /// Writes the blocks of directories and symlinks that do not follow their inode.
    fn write_trees(&mut self, part: &Part) -> Result<(), Error> {
        for id in &part.trees {
            let inode = &self.inodes[id.index()];
            let data = self.layout.places[id.index()].data;
            let blocks = (data.size - data.tail as u64).div_ceil(BLOCK_SIZE);
            let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
            match &inode.node {
                Node::Symlink { target } => {
                    self.sink.put(target)?;
                    self.sink.finish_block()?;
                }
                _ => {
                    for block in self.directory_blocks(inode).take(blocks) {
                        self.sink.put(&block)?;
                        self.sink.finish_block()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn directory_blocks(&self, inode: &'a Inode) -> impl Iterator<Item = Vec<u8>> + use<'a> {
        let Self { inodes, layout, .. } = *self;
        directory::blocks(inode.entries.iter().map(move |(name, child)| DirectoryEntry {
            name,
            nid: layout.places[child.index()].nid(),
            file_type: directory::file_type(&inodes[child.index()].node),
        }))
    }

    fn write_contents(&mut self, part: &Part) -> Result<(), Error> {
        for stored in &part.contents {
            self.sink.copy(self.contents, stored.content, stored.size)?;
            self.sink.finish_block()?;
        }
        Ok(())
    }
}
