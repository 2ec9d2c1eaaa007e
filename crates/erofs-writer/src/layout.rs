//! The offsets of all inodes and data, computed for the whole image before its first byte is written.

use std::ops::Range;

use box_digest::Blake3Digest;

use crate::inode::{self, Data};
use crate::tree::{Inode, Node, NodeId, is_dot};
use crate::{BLOCK, BLOCK_SIZE, Behind, Error, directory};

/// Bytes per `nid`: an inode's offset in the image is its `nid` times this.
const SLOT: u64 = 32;
/// The largest file that directly follows its inode, in bytes. An inode and the data after it must not cross the end of a
/// block. For larger files, the gap that this leaves wastes about as much as a separate block.
pub const MAX_INLINE_FILE: u64 = 2048;
/// The least number of bytes after the last inode. `fsck.erofs` before erofs-utils 1.9 reads the header of extended
/// attributes of an inode that has none, and fails if the image ends there.
const SLACK: u64 = 12;

/// The plan of an image.
#[derive(Debug)]
pub(crate) struct ImageLayout {
    /// The inodes in the order of the image.
    pub(crate) order: Vec<NodeId>,
    /// The position of each inode, by [`NodeId::index`].
    pub(crate) places: Vec<InodePlace>,
    /// The parts of the image, one after the other.
    pub(crate) parts: Vec<Part>,
    /// The number of blocks that are written.
    pub(crate) own_blocks: u32,
    /// The image's size in blocks: the written blocks, and the blocks that the caller appends ([`Behind`]).
    pub(crate) blocks: u32,
    /// Bytes of files that are not stored again, because an earlier inode has the same content.
    pub(crate) shared_bytes: u64,
}

/// Inodes, followed by their data blocks. The inodes that the caller put last ([`put_last`](crate::ImageBuilder::put_last))
/// form a second part with their data. A change to them then moves nothing in the first part.
#[derive(Debug)]
pub(crate) struct Part {
    /// The part's inodes, as a range of [`ImageLayout::order`].
    pub(crate) inodes: Range<usize>,
    /// The first block after the inodes.
    pub(crate) first_data_block: u32,
    /// The directories and symlinks with blocks in this part, in the order of the blocks.
    pub(crate) trees: Vec<NodeId>,
    /// The contents with blocks in this part, in the order of the blocks.
    pub(crate) contents: Vec<StoredContent>,
}

/// The position of an inode and its data.
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

/// A content that is stored in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredContent {
    pub(crate) content: Blake3Digest,
    /// Its size in bytes.
    pub(crate) size: u64,
}

impl ImageLayout {
    /// Plans the image of the inodes in `order`. `order` must end with the inodes that were put last.
    ///
    /// # Errors
    /// [`Error::ContentSizeMismatch`], [`Error::Misplaced`] and [`Error::TooLarge`].
    pub(crate) fn new(
        inodes: &[Inode],
        order: Vec<NodeId>,
        behind: &Behind<'_>,
    ) -> Result<Self, Error> {
        let uses = Uses::count(inodes, &order)?;
        let first_last = order.partition_point(|id| !inodes[id.index()].is_last);
        let places = vec![InodePlace::default(); inodes.len()];
        let mut planner = Planner { inodes, order: &order, uses: &uses, behind, places, next: 1 };
        let parts = [0..first_last, first_last..order.len()].into_iter();
        let parts = parts.filter(|part| !part.is_empty()).map(|part| planner.plan(part));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let own = u32::try_from(planner.next.next_multiple_of(behind.alignment / BLOCK_SIZE));
        let own_blocks = own.map_err(|_| Error::TooLarge)?;
        planner.place_behind(own_blocks)?;
        let blocks = u64::from(own_blocks) + behind.size / BLOCK_SIZE;
        let blocks = u32::try_from(blocks).map_err(|_| Error::TooLarge)?;
        let (places, shared_bytes) = (planner.places, uses.shared_bytes);
        Ok(Self { order, places, parts, own_blocks, blocks, shared_bytes })
    }
}

/// The inodes with the same content. An image can have a million contents, so a vector by [`NodeId::index`] replaces a map.
#[derive(Debug)]
struct Uses {
    /// For each file, by [`NodeId::index`]: the first inode in the order with the same content.
    first: Vec<NodeId>,
    shared_bytes: u64,
}

