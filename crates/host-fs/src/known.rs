//! Directories that a program knows, such as homes, recognized by their identity instead of their path: a bind mount
//! gives a directory a second path without a link.

use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;

use crate::steps::{Step, Steps};

/// The identity of a file or directory, which does not depend on its path: two paths with the same identity lead to
/// the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Returns the identity of the file at a path. Links are followed.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|found| Self::found(&found))
    }

    /// Returns the identity of an open file or directory.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn of_open(open: impl AsFd) -> io::Result<Self> {
        let found = fstat(open)?;
        Ok(Self { device: found.st_dev, inode: found.st_ino })
    }

    /// Returns the device number and the inode number.
    pub const fn numbers(self) -> (u64, u64) {
        (self.device, self.inode)
    }

    fn found(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

/// Directories that a program knows.
#[derive(Debug, Clone, Default)]
pub struct Known(Vec<(PathBuf, Identity)>);

impl Known {
    /// Remembers the directories at these paths. Paths that do not exist are ignored.
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let found = paths.into_iter().filter_map(|path| {
            let real = path.canonicalize().ok()?;
            let identity = Identity::of(&real).ok()?;
            Some((real, identity))
        });
        Self(found.collect())
    }

    /// Adds a directory by its path without links and its identity.
    #[must_use]
    pub fn and(mut self, path: &Path, identity: Identity) -> Self {
        self.0.push((path.to_owned(), identity));
        self
    }

    /// Returns the path without links of the known directory with this identity.
    pub fn find(&self, identity: Identity) -> Option<&Path> {
        self.0.iter().find(|it| it.1 == identity).map(|it| &*it.0)
    }

    /// Returns the path of the known directory that `directory` leads to, through any links or mounts.
    pub fn same(&self, directory: &Path) -> Option<&Path> {
        self.find(Identity::of(directory).ok()?)
    }

    /// Returns the innermost known directory that contains `path` or is at `path`, which has no links and need not exist.
    pub fn around(&self, path: &Path) -> Option<&Path> {
        path.ancestors().find_map(|it| self.same(it))
    }
}

/// Returns the paths that determine the target of `path`: each link on the way, and the target, which need not exist.
/// The parents of the returned paths have no links. For `/a/link/x`, if `/a/link` leads to `/b`, it returns `/a/link`
/// and `/b/x`.
pub fn places(path: &Path) -> Vec<PathBuf> {
    let (mut places, mut steps) = (Vec::new(), Steps::of(path));
    let mut at = fs::canonicalize(".").unwrap_or_default();
    while let Some(step) = steps.next() {
        match step {
            Step::Root => at = PathBuf::from("/"),
            Step::Up => drop(at.pop()),
            Step::Name(name) => match fs::read_link(at.join(&name)) {
                Ok(target) if steps.follow(&target).is_ok() => places.push(at.join(name)),
                _ => at.push(name),
            },
        }
    }
    places.push(at);
    places
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_is_known_by_whatever_leads_to_it() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        let at = |path: &str| real.join(path);
        fs::create_dir_all(at("home/project")).unwrap();
        fs::create_dir(at("homes")).unwrap();
        symlink("home", at("link")).unwrap();
        let known = Known::of([at("link"), at("none")]);
        for same in ["home", "link", "home/project/.."] {
            assert_eq!(known.same(&at(same)), Some(&*at("home")), "{same}");
        }
        for other in ["", "homes", "home/project", "none"] {
            assert_eq!(known.same(&at(other)), None, "{other}");
        }
        for inner in ["home", "home/project", "home/none/none", "link/project"] {
            assert_eq!(known.around(&at(inner)), Some(&*at("home")), "{inner}");
        }
        assert_eq!(known.around(&at("homes")), None);
        let open = fs::File::open(at("home")).unwrap();
        assert_eq!(Identity::of_open(&open).unwrap(), Identity::of(&at("link")).unwrap());
    }

    #[test]
    fn whoever_can_change_a_link_on_the_way_can_change_what_a_path_leads_to() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        let at = |path: &str| real.join(path);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::create_dir(at("c")).unwrap();
        symlink("../c/link", at("a/link")).unwrap();
        symlink(at("a/b"), at("c/link")).unwrap();
        symlink("endless", at("endless")).unwrap();
        let found = |path: &str| places(&at(path));
        assert_eq!(found("a/link/../b/none/x"), ["a/link", "c/link", "a/b/none/x"].map(at));
        assert_eq!(found("none"), ["none"].map(at));
        assert_eq!(found("endless").last(), Some(&at("endless")));
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(places(Path::new("./src/../none")), [here.join("none")]);
    }
}
