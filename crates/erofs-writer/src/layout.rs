//! Where everything lies: decided for the whole image before its first byte is written.

use crate::inode::{self, Data};
use crate::tree::{Inode, Node, NodeId};
use box_digest::Blake3Digest;

use crate::{BLOCK, BLOCK_SIZE, Error, directory};

/// `nid` counts in units of this many bytes.
const SLOT: u64 = 32;
/// The largest file that lies after its inode, in bytes. Above half a block, the space that is
/// lost at the ends of blocks comes close to what a block of its own would cost.
const MAX_INLINE_FILE: u64 = 2048;
/// Bytes that follow the last inode at least. `fsck.erofs` before erofs-utils 1.9 reads the header
/// of extended attributes of an inode that has none, and fails where the image ends.
const SLACK: u64 = 12;

/// The plan of an image.
#[derive(Debug)]
pub(crate) struct ImageLayout {
    /// The inodes in their order.
    pub(crate) order: Vec<NodeId>,
    /// Where each of them lies, by [`NodeId::index`].
    pub(crate) places: Vec<InodePlace>,
    /// The first block after the inodes.
    pub(crate) first_data_block: u32,
    /// The contents with blocks of their own, in the order of the blocks.
    pub(crate) contents: Vec<StoredContent>,
    /// The image's size in blocks.
    pub(crate) blocks: u32,
    /// Bytes of files that are not stored again.
    pub(crate) shared_bytes: u64,
}

/// Where an inode and its data lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InodePlace {
    /// The inode's first byte in the image.
    pub(crate) offset: u64,
    pub(crate) data: Data,
}

impl InodePlace {
    /// Returns the number by which directories name the inode.
    pub(crate) fn nid(self) -> u64 {
        self.offset / SLOT
    }
}

/// A content with blocks of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredContent {
    pub(crate) content: Blake3Digest,
    /// Its size in bytes.
    pub(crate) size: u64,
}

impl ImageLayout {
    /// Plans the image of the inodes that come in `order`.
    ///
    /// # Errors
    /// [`Error::ContentSizeMismatch`] and [`Error::TooLarge`].
    pub(crate) fn new(inodes: &[Inode], order: Vec<NodeId>) -> Result<Self, Error> {
        let uses = Uses::count(inodes, &order)?;
        let mut places = vec![InodePlace::default(); inodes.len()];
        let end = place_inodes(inodes, &order, &uses, &mut places);
        let mut next = (end + SLACK).div_ceil(BLOCK_SIZE);
        let first_data_block = u32::try_from(next).map_err(|_| Error::TooLarge)?;
        place_tree_data(inodes, &order, &mut places, &mut next)?;
        let contents = place_contents(inodes, &order, &uses, &mut places, &mut next)?;
        let blocks = u32::try_from(next).map_err(|_| Error::TooLarge)?;
        let shared_bytes = uses.shared_bytes;
        Ok(Self { order, places, first_data_block, contents, blocks, shared_bytes })
    }
}

/// Which inodes have the same content. An image can have a million contents, so there is no map of them.
#[derive(Debug)]
struct Uses {
    /// Of each inode that is a file, by [`NodeId::index`], the first one in the order that has its content.
    first: Vec<NodeId>,
    /// Whether no other inode has its content.
    alone: Vec<bool>,
    shared_bytes: u64,
}

impl Uses {
    fn count(inodes: &[Inode], order: &[NodeId]) -> Result<Self, Error> {
        let file = |id: NodeId| match inodes[id.index()].node {
            Node::File { size, content } => Some((content, size)),
            _ => None,
        };
        let mut files: Vec<NodeId> =
            order.iter().copied().filter(|id| file(*id).is_some()).collect();
        // Stable: of one content the first in the order stays first.
        files.sort_by_key(|id| file(*id).map(|(content, _)| *content.as_bytes()));
        let first = vec![NodeId::at(0); inodes.len()];
        let mut uses = Self { first, alone: vec![true; inodes.len()], shared_bytes: 0 };
        for same in files.chunk_by(|a, b| file(*a).map(|it| it.0) == file(*b).map(|it| it.0)) {
            uses.add(same, file)?;
        }
        Ok(uses)
    }

    /// Adds the files of one content.
    fn add(
        &mut self,
        same: &[NodeId],
        file: impl Fn(NodeId) -> Option<(Blake3Digest, u64)>,
    ) -> Result<(), Error> {
        let Some((content, size)) = same.first().and_then(|id| file(*id)) else { return Ok(()) };
        for (number, id) in same.iter().enumerate() {
            let second = file(*id).map_or(size, |(_, size)| size);
            if second != size {
                return Err(Error::ContentSizeMismatch { content, first: size, second });
            }
            if number > 0 {
                self.shared_bytes = self.shared_bytes.saturating_add(size);
            }
            self.first[id.index()] = same[0];
            self.alone[id.index()] = same.len() == 1;
        }
        Ok(())
    }
}

