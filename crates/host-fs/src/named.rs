//! Files that a user names, in directories to which somebody else may have written in the user's name.
//!
//! A program that has had a directory to write to, in a box for example, can leave a link in it: the next time that its user
//! names a file there, that would be another one. So a link leads no further than to the checkout in which it lies. Those of the
//! system are none of its business: `/home` is one on some hosts.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::geteuid;

use crate::checkout::is_repository;
use crate::kernel;
use crate::read::{Links, open_regular_at};
use crate::upward::{Repository, Search};

/// The links that the Filesystem Hierarchy Standard has outside of `/`.
const OF_SYSTEM: [&str; 2] = ["/var/run", "/var/lock"];

/// Why a file that a user named is not opened.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum NamedError {
    /// A link leads elsewhere.
    #[error("{} is a link that leads to {}, and not to a file of {}", link.display(), target.display(), tree.display())]
    Leads { link: PathBuf, target: PathBuf, tree: PathBuf },
    /// The operating system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Opens a file for reading that a user named. A link on the way leads only to files of its repository, or outside of
/// repositories to files of its directory; `search` finds the repository. What the kernel has (`/dev/stdin`) is opened as it is, and anything
/// else has to be a regular file.
///
/// # Errors
/// [`NamedError`].
pub fn open(path: &Path, search: &Search) -> Result<File, NamedError> {
    // Whoever changes the way meanwhile gets an error: it is gone by its names, through no link.
    let (tree, link) = match first_link(path)? {
        First::OfKernel => return Ok(File::open(path)?),
        First::None => return Ok(open_by_names(&fs::canonicalize(path)?)?),
        First::At { directory, link } => (around(&directory, search), link),
    };
    let target = fs::canonicalize(path)?;
    match target.strip_prefix(&tree) {
        // Keys to the repository can be there, which no file of it leads to.
        Ok(inner) if !inner.iter().any(is_repository) => Ok(open_by_names(&target)?),
        _ => Err(NamedError::Leads { link, target, tree }),
    }
}

/// Opens a regular file by its absolute path, name by name and through no link.
fn open_by_names(path: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut directory = openat(CWD, "/", flags, Mode::empty())?;
    for name in path.parent().into_iter().flat_map(Path::iter).skip(1) {
        directory = openat(&directory, name, flags, Mode::empty())?;
    }
    Ok(open_regular_at(&directory, Path::new(name), Links::Refuse)?)
}

/// The first link on the way to a file that somebody else may have put there.
#[derive(Debug, PartialEq, Eq)]
enum First {
    None,
    /// The path leads to the kernel's own files, which nobody else makes.
    OfKernel,
    At {
        directory: PathBuf,
        link: PathBuf,
    },
}

fn first_link(path: &Path) -> io::Result<First> {
    let mut done = fs::canonicalize(if path.is_absolute() { "/" } else { "." })?;
    for part in path.components() {
        match part {
            Component::ParentDir => drop(done.pop()),
            Component::Normal(name) => {
                let next = done.join(name);
                match fs::symlink_metadata(&next)? {
                    found if !found.is_symlink() => done = next,
                    _ if kernel::around(&done)?.is_some() => return Ok(First::OfKernel),
                    found if is_of_system(&next, found.uid()) => done = fs::canonicalize(next)?,
                    _ => return Ok(First::At { directory: done, link: next }),
                }
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    let is_kernels = kernel::around(&done)?.is_some();
    Ok(if is_kernels { First::OfKernel } else { First::None })
}

/// Returns whether nobody but root can have made a link. Where this is root, so can be whoever writes for root: only links
/// that every system has count then.
fn is_of_system(link: &Path, owner: u32) -> bool {
    let is_roots = owner == 0 && !geteuid().is_root();
    is_roots
        || link.parent() == Some(Path::new("/"))
        || OF_SYSTEM.iter().any(|it| link.as_os_str() == OsStr::new(it))
}

/// Returns the repository in which a directory without links lies, or the directory itself.
fn around(directory: &Path, search: &Search) -> PathBuf {
    match search.repository(directory) {
        Repository::At(found, _) => found,
        Repository::Unused(..) | Repository::None => directory.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::known::Known;
    use crate::trust::Trusted;

    /// A home with a repository, another directory and a secret; nobody else is trusted.
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
            // A home is no checkout, whatever is in it.
            ("elsewhere/.env", "../secret"),
        ] {
            let error = through(link, target).unwrap_err();
            assert!(error.starts_with(&format!("/{link} is a link that leads to /")), "{error}");
        }
        let out = through("plain/.env", "../secret").unwrap_err();
        let expected = "/plain/.env is a link that leads to /secret, and not to a file of /plain";
        assert_eq!(out, expected);
        let git = through("repository/.env", ".git/config").unwrap_err();
        assert!(git.contains("leads to /repository/.git/config, and not to a file of"), "{git}");
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

    #[test]
    fn what_is_no_file_is_not_waited_for_and_the_kernels_own_is_read() {
        let (_root, home, search) = scene();
        for named in ["secret", "repository/.git/config"] {
            assert_eq!(read(&home.join(named), &search), Ok(named.into()), "it is named itself");
        }
        let pipe = home.join("pipe");
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        );
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
            assert!(is_of_system(Path::new(link), 1000), "{link}");
        }
        assert!(!is_of_system(Path::new("/srv/project/.env"), 1000));
        let is_roots = is_of_system(Path::new("/srv/project/.env"), 0);
        assert_eq!(is_roots, !geteuid().is_root());
    }
}
