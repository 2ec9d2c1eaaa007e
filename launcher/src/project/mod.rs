//! Projects: directories of the host, each with a box of its own, its environment.

mod git;
mod index;
pub mod left;
mod name;
mod special;

use std::io;
use std::path::{Path, PathBuf};

use host_fs::OsError;
use host_fs::trust::{Stranger, Trusted};
use host_fs::way::Way;

pub use git::{GitError, Protected, Repository};
pub use name::{name_of, volume_prefix};
pub use special::Special;

/// Why a directory can be no project.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The directory cannot be opened.
    #[error("{} cannot be opened: {source}", path.display())]
    Unopened {
        /// The path of the command line.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The directory contains much more than a project.
    #[error("{} is no project: it is {what}", path.display())]
    TooLarge {
        /// The directory, without links.
        path: PathBuf,
        /// What the directory is instead.
        what: &'static str,
    },
    /// Another user can replace the directory or change what is in it.
    #[error("{} is no place for a project: {stranger}", path.display())]
    Strange {
        /// The directory, without links.
        path: PathBuf,
        /// The user, and what the user can do.
        stranger: Stranger,
    },
    /// The path cannot be a path in a box.
    #[error("{} is no path that a box can have: it is not UTF-8, or has a colon", path.display())]
    Unnameable {
        /// The directory, without links.
        path: PathBuf,
    },
    /// The users who can change the directory are not known.
    #[error(transparent)]
    Os(#[from] OsError),
    /// The repository of the project cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A directory of the host that has an environment, or may get one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    path: PathBuf,
}

impl Project {
    /// Finds the project at a path. `homes` are the home directories of this user, and `trusted` are those who may change a project.
    ///
    /// # Errors
    /// [`ProjectError`], for example if it is the home directory, or if another user can change it.
    pub fn find(path: &Path, homes: &[PathBuf], trusted: &Trusted) -> Result<Self, ProjectError> {
        let unopened = |source| ProjectError::Unopened { path: path.to_owned(), source };
        let way = Way::of(path).map_err(unopened)?;
        let path = way.path().to_owned();
        if let Some(what) = too_large(&path, homes) {
            return Err(ProjectError::TooLarge { path, what });
        }
        if path.to_str().is_none_or(|it| it.contains(':')) {
            return Err(ProjectError::Unnameable { path });
        }
        for directory in path.ancestors() {
            let stranger = trusted.untrusted_replacer(directory);
            if let Some(stranger) = stranger.map_err(OsError::file("examine", directory))? {
                return Err(ProjectError::Strange { path, stranger });
            }
        }
        Ok(Self { path })
    }

    /// Returns the path of the directory, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finds the project's repository. See [`Repository::of`].
    ///
    /// # Errors
    /// [`GitError`].
    pub fn repository(&self) -> Result<Option<Repository>, GitError> {
        Repository::of(&self.path)
    }

    /// Returns the name of the project's environment.
    pub fn name(&self) -> String {
        name_of(&self.path)
    }
}

fn too_large(path: &Path, homes: &[PathBuf]) -> Option<&'static str> {
    if path.parent().is_none() {
        return Some("the root directory");
    }
    let homes = homes.iter().filter_map(|it| it.canonicalize().ok());
    let home = homes.into_iter().find(|it| it.starts_with(path))?;
    Some(if home == path { "your home directory" } else { "above your home directory" })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_contains_more_than_a_project_or_belongs_to_others_is_none() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        for path in ["project", "open", "a:b"] {
            fs::create_dir(at(path)).unwrap();
        }
        fs::set_permissions(at("open"), Permissions::from_mode(0o777)).unwrap();
        symlink("project", at("link")).unwrap();
        let find = |path: &str| {
            let found = Project::find(&at(path), &[home.path().to_owned()], &Trusted::this_user());
            let real = home.path().canonicalize().unwrap();
            found.map_err(|it| it.to_string().replace(&real.display().to_string(), "HOME"))
        };
        let (one, other) = (find("project").unwrap(), find("link").unwrap());
        assert_eq!(one, other, "a link leads to the same project");
        assert_eq!(one.path(), at("project").canonicalize().unwrap());
        let errors = ["/", "", "..", "open", "a:b", "none"].map(|it| find(it).unwrap_err());
        assert_eq!(errors[0], "/ is no project: it is the root directory");
        assert_eq!(errors[1], "HOME is no project: it is your home directory");
        assert!(errors[2].ends_with("it is above your home directory"), "{}", errors[2]);
        assert!(errors[3].contains("everybody can"), "{}", errors[3]);
        assert!(errors[4].contains("no path that a box can have"), "{}", errors[4]);
        assert!(errors[5].contains("cannot be opened: No such file"), "{}", errors[5]);
    }
}