/// Gives every inode its offset and decides what follows it; returns where the last one ends.
fn place_inodes(inodes: &[Inode], order: &[NodeId], uses: &Uses, places: &mut [InodePlace]) -> u64 {
    let mut end = BLOCK_SIZE;
    for id in order {
        let inode = &inodes[id.index()];
        let size = data_size(inode);
        let head = inode::SIZE + inode.xattrs.len();
        let tail = wanted_tail(inode, size, uses.alone[id.index()]);
        let tail = if head + tail <= BLOCK { tail } else { 0 };
        let offset = place_unit(end, head + tail);
        end = offset + (head + tail) as u64;
        places[id.index()] = InodePlace { offset, data: Data { size, tail, block: 0 } };
    }
    end
}

/// Returns the first slot from `end` on where `size` bytes do not cross the end of a block.
///
/// Linux wants a tail in one block, and that of a symlink in the block of its inode too. What
/// does not fit any block has extended attributes beyond it, and starts with one.
fn place_unit(end: u64, size: usize) -> u64 {
    let offset = end.next_multiple_of(SLOT);
    let room = BLOCK_SIZE - offset % BLOCK_SIZE;
    if size as u64 <= room { offset } else { offset.next_multiple_of(BLOCK_SIZE) }
}

fn data_size(inode: &Inode) -> u64 {
    match &inode.node {
        Node::Directory => directory::size(inode.entries.keys().map(AsRef::as_ref)),
        Node::File { size, .. } => *size,
        Node::Symlink { target } => target.len() as u64,
        _ => 0,
    }
}

/// Returns how many of the data's last bytes should follow the inode if they fit.
fn wanted_tail(inode: &Inode, size: u64, is_alone: bool) -> usize {
    let wanted = match &inode.node {
        Node::Directory | Node::Symlink { .. } => true,
        Node::File { .. } => size <= MAX_INLINE_FILE && is_alone,
        _ => false,
    };
    let tail = usize::try_from(size % BLOCK_SIZE).expect("it is less than a block");
    if wanted { tail } else { 0 }
}

/// Takes the blocks from `next` on that so many bytes need; returns the first, or 0 where none is
/// needed.
fn take_blocks(next: &mut u64, bytes: u64) -> Result<u32, Error> {
    if bytes == 0 {
        return Ok(0);
    }
    let first = u32::try_from(*next).map_err(|_| Error::TooLarge)?;
    *next += bytes.div_ceil(BLOCK_SIZE);
    Ok(first)
}

/// Gives directories and symlinks blocks for what does not follow them.
fn place_tree_data(
    inodes: &[Inode],
    order: &[NodeId],
    places: &mut [InodePlace],
    next: &mut u64,
) -> Result<(), Error> {
    for id in order {
        let data = &mut places[id.index()].data;
        if !matches!(inodes[id.index()].node, Node::File { .. }) {
            data.block = take_blocks(next, data.size - data.tail as u64)?;
        }
    }
    Ok(())
}

