//! Checks that paths are inside the checkout even after links are resolved, and replaces files there.

mod bounds;
mod directory;
mod root;

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::ErrorKind::{InvalidInput, NotFound};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub use bounds::{Bounds, InHome};
pub use directory::{Directory, Entry};
pub use root::Root;
use rustix::fs::{Mode, OFlags, openat};

use crate::kernel;
use crate::publish::FileDraft;
use crate::read::{Links, open_regular_at};
use crate::upward::REPOSITORIES;

/// Returns a path with its symbolic links resolved, or `None` if it leads out of the checkout.
///
/// # Errors
/// The operating system's error, or that the path leads to files that are never checked in: a repository's metadata,
/// such as `.git`, and file systems of the kernel.
pub fn inside(checkout: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    let path = real(path)?;
    match path.strip_prefix(real(checkout)?) {
        Ok(inner) => check_kept(&path, inner).map(|()| Some(path.clone())),
        Err(_) => Ok(None),
    }
}

/// Checks that `path`, which has no links, may be checked in. `inner` is the path relative to the checkout.
fn check_kept(path: &Path, inner: &Path) -> io::Result<()> {
    check_no_repository(inner)?;
    kernel::around(path)?.map_or(Ok(()), |place| Err(kernel::no_files(&place)))
}

fn check_no_repository(inner: &Path) -> io::Result<()> {
    if let Some(name) = inner.iter().find(|name| is_repository(name)) {
        let text = format!("{} is not checked in", Path::new(name).display());
        return Err(io::Error::new(InvalidInput, text));
    }
    Ok(())
}

/// Returns whether a name marks a repository's metadata, which is not checked in and can contain keys to the
/// repository, for example.
pub fn is_repository(name: &OsStr) -> bool {
    REPOSITORIES.iter().any(|it| name.eq_ignore_ascii_case(it)) || is_git(name)
}

/// Returns whether a name leads to `.git`. Some file systems accept `.GIT` and the short name `GIT~1` for it.
pub fn is_git(name: &OsStr) -> bool {
    let is_short = |name: &str| {
        let number = name.get(..4).filter(|it| it.eq_ignore_ascii_case("git~")).map(|_| &name[4..]);
        number.is_some_and(|it| it.parse::<u32>().is_ok())
    };
    name.eq_ignore_ascii_case(".git") || name.to_str().is_some_and(is_short)
}

/// Checks that a path is in the checkout, and returns it with its symbolic links resolved.
///
/// # Errors
/// The errors of [`inside`], or that the path leads out of the checkout.
pub fn check(checkout: &Path, path: &Path) -> io::Result<PathBuf> {
    explained(path, inside(checkout, path))
}

/// Opens a regular file for reading, or returns `None` if its path leads out of the checkout. The path is opened one
/// component at a time, without following links, from the directory in the bounds. So the file is in the checkout
/// even if another program changes or replaces the checkout meanwhile.
///
/// # Errors
/// The errors of [`inside`], [`InHome`], or that it is no regular file.
pub fn open_inside(checkout: &Bounds, path: &Path) -> io::Result<Option<File>> {
    let (root, path) = (checkout.root()?, real(path)?);
    let Ok(inner) = path.strip_prefix(root.path()) else { return Ok(None) };
    check_kept(&path, inner)?;
    open_below(checkout, inner).map(Some)
}

/// Opens a regular file, one path component at a time. A link on the way is an error: it was made after the path was resolved.
fn open_below(checkout: &Bounds, inner: &Path) -> io::Result<File> {
    let directory = handle(checkout, inner.parent().unwrap_or(inner))?;
    let name = inner.file_name().map_or(Path::new("."), Path::new);
    Ok(open_regular_at(&directory, name, Links::Refuse)?)
}

/// Opens a directory below the root of the checkout in the same way as [`open_below`]. A home on the way is an error.
fn handle(checkout: &Bounds, inner: &Path) -> io::Result<OwnedFd> {
    let root = checkout.root()?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (mut at, wanted) = (root.path().to_owned(), root.path().join(inner));
    let mut directory = openat(root.open()?, ".", flags, Mode::empty())?;
    for name in inner {
        directory = openat(&directory, name, flags, Mode::empty())?;
        at.push(name);
        checkout.check(&directory, &at, &wanted)?;
    }
    Ok(directory)
}

