//! Inodes: `struct erofs_inode_extended`, field by field in [`crate::format`].

use crate::tree::{Inode, Node};
use crate::xattr;

/// Bytes of an inode.
pub(crate) const SIZE: usize = 64;
/// `EROFS_INODE_LAYOUT_EXTENDED`.
const EXTENDED: u16 = 1;
/// `EROFS_I_DATALAYOUT_BIT`.
const LAYOUT_BIT: u16 = 1;
const FLAT_PLAIN: u16 = 0;
/// `EROFS_INODE_FLAT_INLINE`.
pub(crate) const FLAT_INLINE: u16 = 2;
/// `S_IFMT`.
pub(crate) const TYPE: u16 = 0o170_000;
/// `S_IFDIR`.
pub(crate) const DIRECTORY: u16 = 0o040_000;
/// `S_IFREG`.
pub(crate) const REGULAR: u16 = 0o100_000;

/// The layout of an inode's data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Data {
    /// The size of the data in bytes.
    pub(crate) size: u64,
    /// How many of the data's last bytes follow the inode.
    pub(crate) tail: usize,
    /// The first block of the bytes before the tail; 0 if there are none.
    pub(crate) block: u32,
}

/// Encodes an inode, without the extended attributes and the tail that follow it. `number` is its `i_ino`.
pub(crate) fn encode(inode: &Inode, number: u32, data: Data) -> [u8; SIZE] {
    let layout = if data.tail > 0 { FLAT_INLINE } else { FLAT_PLAIN };
    let mut bytes = [0; SIZE];
    let mut put = |offset: usize, field: &[u8]| {
        bytes[offset..][..field.len()].copy_from_slice(field);
    };
    put(0, &(EXTENDED | layout << LAYOUT_BIT).to_le_bytes());
    put(2, &xattr::count(&inode.xattrs).to_le_bytes());
    put(4, &file_mode(inode).to_le_bytes());
    put(8, &data.size.to_le_bytes());
    put(16, &device(&inode.node).unwrap_or(data.block).to_le_bytes());
    put(20, &number.to_le_bytes());
    put(24, &inode.meta.uid.to_le_bytes());
    put(28, &inode.meta.gid.to_le_bytes());
    put(32, &inode.meta.mtime.to_le_bytes());
    put(40, &inode.meta.mtime_nsec.to_le_bytes());
    put(44, &inode.links.to_le_bytes());
    bytes
}

/// Returns the mode with the type: `S_IFMT` of `include/uapi/linux/stat.h`.
pub(crate) fn file_mode(inode: &Inode) -> u16 {
    let file_type = match inode.node {
        Node::Fifo => 0o010_000,
        Node::CharDevice { .. } => 0o020_000,
        Node::Directory => DIRECTORY,
        Node::BlockDevice { .. } => 0o060_000,
        Node::File { .. } => REGULAR,
        Node::Symlink { .. } => 0o120_000,
        Node::Socket => 0o140_000,
    };
    file_type | inode.meta.mode
}

/// Returns a device's number as `new_encode_dev()` of `include/linux/kdev_t.h` packs it.
fn device(node: &Node) -> Option<u32> {
    match node {
        Node::CharDevice { major, minor } | Node::BlockDevice { major, minor } => {
            Some(minor & 0xFF | major << 8 | (minor & !0xFF) << 12)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImageBuilder, Meta};

    fn encoded(meta: Meta, node: Node, data: Data) -> [u8; SIZE] {
        let mut builder = ImageBuilder::new(Meta::default()).unwrap();
        let id = builder.add(meta, node).unwrap();
        builder.link(builder.root(), b"a", id).unwrap();
        encode(&builder.inodes[id.index()], 9, data)
    }

    #[test]
    fn fields_lie_where_the_kernel_reads_them() {
        let meta = Meta {
            mode: 0o4755,
            uid: 0x0102_0304,
            gid: 0x0506_0708,
            mtime: -2,
            mtime_nsec: 999_999_999,
            xattrs: vec![(b"user.a".to_vec(), b"b".to_vec())],
        };
        let target = b"x".to_vec();
        let data = Data { size: 1, tail: 1, block: 0 };
        let bytes = encoded(meta, Node::Symlink { target }, data);
        let expected: [&[u8]; 7] = [
            &[0b101, 0, 3, 0, 0o355, 0o251, 0, 0],
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 0, 9, 0, 0, 0],
            &[4, 3, 2, 1, 8, 7, 6, 5],
            &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            &[0xFF, 0xC9, 0x9A, 0x3B, 1, 0, 0, 0],
            &[0; 16],
        ];
        assert_eq!(bytes.as_slice(), expected.concat());
    }

    #[test]
    fn plain_data_are_named_by_their_first_block() {
        let node = Node::Symlink { target: b"x".to_vec() };
        let bytes = encoded(Meta::default(), node, Data { size: 1 << 40, tail: 0, block: 7 });
        assert_eq!(bytes[..2], [1, 0]);
        assert_eq!(bytes[8..20], [0, 0, 0, 0, 0, 1, 0, 0, 7, 0, 0, 0]);
    }

    #[test]
    fn device_numbers_are_packed_as_linux_does() {
        let device = |major, minor| device(&Node::CharDevice { major, minor });
        assert_eq!(device(1, 3), Some(0x0000_0103));
        assert_eq!(device(0xABC, 0x1_2345), Some(0x123A_BC45));
        assert_eq!(device(0xFFF, 0xF_FFFF), Some(u32::MAX));
    }
}
