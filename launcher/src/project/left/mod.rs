//! What a box can leave in a project, and programs of the host then run: repositories in subdirectories, operations of git in
//! progress, and the files of build tools and editors (`code`). A box that may write to a project can make all of them, so they are
//! named for the user.

mod code;
mod repository;
mod seen;
mod walk;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

pub use seen::{AtEnd, Seen};
use walk::Walk;

/// What is in a project, by its path, which is a word for a shell, each with a digest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The repositories, with what lets git start programs in them. That of the project, `.`, has no digest.
    pub repositories: BTreeMap<String, String>,
    /// The operations of git in progress, for example `.git: a rebase`, with what they do next.
    pub operations: BTreeMap<String, String>,
}

impl Found {
    /// Returns what is not in `known`, or differs there.
    #[must_use]
    pub fn without(&self, known: &Self) -> Self {
        let new = |now: &BTreeMap<String, String>, known: &BTreeMap<String, String>| {
            let is_new = |(path, digest): &(&String, &String)| known.get(*path) != Some(*digest);
            now.iter().filter(is_new).map(|(a, b)| (a.clone(), b.clone())).collect()
        };
        Self {
            repositories: new(&self.repositories, &known.repositories),
            operations: new(&self.operations, &known.operations),
        }
    }
}

/// The result of [`look`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The repositories, and the operations of git.
    pub found: Found,
    /// The indexes of the project's repository that have entries outside of the project.
    pub indexes: BTreeMap<String, String>,
    /// The files that programs of the host run and that have changed. A directory stands for its files.
    pub changed: BTreeMap<String, String>,
    /// Whether everything was looked at: the project has not too many files, and all of them can be read.
    pub is_whole: bool,
}

/// One of the lists of a [`Look`].
type List = fn(&mut Look) -> &mut BTreeMap<String, String>;

/// Looks through a project without following links. `outside` is the repository of the project, if it is elsewhere. `since` is the time
/// after which a file counts as changed; without it, no file does.
///
/// # Errors
/// If the directory cannot be opened.
pub fn look(project: &Path, outside: Option<&Path>, since: Option<SystemTime>) -> io::Result<Look> {
    let mut walk = Walk::of(project, Path::new(""), since)?;
    walk.project();
    let mut look = walk.look;
    if let Some(outside) = outside {
        let mut other = Walk::of(outside, outside, None)?;
        other.inside(Path::new(""));
        look.found.repositories.extend(other.look.found.repositories);
        look.found.operations.extend(other.look.found.operations);
        look.indexes.extend(other.look.indexes);
        look.is_whole &= other.look.is_whole;
    }
    Ok(look)
}

#[cfg(test)]
mod tests;
