//! Finding a path in a listing, as people write it.

use super::Listing;
use crate::{InodeId, Kind, Leaf};

/// How many names of a directory are looked at for one that was meant.
const CANDIDATES: usize = 10_000;

/// Why a path names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum FindError {
    /// There is nothing of the name.
    #[error("there is no {path}")]
    Missing { path: String, near: Option<String> },
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
        let name = String::from_utf8_lossy(name);
        let names = self.tree.inode(id).names().into_iter().flatten();
        // Other lengths are far away, and comparing long names takes long.
        let near = |it: &&str| it.len().abs_diff(name.len()) <= 2;
        let names = names.filter_map(|(name, _)| std::str::from_utf8(name).ok()).filter(near);
        let edits = names.take(CANDIDATES).map(|it| (strsim::osa_distance(&name, it), it));
        // Of a short name, two edits leave nothing.
        let near = edits.filter(|(edits, it)| *edits <= (it.len() / 2).min(2)).min();
        let directory = String::from_utf8_lossy(directory);
        FindError::Missing {
            path: format!("{directory}/{name}"),
            near: near.map(|(_, near)| format!("{directory}/{near}")),
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
