//! A project: a Boxfile on the disk, the files that it extends, and its lock.

mod checkout;
pub mod lock;
mod locked;
mod lockfile;
pub(crate) mod pins;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use boxfile_spec::{Document, MAX_SOURCE};
use diagnostics::Source;
use host_fs::FileError;
use host_fs::checkout::{self as inside, Bounds};
#[cfg(test)]
use host_fs::known::Known;
use host_fs::publish::parent_of;
use host_fs::read::{Links, open_regular, read_open_prefix};

pub use ::checkout::BOXFILES as NAMES;
pub use checkout::{Checkout, CheckoutError};
pub use locked::{Declarations, Mismatch, Named, Target};
pub use lockfile::{LockFile, LockFileError, LockPlace};
pub use pins::{Pins, Variant};

/// The suffix of a lock's file name.
pub const LOCK_ENDING: &str = ".lock";

/// A Boxfile on the disk.
#[derive(Debug, Clone)]
pub struct Project {
    /// The path of the Boxfile.
    pub file: PathBuf,
    /// The Boxfile's directory, the base of its relative paths. Empty for the current directory.
    pub base: PathBuf,
    /// The directory that the Boxfile's paths must not leave.
    pub checkout: Checkout,
    /// Whether a search found the Boxfile. Otherwise, the user named it.
    pub is_found: bool,
}

/// A Boxfile cannot be read as text.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {reason}", path.display())]
pub struct ProjectError {
    path: PathBuf,
    reason: String,
    /// Whether there is nothing at the path.
    pub is_missing: bool,
    /// The Boxfile in the directory at the path.
    pub inner: Option<PathBuf>,
}

impl ProjectError {
    fn new(path: &Path, reason: String) -> Self {
        let inner = NAMES.iter().map(|name| path.join(name)).find(|it| it.is_file());
        let is_missing = path.symlink_metadata().is_err();
        Self { path: path.to_owned(), reason, is_missing, inner }
    }
}

impl Project {
    /// Returns a project whose checkout is the Boxfile's directory, for tests without home directories.
    #[cfg(test)]
    fn of(file: &Path) -> Self {
        Self::within(file, Checkout::own(base(file), Known::default()))
    }

    /// Returns the project of a Boxfile that the user named.
    pub fn within(file: &Path, checkout: Checkout) -> Self {
        Self { file: file.to_owned(), base: base(file).to_owned(), checkout, is_found: false }
    }

    /// Sets whether a search found the Boxfile. Otherwise, the user named it.
    #[must_use]
    pub fn found(self, is_found: bool) -> Self {
        Self { is_found, ..self }
    }

    /// Reads the Boxfile with a profile, and the files that it extends. The document contains the errors in these
    /// files.
    ///
    /// # Errors
    /// [`ProjectError`] if the Boxfile cannot be read.
    pub fn read(&self, profile: Option<&str>) -> Result<Document, ProjectError> {
        let main = self
            .open()
            .map_err(|error| error.to_string())
            .and_then(|file| source(&self.file, &file))
            .map_err(|reason| ProjectError::new(&self.file, reason))?;
        Ok(self.read_as(main, profile))
    }

    /// Opens the Boxfile in the directory that was opened at the start, even if another directory has its path by
    /// now. Otherwise, the files that it names could belong to another Boxfile.
    fn open(&self) -> io::Result<File> {
        match (self.checkout.base(), self.file.file_name()) {
            _ if self.is_found => inside::open(&self.beside(), &self.file),
            (Some(base), Some(name)) => Ok(base.open_named(Path::new(name))?),
            _ => open(&self.file, None),
        }
    }

    /// Returns the path of the Boxfile in the directory from which it is read. If the file is a link, this is the
    /// link's path, because each link is a separate Boxfile.
    ///
    /// # Errors
    /// The errors of the operating system.
    pub fn identity(&self) -> io::Result<PathBuf> {
        let directory = match self.checkout.base() {
            Some(base) => base.path().to_owned(),
            None => parent_of(&self.file).canonicalize()?,
        };
        Ok(directory.join(self.file.file_name().unwrap_or_default()))
    }

    /// Reads a text as the Boxfile's content, and the files that it extends.
    pub fn read_as(&self, text: Source, profile: Option<&str>) -> Document {
        boxfile_spec::read_within(text, profile, &self.checkout.reach, |path| self.read_base(path))
    }

    /// Reads a file that the Boxfile extends. Symbolic links in its path must not lead out of the checkout.
    fn read_base(&self, path: &str) -> Result<Source, String> {
        let path = self.base.join(path);
        let file = inside::open(&self.checkout(), &path).map_err(|error| error.to_string())?;
        source(&path, &file)
    }