/// Opens a directory for reading, or returns `None` if its path leads out of the checkout. Changes by other programs
/// have no effect, as for [`open_inside`].
///
/// # Errors
/// The errors of [`inside`], [`InHome`], that it is no directory, or that a file system of the kernel is mounted in it.
pub fn open_directory<'b>(checkout: &'b Bounds, path: &Path) -> io::Result<Option<Directory<'b>>> {
    let (root, path) = (checkout.root()?, real(path)?);
    let Ok(inner) = path.strip_prefix(root.path()) else { return Ok(None) };
    check_no_repository(inner)?;
    if let Some(place) = kernel::around_or_below(&path)? {
        return Err(kernel::no_files(&place));
    }
    Directory::open(&handle(checkout, inner)?, checkout, path.clone()).map(Some)
}

/// Opens a regular file of the checkout for reading, like [`open_inside`].
///
/// # Errors
/// The errors of [`check`] and [`open_inside`].
pub fn open(checkout: &Bounds, path: &Path) -> io::Result<File> {
    explained(path, open_inside(checkout, path))
}

/// A path leads out of the checkout.
#[derive(Debug, thiserror::Error)]
#[error("it leads out of the checkout, through a symbolic link")]
pub struct LeadsOut;

/// Adds the reason to the error of a path that leads out of the checkout, or of a dangling link.
fn explained<T>(path: &Path, found: io::Result<Option<T>>) -> io::Result<T> {
    let error = |kind, message| Err(io::Error::new(kind, message));
    match found {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(io::Error::new(InvalidInput, LeadsOut)),
        Err(failed) if failed.kind() == NotFound && path.is_symlink() => {
            error(NotFound, "it is a symbolic link that leads nowhere")
        }
        Err(failed) => Err(failed),
    }
}

/// Returns the path of `directory` relative to `checkout`, or the empty path if it is not in the checkout.
///
/// # Errors
/// The operating system's error.
pub fn relative(checkout: &Path, directory: &Path) -> io::Result<PathBuf> {
    let (checkout, directory) = (real(checkout)?, real(directory)?);
    Ok(directory.strip_prefix(&checkout).map(Path::to_owned).unwrap_or_default())
}

/// Returns a path with its symbolic links resolved. The empty path is the current directory.
///
/// # Errors
/// The operating system's error.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(if path == Path::new("") { Path::new(".") } else { path })
}

/// Replaces the content of a file atomically, or makes the file. An existing file keeps its permissions. A symbolic
/// link is followed, and must not lead out of the directory that contains the link.
///
/// # Errors
/// The operating system's error, or [`LeadsOut`].
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = target(path)?;
    // All users may read a new file, because it will be checked in.
    let permissions = fs::metadata(&target)
        .map_or_else(|_| Permissions::from_mode(0o644), |metadata| metadata.permissions());
    let draft = FileDraft::beside(&target, 0o600)?;
    draft.file().write_all(text.as_bytes())?;
    draft.file().set_permissions(permissions)?;
    draft.finish_over(&target)
}

/// Checks that [`replace`] could write its file.
///
/// # Errors
/// The errors of [`replace`].
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    FileDraft::beside(&target(path)?, 0o600).map(drop)
}

