//! Resolves paths in a tree, and makes the directories of a path.

use super::{InodeId, Tree, is_name, path};
use crate::walk::{Follow, LookupError, Step, Walk};

/// The maximum number of names in the symbolic links that are followed for all paths of an image, or for all links of a skill. A
/// real image has two or three for each entry; without a limit, a million entries could have thousands each.
pub const MAX_DETOURS: usize = 1 << 23;
/// The maximum depth of a directory that is made although no archive contains it.
const MAX_DEPTH: usize = 1024;

/// The reason why [`Tree::reach`] finds no entry: the path ends at `last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// The last inode on the path: a directory that lacks the next name, or a leaf.
    pub last: InodeId,
    /// The normalized path of `last`.
    pub path: Vec<u8>,
    /// The name on the path after `last`.
    pub name: Vec<u8>,
}

impl Tree {
    /// Returns the inode at a path, without following symbolic links: in the guest they may lead elsewhere.
    ///
    /// # Errors
    /// [`Unreached`] if an entry is missing or the path leads through a leaf.
    pub fn reach(&self, path: &[u8]) -> Result<InodeId, Unreached> {
        let (mut here, mut walked) = (Self::ROOT, Vec::new());
        for name in path::names(path) {
            here = self.child(here, name).ok_or_else(|| Unreached {
                last: here,
                path: walked.clone(),
                name: name.to_vec(),
            })?;
            walked.push(b'/');
            walked.extend_from_slice(name);
        }
        Ok(here)
    }

    /// Resolves a path, including symbolic links in all its names. Returns `None` if there is no entry.
    pub fn lookup(&self, path: &[u8]) -> Option<InodeId> {
        let mut unbounded = usize::MAX;
        self.lookup_in(Self::ROOT, path, &mut unbounded)
    }

    /// Resolves a path for a process whose root is a directory of the tree: symbolic links do not lead out of it. The number of
    /// names in the links is subtracted from `left`. Returns `None` if there is no entry, or if `left` reaches zero.
    pub fn lookup_in(&self, root: InodeId, path: &[u8], left: &mut usize) -> Option<InodeId> {
        let mut walk = Walk::new(self, root, path, Follow::All);
        let end = loop {
            match walk.step() {
                Ok(Step::Taken) => {}
                end => break end,
            }
        };
        let is_within = walk.detours() < *left;
        *left = left.saturating_sub(walk.detours());
        (end == Ok(Step::End) && is_within).then(|| walk.here())
    }

    /// Resolves a path to a directory, and makes missing directories as an extractor would: `0755`, owned by root, mtime 0.
    ///
    /// # Errors
    /// [`LookupError`] if a name on the path is not a directory.
    pub fn make_directories(&mut self, path: &[u8]) -> Result<InodeId, LookupError> {
        let Reached { here, depth, absent } = self.walk(path)?;
        if !absent.is_empty() && depth + absent.len() > MAX_DEPTH {
            return Err(LookupError::TooLong);
        }
        // The names of the path were checked when it was read, but not the names in links.
        if !absent.iter().all(|name| is_name(name)) {
            return Err(LookupError::TooLong);
        }
        let make = |directory, name: &Vec<u8>| self.ensure_directory(directory, name);
        Ok(absent.iter().fold(here, make))
    }

    /// Follows a path to a directory; `None` if it does not exist.
    ///
    /// # Errors
    /// [`LookupError`] if a name on the path is not a directory.
    pub fn find_directory(&mut self, path: &[u8]) -> Result<Option<InodeId>, LookupError> {
        let reached = self.walk(path)?;
        Ok(reached.absent.is_empty().then_some(reached.here))
    }

    /// Follows a path, even through missing names: `absent/../there` leads to `there`, as in
    /// extractors.
    fn walk(&mut self, path: &[u8]) -> Result<Reached, LookupError> {
        let mut walk = Walk::new(self, Self::ROOT, path, Follow::All);
        let end = over_absent(&mut walk);
        let (here, depth, detours) = (walk.here(), walk.depth(), walk.detours());
        self.detours += detours;
        if self.detours > MAX_DETOURS {
            return Err(LookupError::TooManyDetours);
        }
        let absent = end?;
        if absent.is_empty() && self.inode(here).names().is_none() {
            return Err(LookupError::NotADirectory(path.to_vec()));
        }
        Ok(Reached { here, depth, absent })
    }
}

/// The end of a path that may have missing names.
struct Reached {
    /// The last entry that exists.
    here: InodeId,
    /// The depth of `here` below the root.
    depth: usize,
    /// The missing names below `here`.
    absent: Vec<Vec<u8>>,
}