    /// Checks that a Boxfile or a lock that the user did not name is no symbolic link that is dangling or leads out of
    /// its directory. An absent file is accepted.
    ///
    /// # Errors
    /// The link, or the errors of the operating system.
    pub fn check_unnamed(file: &Path) -> Result<(), FileError> {
        let directory = file.parent().unwrap_or(Path::new(""));
        match inside::check(directory, file) {
            Err(error) if error.kind() != ErrorKind::NotFound || file.is_symlink() => {
                Err(FileError::of("read", file)(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the bounds of the checkout. If there is no checkout, the Boxfile's parser refuses every path, so that no
    /// file is read.
    pub fn checkout(&self) -> Bounds {
        self.checkout.bounds()
    }

    /// Returns the bounds of a Boxfile and a lock that the user did not name: the Boxfile's directory.
    pub fn beside(&self) -> Bounds {
        self.checkout.beside()
    }

    /// Returns the path of the lock: `Boxfile.lock` for the Boxfile that a search in its directory finds. For every
    /// other Boxfile, the lock's name is the whole file name and `.lock`, so that no two share a lock. For example, the
    /// lock of `test.kdl` is `test.kdl.lock`.
    pub fn lock_path(&self) -> PathBuf {
        let mut name = self.file.file_name().unwrap_or_default().to_owned();
        let first = NAMES.iter().find(|name| self.base.join(name).is_file());
        if first.is_none_or(|first| name == *first) && NAMES.iter().any(|it| name == *it) {
            name = NAMES[0].into();
        }
        name.push(LOCK_ENDING);
        self.base.join(name)
    }
}

/// Returns the directory of a Boxfile. Empty for the current directory.
pub fn base(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// Opens a file that the user named, or a file that was found in a directory. No link may lead out of that directory,
/// not even a link that was created after the search.
fn open(path: &Path, found_in: Option<&Bounds>) -> io::Result<File> {
    match found_in {
        Some(directory) => inside::open(directory, path),
        None => Ok(open_regular(path, Links::Follow)?),
    }
}

/// Reads at most one byte more than the maximum size of 1 MiB. The Boxfile's parser then refuses a longer text.
fn source(path: &Path, file: &File) -> Result<Source, String> {
    let bytes = read_open_prefix(file, MAX_SOURCE as u64 + 1).map_err(|error| error.to_string())?;
    let name = path.display().to_string();
    // A text that is too long may be cut in the middle of a character.
    if bytes.len() > MAX_SOURCE {
        return Ok(Source::new(name, String::from_utf8_lossy(&bytes)));
    }
    let text = host_fs::read::text(path, bytes).map_err(|error| error.source.to_string())?;
    Ok(Source::new(name, text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use host_fs::trust::Trusted;
    use host_fs::upward::Search;

    use super::*;

    #[test]
    fn the_lock_is_beside_the_boxfile() {
        for (file, lock) in [
            ("Boxfile", "Boxfile.lock"),
            ("a/Boxfile.kdl", "a/Boxfile.lock"),
            ("a/Boxfile.toml", "a/Boxfile.lock"),
            ("ci.Boxfile", "ci.Boxfile.lock"),
            ("poetry.toml", "poetry.toml.lock"),
        ] {
            assert_eq!(Project::of(Path::new(file)).lock_path(), Path::new(lock));
        }
    }

    #[test]
    fn no_two_boxfiles_of_a_directory_have_one_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("Boxfile.kdl"), "").unwrap();
        fs::write(path("Boxfile.toml"), "").unwrap();
        let lock = |name: &str| Project::of(&path(name)).lock_path();
        assert_eq!(lock("Boxfile.kdl"), path("Boxfile.lock"));
        assert_eq!(lock("Boxfile.toml"), path("Boxfile.toml.lock"));
    }

    #[test]
    fn a_base_that_is_a_link_out_of_the_checkout_is_refused() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("base"), "box b\n").unwrap();
        fs::write(inside.path().join("Boxfile"), "extends base\n").unwrap();
        let link = inside.path().join("base");
        std::os::unix::fs::symlink(outside.path().join("base"), &link).unwrap();
        let found = Project::of(&inside.path().join("Boxfile")).read(None).unwrap().found;
        assert!(found[0].message().contains("leads out of the checkout"), "{found:?}");
    }

    #[test]
    fn a_file_that_nobody_named_is_no_link_out_of_its_directory() {
        let outer = tempfile::tempdir().unwrap();
        let at = |name: &str| outer.path().join(name);
        fs::create_dir(at("checkout")).unwrap();
        fs::write(at("netrc"), "password").unwrap();
        fs::write(at("checkout/own"), "").unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, at(name)).unwrap();
        for (to, name) in [("../netrc", "Boxfile"), ("nothing", "Boxfile.lock")] {
            link(to, &format!("checkout/{name}"));
            Project::check_unnamed(&at("checkout").join(name)).unwrap_err();
        }
        link("own", "checkout/Boxfile.kdl");
        for name in ["own", "Boxfile.kdl", "missing"] {
            Project::check_unnamed(&at("checkout").join(name)).unwrap();
        }
    }

    #[test]
    fn what_nobody_named_is_read_through_no_link_that_was_put_there_meanwhile() {
        let outer = tempfile::tempdir().unwrap();
        let at = |name: &str| outer.path().join(name);
        fs::create_dir_all(at("checkout/home")).unwrap();
        for (secret, link) in [("secret", "../secret"), ("checkout/home/secret", "home/secret")] {
            fs::write(at(secret), "box \"hunter2\"\n").unwrap();
            let homes = Known::of([at("checkout/home")]);
            let checkout = Checkout::own(&at("checkout"), homes);
            let project = Project::within(&at("checkout/Boxfile"), checkout).found(true);
            let lock = LockPlace::found(project.lock_path(), project.beside());
            for name in ["Boxfile", "Boxfile.lock"] {
                std::os::unix::fs::symlink(link, at("checkout").join(name)).unwrap();
            }
            let error = project.read(None).unwrap_err().to_string();
            let expected = ["leads out of the checkout", "is a home directory"];
            assert!(expected.iter().any(|it| error.contains(it)), "{error}");
            assert!(matches!(LockFile::read(lock), Err(LockFileError::File(_))), "{link}");
            assert!(project.clone().found(false).read(None).is_ok(), "who names it means it");
            for name in ["Boxfile", "Boxfile.lock"] {
                fs::remove_file(at("checkout").join(name)).unwrap();
            }
        }
    }

    #[test]
    fn what_is_put_in_the_place_of_a_directory_that_was_found_is_not_read() {
        let outer = tempfile::tempdir().unwrap();
        let at = |name: &str| outer.path().join(name);
        for (place, file, text) in [
            ("work/proj", "Boxfile", "extends \"base\"\n"),
            ("work/proj", "base", "box \"own\"\n"),
            ("foreign", "base", "box \"hunter2\"\n"),
            ("foreign", "Boxfile.lock", "hunter2"),
        ] {
            fs::create_dir_all(at(place)).unwrap();
            fs::write(at(place).join(file), text).unwrap();
        }
        let search = Search { homes: Known::default(), trusted: Trusted::this_user() };
        let find = || {
            let checkout = Checkout::find(&at("work/proj"), &search).unwrap();
            Project::within(&at("work/proj/Boxfile"), checkout)
        };
        let own = find();
        fs::rename(at("work/proj"), at("work/moved")).unwrap();
        std::os::unix::fs::symlink(at("foreign"), at("work/proj")).unwrap();
        let Document { sources, found, .. } = own.read(None).unwrap();
        assert_eq!(sources.as_slice().len(), 1);
        assert!(found[0].message().contains("leads out of the checkout"), "{found:?}");
        let lock = LockFile::read(LockPlace::found(own.lock_path(), own.beside()));
        assert!(matches!(lock, Err(LockFileError::File(_))));
        // The second search opened the directory `foreign`, which has no Boxfile. The Boxfile that has the same path
        // now must not be read instead: it could name files in `foreign`.
        let foreign = find();
        fs::remove_file(at("work/proj")).unwrap();
        fs::rename(at("work/moved"), at("work/proj")).unwrap();
        own.read(None).unwrap();
        foreign.read(None).unwrap_err();
    }

    #[test]
    fn a_base_in_a_home_below_the_checkout_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let at = |name: &str| outer.path().join(name);
        fs::create_dir(at("home")).unwrap();
        fs::write(at("home/base"), "box b\n").unwrap();
        fs::write(at("Boxfile"), "extends \"home/base\"\n").unwrap();
        let read = |homes| {
            let checkout = Checkout::own(outer.path(), homes);
            Project::within(&at("Boxfile"), checkout).read(None).unwrap().found
        };
        let found = read(Known::of([at("home")]));
        assert!(found[0].message().contains("is a home directory"), "{found:?}");
        let found = read(Known::default());
        assert!(!found.iter().any(|it| it.message().contains("home directory")), "{found:?}");
    }

    #[test]
    fn what_is_no_text_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let error = |path: &Path| Project::of(path).read(None).unwrap_err().to_string();
        assert!(error(directory.path()).ends_with("it is not a regular file"));
        let file = directory.path().join("Boxfile");
        fs::write(&file, b"box \"x\"\xff").unwrap();
        assert!(error(&file).ends_with("not valid UTF-8 at line 1, column 8"));
    }
}