impl Uses {
    fn count(inodes: &[Inode], order: &[NodeId]) -> Result<Self, Error> {
        let file = |id: NodeId| inodes[id.index()].file();
        let mut files: Vec<NodeId> =
            order.iter().copied().filter(|id| file(*id).is_some()).collect();
        // A stable sort: the files with one content keep their order.
        files.sort_by_key(|id| file(*id).map(|(content, _)| *content.as_bytes()));
        let first = vec![NodeId::at(0); inodes.len()];
        let mut uses = Self { first, shared_bytes: 0 };
        for same in files.chunk_by(|a, b| file(*a).map(|it| it.0) == file(*b).map(|it| it.0)) {
            uses.add(same, file)?;
        }
        Ok(uses)
    }

    /// Adds the files with the same content.
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
            if number > 0 && size > MAX_INLINE_FILE {
                self.shared_bytes = self.shared_bytes.saturating_add(size);
            }
            self.first[id.index()] = same[0];
        }
        Ok(())
    }
}

/// Assigns offsets and blocks to one part after the other.
struct Planner<'a> {
    inodes: &'a [Inode],
    order: &'a [NodeId],
    uses: &'a Uses,
    behind: &'a Behind<'a>,
    places: Vec<InodePlace>,
    /// The first unused block.
    next: u64,
}

impl Planner<'_> {
    fn plan(&mut self, part: Range<usize>) -> Result<Part, Error> {
        u32::try_from(self.next).map_err(|_| Error::TooLarge)?;
        let end = self.place_inodes(part.clone());
        self.next = (end + SLACK).div_ceil(BLOCK_SIZE);
        let first_data_block = u32::try_from(self.next).map_err(|_| Error::TooLarge)?;
        let trees = self.place_trees(&part)?;
        let contents = self.place_contents(&part)?;
        Ok(Part { inodes: part, first_data_block, trees, contents })
    }

    /// Assigns an offset to every inode of a part, and decides which data follow it. Returns the end of the last inode.
    fn place_inodes(&mut self, part: Range<usize>) -> u64 {
        let mut end = self.next * BLOCK_SIZE;
        for id in &self.order[part] {
            let inode = &self.inodes[id.index()];
            let size = data_size(inode);
            let head = inode::SIZE + inode.xattrs.len();
            let tail = if self.is_joined(inode) { 0 } else { wanted_tail(inode, size) };
            let tail = if head + tail <= BLOCK { tail } else { 0 };
            let offset = place_unit(end, head + tail);
            end = offset + (head + tail) as u64;
            self.places[id.index()] = InodePlace { offset, data: Data { size, tail, block: 0 } };
        }
        end
    }

    /// Returns whether `inode` is a directory of the first part with an entry that is put last. The
    /// directory's data contain the number of that entry's inode, which depends on the last part. So they are stored in
    /// the last part.
    fn is_joined(&self, inode: &Inode) -> bool {
        let is_last = |id: &NodeId| self.inodes[id.index()].is_last;
        !inode.is_last && inode.entries.iter().any(|(name, child)| !is_dot(name) && is_last(child))
    }

    /// Assigns blocks to the data of directories and symlinks that do not follow their inode.
    fn place_trees(&mut self, part: &Range<usize>) -> Result<Vec<NodeId>, Error> {
        let mut trees = Vec::new();
        for at in 0..part.end {
            let id = self.order[at];
            let inode = &self.inodes[id.index()];
            let data = self.places[id.index()].data;
            let bytes = data.size - data.tail as u64;
            let is_here = part.contains(&at) != self.is_joined(inode);
            if matches!(inode.node, Node::File { .. }) || bytes == 0 || !is_here {
                continue;
            }
            self.places[id.index()].data.block = take_blocks(&mut self.next, bytes)?;
            trees.push(id);
        }
        Ok(trees)
    }

    /// Assigns blocks to contents that do not follow their inode. Files above [`MAX_INLINE_FILE`] with equal content share
    /// their blocks.
    fn place_contents(&mut self, part: &Range<usize>) -> Result<Vec<StoredContent>, Error> {
        let mut contents = Vec::new();
        for id in &self.order[part.clone()] {
            let Some((content, size)) = self.plain(*id) else { continue };
            let first = self.uses.first[id.index()];
            // A small content is not shared, because the first inode with that content may store it inline and so have
            // no block to share.
            if size > MAX_INLINE_FILE && first != *id {
                self.places[id.index()].data.block = self.places[first.index()].data.block;
            } else if self.behind(&content, size).is_none() {
                self.places[id.index()].data.block = take_blocks(&mut self.next, size)?;
                contents.push(StoredContent { content, size });
            }
        }
        Ok(contents)
    }

    /// Returns the content of a file whose bytes do not follow its inode, and its size.
    fn plain(&self, id: NodeId) -> Option<(Blake3Digest, u64)> {
        let file = self.inodes[id.index()].file()?;
        (file.1 > 0 && self.places[id.index()].data.tail == 0).then_some(file)
    }

    /// Returns the offset of a content in [`Behind`]. `None` for a content of at most [`MAX_INLINE_FILE`] bytes, which is
    /// always written, even if [`Behind`] contains it.
    fn behind(&self, content: &Blake3Digest, size: u64) -> Option<u64> {
        if size > MAX_INLINE_FILE { (self.behind.place)(content) } else { None }
    }

    /// Sets the blocks of the contents in [`Behind`].
    fn place_behind(&mut self, own_blocks: u32) -> Result<(), Error> {
        for id in self.order {
            let Some((content, size)) = self.plain(*id) else { continue };
            let Some(offset) = self.behind(&content, size) else { continue };
            let is_there = offset.is_multiple_of(BLOCK_SIZE)
                && offset.checked_add(size).is_some_and(|end| end <= self.behind.size);
            if !is_there {
                return Err(Error::Misplaced { content, offset });
            }
            let block = u64::from(own_blocks) + offset / BLOCK_SIZE;
            self.places[id.index()].data.block =
                u32::try_from(block).map_err(|_| Error::TooLarge)?;
        }
        Ok(())
    }
}

