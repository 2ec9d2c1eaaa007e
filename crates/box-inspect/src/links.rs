//! Inodes with several names.

use std::collections::{HashMap, HashSet};

use box_tree::InodeId;

/// Of each inode with several names: how many, and the first in the canonical order.
#[derive(Debug)]
pub(crate) struct HardLinks(pub(crate) HashMap<InodeId, (usize, Vec<u8>)>);

impl HardLinks {
    /// Finds them among names in the canonical order, which are listed twice, so that only the paths
    /// of these inodes are held.
    pub(crate) fn of<I: Iterator<Item = (Vec<u8>, InodeId)>>(names: impl Fn() -> I) -> Self {
        let (mut seen, mut several) = (HashSet::new(), HashSet::new());
        for (_, id) in names() {
            if !seen.insert(id) {
                several.insert(id);
            }
        }
        drop(seen);
        let mut named = HashMap::new();
        if several.is_empty() {
            return Self(named);
        }
        for (path, id) in names().filter(|(_, id)| several.contains(id)) {
            named.entry(id).or_insert((0, path)).0 += 1;
        }
        Self(named)
    }

    /// Returns the first name of the inode at a path, where this is a further one.
    pub(crate) fn before(&self, path: &[u8], id: InodeId) -> Option<&[u8]> {
        self.0.get(&id).map(|(_, first)| first.as_slice()).filter(|first| *first != path)
    }
}

#[cfg(test)]
mod tests {
    use box_tree::Tree;

    use super::*;

    #[test]
    fn only_inodes_with_several_names_are_held() {
        let mut tree = Tree::default();
        let [one, two] =
            ["one", "two"].map(|name| tree.ensure_directory(Tree::ROOT, name.as_bytes()));
        let names = [(b"/a".to_vec(), one), (b"/b".to_vec(), two), (b"/c".to_vec(), one)];
        let links = HardLinks::of(|| names.iter().cloned());
        assert_eq!(links.0, HashMap::from([(one, (2, b"/a".to_vec()))]));
        assert_eq!(links.before(b"/c", one), Some(b"/a".as_slice()));
        assert_eq!((links.before(b"/a", one), links.before(b"/b", two)), (None, None));
    }
}
