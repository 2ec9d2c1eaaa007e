//! Following paths inside a tree. A link can lead anywhere in the tree and never out of it.

use std::collections::VecDeque;

use super::{InodeId, Kind, Leaf, Tree, is_name, path};

/// How many symbolic links one path may lead through, as in Linux (path_resolution(7)).
pub(crate) const MAX_LINKS: usize = 40;
/// How many parts one path may have, those of the links in it included.
const MAX_PARTS: usize = 4096;
/// How many parts all paths of an image may have that are those of links in them. Each entry of a
/// real image has two or three; without a bound, a million entries could have thousands each.
const MAX_DETOURS: usize = 1 << 23;
/// How deep a directory that an archive does not name may lie.
const MAX_DEPTH: usize = 1024;

/// Why a path leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// A part of the path is a file, a device or a pipe.
    #[error("{:?} is not a directory", String::from_utf8_lossy(.0))]
    NotADirectory(Vec<u8>),
    /// It has more links or parts than any path of a real image.
    #[error("{0}")]
    TooFar(&'static str),
}

/// More than 40 symbolic links.
const TOO_MANY_LINKS: LookupError = LookupError::TooFar("too many symbolic links");
/// More parts than any path of a real image has.
const TOO_LONG: LookupError =
    LookupError::TooFar("the path is too long once its links are followed");
/// More parts of links than all paths of a real image have.
const TOO_MANY_DETOURS: LookupError =
    LookupError::TooFar("the image's paths lead through too many symbolic links in all");

/// Where a path ends that is followed without symbolic links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// The last inode on the path: a directory that lacks the next name, or a leaf in the way.
    pub last: InodeId,
    /// The normalized path of `last`.
    pub path: Vec<u8>,
    /// The name after it.
    pub name: Vec<u8>,
}

impl Tree {
    /// Returns what a path names, without following symbolic links: in the guest they may lead
    /// elsewhere.
    ///
    /// # Errors
    /// [`Unreached`] where the path names nothing or leads through a leaf.
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

    /// Follows a path, and symbolic links in all its parts. Returns `None` where it leads nowhere.
    pub fn lookup(&self, path: &[u8]) -> Option<InodeId> {
        let mut unbounded = usize::MAX;
        self.lookup_in(Self::ROOT, path, &mut unbounded)
    }

    /// Follows a path as a process does whose root is a directory of the tree: links lead nowhere
    /// out of it. Takes the parts of the links from `left`. Returns `None` where the path leads
    /// nowhere, and where no more parts are left.
    pub fn lookup_in(&self, root: InodeId, path: &[u8], left: &mut usize) -> Option<InodeId> {
        let mut scratch = Walk { trail: vec![root], ..Walk::new(path) };
        while let Some(part) = scratch.next_part().ok()? {
            match part.as_slice() {
                b".." => scratch.up(),
                name => {
                    let child = self.child(scratch.here(), name)?;
                    scratch.step(self, part, child).ok()?;
                    let parts = std::mem::take(&mut scratch.detours);
                    *left = left.saturating_sub(parts);
                    if *left == 0 {
                        return None;
                    }
                }
            }
        }
        Some(scratch.here())
    }

    /// Follows a path to a directory, making those that are not there as an extractor would:
    /// `0755`, owned by root, of the year 1970.
    ///
    /// # Errors
    /// [`LookupError`] where something else is in the way.
    pub fn make_directories(&mut self, path: &[u8]) -> Result<InodeId, LookupError> {
        let walk = self.walk(path)?;
        // The root stands in the trail, too.
        if !walk.absent.is_empty() && walk.trail.len() + walk.absent.len() > MAX_DEPTH + 1 {
            return Err(TOO_LONG);
        }
        // The parts of a path were looked at when it was read, but not those of links.
        if !walk.absent.iter().all(|name| is_name(name)) {
            return Err(TOO_LONG);
        }
        let make = |directory, name: &Vec<u8>| self.ensure_directory(directory, name);
        Ok(walk.absent.iter().fold(walk.here(), make))
    }

    /// Follows a path to a directory; `None` if it does not exist.
    ///
    /// # Errors
    /// [`LookupError`] where something else is in the way.
    pub fn find_directory(&mut self, path: &[u8]) -> Result<Option<InodeId>, LookupError> {
        let walk = self.walk(path)?;
        Ok(walk.absent.is_empty().then(|| walk.here()))
    }

    /// Follows a path, over what is not there, too: `absent/../there` leads to `there`, as
    /// extractors read it.
    fn walk(&mut self, path: &[u8]) -> Result<Walk, LookupError> {
        let mut walk = Walk::new(path);
        let end = self.walk_on(&mut walk, path);
        self.detours += walk.detours;
        if self.detours > MAX_DETOURS {
            return Err(TOO_MANY_DETOURS);
        }
        end.map(|()| walk)
    }

