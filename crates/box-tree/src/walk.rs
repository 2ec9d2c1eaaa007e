//! Follows a path through a tree and its symbolic links, as Linux does:
//! [path_resolution(7)](https://man7.org/linux/man-pages/man7/path_resolution.7.html).

use std::collections::VecDeque;

use crate::{InodeId, Tree, path};

/// The maximum number of symbolic links on one path: `MAXSYMLINKS` of Linux.
const MAX_LINKS: usize = 40;
/// The maximum number of names in one path, including the names in its links.
const MAX_PARTS: usize = 4096;

/// Why a path cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// A name on the path is a file, a device or a pipe.
    #[error("{:?} is not a directory", String::from_utf8_lossy(.0))]
    NotADirectory(Vec<u8>),
    /// More than 40 symbolic links.
    #[error("too many symbolic links")]
    TooManyLinks,
    /// The path has too many names or directories, or a link on it contains an invalid name.
    #[error("the path is too long once its links are followed")]
    TooLong,
    /// The links of all paths together have more than [`MAX_DETOURS`](crate::MAX_DETOURS) names.
    #[error("the image's paths lead through too many symbolic links in all")]
    TooManyDetours,
}

/// Which symbolic links of a path are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// The links in the directories of the path. The last entry is not followed if it is a link.
    Parents,
    /// All links, including a link at the end of the path.
    All,
}

/// The outcome of one step of a [`Walk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The walk entered the next name, followed the link of that name, or went up.
    Taken,
    /// The directory has no entry of the next name. The walk did not move.
    Missing,
    /// No names are left.
    End,
}

/// A walk along a path, step by step, by a process whose root is a directory of the tree: neither a
/// link nor `..` leads out of it.
///
/// Empty names and `.` are skipped, so that a slash at the end of a path has no effect.
#[derive(Debug)]
pub struct Walk<'t> {
    tree: &'t Tree,
    root: InodeId,
    follow: Follow,
    /// The entries from below the root to here, with their names.
    trail: Vec<(Vec<u8>, InodeId)>,
    pending: VecDeque<Vec<u8>>,
    links: usize,
    parts: usize,
    detours: usize,
}

impl<'t> Walk<'t> {
    /// Starts at a directory of the tree, which is the root of the path.
    pub fn new(tree: &'t Tree, root: InodeId, path: &[u8], follow: Follow) -> Self {
        let pending = path::names(path).map(<[u8]>::to_vec).collect();
        Self { tree, root, follow, trail: Vec::new(), pending, links: 0, parts: 0, detours: 0 }
    }

    /// Returns the current entry of the walk.
    pub fn here(&self) -> InodeId {
        self.trail.last().map_or(self.root, |(_, id)| *id)
    }

    /// Returns the path of the current entry below the root, with a slash before each name and
    /// without links. Empty for the root.
    pub fn path(&self) -> Vec<u8> {
        joined(self.trail.iter().map(|(name, _)| name))
    }

    /// Returns the path of the current entry, followed by the remaining names.
    pub fn path_ahead(&self) -> Vec<u8> {
        joined(self.trail.iter().map(|(name, _)| name).chain(&self.pending))
    }

    /// Returns the name that the next step enters, or `..`.
    pub fn next_name(&self) -> Option<&[u8]> {
        self.pending.front().map(Vec::as_slice)
    }

    /// Returns the number of names in the links that were followed so far.
    pub(crate) const fn detours(&self) -> usize {
        self.detours
    }

    /// Returns the depth of the current entry below the root.
    pub(crate) const fn depth(&self) -> usize {
        self.trail.len()
    }

