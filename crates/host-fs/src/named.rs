//! Opens files and directories that a user names, in directories to which another program may have written.
//!
//! A program with a writable directory, such as one in a box, can leave a link there. If the user later names a file
//! in that directory, the link would redirect the user to another file. So a link may only lead to files of the
//! checkout that contains the link. Links of the system are exempt, because `/home` is a link on some hosts.
//!
//! Such a program may also run at the same time, and replace directories on the way at any moment. So the path is
//! resolved once, from one open directory to the next, and the checked file is the opened file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::checkout::is_repository;
use crate::kernel;
use crate::known::Identity;
use crate::read::{Links, ReadError, open_regular_at};
use crate::steps::{Step, Steps};
use crate::upward::{Repository, Search};
use crate::way::{Found, Way};

/// The exempt links that are not directly in `/`: those in the
/// [Filesystem Hierarchy Standard](https://refspecs.linuxfoundation.org/FHS_3.0/fhs/index.html).
const OF_SYSTEM: [&str; 2] = ["/var/run", "/var/lock"];

/// Why a file or directory that a user named is not opened.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum NamedError {
    /// A link leads out of `tree`: its repository, or its directory if it is in no repository.
    #[error("{} is a link: the path leads to {}, which is not among the files of {}", link.display(), target.display(), tree.display())]
    Leads { link: PathBuf, target: PathBuf, tree: PathBuf },
    /// The operating system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Opens a file for reading that a user named. A link on the way may only lead to files of the repository that
/// contains it, or, outside of repositories, to files of its directory. `search` finds the repository. Files of the
/// kernel (`/dev/stdin`) are opened without these checks. Every other file must be regular.
///
/// # Errors
/// [`NamedError`].
pub fn open(path: &Path, search: &Search) -> Result<File, NamedError> {
    Ok(FileSlot::of_file(path, search)?.open()?)
}

/// Opens the [`Way`] to a directory that a user named. Links are followed by the rules of [`open`], even if `path` ends in one.
///
/// # Errors
/// [`NamedError`].
pub fn directory(path: &Path, search: &Search) -> Result<Way, NamedError> {
    if path == Path::new("") {
        return Err(io::Error::from(Errno::NOENT).into());
    }
    let (walk, _) = Walk::along(path, search, Goal::Directory)?;
    walk.check(walk.way.path())?;
    Ok(walk.way)
}

/// Checks the links on the way to a file or directory that is to be made, by the rules of [`open`]. Directories on the way may be
/// missing.
///
/// # Errors
/// [`NamedError`].
pub fn check_new(path: &Path, search: &Search) -> Result<(), NamedError> {
    // Without a slash at the end, after which a link at the end would be followed.
    let mut found = path.components().as_path();
    loop {
        match (FileSlot::of_new(found, search), found.parent()) {
            (Err(NamedError::Io(error)), Some(parent))
                if error.kind() == io::ErrorKind::NotFound && parent != Path::new("") =>
            {
                found = parent;
            }
            (checked, _) => return checked.map(drop),
        }
    }
}

/// The path of a file that a user named, resolved to an open directory and a name in it. Replacing a directory on the
/// way afterwards has no effect.
#[derive(Debug)]
pub struct FileSlot {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
    is_kernels: bool,
}

impl FileSlot {
    /// Resolves the path of an existing file. Links are followed by the rules of [`open`], even if `path` ends in one.
    ///
    /// # Errors
    /// [`NamedError`].
    pub fn of_file(path: &Path, search: &Search) -> Result<Self, NamedError> {
        Self::found(path, search, Goal::File)
    }

    /// Resolves the path of a file that is to be made or replaced. Links on the way to its directory are followed by
    /// the rules of [`open`]. The file itself is not examined.
    ///
    /// # Errors
    /// [`NamedError`].
    pub fn of_new(path: &Path, search: &Search) -> Result<Self, NamedError> {
        Self::found(path, search, Goal::New)
    }

