//! The image depends on the tree only.

use std::fmt::Write;

use proptest::prelude::*;

use crate::model::{Kind, Tree, meta};
use crate::random::tree;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_calls_does_not_matter(
        (tree, inodes, links) in tree().prop_flat_map(|tree| {
            let inodes: Vec<_> = (1..tree.inodes.len()).collect();
            let links: Vec<_> = (0..tree.links.len()).collect();
            (Just(tree), Just(inodes).prop_shuffle(), Just(links).prop_shuffle())
        })
    ) {
        let (image, summary) = tree.image();
        let (shuffled, again) = tree.image_in_order(&inodes, &links);
        prop_assert_eq!(summary, again);
        prop_assert!(image == shuffled);
    }
}

/// A tree with an inode of each type, equal contents, an extended attribute and a large directory.
fn specimen() -> Tree {
    let mut tree = Tree::flat([
        (b"dup1".to_vec(), Kind::File(vec![1; 5000])),
        (b"dup2".to_vec(), Kind::File(vec![1; 5000])),
        (b"small".to_vec(), Kind::File(b"small".to_vec())),
        (b"empty".to_vec(), Kind::File(Vec::new())),
        (b"link".to_vec(), Kind::Symlink(b"small".to_vec())),
        (b"long".to_vec(), Kind::Symlink(vec![b'l'; 4095])),
        (b"char".to_vec(), Kind::CharDevice(1, 3)),
        (b"block".to_vec(), Kind::BlockDevice(259, 70_000)),
        (b"fifo".to_vec(), Kind::Fifo),
        (b"socket".to_vec(), Kind::Socket),
    ]);
    tree.inodes[3].0.xattrs = vec![(b"security.capability".to_vec(), vec![1, 0, 0, 2])];
    let directory = tree.add(0, b"directory".to_vec(), meta(), Kind::Directory);
    for number in 0..500 {
        tree.add(directory, format!("{number}"), meta(), Kind::Fifo);
    }
    tree
}

/// After a release, the bytes of an image must not change, because their digest names the box. A change of this digest
/// needs a new version of the format.
#[test]
fn the_bytes_of_a_known_tree_stay_the_same() {
    let (image, summary) = specimen().image();
    let mut uuid = String::new();
    summary.uuid.iter().for_each(|byte| write!(uuid, "{byte:02x}").unwrap());
    assert_eq!(uuid, "e564d9b49e58884a989061eb454702d6");
    assert_eq!(
        blake3::hash(&image).to_string(),
        "6d21ec219bcbfbb76273a7998888ef45d660db490ee10f60e895fecdeb55f2c8"
    );
}