    /// Enters the next name, follows the link of that name, or goes up for `..`.
    ///
    /// # Errors
    /// [`LookupError::NotADirectory`] if a name is left after a file, device or pipe; [`LookupError::TooManyLinks`]
    /// after 40 links; [`LookupError::TooLong`] after 4096 names.
    pub fn step(&mut self) -> Result<Step, LookupError> {
        let Some(name) = self.next_name() else { return Ok(Step::End) };
        if name == b".." {
            self.skip()?;
            self.trail.pop();
            return Ok(Step::Taken);
        }
        let Some(child) = self.tree.child(self.here(), name) else { return Ok(Step::Missing) };
        let Some(name) = self.skip()? else { return Ok(Step::End) };
        let (inode, is_last) = (self.tree.inode(child), self.pending.is_empty());
        match inode.target().filter(|_| self.follow == Follow::All || !is_last) {
            Some(target) => self.follow_link(target)?,
            None if inode.names().is_none() && !is_last => {
                return Err(LookupError::NotADirectory(name));
            }
            None => self.trail.push((name, child)),
        }
        Ok(Step::Taken)
    }

    /// Removes the next name from the path without entering it. Returns `None` at the end.
    ///
    /// # Errors
    /// [`LookupError::TooLong`] after 4096 names.
    pub(crate) fn skip(&mut self) -> Result<Option<Vec<u8>>, LookupError> {
        let name = self.pending.pop_front();
        self.parts += usize::from(name.is_some());
        if self.parts > MAX_PARTS { Err(LookupError::TooLong) } else { Ok(name) }
    }

    fn follow_link(&mut self, target: &[u8]) -> Result<(), LookupError> {
        if self.links == MAX_LINKS {
            return Err(LookupError::TooManyLinks);
        }
        self.links += 1;
        if target.starts_with(b"/") {
            self.trail.clear();
        }
        let count = path::names(target).count();
        if self.pending.len() + self.trail.len() + count >= MAX_PARTS {
            return Err(LookupError::TooLong);
        }
        self.detours += count;
        path::names(target).rev().for_each(|name| self.pending.push_front(name.to_vec()));
        Ok(())
    }
}