/// Returns the first slot at or after `end` from which `size` bytes do not cross the end of a block.
///
/// A unit is an inode with its extended attributes and its tail. Linux requires a tail in one block, and a symlink's tail in
/// the block of its inode. A unit larger than a block (because of its extended attributes) starts at a block boundary.
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
///
/// A small file follows its inode even if another inode has the same content: the content's position then depends
/// on this inode alone, and a shared block would rarely save space.
fn wanted_tail(inode: &Inode, size: u64) -> usize {
    let wanted = match &inode.node {
        Node::Directory | Node::Symlink { .. } => true,
        Node::File { .. } => size <= MAX_INLINE_FILE,
        _ => false,
    };
    let tail = usize::try_from(size % BLOCK_SIZE).expect("it is less than a block");
    if wanted { tail } else { 0 }
}

/// Takes the blocks from `next` on for `bytes` bytes, and returns the first one.
fn take_blocks(next: &mut u64, bytes: u64) -> Result<u32, Error> {
    let first = u32::try_from(*next).map_err(|_| Error::TooLarge)?;
    *next += bytes.div_ceil(BLOCK_SIZE);
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImageBuilder, Meta, walk};

    fn file(id: u8, size: u64) -> Node {
        Node::File { size, content: Blake3Digest::from_bytes([id; 32]) }
    }

    /// Plans the image of a root directory with these children, named `00000`, `00001` and so on.
    fn plan(nodes: Vec<(Meta, Node)>) -> Result<ImageLayout, Error> {
        let mut builder = ImageBuilder::new(Meta::default()).unwrap();
        for (number, (meta, node)) in nodes.into_iter().enumerate() {
            let id = builder.add(meta, node).unwrap();
            builder.link(builder.root(), format!("{number:05}").as_bytes(), id).unwrap();
        }
        let order = walk::order(&builder.inodes, builder.root())?;
        ImageLayout::new(&builder.inodes, order, &Behind::NOTHING)
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
    fn small_files_follow_their_inode_and_larger_ones_share_their_blocks() {
        let sizes = [(1, 2048), (2, 2049), (3, 10), (3, 10), (4, 0), (2, 2049)];
        let layout = plain(sizes.map(|(id, size)| file(id, size)));
        let data: Vec<_> = layout.places[1..].iter().map(|place| place.data).collect();
        assert_eq!(data[0], Data { size: 2048, tail: 2048, block: 0 });
        assert_eq!(data[1], Data { size: 2049, tail: 0, block: 2 });
        assert_eq!(data[2], Data { size: 10, tail: 10, block: 0 });
        assert_eq!(data[3], data[2]);
        assert_eq!(data[4], Data { size: 0, tail: 0, block: 0 });
        assert_eq!(data[5], data[1]);
        assert_eq!((layout.blocks, layout.shared_bytes), (3, 2049));
        assert_eq!(layout.parts[0].contents.len(), 1);
    }

    /// Plans a root with two directories. `a` has a small and a large file. `0 before a` is put last and has files of
    /// `sizes`, and one with the content of the large file of `a`.
    fn in_two_parts(sizes: [u64; 2], behind: &Behind<'_>) -> Result<ImageLayout, Error> {
        let mut builder = ImageBuilder::new(Meta::default()).unwrap();
        let mut add = |parent, name: &[u8], node, is_last| {
            let id = builder.add(Meta::default(), node).unwrap();
            builder.link(parent, name, id).unwrap();
            if is_last {
                builder.put_last(id).unwrap();
            }
            id
        };
        let b = add(NodeId::at(0), b"0 before a", Node::Directory, true);
        let a = add(NodeId::at(0), b"a", Node::Directory, false);
        add(a, b"small", file(1, 100), false);
        add(a, b"large", file(2, 5000), false);
        add(b, b"one", file(3, sizes[0]), true);
        add(b, b"two", file(4, sizes[1]), true);
        add(b, b"of a", file(2, 5000), true);
        let order = walk::order(&builder.inodes, builder.root())?;
        ImageLayout::new(&builder.inodes, order, behind)
    }

    #[test]
    fn what_is_put_last_moves_nothing_else() {
        let [one, other] = [[10, 3000], [2000, 90_000]]
            .map(|sizes| in_two_parts(sizes, &Behind::NOTHING).unwrap());
        // The root directory has an entry that is put last, so its data are in the last part.
        assert_eq!(one.places[0].offset, other.places[0].offset);
        assert_eq!(one.places[2..5], other.places[2..5]);
        assert_ne!(one.places[5..], other.places[5..]);
        let first = &one.parts[0];
        assert_eq!((first.inodes.clone(), first.trees.len(), first.contents.len()), (0..4, 0, 1));
        let last = &one.parts[1];
        assert_eq!((last.inodes.clone(), last.trees.len(), last.contents.len()), (4..8, 1, 1));
        assert_eq!(one.places[0].data, Data { size: 62, tail: 0, block: 5 });
        assert_eq!(one.places[7].data.block, one.places[4].data.block);
    }

    #[test]
    fn contents_behind_the_image_are_not_written() {
        let place = |content: &Blake3Digest| match content.as_bytes()[0] {
            1 => Some(8192),
            2 => Some(4096),
            _ => None,
        };
        let behind = Behind { alignment: 1 << 20, size: 12_288, place: &place };
        let layout = in_two_parts([10, 3000], &behind).unwrap();
        assert_eq!((layout.own_blocks, layout.blocks), (256, 259));
        assert_eq!(layout.places[3].data, Data { size: 100, tail: 100, block: 0 });
        assert_eq!(layout.places[4].data, Data { size: 5000, tail: 0, block: 257 });
        assert_eq!(layout.parts[0].contents, []);
        assert_eq!(layout.parts[1].contents.len(), 1);
    }

    #[test]
    fn contents_lie_within_what_is_behind_the_image() {
        for (offset, size) in [(4095, 12_288), (8192, 12_288), (u64::MAX - 4095, 12_288), (0, 4096)]
        {
            let behind = Behind { alignment: 4096, size, place: &|_| Some(offset) };
            let error = in_two_parts([10, 3000], &behind).unwrap_err();
            assert!(matches!(error, Error::Misplaced { .. }), "{offset} {error}");
        }
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
