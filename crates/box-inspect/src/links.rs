//! Inodes with several names.

use std::collections::{HashMap, HashSet};
use std::fmt;

use box_tree::InodeId;
use box_tree::path::{lossy, names};

use crate::paths::Paths;

/// The inodes with several names: the number of names of each, and its first name in the canonical order.
#[derive(Debug, Default)]
pub(crate) struct HardLinks {
    /// The number of names of each inode, and the index of its first name in `paths`.
    named: HashMap<InodeId, (usize, usize)>,
    paths: Paths,
}

impl HardLinks {
    /// Finds the inodes with several names. `names` lists all names in the canonical order. It is
    /// called twice, so that only the paths of these inodes are in memory.
    pub(crate) fn of<I: Iterator<Item = (Vec<u8>, InodeId)>>(names: impl Fn() -> I) -> Self {
        let (mut seen, mut several) = (HashSet::new(), HashSet::new());
        for (_, id) in names() {
            if !seen.insert(id) {
                several.insert(id);
            }
        }
        drop(seen);
        let mut links = Self::default();
        if several.is_empty() {
            return links;
        }
        for (path, id) in names().filter(|(_, id)| several.contains(id)) {
            let Self { named, paths } = &mut links;
            named.entry(id).or_insert_with(|| (0, paths.add(&path))).0 += 1;
        }
        links
    }

    /// Returns the number of names of an inode and the first name. `None` if it has only one name.
    pub(crate) fn get(&self, id: InodeId) -> Option<(usize, FirstName<'_>)> {
        let (count, place) = *self.named.get(&id)?;
        Some((count, FirstName { paths: &self.paths, place }))
    }

    /// Returns the first name of the inode at `path`. `None` if `path` is the first or only name.
    pub(crate) fn before(&self, path: &[u8], id: InodeId) -> Option<Vec<u8>> {
        let (_, first) = self.get(id)?;
        let is_further = !first.names().eq(names(path).rev());
        is_further.then(|| first.path())
    }
}

/// The first path, in the canonical order, of an inode with several names. The path is built only when it is shown.
#[derive(Clone, Copy)]
pub struct FirstName<'a> {
    paths: &'a Paths,
    place: usize,
}

impl<'a> FirstName<'a> {
    /// Returns the path.
    pub fn path(&self) -> Vec<u8> {
        self.paths.path(self.place)
    }

    fn names(self) -> impl Iterator<Item = &'a [u8]> {
        self.paths.names(self.place)
    }
}

impl PartialEq for FirstName<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.names().eq(other.names())
    }
}

impl fmt::Debug for FirstName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lossy(&self.path()))
    }
}

#[cfg(test)]
mod tests {
    use box_tree::{Inode, Leaf, Meta, Tree, entries};

    use super::*;

    #[test]
    fn only_inodes_with_several_names_are_held() {
        let mut tree = Tree::default();
        let [one, two] =
            ["one", "two"].map(|name| tree.ensure_directory(Tree::ROOT, name.as_bytes()));
        let names = [(b"/a".to_vec(), one), (b"/b".to_vec(), two), (b"/c".to_vec(), one)];
        let links = HardLinks::of(|| names.iter().cloned());
        assert_eq!((links.named.len(), links.get(one).map(|(count, _)| count)), (1, Some(2)));
        assert_eq!(links.before(b"/c", one), Some(b"/a".to_vec()));
        assert_eq!((links.before(b"/a", one), links.before(b"/b", two)), (None, None));
    }

    #[test]
    fn a_directory_is_held_once_for_all_first_names_below_it() {
        let (mut tree, deep) = (Tree::default(), "/n".repeat(200));
        let directory = tree.make_directories(deep.as_bytes()).unwrap();
        for number in 0..1000 {
            let inode = tree.add(Inode::leaf(Meta::root_owned(0), Leaf::Fifo));
            tree.link(directory, format!("{number:04}-a").as_bytes(), inode);
            tree.link(directory, format!("{number:04}-b").as_bytes(), inode);
        }
        let links = HardLinks::of(|| entries(&tree));
        assert_eq!((links.named.len(), links.paths.held()), (1000, 200 + 1000));
        let last = tree.child(directory, b"0999-b").unwrap();
        let (further, first) = (format!("{deep}/0999-b"), format!("{deep}/0999-a").into_bytes());
        assert_eq!(links.before(further.as_bytes(), last), Some(first.clone()));
        assert_eq!(links.before(&first, last), None);
    }
}
