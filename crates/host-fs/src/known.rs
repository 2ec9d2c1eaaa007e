//! Directories that a program knows, such as homes, recognized whatever path leads to them: a bind mount gives a
//! directory a second path, which is no link.

use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;

use crate::steps::{Step, Steps};

/// The identity of a file or directory, whatever its path: two paths with the same identity lead to the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Returns what a path leads to, through links.
    ///
    /// # Errors
    /// The operating system's.
    pub fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|found| Self::found(&found))
    }

    /// Returns what an open file or directory is.
    ///
    /// # Errors
    /// The operating system's.
    pub fn of_open(open: impl AsFd) -> io::Result<Self> {
        let found = fstat(open)?;
        Ok(Self { device: found.st_dev, inode: found.st_ino })
    }

    /// Returns the number of the device, and that of the inode on it.
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
    /// Remembers what paths lead to. Those that lead to nothing are left out.
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let found = paths.into_iter().filter_map(|path| {
            let real = path.canonicalize().ok()?;
            let identity = Identity::of(&real).ok()?;
            Some((real, identity))
        });
        Self(found.collect())
    }

    /// Remembers one more, which a path without links leads to.
    #[must_use]
    pub fn and(mut self, path: &Path, identity: Identity) -> Self {
        self.0.push((path.to_owned(), identity));
        self
    }

    /// Returns the path by which one of them became known, without links, if it has this identity.
    pub fn find(&self, identity: Identity) -> Option<&Path> {
        self.0.iter().find(|it| it.1 == identity).map(|it| &*it.0)
    }

    /// Returns the path by which a directory became known, whatever path leads to it now.
    pub fn same(&self, directory: &Path) -> Option<&Path> {
        self.find(Identity::of(directory).ok()?)
    }

    /// Returns the innermost of them in which a path without links lies, or which it leads to. What is not there yet lies
    /// where it would be made.
    pub fn around(&self, path: &Path) -> Option<&Path> {
        path.ancestors().find_map(|it| self.same(it))
    }
}

/// Returns the places that decide what a path leads to: each link on the way, and its end, which need not be there yet. All of
/// them are paths without links.
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