fn joined<'a>(names: impl Iterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    names.flat_map(|name| [b"/".as_slice(), name]).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::Path;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
    use rustix::io::Errno;

    use super::*;
    use crate::{Content, Inode, Leaf, Meta, entries};

    /// The path to which a walk leads, or the error number with which Linux fails.
    type Outcome = Result<Vec<u8>, Errno>;

    /// Walks through the tree.
    fn walked(tree: &Tree, path: &[u8], follow: Follow) -> Outcome {
        let mut walk = Walk::new(tree, Tree::ROOT, path, follow);
        loop {
            match walk.step() {
                Ok(Step::Taken) => {}
                Ok(Step::End) => return Ok(walk.path()),
                Ok(Step::Missing) => return Err(Errno::NOENT),
                Err(LookupError::NotADirectory(_)) => return Err(Errno::NOTDIR),
                Err(LookupError::TooManyLinks) => return Err(Errno::LOOP),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Lets the kernel resolve the path in a copy of the tree on the disk, with `root` as the root directory.
    fn walked_by_linux(root: &Path, path: &[u8], follow: Follow) -> Outcome {
        let directory = open(root, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let flags = match follow {
            Follow::Parents => OFlags::PATH | OFlags::NOFOLLOW,
            Follow::All => OFlags::PATH,
        };
        let walk = || openat2(&directory, path, flags, Mode::empty(), ResolveFlags::IN_ROOT);
        // The kernel returns EAGAIN for `..` while any process renames a file (openat2(2)).
        let found = std::iter::repeat_with(walk).find(|found| !matches!(found, Err(Errno::AGAIN)));
        let found = found.unwrap()?;
        let number = std::os::fd::AsRawFd::as_raw_fd(&found);
        let found = fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
        Ok(found.into_os_string().into_vec()[root.as_os_str().len()..].to_vec())
    }

    /// Makes the entries of a tree on the disk.
    fn copy(tree: &Tree, root: &Path) {
        for (path, id) in entries(tree).filter(|(path, _)| path != b"/") {
            let at = root.join(std::ffi::OsStr::from_bytes(&path[1..]));
            let inode = tree.inode(id);
            match inode.target() {
                Some(target) => {
                    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), at).unwrap();
                }
                None if inode.names().is_some() => fs::create_dir(at).unwrap(),
                None => fs::write(at, "").unwrap(),
            }
        }
    }

    /// Adds an entry, and the directories above it, unless something is in the way.
    fn add(tree: &mut Tree, path: &[u8], leaf: Option<&Leaf>) {
        let (directory, name) = path::split(path);
        let mut here = Tree::ROOT;
        for name in path::names(directory) {
            let child = tree.child(here, name);
            if child.is_some_and(|id| tree.inode(id).names().is_none()) {
                return;
            }
            here = tree.ensure_directory(here, name);
        }
        if tree.child(here, name).is_none() {
            let meta = Meta::root_owned(0o755);
            let inode = leaf.cloned().map_or_else(
                || Inode::directory(meta.clone()),
                |leaf| Inode::leaf(meta.clone(), leaf),
            );
            let id = tree.add(inode);
            tree.link(here, name, id);
        }
    }

    /// Paths that start with one of `starts` and have up to four of `names`.
    fn a_path(
        starts: &'static [&'static str],
        names: &'static [&'static str],
    ) -> impl Strategy<Value = Vec<u8>> {
        (prop::sample::select(starts), vec(prop::sample::select(names), 1..5))
            .prop_map(|(start, names)| format!("{start}{}", names.join("/")).into_bytes())
    }

    /// Symbolic links, files and, as `None`, directories.
    fn a_leaf() -> impl Strategy<Value = Option<Leaf>> {
        let target = a_path(&["", "/", "../"], &["a", "b", "c", ".."]);
        let link = target.prop_map(|target| Some(Leaf::Symlink(target)));
        prop_oneof![
            1 => Just(None),
            1 => Just(Some(Leaf::File(Content::of(b"")))),
            4 => link,
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn a_walk_ends_where_that_of_linux_does(
            made in vec((a_path(&[""], &["a", "b", "c"]), a_leaf()), 0..12),
            paths in vec(a_path(&["", "/", "../../"], &["a", "b", "c", ".."]), 1..12),
        ) {
            let mut tree = Tree::default();
            made.iter().for_each(|(path, leaf)| add(&mut tree, path, leaf.as_ref()));
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().canonicalize().unwrap();
            copy(&tree, &root);
            for path in paths {
                for follow in [Follow::Parents, Follow::All] {
                    let (ours, theirs) =
                        (walked(&tree, &path, follow), walked_by_linux(&root, &path, follow));
                    prop_assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(&path));
                }
            }
        }
    }

    #[test]
    fn a_path_leads_through_as_many_links_as_on_linux() {
        let mut tree = Tree::default();
        add(&mut tree, b"end", None);
        for at in 1..=MAX_LINKS + 1 {
            let target = if at == 1 { "end".to_owned() } else { format!("link{}", at - 1) };
            let link = Leaf::Symlink(target.into_bytes());
            add(&mut tree, format!("link{at}").as_bytes(), Some(&link));
        }
        add(&mut tree, b"loop", Some(&Leaf::Symlink(b"loop".to_vec())));
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        copy(&tree, &root);
        for (path, expected) in [
            ("link40", Ok(b"/end".to_vec())),
            ("link41", Err(Errno::LOOP)),
            ("link40/../link1", Err(Errno::LOOP)),
            ("loop", Err(Errno::LOOP)),
        ] {
            assert_eq!(walked(&tree, path.as_bytes(), Follow::All), expected, "{path}");
            assert_eq!(walked_by_linux(&root, path.as_bytes(), Follow::All), expected, "{path}");
        }
        let file = Leaf::File(Content::of(b""));
        add(&mut tree, b"file", Some(&file));
        copy(&tree, &root.join("end"));
        let root = root.join("end");
        for (path, expected) in [
            ("loop", Ok(b"/loop".to_vec())),
            ("loop/x", Err(Errno::LOOP)),
            ("file/..", Err(Errno::NOTDIR)),
            ("/../../end/..", Ok(Vec::new())),
        ] {
            assert_eq!(walked(&tree, path.as_bytes(), Follow::Parents), expected, "{path}");
            assert_eq!(
                walked_by_linux(&root, path.as_bytes(), Follow::Parents),
                expected,
                "{path}"
            );
        }
    }
}