    fn walk_on(&self, walk: &mut Walk, path: &[u8]) -> Result<(), LookupError> {
        while let Some(part) = walk.next_part()? {
            match part.as_slice() {
                b".." if walk.absent.pop().is_some() => {}
                b".." => walk.up(),
                name if walk.absent.is_empty() => match self.child(walk.here(), name) {
                    Some(child) => walk.step(self, part, child)?,
                    None => walk.absent.push(part),
                },
                _ => walk.absent.push(part),
            }
        }
        if walk.absent.is_empty() && self.inode(walk.here()).names().is_none() {
            return Err(LookupError::NotADirectory(path.to_vec()));
        }
        Ok(())
    }
}

/// Where a walk stands: the directories from the root, those below them that are not there, and
/// what is still to come.
struct Walk {
    trail: Vec<InodeId>,
    absent: Vec<Vec<u8>>,
    pending: VecDeque<Vec<u8>>,
    links: usize,
    steps: usize,
    /// How many of the parts came from links.
    detours: usize,
}

impl Walk {
    fn new(path: &[u8]) -> Self {
        let (trail, pending) = (vec![Tree::ROOT], path::names(path).map(<[u8]>::to_vec).collect());
        Self { trail, absent: Vec::new(), pending, links: 0, steps: 0, detours: 0 }
    }

    fn next_part(&mut self) -> Result<Option<Vec<u8>>, LookupError> {
        let part = self.pending.pop_front();
        self.steps += usize::from(part.is_some());
        if self.steps > MAX_PARTS { Err(TOO_LONG) } else { Ok(part) }
    }

    fn here(&self) -> InodeId {
        self.trail.last().copied().unwrap_or(Tree::ROOT)
    }

    /// Goes to the parent; the root is its own.
    fn up(&mut self) {
        if self.trail.len() > 1 {
            self.trail.pop();
        }
    }

    /// Goes to `child`, or to where it points.
    fn step(&mut self, tree: &Tree, part: Vec<u8>, child: InodeId) -> Result<(), LookupError> {
        match &tree.inode(child).kind {
            Kind::Leaf(Leaf::Symlink(target)) => self.follow(target),
            Kind::Leaf(_) if !self.pending.is_empty() => Err(LookupError::NotADirectory(part)),
            _ => {
                self.trail.push(child);
                Ok(())
            }
        }
    }

    fn follow(&mut self, target: &[u8]) -> Result<(), LookupError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(TOO_MANY_LINKS);
        }
        if target.first() == Some(&b'/') {
            self.trail.truncate(1);
        }
        let count = path::names(target).count();
        if self.pending.len() + self.trail.len() + count > MAX_PARTS {
            return Err(TOO_LONG);
        }
        self.detours += count;
        path::names(target).rev().for_each(|part| self.pending.push_front(part.to_vec()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Inode, Meta};

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
        assert_eq!(tree.make_directories(b"a/c"), Err(TOO_MANY_LINKS));
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
        assert_eq!(tree.make_directories(b"l0"), Err(TOO_LONG));
        assert_eq!(tree.find_directory(b"l0"), Err(TOO_LONG));
        assert_eq!(tree.lookup(b"l0"), None);
        assert_eq!(tree.lookup(b"few"), tree.lookup(b"usr"));
        assert_eq!(tree.find_directory(&b"x/".repeat(4096)), Ok(None));
        assert_eq!(tree.find_directory(&b"../".repeat(4097)), Err(TOO_LONG));
    }

    #[test]
    fn links_gather_neither_parts_nor_depth() {
        let down = "d/".repeat(900);
        let mut tree = with_links(&[("/a", down.as_str()), ("/wide", &"d/".repeat(4096))]);
        assert_eq!(tree.find_directory(b"wide"), Err(TOO_LONG));
        assert!(tree.make_directories(b"a").is_ok());
        assert!(tree.make_directories(&[b"a/".as_slice(), &b"e/".repeat(124)].concat()).is_ok());
        let deeper = [b"a/".as_slice(), &b"f/".repeat(125)].concat();
        assert_eq!(tree.make_directories(&deeper), Err(TOO_LONG));
    }

    #[test]
    fn links_lead_to_no_new_directory_that_linux_could_not_have() {
        let (fits, long) = ("n".repeat(255), "n".repeat(256));
        let mut tree = with_links(&[("/fits", &fits), ("/long", &long)]);
        assert!(tree.make_directories(b"fits").is_ok());
        assert_eq!(tree.make_directories(b"long"), Err(TOO_LONG));
        assert_eq!(tree.find_directory(b"long"), Ok(None));
    }

    #[test]
    fn all_detours_of_an_image_are_bounded_together() {
        let mut tree = with_links(&[("/far", &"usr/../".repeat(1024)), ("/near", "usr")]);
        let far = tree.walk(b"far").unwrap().detours;
        assert_eq!((far, tree.walk(b"usr/lib").unwrap().detours), (2048, 0));
        tree.detours = MAX_DETOURS - far - 1;
        assert!(tree.find_directory(b"far").is_ok());
        assert!(tree.make_directories(b"near").is_ok());
        assert_eq!(tree.find_directory(b"near"), Err(TOO_MANY_DETOURS));
    }
}