    fn found(path: &Path, search: &Search, goal: Goal) -> Result<Self, NamedError> {
        let (walk, name) = Walk::along(path, search, goal)?;
        let name = name.ok_or_else(|| io::Error::from(ReadError::NotRegular))?;
        walk.end(name)
    }

    /// Returns the directory.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the name in the directory.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the path of the file without links, at the time of resolving.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the directory is in a file system of the kernel, whose links the kernel resolves itself.
    pub const fn is_kernels(&self) -> bool {
        self.is_kernels
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// The operating system's error, or that a file outside of the kernel's file systems is not regular.
    pub fn open(&self) -> io::Result<File> {
        if self.is_kernels {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            return Ok(openat(&self.directory, &self.name, flags, Mode::empty())?.into());
        }
        Ok(open_regular_at(&self.directory, Path::new(&self.name), Links::Refuse)?)
    }
}

/// The expected end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// An existing file. If it is a link, the link is followed.
    File,
    /// A file that is to be made or replaced.
    New,
    /// A directory. If it is a link, the link is followed.
    Directory,
}

/// A path that is being resolved.
struct Walk<'s> {
    way: Way,
    left: Steps,
    goal: Goal,
    search: &'s Search,
    /// The links on the path that another program may have made. Every link is checked, not only the first: a link that
    /// the user made can lead to one that a box made.
    links: Vec<Link>,
}

impl<'s> Walk<'s> {
    /// Resolves a path. Returns the name of the file in the last directory, or `None` if the path ends with a directory.
    fn along(path: &Path, search: &'s Search, goal: Goal) -> io::Result<(Self, Option<OsString>)> {
        let way = if path.is_absolute() { Way::root()? } else { Way::of(Path::new("."))? };
        let mut walk = Self { way, left: Steps::of(path), goal, search, links: Vec::new() };
        let name = walk.go()?;
        Ok((walk, name))
    }

