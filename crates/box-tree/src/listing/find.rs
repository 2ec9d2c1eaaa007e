//! Finding a path in a listing, as people write it.

use std::collections::VecDeque;

use super::Listing;
use crate::lookup::MAX_LINKS;
use crate::{InodeId, Kind, Tree, path};

/// How many names of a directory an error has at most.
const CANDIDATES: usize = 10_000;

/// Why a path names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum FindError {
    /// There is nothing of the name.
    #[error("there is no {directory}/{name}")]
    Missing {
        /// The directory, empty for the root.
        directory: String,
        name: String,
        /// The other names in the directory, sorted: at most 10,000 names that are UTF-8.
        siblings: Vec<String>,
    },
    /// The path leads through something that is no directory.
    #[error("{path} is not a directory")]
    NotADirectory { path: String },
    /// The path leads through more than 40 symbolic links.
    #[error("{path} leads through too many symbolic links")]
    TooManyLinks { path: String },
}

impl FindError {
    /// Returns the error with `root` in front of its paths.
    #[must_use]
    pub fn below(mut self, root: &str) -> Self {
        let (Self::Missing { directory: path, .. }
        | Self::NotADirectory { path }
        | Self::TooManyLinks { path }) = &mut self;
        path.insert_str(0, root);
        self
    }
}

/// Which symbolic links of a path are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Those in the directories of the path; what it names may be a link itself.
    Parents,
    /// All of them.
    All,
}

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The inode.
    pub id: InodeId,
    /// The path below the root, with a slash before each name and without the links that were
    /// followed. The root itself is empty.
    pub path: Vec<u8>,
}

impl Listing {
    /// Finds what a path names for a process whose root is the directory `root`: a link or `..` never
    /// leads out of it. Links in `root` itself are not followed.
    ///
    /// # Errors
    /// [`FindError`], whose paths are below `root`.
    pub fn find(&self, root: &[u8], path: &[u8], follow: Follow) -> Result<Found, FindError> {
        let mut walk = Walk::default();
        let mut top = Tree::ROOT;
        for name in path::names(root) {
            top = self.child(top, name, &walk)?;
        }
        let mut pending: VecDeque<Vec<u8>> = path::names(path).map(<[u8]>::to_vec).collect();
        let mut links = 0;
        while let Some(name) = pending.pop_front() {
            if name == b".." {
                walk.0.pop();
                continue;
            }
            let child = self.child(walk.here(top), &name, &walk)?;
            let target = self.tree.inode(child).target();
            let Some(target) = target.filter(|_| follow == Follow::All || !pending.is_empty())
            else {
                walk.0.push((child, name));
                continue;
            };
            links += 1;
            if links > MAX_LINKS {
                return Err(FindError::TooManyLinks { path: lossy(&path::normalize(path)) });
            }
            if target.starts_with(b"/") {
                walk.0.clear();
            }
            path::names(target).rev().for_each(|name| pending.push_front(name.to_vec()));
        }
        Ok(Found { id: walk.here(top), path: walk.path() })
    }

    /// Returns the entry of a name in a directory, to which a walk has led.
    fn child(&self, directory: InodeId, name: &[u8], walk: &Walk) -> Result<InodeId, FindError> {
        let Kind::Directory(names) = &self.tree.inode(directory).kind else {
            return Err(FindError::NotADirectory { path: lossy(&walk.path()) });
        };
        names.get(name).copied().ok_or_else(|| {
            let siblings = names.keys().filter_map(|name| String::from_utf8(name.to_vec()).ok());
            FindError::Missing {
                directory: lossy(&walk.path()),
                name: lossy(name),
                siblings: siblings.take(CANDIDATES).collect(),
            }
        })
    }
}

/// The entries on the way to an entry, from below the root on, with their names.
#[derive(Debug, Default)]
struct Walk(Vec<(InodeId, Vec<u8>)>);

impl Walk {
    fn here(&self, top: InodeId) -> InodeId {
        self.0.last().map_or(top, |(id, _)| *id)
    }

    fn path(&self) -> Vec<u8> {
        self.0.iter().flat_map(|(_, name)| [b"/".as_slice(), name]).flatten().copied().collect()
    }
}

fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
