//! Finds the entry at a path that a user wrote.

use super::Listing;
use crate::path::lossy;
use crate::{Follow, InodeId, LookupError, Step, Walk, path};

/// The maximum number of names of a directory in an error.
const CANDIDATES: usize = 10_000;

/// Why a path has no entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum FindError {
    /// There is no entry of this name.
    #[error("there is no {directory}/{name}")]
    Missing {
        /// The directory, empty for the root.
        directory: String,
        name: String,
        /// The other names in the directory, sorted: at most 10,000 names that are UTF-8.
        siblings: Vec<String>,
    },
    /// The path leads through an entry that is not a directory.
    #[error("{path} is not a directory")]
    NotADirectory { path: String },
    /// The path leads through more than 40 symbolic links.
    #[error("{path} leads through too many symbolic links")]
    TooManyLinks { path: String },
    /// The path has more than 4096 names, including the names in its links.
    #[error("{path} is too long once its links are followed")]
    TooLong { path: String },
}

impl FindError {
    /// Returns the error with `root` in front of its paths.
    #[must_use]
    pub fn below(mut self, root: &str) -> Self {
        let (Self::Missing { directory: path, .. }
        | Self::NotADirectory { path }
        | Self::TooManyLinks { path }
        | Self::TooLong { path }) = &mut self;
        path.insert_str(0, root);
        self
    }
}

/// An entry that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The inode.
    pub id: InodeId,
    /// The path below the root, with a slash before each name and without the links that were
    /// followed. Empty for the root.
    pub path: Vec<u8>,
}

impl Listing {
    /// Finds the entry at a path for a process whose root is the directory `root`: neither a symbolic link nor `..`
    /// leads out of it. Symbolic links in `root` itself are not followed.
    ///
    /// # Errors
    /// [`FindError`], whose paths are relative to `root`.
    pub fn find(&self, root: &[u8], path: &[u8], follow: Follow) -> Result<Found, FindError> {
        let top = self.tree.reach(root);
        let top = top.map_err(|end| self.missing(end.last, b"", &end.name))?;
        let mut walk = Walk::new(&self.tree, top, path, follow);
        loop {
            match walk.step() {
                Ok(Step::Taken) => {}
                Ok(Step::End) => return Ok(Found { id: walk.here(), path: walk.path() }),
                Ok(Step::Missing) => {
                    let name = walk.next_name().unwrap_or_default();
                    return Err(self.missing(walk.here(), &walk.path(), name));
                }
                Err(error) => return Err(blocked(error, &walk, path)),
            }
        }
    }

    /// Returns the error for `name`, which is missing in the entry `at`, whose path is `walked`.
    fn missing(&self, at: InodeId, walked: &[u8], name: &[u8]) -> FindError {
        let Some(names) = self.tree.inode(at).names() else {
            return FindError::NotADirectory { path: lossy(walked) };
        };
        let siblings = names.keys().filter_map(|name| String::from_utf8(name.to_vec()).ok());
        FindError::Missing {
            directory: lossy(walked),
            name: lossy(name),
            siblings: siblings.take(CANDIDATES).collect(),
        }
    }
}

/// Returns the error of a walk along `path` that cannot be continued.
fn blocked(error: LookupError, walk: &Walk<'_>, path: &[u8]) -> FindError {
    let whole = || lossy(&path::normalize(path));
    match error {
        LookupError::NotADirectory(name) => {
            FindError::NotADirectory { path: lossy(&path::join(&walk.path(), &name)) }
        }
        LookupError::TooManyLinks => FindError::TooManyLinks { path: whole() },
        LookupError::TooLong | LookupError::TooManyDetours => FindError::TooLong { path: whole() },
    }
}