/// Returns the file that a path leads to. It need not exist.
fn target(path: &Path) -> io::Result<PathBuf> {
    match check(path.parent().unwrap_or(Path::new("")), path) {
        Err(error) if error.kind() == NotFound => Ok(path.to_owned()),
        target => target,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::known::Known;

    #[test]
    fn a_link_may_not_lead_out() {
        let outer = tempfile::tempdir().unwrap();
        let checkout = outer.path().join("checkout");
        fs::create_dir_all(checkout.join("inner")).unwrap();
        fs::write(outer.path().join("secret"), "").unwrap();
        fs::write(checkout.join("file"), "").unwrap();
        symlink("../secret", checkout.join("out")).unwrap();
        symlink("../file", checkout.join("inner/in")).unwrap();
        // The names share a prefix, but the directory is not in the checkout.
        fs::create_dir(outer.path().join("checkout-2")).unwrap();
        for good in ["file", "inner/in", "inner/..", ""] {
            check(&checkout, &checkout.join(good)).unwrap();
        }
        for bad in ["out", "..", "../checkout-2", "missing"] {
            check(&checkout, &checkout.join(bad)).unwrap_err();
        }
    }

    #[test]
    fn files_are_opened_through_links_that_stay_inside() {
        let outer = tempfile::tempdir().unwrap();
        let checkout = outer.path().join("checkout");
        fs::create_dir_all(checkout.join("a/b")).unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        fs::write(checkout.join("a/b/file"), "inner").unwrap();
        symlink("a/b", checkout.join("link")).unwrap();
        symlink(outer.path(), checkout.join("out")).unwrap();
        for good in ["a/b/file", "link/file", "a/../link/file"] {
            let file = open(&(&checkout).into(), &checkout.join(good)).unwrap();
            assert_eq!(io::read_to_string(file).unwrap(), "inner", "{good}");
        }
        for bad in ["out/secret", "../secret", "a", "", "missing"] {
            open(&(&checkout).into(), &checkout.join(bad)).unwrap_err();
        }
    }

    #[test]
    fn what_is_never_checked_in_is_not_read() {
        let checkout = tempfile::tempdir().unwrap();
        let at = |name: &str| checkout.path().join(name);
        fs::create_dir_all(at("inner/.git")).unwrap();
        fs::write(at("inner/.git/config"), "token").unwrap();
        fs::write(at(".gitignore"), "").unwrap();
        symlink("inner/.git/config", at("link")).unwrap();
        open(&checkout.path().into(), &at(".gitignore")).unwrap();
        for path in ["inner/.git/config", "link", "inner/.git"] {
            let error = check(checkout.path(), &at(path)).unwrap_err().to_string();
            assert_eq!(error, ".git is not checked in", "{path}");
            open(&checkout.path().into(), &at(path)).unwrap_err();
        }
        let root = Path::new("/");
        for path in ["/proc/self/environ", "/proc/self/cwd/../proc/version", "/sys"] {
            let error = check(root, Path::new(path)).unwrap_err().to_string();
            let is_named =
                error.contains("is a file system of the kernel") || error.contains("No such file");
            assert!(is_named, "{path}: {error}");
            open(&root.into(), Path::new(path)).unwrap_err();
        }
    }

    #[test]
    fn a_home_below_the_checkout_is_no_part_of_it() {
        let outer = tempfile::tempdir().unwrap();
        let checkout = outer.path().canonicalize().unwrap();
        let at = |path: &str| checkout.join(path);
        fs::create_dir_all(at("home/.ssh")).unwrap();
        fs::create_dir_all(at("home/clone/inner")).unwrap();
        for file in ["file", "home/.ssh/key", "home/clone/own", "home/clone/inner/own"] {
            fs::write(at(file), "").unwrap();
        }
        symlink("home", at("link")).unwrap();
        let within = |root: &str, own: &str| {
            // The home is registered under another path, as if it were mounted twice.
            Bounds::within(Root::of(&at(root)).unwrap(), &at(own), Known::of([at("link")]))
        };
        let bounds = within("", "");
        open(&bounds, &at("file")).unwrap();
        for path in ["home/.ssh/key", "link/.ssh/key", "home/clone/own"] {
            let error = open(&bounds, &at(path)).unwrap_err();
            assert!(error.get_ref().is_some_and(|it| it.is::<InHome>()), "{path}: {error}");
            let named = format!("{} is a home directory, and no part of", at("home").display());
            assert!(error.to_string().starts_with(&named), "{error}");
        }
        for path in ["home", "link", "home/.ssh"] {
            open_directory(&bounds, &at(path)).unwrap_err();
        }
        let whole = open_directory(&bounds, &checkout).unwrap().unwrap();
        whole.entry("home".as_ref()).unwrap_err();
        whole.entry("file".as_ref()).unwrap();
        // A file in a home may use its directory. The root of a checkout may be a home.
        let inner = within("", "home/clone");
        open(&inner, &at("home/clone/own")).unwrap();
        open(&inner, &at("home/clone/inner/own")).unwrap();
        open_directory(&inner, &at("home/clone/inner")).unwrap().unwrap();
        for outside in ["home/.ssh/key", "link/.ssh/key"] {
            open(&inner, &at(outside)).unwrap_err();
        }
        open_directory(&inner, &checkout).unwrap().unwrap().entry("home".as_ref()).unwrap_err();
        open(&within("", "home"), &at("home/.ssh/key")).unwrap_err();
        open(&within("home", "home"), &at("home/.ssh/key")).unwrap();
    }

    #[test]
    fn a_link_that_was_put_there_meanwhile_is_not_followed() {
        let outer = tempfile::tempdir().unwrap();
        let checkout = outer.path().join("checkout");
        fs::create_dir_all(checkout.join("a")).unwrap();
        fs::write(checkout.join("a/file"), "").unwrap();
        fs::write(outer.path().join("file"), "secret").unwrap();
        symlink(outer.path(), checkout.join("directory")).unwrap();
        symlink("../../file", checkout.join("a/link")).unwrap();
        let bounds = Bounds::from(&checkout);
        open_below(&bounds, Path::new("a/file")).unwrap();
        for link in ["directory/file", "a/link"] {
            open_below(&bounds, Path::new(link)).unwrap_err();
        }
        handle(&bounds, Path::new("directory")).unwrap_err();
    }

    #[test]
    fn what_is_put_in_the_place_of_the_checkout_is_not_read() {
        let outer = tempfile::tempdir().unwrap();
        let at = |path: &str| outer.path().join(path);
        for (place, text) in [("work/proj", "own"), ("home/.ssh", "secret")] {
            fs::create_dir_all(at(place).join("sub")).unwrap();
            fs::write(at(place).join("key"), text).unwrap();
            fs::write(at(place).join("sub/key"), text).unwrap();
        }
        let (proj, bounds) = (at("work/proj"), Bounds::from(&at("work/proj")));
        let read = |path: &str| {
            let file = open_inside(&bounds, &proj.join(path)).unwrap();
            file.map(|file| io::read_to_string(file).unwrap())
        };
        assert_eq!((read("key"), read("sub/key")), (Some("own".into()), Some("own".into())));
        fs::rename(&proj, at("work/moved")).unwrap();
        symlink(at("home/.ssh"), &proj).unwrap();
        assert_eq!((read("key"), read("sub/key")), (None, None));
        assert!(open_directory(&bounds, &proj.join("sub")).unwrap().is_none());
        // Another directory at the same path is not read either: paths are resolved from the open root.
        fs::remove_file(&proj).unwrap();
        fs::rename(at("home/.ssh"), &proj).unwrap();
        assert_eq!(read("key"), Some("own".into()), "it is reached from the open root");
        let sub = open_directory(&bounds, &proj.join("sub")).unwrap().unwrap();
        let Entry::File(file) = sub.entry("key".as_ref()).unwrap() else { panic!() };
        assert_eq!(io::read_to_string(file).unwrap(), "own");
        // A link in the place of a parent directory has no effect either.
        fs::rename(at("work"), at("away")).unwrap();
        fs::create_dir_all(at("foreign")).unwrap();
        fs::rename(at("away/proj"), at("foreign/proj")).unwrap();
        symlink(at("foreign"), at("work")).unwrap();
        assert_eq!(read("key"), None);
    }

    #[test]
    fn a_checkout_that_was_not_there_is_none_later_either() {
        let outer = tempfile::tempdir().unwrap();
        let proj = outer.path().join("proj");
        let bounds = Bounds::from(&proj);
        fs::create_dir(&proj).unwrap();
        fs::write(proj.join("key"), "").unwrap();
        for bounds in [bounds, Bounds::none()] {
            let error = open_inside(&bounds, &proj.join("key")).unwrap_err();
            assert_eq!(error.kind(), NotFound);
            open_directory(&bounds, &proj).unwrap_err();
        }
    }

    #[test]
    fn a_directory_around_the_checkout_is_the_one_that_the_way_led_through() {
        let outer = tempfile::tempdir().unwrap();
        let at = |path: &str| outer.path().canonicalize().unwrap().join(path);
        fs::create_dir_all(at("work/proj")).unwrap();
        fs::write(at("work/proj/Boxfile"), "own").unwrap();
        let base = Root::of(&at("work/proj")).unwrap();
        let around = base.around(&at("work")).unwrap();
        let identity = around.identity().unwrap();
        fs::rename(at("work"), at("moved")).unwrap();
        fs::create_dir_all(at("work/proj")).unwrap();
        fs::write(at("work/proj/Boxfile"), "other").unwrap();
        assert_eq!(around.path(), at("work"));
        assert_eq!(around.identity().unwrap(), identity);
        assert!(base.around(&at("none")).is_none() && around.around(&at("moved")).is_none());
        let file = base.open_named(Path::new("Boxfile")).unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "own");
    }

    #[test]
    fn a_directory_is_read_where_it_was_opened() {
        let outer = tempfile::tempdir().unwrap();
        let checkout = outer.path().join("checkout");
        fs::create_dir_all(checkout.join("a/sub")).unwrap();
        fs::create_dir(outer.path().join("sub")).unwrap();
        for (place, text) in [("checkout/a/sub/file", "inner"), ("sub/file", "secret")] {
            fs::write(outer.path().join(place), text).unwrap();
        }
        symlink("sub", checkout.join("a/link")).unwrap();
        let bounds = Bounds::from(&checkout);
        let open = open_directory(&bounds, &checkout.join("a")).unwrap().unwrap();
        let mut names: Vec<_> = open.names().unwrap().map(Result::unwrap).collect();
        names.sort();
        assert_eq!(names, ["link", "sub"]);
        let Entry::Directory(sub) = open.entry("sub".as_ref()).unwrap() else { panic!() };
        assert!(matches!(open.entry("link".as_ref()).unwrap(), Entry::Link(to) if to == "sub"));
        // Another program replaces both directories with links.
        fs::rename(checkout.join("a/sub"), checkout.join("a/moved")).unwrap();
        symlink(outer.path().join("sub"), checkout.join("a/sub")).unwrap();
        assert!(matches!(open.entry("sub".as_ref()).unwrap(), Entry::Link(_)));
        fs::rename(checkout.join("a"), checkout.join("b")).unwrap();
        symlink(outer.path(), checkout.join("a")).unwrap();
        let Entry::File(file) = sub.entry("file".as_ref()).unwrap() else { panic!() };
        assert_eq!(io::read_to_string(file).unwrap(), "inner");
        assert!(open_directory(&bounds, &checkout.join("a")).unwrap().is_none());
    }

    #[test]
    fn a_repository_is_known_in_any_spelling() {
        for name in [".git", ".GIT", ".Jj", ".hg", "git~1", "GIT~2"] {
            assert!(is_repository(OsStr::new(name)), "{name}");
        }
        for name in ["git", ".gitignore", "git~", "git~a", "a.git", "\u{e4}\u{e4}"] {
            assert!(!is_repository(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_directory_of_the_checkout_has_a_path_in_it() {
        let checkout = tempfile::tempdir().unwrap();
        let inner = checkout.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(relative(checkout.path(), &inner).unwrap(), Path::new("a/b"));
        assert_eq!(relative(&inner.join("../.."), &inner).unwrap(), Path::new("a/b"));
        assert_eq!(relative(checkout.path(), checkout.path()).unwrap(), Path::new(""));
        assert_eq!(real(Path::new("")).unwrap(), std::env::current_dir().unwrap());
    }

    #[test]
    fn what_is_there_keeps_its_permissions_and_its_links() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        replace(&at("new"), "one").unwrap();
        assert_eq!(fs::metadata(at("new")).unwrap().permissions().mode() & 0o777, 0o644);
        fs::set_permissions(at("new"), Permissions::from_mode(0o600)).unwrap();
        symlink("new", at("link")).unwrap();
        replace(&at("link"), "two").unwrap();
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "two");
        assert_eq!(fs::metadata(at("new")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn nothing_is_written_through_a_link_that_leads_out() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("checkout")).unwrap();
        fs::write(at("bashrc"), "precious").unwrap();
        symlink("../bashrc", at("checkout/Boxfile")).unwrap();
        let error = replace(&at("checkout/Boxfile"), "text").unwrap_err();
        assert!(error.to_string().contains("leads out of the checkout"), "{error}");
        assert_eq!(fs::read_to_string(at("bashrc")).unwrap(), "precious");
        assert!(at("checkout/Boxfile").is_symlink());
        check_replaceable(&at("checkout/Boxfile")).unwrap_err();
    }

    #[test]
    fn an_error_names_no_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let error = replace(&directory.path().join("none/file"), "text").unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
        let error = replace(directory.path(), "text").unwrap_err();
        assert!(!error.to_string().contains(".boxbuild-"), "{error}");
    }
}