/// Gives contents their blocks, each once.
fn place_contents(
    inodes: &[Inode],
    order: &[NodeId],
    uses: &Uses,
    places: &mut [InodePlace],
    next: &mut u64,
) -> Result<Vec<StoredContent>, Error> {
    let mut contents = Vec::new();
    for id in order {
        let Node::File { size, content } = inodes[id.index()].node else { continue };
        let first = uses.first[id.index()];
        let block = places[first.index()].data.block;
        let data = &mut places[id.index()].data;
        if size == 0 || data.tail > 0 {
            continue;
        }
        if first != *id {
            data.block = block;
            continue;
        }
        data.block = take_blocks(next, size)?;
        contents.push(StoredContent { content, size });
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImageBuilder, Meta, walk};

    fn file(id: u8, size: u64) -> Node {
        Node::File { size, content: Blake3Digest::from_bytes([id; 32]) }
    }

    /// Plans a root with these children, in the order of their names.
    fn plan(nodes: Vec<(Meta, Node)>) -> Result<ImageLayout, Error> {
        let mut builder = ImageBuilder::new(Meta::default()).unwrap();
        for (number, (meta, node)) in nodes.into_iter().enumerate() {
            let id = builder.add(meta, node).unwrap();
            builder.link(builder.root(), format!("{number:05}").as_bytes(), id).unwrap();
        }
        let order = walk::order(&builder.inodes, builder.root())?;
        ImageLayout::new(&builder.inodes, order)
    }

    fn plain(nodes: impl IntoIterator<Item = Node>) -> ImageLayout {
        plan(nodes.into_iter().map(|node| (Meta::default(), node)).collect()).unwrap()
    }

    #[test]
    fn the_root_is_at_nid_128() {
        let layout = plain([]);
        assert_eq!(layout.places[0].nid(), 128);
        assert_eq!(layout.blocks, 2);
        // `.` and `..`
        assert_eq!(layout.places[0].data, Data { size: 27, tail: 27, block: 0 });
    }

    #[test]
    fn small_files_follow_their_inode_unless_they_share_their_content() {
        let layout = plain([file(1, 2048), file(2, 2049), file(3, 10), file(3, 10), file(4, 0)]);
        let data: Vec<_> = layout.places[1..].iter().map(|place| place.data).collect();
        assert_eq!(data[0], Data { size: 2048, tail: 2048, block: 0 });
        assert_eq!(data[1], Data { size: 2049, tail: 0, block: 2 });
        assert_eq!(data[2], Data { size: 10, tail: 0, block: 3 });
        assert_eq!(data[3], data[2]);
        assert_eq!(data[4], Data { size: 0, tail: 0, block: 0 });
        assert_eq!((layout.blocks, layout.shared_bytes, layout.contents.len()), (4, 10, 2));
    }

    #[test]
    fn no_unit_crosses_a_block() {
        let target = |length| Node::Symlink { target: vec![b'x'; length] };
        let layout = plain((0..300).map(|number| target(1 + number * 7 % 4000)));
        for place in &layout.places[1..] {
            let unit = (inode::SIZE + place.data.tail) as u64;
            assert!(place.offset % BLOCK_SIZE + unit <= BLOCK_SIZE, "{place:?}");
            assert_eq!(place.offset % SLOT, 0);
        }
    }

    #[test]
    fn a_target_that_does_not_fit_after_its_inode_gets_a_block() {
        let target = |length| Node::Symlink { target: vec![b'x'; length] };
        let layout = plain([target(4032), target(4033), target(4095)]);
        let data: Vec<_> = layout.places[1..].iter().map(|place| place.data.tail).collect();
        assert_eq!(data, [4032, 0, 0]);
        assert_eq!(layout.places[2].data.block + 1, layout.places[3].data.block);
    }

    #[test]
    fn large_attributes_start_with_a_block_and_take_several() {
        let xattrs = vec![(b"user.a".to_vec(), vec![0; 5000])];
        let big = Meta { xattrs, ..Meta::default() };
        let layout = plan(vec![(big, file(1, 9)), (Meta::default(), Node::Fifo)]).unwrap();
        assert_eq!(layout.places[1].offset, 2 * BLOCK_SIZE);
        assert_eq!(layout.places[1].data, Data { size: 9, tail: 0, block: 4 });
        assert_eq!(layout.places[2].offset, (2 * BLOCK_SIZE + 64 + 12 + 5008).next_multiple_of(32));
    }

    #[test]
    fn something_follows_the_last_inode() {
        let end = |layout: &ImageLayout| layout.places.last().unwrap().offset + 64;
        let layout = (1..500)
            .map(|count| plain(vec![Node::Fifo; count]))
            .find(|layout| end(layout) % BLOCK_SIZE == 0)
            .expect("some number of inodes fills its last block");
        assert_eq!(u64::from(layout.blocks), end(&layout) / BLOCK_SIZE + 1);
    }

    #[test]
    fn a_content_has_one_size() {
        let nodes = [file(1, 5), file(1, 6)].map(|node| (Meta::default(), node));
        let error = plan(nodes.into()).unwrap_err();
        assert!(matches!(error, Error::ContentSizeMismatch { first: 5, second: 6, .. }), "{error}");
    }

    #[test]
    fn the_image_has_at_most_2_to_the_32_blocks() {
        let most = (u64::from(u32::MAX) - 2) * BLOCK_SIZE;
        assert_eq!(plain([file(1, most)]).blocks, u32::MAX);
        for sizes in [[most + 1, 0], [most, 4096], [u64::MAX, u64::MAX - 1]] {
            let nodes = [file(1, sizes[0]), file(2, sizes[1])].map(|node| (Meta::default(), node));
            let result = plan(nodes.into());
            assert!(matches!(result, Err(Error::TooLarge)), "{sizes:?}");
        }
    }
}