/// Walks to the end of a path, and returns the names at its end that are missing.
fn over_absent(walk: &mut Walk<'_>) -> Result<Vec<Vec<u8>>, LookupError> {
    let mut absent = Vec::new();
    loop {
        if absent.is_empty() && walk.step()? == Step::Taken {
            continue;
        }
        match walk.skip()? {
            None => return Ok(absent),
            Some(name) if name == b".." => drop(absent.pop()),
            Some(name) => absent.push(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Inode, Leaf, Meta};

    /// `/usr/lib/` and the given links.
    fn with_links(links: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        tree.make_directories(b"usr/lib").unwrap();
        for (path, target) in links {
            let (directory, name) = path.rsplit_once('/').unwrap();
            let directory = tree.make_directories(directory.as_bytes()).unwrap();
            let leaf = Leaf::Symlink(target.as_bytes().to_vec());
            let link = tree.add(Inode::leaf(Meta::root_owned(0o777), leaf));
            tree.link(directory, name.as_bytes(), link);
        }
        tree
    }

    #[test]
    fn links_lead_to_directories_of_the_tree_only() {
        let mut tree =
            with_links(&[("/lib", "usr/lib"), ("/out", "../../../usr"), ("/abs", "/usr/lib")]);
        let lib = tree.lookup(b"/usr/lib").unwrap();
        assert_eq!(tree.lookup(b"lib"), Some(lib));
        assert_eq!(tree.lookup(b"/abs/../../lib/."), Some(lib));
        assert_eq!(tree.lookup(b"/out/lib"), Some(lib));
        assert_eq!(tree.find_directory(b"lib"), Ok(Some(lib)));
        assert_eq!(tree.make_directories(b"lib/new"), Ok(tree.lookup(b"/usr/lib/new").unwrap()));
    }

    #[test]
    fn a_path_is_reached_without_its_links() {
        let tree = with_links(&[("/link", "usr")]);
        let (usr, link) = (tree.lookup(b"usr").unwrap(), tree.child(Tree::ROOT, b"link").unwrap());
        assert_eq!(tree.reach(b"//usr/./lib/"), Ok(tree.lookup(b"usr/lib").unwrap()));
        assert_eq!((tree.reach(b"/"), tree.reach(b"/link")), (Ok(Tree::ROOT), Ok(link)));
        for (path, last, walked, name) in [
            ("/link/lib", link, "/link", "lib"),
            ("/usr/none/lib", usr, "/usr", "none"),
            ("/usr/..", usr, "/usr", ".."),
        ] {
            let end = Unreached { last, path: walked.into(), name: name.into() };
            assert_eq!(tree.reach(path.as_bytes()), Err(end), "{path}");
        }
    }

    #[test]
    fn loops_and_files_in_the_way_are_errors() {
        let mut tree = with_links(&[("/a", "b"), ("/b", "a")]);
        assert_eq!(tree.lookup(b"a"), None);
        assert_eq!(tree.make_directories(b"a/c"), Err(LookupError::TooManyLinks));
        let fifo = tree.add(Inode::leaf(Meta::root_owned(0), Leaf::Fifo));
        tree.link(Tree::ROOT, b"fifo", fifo);
        assert!(matches!(tree.make_directories(b"fifo/c"), Err(LookupError::NotADirectory(_))));
        assert!(matches!(tree.make_directories(b"fifo"), Err(LookupError::NotADirectory(_))));
    }

    #[test]
    fn a_walk_is_bounded_however_its_links_are_laid() {
        let detour = "usr/../".repeat(1000);
        let links: Vec<_> = (0..40)
            .map(|at| (format!("/l{at}"), format!("/{detour}l{}", at + 1)))
            .chain([("/few".to_owned(), format!("/{detour}usr"))])
            .collect();
        let links: Vec<_> = links.iter().map(|(at, to)| (at.as_str(), to.as_str())).collect();
        let mut tree = with_links(&links);
        assert_eq!(tree.make_directories(b"l0"), Err(LookupError::TooLong));
        assert_eq!(tree.find_directory(b"l0"), Err(LookupError::TooLong));
        assert_eq!(tree.lookup(b"l0"), None);
        assert_eq!(tree.lookup(b"few"), tree.lookup(b"usr"));
        assert_eq!(tree.find_directory(&b"x/".repeat(4096)), Ok(None));
        assert_eq!(tree.find_directory(&b"../".repeat(4097)), Err(LookupError::TooLong));
    }

    #[test]
    fn links_gather_neither_parts_nor_depth() {
        let down = "d/".repeat(900);
        let mut tree = with_links(&[("/a", down.as_str()), ("/wide", &"d/".repeat(4096))]);
        assert_eq!(tree.find_directory(b"wide"), Err(LookupError::TooLong));
        assert!(tree.make_directories(b"a").is_ok());
        assert!(tree.make_directories(&[b"a/".as_slice(), &b"e/".repeat(124)].concat()).is_ok());
        let deeper = [b"a/".as_slice(), &b"f/".repeat(125)].concat();
        assert_eq!(tree.make_directories(&deeper), Err(LookupError::TooLong));
    }

    #[test]
    fn links_lead_to_no_new_directory_that_linux_could_not_have() {
        let (fits, long) = ("n".repeat(255), "n".repeat(256));
        let mut tree = with_links(&[("/fits", &fits), ("/long", &long)]);
        assert!(tree.make_directories(b"fits").is_ok());
        assert_eq!(tree.make_directories(b"long"), Err(LookupError::TooLong));
        assert_eq!(tree.find_directory(b"long"), Ok(None));
    }

    #[test]
    fn all_detours_of_an_image_are_bounded_together() {
        let mut tree = with_links(&[("/far", &"usr/../".repeat(1024)), ("/near", "usr")]);
        let mut detours = |path: &[u8]| {
            let before = tree.detours;
            tree.find_directory(path).unwrap();
            tree.detours - before
        };
        let far = detours(b"far");
        assert_eq!((far, detours(b"usr/lib")), (2048, 0));
        tree.detours = MAX_DETOURS - far - 1;
        assert!(tree.find_directory(b"far").is_ok());
        assert!(tree.make_directories(b"near").is_ok());
        assert_eq!(tree.find_directory(b"near"), Err(LookupError::TooManyDetours));
    }
}
