//! Where the contents lie in an image, without writing it.

use std::collections::HashMap;

use crate::layout::Layout;
use crate::tree::Node;
use box_digest::Blake3Digest;

use crate::{BLOCK_SIZE, Error, ImageBuilder, inode, walk};

/// Where each content lies in an image.
///
/// The layout follows from the tree alone, so that who has the tree finds the bytes of a file in
/// the image without reading the image's own structures.
#[derive(Debug, Clone)]
pub struct Places(HashMap<Blake3Digest, u64>);

impl Places {
    /// Returns the offset of a content's first byte in the image; nothing for a content that the
    /// tree does not have, or that has no bytes.
    pub fn offset(&self, content: &Blake3Digest) -> Option<u64> {
        self.0.get(content).copied()
    }
}

impl ImageBuilder {
    /// Tells where [`write`](Self::write) puts each content.
    ///
    /// # Errors
    /// Those of the tree that `write` has.
    pub fn places(self) -> Result<Places, Error> {
        let root = self.root();
        if let Some(defect) = self.defect {
            return Err(defect);
        }
        let layout = Layout::new(&self.inodes, walk::order(&self.inodes, root)?)?;
        let files = self.inodes.iter().zip(&layout.places);
        let places = files.filter_map(|(inode, place)| match inode.node {
            Node::File { size, content } if size > 0 => {
                let behind = place.offset + (inode::SIZE + inode.xattrs.len()) as u64;
                let blocks = u64::from(place.data.block) * BLOCK_SIZE;
                Some((content, if place.data.tail > 0 { behind } else { blocks }))
            }
            _ => None,
        });
        Ok(Places(places.collect()))
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
        let mut builder = ImageBuilder::new(Meta::default());
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
            let offset = places.offset(&Blake3Digest::from_bytes([byte; 32]));
            assert_eq!(offset.is_some(), size > 0, "{size}");
            let Some(offset) = offset else { continue };
            let start = usize::try_from(offset).unwrap();
            let end = start + usize::try_from(size).unwrap();
            assert!(image[start..end].iter().all(|found| *found == byte), "{size}");
        }
        assert_eq!(places.offset(&Blake3Digest::from_bytes([0; 32])), None);
    }
}