    /// Resolves the remaining steps. Returns the name of the file at the end, or `None` if the path ends with a directory.
    fn go(&mut self) -> io::Result<Option<OsString>> {
        while let Some(step) = self.left.next() {
            match step {
                Step::Root => self.way = Way::root()?,
                Step::Up => self.way.up(),
                Step::Name(name) if self.goal == Goal::New && self.left.is_empty() => {
                    return Ok(Some(name));
                }
                Step::Name(name) => {
                    if self.pass(&name)? {
                        return Ok(Some(name));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Enters the directory or follows the link `name`. Returns `true` if `name` is the file at the end of the path instead.
    fn pass(&mut self, name: &OsStr) -> io::Result<bool> {
        let may_be_file = self.goal == Goal::File && self.left.is_empty();
        match self.way.look(name)? {
            Found::Directory(open) => self.way.enter(open, name),
            Found::Link(_) if kernel::around(self.way.path())?.is_some() => {
                if may_be_file {
                    return Ok(true);
                }
                self.way = self.way.through(name)?;
            }
            Found::Link(link) => self.follow(name, &link)?,
            Found::Other if may_be_file => return Ok(true),
            Found::Other => return Err(Errno::NOTDIR.into()),
        }
        Ok(false)
    }

    /// Follows an open link, and remembers it unless it belongs to the system.
    fn follow(&mut self, name: &OsStr, link: &OwnedFd) -> io::Result<()> {
        let at = self.way.path().join(name);
        let is_roots = fstat(link)?.st_uid == 0 && self.way.is_roots()?;
        if !is_of_system(&at, is_roots) {
            self.links.push(Link::new(at, &self.way, self.search)?);
        }
        let target = readlinkat(link, c"", Vec::new())?;
        self.left.follow(Path::new(&OsString::from_vec(target.into_bytes())))
    }

    /// Checks that all followed links may lead to `path`. `path` is the directory of the [`Way`] or a file in it, and
    /// contains no link.
    fn check(&self, path: &Path) -> Result<(), NamedError> {
        let astray = self.links.iter().find(|link| !link.may_lead(&self.way, path));
        astray.map_or(Ok(()), |Link { at, tree, .. }| {
            let (link, target, tree) = (at.clone(), path.to_owned(), tree.clone());
            Err(NamedError::Leads { link, target, tree })
        })
    }

    /// Checks the links, and returns the file's directory and name.
    fn end(self, name: OsString) -> Result<FileSlot, NamedError> {
        let path = self.way.path().join(&name);
        self.check(&path)?;
        let is_kernels = kernel::around(&path)?.is_some();
        Ok(FileSlot { directory: self.way.into_open(), name, path, is_kernels })
    }
}

/// A link that another program may have made, and the tree to whose files it may lead.
struct Link {
    at: PathBuf,
    tree: PathBuf,
    identity: Identity,
}

impl Link {
    fn new(at: PathBuf, way: &Way, search: &Search) -> io::Result<Self> {
        let tree = around(way.path(), search);
        // The path may lead to another directory by now, so the identity comes from the open handles.
        let identity = way.identity_of(&tree).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { at, tree, identity })
    }

    /// Returns whether the link may lead to `path`, at the end of `way`.
    fn may_lead(&self, way: &Way, path: &Path) -> bool {
        let Ok(inner) = path.strip_prefix(&self.tree) else { return false };
        // A repository's metadata can contain keys, and no link needs to lead to it.
        way.identity_of(&self.tree) == Some(self.identity) && !inner.iter().any(is_repository)
    }
}

/// Returns whether a link is exempt: it is in `/`, in [`OF_SYSTEM`], or only root can have made it. `is_roots` is
/// true if root owns the link and no other user can change its directory or an ancestor. If this process is root, `is_roots`
/// is ignored, because a box may then write as root.
fn is_of_system(link: &Path, is_roots: bool) -> bool {
    (is_roots && !geteuid().is_root())
        || link.parent() == Some(Path::new("/"))
        || OF_SYSTEM.iter().any(|it| link.as_os_str() == OsStr::new(it))
}

/// Returns the usable repository that contains `directory`, or else `directory`, which must have no links.
fn around(directory: &Path, search: &Search) -> PathBuf {
    match search.repository(directory) {
        Repository::At(found, _) => found,
        Repository::Unused(..) | Repository::None => directory.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    use super::*;
    use crate::known::Known;
    use crate::trust::Trusted;

    /// A home with a repository, another directory and a secret. No other users are trusted.
    fn scene() -> (tempfile::TempDir, PathBuf, Search) {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap();
        for directory in ["repository/.git", "repository/inner", "plain/inner", "elsewhere"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        for file in ["secret", "repository/.git/config", "repository/file", "plain/file"] {
            fs::write(home.join(file), file).unwrap();
        }
        let search = Search { homes: Known::of([home.clone()]), trusted: Trusted::this_user() };
        (root, home, search)
    }

    fn read(path: &Path, search: &Search) -> Result<String, String> {
        let mut text = String::new();
        let mut file = open(path, search).map_err(|error| error.to_string())?;
        file.read_to_string(&mut text).unwrap();
        Ok(text)
    }

    /// A link of the user may lead anywhere in the home, but not through a link that a box has left.
    #[test]
    fn each_link_on_the_way_leads_no_further_than_its_own_tree() {
        let (_root, home, search) = scene();
        let at = |path: &str| home.join(path);
        for (link, target) in [
            ("mine", "repository"),
            ("repository/.env", "../secret"),
            ("repository/out", ".."),
            ("repository/in", "inner/../file"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        assert_eq!(read(&at("mine/file"), &search), Ok("repository/file".into()));
        assert_eq!(read(&at("mine/in"), &search), Ok("repository/file".into()));
        for path in ["mine/.env", "mine/out/secret", "mine/out/mine/out/secret"] {
            let error = read(&at(path), &search).unwrap_err();
            assert!(error.contains("is not among the files of"), "{path}: {error}");
            assert!(error.contains("/repository/"), "it is the box's link: {error}");
        }
        // A link that leads back into the tree does not help.
        assert_eq!(read(&at("mine/out/repository/file"), &search), Ok("repository/file".into()));
        directory(&at("mine/out/"), &search).unwrap_err();
        directory(&at("mine/inner/"), &search).unwrap();
        FileSlot::of_new(&at("mine/out/new"), &search).unwrap_err();
        FileSlot::of_new(&at("mine/new"), &search).unwrap();
    }

    #[test]
    fn a_link_leads_no_further_than_its_repository_or_directory() {
        let (_root, home, search) = scene();
        let at = |path: &str| home.join(path);
        let through = |link: &str, target: &str| {
            symlink(target, at(link)).unwrap();
            let found = read(&at(link), &search);
            fs::remove_file(at(link)).unwrap();
            found.map_err(|error| error.replace(&home.display().to_string(), ""))
        };
        assert_eq!(through("repository/inner/.env", "../file"), Ok("repository/file".into()));
        assert_eq!(through("plain/.env", "./inner/../file"), Ok("plain/file".into()));
        for (link, target) in [
            ("repository/.env", "../secret"),
            ("repository/inner/.env", "../../plain/file"),
            ("plain/inner/.env", "../file"),
            // A home is no checkout, even with a repository in it.
            ("elsewhere/.env", "../secret"),
        ] {
            let error = through(link, target).unwrap_err();
            assert!(
                error.starts_with(&format!("/{link} is a link: the path leads to /")),
                "{error}"
            );
        }
        let out = through("plain/.env", "../secret").unwrap_err();
        let expected = "/plain/.env is a link: the path leads to /secret, which is not among the files of /plain";
        assert_eq!(out, expected);
        let git = through("repository/.env", ".git/config").unwrap_err();
        assert!(
            git.contains("leads to /repository/.git/config, which is not among the files of"),
            "{git}"
        );
        through("plain/.env", "none").unwrap_err();
        through("plain/.env", ".env").unwrap_err();
    }

    #[test]
    fn a_directory_on_the_way_is_no_link_elsewhere_either() {
        let (_root, home, search) = scene();
        symlink("../elsewhere", home.join("plain/config")).unwrap();
        fs::write(home.join("elsewhere/file"), "").unwrap();
        read(&home.join("plain/config/file"), &search).unwrap_err();
        symlink("inner", home.join("plain/other")).unwrap();
        fs::write(home.join("plain/inner/file"), "inner").unwrap();
        assert_eq!(read(&home.join("plain/other/file"), &search), Ok("inner".into()));
        assert_eq!(read(&home.join("plain/inner/../file"), &search), Ok("plain/file".into()));
    }

    /// Replaces a directory on the way with a link all the time, as a running box can.
    #[test]
    fn whoever_exchanges_what_is_on_the_way_leads_it_nowhere() {
        let (_root, home, search) = scene();
        let at = |path: &str| home.join(path);
        fs::write(at("plain/inner/file"), "inner").unwrap();
        fs::write(at("elsewhere/file"), "secret").unwrap();
        symlink("../elsewhere", at("plain/link")).unwrap();
        let (one, other, done) = (at("plain/inner"), at("plain/link"), AtomicBool::new(false));
        let exchange = || {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        };
        let file = at("plain/inner/file");
        thread::scope(|scope| {
            scope.spawn(exchange);
            let read: Vec<_> = (0..5000).map(|_| read(&file, &search)).collect();
            done.store(true, Ordering::Relaxed);
            let other = read.iter().flatten().find(|it| *it != "inner");
            assert_eq!(other, None);
        });
    }

    /// The same for a file that is made: it is in the directory that was found, whatever is at its path meanwhile.
    #[test]
    fn whoever_exchanges_what_is_on_the_way_gets_no_new_file_elsewhere() {
        let (_root, home, search) = scene();
        let at = |path: &str| home.join(path);
        symlink("../elsewhere", at("plain/link")).unwrap();
        let before = fs::read_dir(at("elsewhere")).unwrap().count();
        let (one, other, done) = (at("plain/inner"), at("plain/link"), AtomicBool::new(false));
        let exchange = || {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        };
        let (file, flags) = (at("plain/inner/new"), OFlags::WRONLY | OFlags::CREATE);
        thread::scope(|scope| {
            scope.spawn(exchange);
            for _ in 0..5000 {
                let Ok(slot) = FileSlot::of_new(&file, &search) else { continue };
                openat(slot.directory(), slot.name(), flags, Mode::RWXU).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), before);
    }

    #[test]
    fn a_place_stays_where_it_was_found() {
        let (_root, home, search) = scene();
        let at = |path: &str| home.join(path);
        fs::write(at("plain/inner/file"), "inner").unwrap();
        let found = FileSlot::of_file(&at("plain/inner/file"), &search).unwrap();
        let new = FileSlot::of_new(&at("plain/inner/new"), &search).unwrap();
        fs::rename(at("plain/inner"), at("plain/moved")).unwrap();
        symlink("../elsewhere", at("plain/inner")).unwrap();
        fs::write(at("elsewhere/file"), "secret").unwrap();
        assert_eq!(io::read_to_string(found.open().unwrap()).unwrap(), "inner");
        let flags = OFlags::WRONLY | OFlags::CREATE;
        openat(new.directory(), new.name(), flags, Mode::RWXU).unwrap();
        assert!(at("plain/moved/new").exists() && !at("elsewhere/new").exists());
        assert_eq!(new.path(), at("plain/inner/new"));
    }

    #[test]
    fn what_is_to_be_made_is_in_the_same_tree_too() {
        let (_root, home, search) = scene();
        let at = |path: &str| home.join(path);
        symlink("../elsewhere", at("plain/out")).unwrap();
        symlink("inner", at("plain/in")).unwrap();
        symlink("../secret", at("plain/inner/link")).unwrap();
        let place = |path: &str| FileSlot::of_new(&at(path), &search);
        assert_eq!(place("plain/in/new").unwrap().path(), at("plain/inner/new"));
        assert_eq!(place("plain/inner/link").unwrap().path(), at("plain/inner/link"));
        let error = place("plain/out/new").unwrap_err().to_string();
        assert!(error.contains("plain/out is a link: the path leads to "), "{error}");
        place("plain/none/new").unwrap_err();
        place("plain/..").unwrap_err();
        assert!(FileSlot::of_new(Path::new("/dev/stdout"), &search).unwrap().is_kernels());
    }

    #[test]
    fn a_directory_is_found_in_the_same_tree_too() {
        let (_root, home, search) = scene();
        let at = |path: &str| home.join(path);
        symlink("../elsewhere", at("plain/out")).unwrap();
        symlink("inner", at("plain/in")).unwrap();
        symlink(".", at("plain/here")).unwrap();
        symlink(".git", at("repository/git")).unwrap();
        let found = |path: &str| {
            let way = directory(&at(path), &search).map_err(|error| error.to_string())?;
            Ok(way.path().strip_prefix(&home).unwrap().display().to_string())
        };
        for (path, expected) in [
            ("plain/in", "plain/inner"),
            ("plain/in/.", "plain/inner"),
            ("plain/in/..", "plain"),
            ("plain/here/", "plain"),
            // The user names it directly.
            ("repository/.git", "repository/.git"),
        ] {
            assert_eq!(found(path), Ok(expected.to_owned()), "{path}");
        }
        for path in ["plain/out", "plain/out/", "plain/out/.", "repository/git"] {
            let error: String = found(path).unwrap_err();
            assert!(error.contains(" is a link: the path leads to "), "{path}: {error}");
        }
        for (path, expected) in [
            ("plain/file", "Not a directory (os error 20)"),
            ("plain/file/inner", "Not a directory (os error 20)"),
            ("plain/none", "No such file or directory (os error 2)"),
        ] {
            assert_eq!(found(path), Err(expected.to_owned()), "{path}");
        }
        directory(Path::new(""), &search).unwrap_err();
    }

    #[test]
    fn a_directory_of_the_system_or_the_kernel_is_found_through_its_links() {
        let (_root, home, search) = scene();
        assert_eq!(directory(Path::new("/"), &search).unwrap().path(), Path::new("/"));
        let run = Path::new("/var/run").canonicalize().unwrap();
        assert_eq!(directory(Path::new("/var/run"), &search).unwrap().path(), run);
        let open = File::open(home.join("plain")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        let way = directory(Path::new(&format!("/proc/self/fd/{number}")), &search).unwrap();
        assert_eq!(way.path(), home.join("plain"));
    }

    #[test]
    fn what_is_not_the_kernels_is_not_opened_as_it_is_through_it() {
        let (_root, home, search) = scene();
        symlink("../secret", home.join("plain/.env")).unwrap();
        let open = File::open(home.join("plain")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        let through =
            |name: &str| read(Path::new(&format!("/proc/self/fd/{number}/{name}")), &search);
        assert_eq!(through("file"), Ok("plain/file".into()));
        let error = through(".env").unwrap_err();
        assert!(error.contains("plain/.env is a link: the path leads to "), "{error}");
    }

    #[test]
    fn a_directory_that_is_moved_leads_to_nothing_above_it() {
        let (_root, home, search) = scene();
        let at = |path: &str| home.join(path);
        let mut walk = Walk {
            way: Way::of(&at("plain/inner")).unwrap(),
            left: Steps::of(Path::new("../file")),
            goal: Goal::File,
            search: &search,
            links: Vec::new(),
        };
        fs::rename(at("plain/inner"), at("inner")).unwrap();
        let name = walk.go().unwrap().unwrap();
        assert_eq!(walk.end(name).unwrap().path(), at("plain/file"));
    }

    #[test]
    fn what_is_no_file_is_not_waited_for_and_the_kernels_own_is_read() {
        let (_root, home, search) = scene();
        for named in ["secret", "repository/.git/config"] {
            assert_eq!(read(&home.join(named), &search), Ok(named.into()), "it is named itself");
        }
        let pipe = home.join("pipe");
        let made = rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0);
        made.unwrap();
        for other in [&pipe, &home, &home.join("none")] {
            read(other, &search).unwrap_err();
        }
        let open = File::open(home.join("secret")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        for way in ["/dev/fd", "/proc/self/fd"] {
            let path = Path::new(way).join(number.to_string());
            assert_eq!(read(&path, &search), Ok("secret".into()), "{way}");
        }
        assert_eq!(read(Path::new("/dev/null"), &search), Ok(String::new()));
    }

    #[test]
    fn links_of_the_system_are_known_by_their_place_or_their_owner() {
        for link in ["/home", "/var/run"] {
            assert!(is_of_system(Path::new(link), false), "{link}");
        }
        assert!(!is_of_system(Path::new("/srv/project/.env"), false));
        let is_roots = is_of_system(Path::new("/srv/project/.env"), true);
        assert_eq!(is_roots, !geteuid().is_root());
    }

    /// A link of root in a directory of another user was moved there, or made by a box that root has started.
    #[test]
    fn a_directory_is_roots_if_all_above_it_are() {
        assert!(Way::of(Path::new("/etc")).unwrap().is_roots().unwrap());
        let (_root, home, _) = scene();
        assert!(!Way::of(&home).unwrap().is_roots().unwrap(), "others write to what is above");
    }
}
