//! The volume's UUID: a digest of the whole tree.
//!
//! The digest is BLAKE3 in its key derivation mode over a record for each inode, in the image's order. It is cut to 16 bytes
//! and marked as version 8 ("custom") of [RFC 9562](https://www.rfc-editor.org/rfc/rfc9562#section-5.8). Numbers are
//! little-endian, and the length precedes each value of variable length, so that no two trees give the same records:
//!
//! ```text
//! mode with its type u16, uid u32, gid u32, mtime i64, mtime_nsec u32
//! extended attributes: length u64, bytes as stored
//! directory:           number of entries u64; for each: length u64, name, position of inode u64
//! file:                size u64, content id (32 bytes)
//! symlink:             length u64, target
//! device:              major u32, minor u32
//! ```
//!
//! The writer computes the UUID even if the caller has a digest of the tree, so that the UUID does not depend on the
//! caller's digest. A test contains the UUID of a known tree, and fails if this computation changes.

use crate::inode::file_mode;
use crate::tree::{Inode, Node, NodeId, is_dot};

const CONTEXT: &str = "erofs-writer image uuid, version 1";

/// Derives the UUID of a tree. `order` is the order of the inodes in the image.
pub(crate) fn uuid(inodes: &[Inode], order: &[NodeId]) -> [u8; 16] {
    let mut positions = vec![0; inodes.len()];
    for (position, id) in (0..).zip(order) {
        positions[id.index()] = position;
    }
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    let mut record = Vec::new();
    for id in order {
        record.clear();
        describe(&mut record, &inodes[id.index()], &positions);
        hasher.update(&record);
    }
    let mut uuid = [0; 16];
    hasher.finalize_xof().fill(&mut uuid);
    uuid[6] = uuid[6] & 0x0F | 0x80;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    uuid
}

fn describe(record: &mut Vec<u8>, inode: &Inode, positions: &[u64]) {
    record.extend_from_slice(&file_mode(inode).to_le_bytes());
    record.extend_from_slice(&inode.meta.uid.to_le_bytes());
    record.extend_from_slice(&inode.meta.gid.to_le_bytes());
    record.extend_from_slice(&inode.meta.mtime.to_le_bytes());
    record.extend_from_slice(&inode.meta.mtime_nsec.to_le_bytes());
    put_bytes(record, &inode.xattrs);
    match &inode.node {
        Node::Directory => describe_entries(record, inode, positions),
        Node::File { size, content } => {
            record.extend_from_slice(&size.to_le_bytes());
            record.extend_from_slice(content.as_bytes());
        }
        Node::Symlink { target } => put_bytes(record, target),
        Node::CharDevice { major, minor } | Node::BlockDevice { major, minor } => {
            record.extend_from_slice(&major.to_le_bytes());
            record.extend_from_slice(&minor.to_le_bytes());
        }
        Node::Fifo | Node::Socket => {}
    }
}

fn describe_entries(record: &mut Vec<u8>, directory: &Inode, positions: &[u64]) {
    let entries = || directory.entries.iter().filter(|(name, _)| !is_dot(name));
    record.extend_from_slice(&(entries().count() as u64).to_le_bytes());
    for (name, child) in entries() {
        put_bytes(record, name);
        record.extend_from_slice(&positions[child.index()].to_le_bytes());
    }
}

fn put_bytes(record: &mut Vec<u8>, bytes: &[u8]) {
    record.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    record.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use box_digest::Blake3Digest;

    use crate::{ImageBuilder, Meta, walk};

    fn uuid_of(meta: Meta, node: Node, names: &[&[u8]]) -> [u8; 16] {
        let mut builder = ImageBuilder::new(Meta::default()).unwrap();
        let id = builder.add(meta, node).unwrap();
        for name in names {
            builder.link(builder.root(), name, id).unwrap();
        }
        uuid(&builder.inodes, &walk::order(&builder.inodes, builder.root()).unwrap())
    }

    #[test]
    fn every_part_of_a_tree_is_in_its_uuid() {
        let plain = Meta::default();
        let file = |size, id| Node::File { size, content: Blake3Digest::from_bytes([id; 32]) };
        let link = |target: &[u8]| Node::Symlink { target: target.to_vec() };
        let xattr = |name: &[u8], value: &[u8]| Meta {
            xattrs: vec![(name.to_vec(), value.to_vec())],
            ..Meta::default()
        };
        let trees = [
            uuid_of(plain.clone(), Node::Fifo, &[b"a"]),
            uuid_of(plain.clone(), Node::Fifo, &[b"b"]),
            uuid_of(plain.clone(), Node::Fifo, &[b"a", b"b"]),
            uuid_of(plain.clone(), Node::Socket, &[b"a"]),
            uuid_of(plain.clone(), Node::Directory, &[b"a"]),
            uuid_of(plain.clone(), file(0, 0), &[b"a"]),
            uuid_of(plain.clone(), file(1, 0), &[b"a"]),
            uuid_of(plain.clone(), file(1, 1), &[b"a"]),
            uuid_of(plain.clone(), link(b"x"), &[b"a"]),
            uuid_of(plain.clone(), link(b"y"), &[b"a"]),
            uuid_of(plain.clone(), Node::CharDevice { major: 1, minor: 2 }, &[b"a"]),
            uuid_of(plain.clone(), Node::BlockDevice { major: 1, minor: 2 }, &[b"a"]),
            uuid_of(plain, Node::BlockDevice { major: 2, minor: 1 }, &[b"a"]),
            uuid_of(Meta { mode: 1, ..Meta::default() }, Node::Fifo, &[b"a"]),
            uuid_of(Meta { uid: 1, ..Meta::default() }, Node::Fifo, &[b"a"]),
            uuid_of(Meta { gid: 1, ..Meta::default() }, Node::Fifo, &[b"a"]),
            uuid_of(Meta { mtime: 1, ..Meta::default() }, Node::Fifo, &[b"a"]),
            uuid_of(Meta { mtime_nsec: 1, ..Meta::default() }, Node::Fifo, &[b"a"]),
            uuid_of(xattr(b"user.a", b"b"), Node::Fifo, &[b"a"]),
            uuid_of(xattr(b"user.ab", b""), Node::Fifo, &[b"a"]),
        ];
        assert_eq!(trees.iter().collect::<BTreeSet<_>>().len(), trees.len());
    }

    #[test]
    fn it_is_a_uuid_of_version_8() {
        let uuid = uuid_of(Meta::default(), Node::Fifo, &[b"a"]);
        assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (8, 2));
    }
}
