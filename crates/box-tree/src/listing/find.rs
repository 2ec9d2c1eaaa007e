//! Finding a path in a listing, as people write it.

use super::Listing;
use crate::{InodeId, Kind, Leaf};

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
    /// The path leads through a symbolic link, which is not followed.
    #[error("{path} is a symbolic link to {target}")]
    Link { path: String, target: String },
    /// The path leads through something that is no directory.
    #[error("{path} is not a directory")]
    NotADirectory { path: String },
}

impl Listing {
    /// Finds what a path names. Links in it are not followed: whose root they would start from is
    /// known in the guest alone.
    ///
    /// # Errors
    /// [`FindError`], which names the place where the path ends.
    pub fn find(&self, path: &[u8]) -> Result<InodeId, FindError> {
        self.tree.reach(path).map_err(|end| match &self.tree.inode(end.last).kind {
            Kind::Directory(_) => self.missing(&end.path, end.last, &end.name),
            Kind::Leaf(leaf) => in_the_way(&end.path, leaf),
        })
    }

    fn missing(&self, directory: &[u8], id: InodeId, name: &[u8]) -> FindError {
        let names = self.tree.inode(id).names().into_iter().flatten();
        let siblings = names.filter_map(|(name, _)| String::from_utf8(name.to_vec()).ok());
        FindError::Missing {
            directory: String::from_utf8_lossy(directory).into_owned(),
            name: String::from_utf8_lossy(name).into_owned(),
            siblings: siblings.take(CANDIDATES).collect(),
        }
    }
}

fn in_the_way(path: &[u8], leaf: &Leaf) -> FindError {
    let path = String::from_utf8_lossy(path).into_owned();
    match leaf {
        Leaf::Symlink(target) => {
            FindError::Link { path, target: String::from_utf8_lossy(target).into_owned() }
        }
        _ => FindError::NotADirectory { path },
    }
}
