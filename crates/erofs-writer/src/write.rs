//! Writing the planned image, part after part.

use std::collections::HashMap;
use std::io::Write;

use box_digest::Blake3Digest;

use crate::directory::{self, DirectoryEntry};
use crate::layout::{ImageLayout, InodePlace};
use crate::sink::Sink;
use crate::tree::{Inode, Node};
use crate::{BLOCK_SIZE, Contents, Error, ImageBuilder, identity, inode, superblock, walk};

/// The facts of a written image.
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
    /// Of the tree: [`Error::Unreachable`],
    /// [`Error::Cycle`], [`Error::ContentSizeMismatch`], [`Error::TooLarge`]. While writing:
    /// [`Error::Write`], [`Error::Content`], [`Error::ContentTooShort`],
    /// [`Error::ContentTooLong`]; `out` then holds a part of an image.
    pub fn write(self, out: &mut dyn Write, contents: &mut dyn Contents) -> Result<Summary, Error> {
        let inodes = &self.inodes;
        let layout = self.layout()?;
        let summary = Summary {
            size: u64::from(layout.blocks) * BLOCK_SIZE,
            inodes: inodes.len() as u64,
            uuid: identity::uuid(inodes, &layout.order),
            shared_bytes: layout.shared_bytes,
        };
        let root_nid = u16::try_from(layout.places[self.root().index()].nid())
            .expect("the root is the first inode of the second block");
        let (blocks, uuid) = (layout.blocks, summary.uuid);
        let mut image = Image { inodes, layout: &layout, sink: Sink::new(out), contents };
        image.sink.put(&superblock::encode(root_nid, summary.inodes, blocks, uuid))?;
        image.write_inodes()?;
        image.write_tree_data()?;
        image.write_contents()?;
        image.sink.finish()?;
        Ok(summary)
    }

    /// Returns the offset in the image of each content's first byte, without writing the image. A
    /// content without bytes has none.
    ///
    /// The layout follows from the tree alone, so that who has the tree finds the bytes of a file in
    /// the image without reading the image's own structures.
    ///
    /// # Errors
    /// Those of the tree that [`write`](Self::write) has.
    pub fn places(self) -> Result<HashMap<Blake3Digest, u64>, Error> {
        let layout = self.layout()?;
        let files = self.inodes.iter().zip(&layout.places);
        let places = files.filter_map(|(inode, place)| match inode.node {
            Node::File { size, content } if size > 0 => {
                let tail = place.offset + (inode::SIZE + inode.xattrs.len()) as u64;
                let blocks = u64::from(place.data.block) * BLOCK_SIZE;
                Some((content, if place.data.tail > 0 { tail } else { blocks }))
            }
            _ => None,
        });
        Ok(places.collect())
    }

    fn layout(&self) -> Result<ImageLayout, Error> {
        ImageLayout::new(&self.inodes, walk::order(&self.inodes, self.root())?)
    }
}

/// An image that is being written.
struct Image<'a> {
    inodes: &'a [Inode],
    layout: &'a ImageLayout,
    sink: Sink<'a>,
    contents: &'a mut dyn Contents,
}

impl<'a> Image<'a> {
    /// Returns the inodes in their order, with their places.
    fn placed(&self) -> impl Iterator<Item = (&'a Inode, InodePlace)> + use<'a> {
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
        directory::blocks(inode.entries.iter().map(move |(name, child)| DirectoryEntry {
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

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::*;
    use crate::{Contents, Meta};

    /// Contents of one repeated byte: the first of their id.
    struct Repeated;

    impl Contents for Repeated {
        fn copy(
            &mut self,
            content: &Blake3Digest,
            size: u64,
            out: &mut dyn Write,
        ) -> io::Result<()> {
            let size = usize::try_from(size).unwrap();
            out.write_all(&vec![content.as_bytes()[0]; size])
        }
    }

    /// A tree with files of these sizes, each with attributes; the last content twice.
    fn tree(sizes: &[u64]) -> ImageBuilder {
        let mut builder = ImageBuilder::new(Meta::default()).unwrap();
        let again = sizes.len() - 1;
        for (number, index) in (0..sizes.len()).chain([again]).enumerate() {
            let content = Blake3Digest::from_bytes([u8::try_from(index + 1).unwrap(); 32]);
            let xattrs = vec![(b"user.number".to_vec(), vec![b'x'; number * 7])];
            let node = Node::File { size: sizes[index], content };
            let node = builder.add(Meta { xattrs, ..Meta::default() }, node).unwrap();
            builder.link(builder.root(), format!("{number}").as_bytes(), node).unwrap();
        }
        builder
    }

    #[test]
    fn contents_lie_where_it_is_said() {
        let sizes = [1, 2048, 2049, 4096, 4097, 0, 100];
        let mut image = Vec::new();
        tree(&sizes).write(&mut image, &mut Repeated).unwrap();
        let places = tree(&sizes).places().unwrap();
        for (index, size) in sizes.into_iter().enumerate() {
            let byte = u8::try_from(index + 1).unwrap();
            let offset = places.get(&Blake3Digest::from_bytes([byte; 32]));
            assert_eq!(offset.is_some(), size > 0, "{size}");
            let Some(&offset) = offset else { continue };
            let start = usize::try_from(offset).unwrap();
            let end = start + usize::try_from(size).unwrap();
            assert!(image[start..end].iter().all(|found| *found == byte), "{size}");
        }
        assert_eq!(places.get(&Blake3Digest::from_bytes([0; 32])), None);
    }
}
