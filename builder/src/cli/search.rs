//! The search for a Boxfile in the current directory and those above it.
//!
//! Like cargo, a command without `-f` uses the nearest Boxfile. One that is found above is named in a
//! note. Whoever can write to a directory above could otherwise put a Boxfile there for others to
//! build, in `/tmp` for example; git's `safe.directory` is there for the same reason. So one above is
//! used only if it and its directory belong to this user or to root, and not everybody can write
//! there. The search ends at the home directory, at `/` and where another file system is mounted.

use std::env;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use box_image::ErrorCode;
use box_image::text::shell_word;
use boxbuild::project::NAMES;
use rustix::process::geteuid;

use super::failure::Failure;
use super::{locate, terminal};

/// Returns the Boxfile to use: as named, or the nearest.
pub(crate) fn boxfile(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let found = match named {
        Some(path) => path.to_owned(),
        None => nearest()?,
    };
    terminal::detail("Boxfile", found.display());
    Ok(found)
}

/// Finds the nearest Boxfile, and says so where it is not in this directory.
fn nearest() -> Result<PathBuf, Failure> {
    if let Some(here) = in_directory(Path::new("")) {
        return Ok(here);
    }
    let start = env::current_dir().map_err(|error| {
        Failure::new(ErrorCode::Io, format!("cannot tell which directory this is: {error}"))
    })?;
    let home = locate::path("HOME").and_then(|home| home.canonicalize().ok());
    let found = above(&start, home.as_deref()).and_then(|above| in_directory(&above));
    let found = found.ok_or_else(|| {
        let help = "go to the directory that has one, name it with `-f PATH`, or make one with \
                    `boxbuild init`";
        let message = "there is no Boxfile in this directory or above it";
        Failure::new((ErrorCode::BoxfileNotFound, help), message)
    })?;
    if let Some(reason) = distrust(&found, &trusted_users()) {
        let shown = found.display();
        let quoted = shell_word(found.as_os_str().as_bytes());
        let help = format!("if you trust it, name it with `-f {quoted}`");
        let message = format!("{shown} is not used unless it is named: {reason}");
        return Err(Failure::new((ErrorCode::BoxfileNotFound, help), message));
    }
    terminal::note(&format!("note: using {}", found.display()));
    Ok(found)
}

/// Returns the Boxfile of a directory, and warns where there are further ones.
fn in_directory(directory: &Path) -> Option<PathBuf> {
    let mut found = boxfiles(directory);
    let first = found.next()?;
    if let Some(second) = found.next() {
        let (first, second) = (first.display(), second.display());
        terminal::note(&format!("warning: {second} is not read: {first} comes first"));
    }
    Some(first)
}

fn boxfiles(directory: &Path) -> impl Iterator<Item = PathBuf> {
    NAMES.iter().map(|name| directory.join(name)).filter(|path| path.is_file())
}

/// Returns the nearest directory above `start` that has a Boxfile, relative to `start`: one that is
/// on the same file system, and not above the home directory.
fn above(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let device = |path: &Path| fs::metadata(path).ok().map(|it| it.dev());
    let own = device(start)?;
    let mut relative = PathBuf::new();
    for (below, directory) in start.ancestors().zip(start.ancestors().skip(1)) {
        if Some(below) == home || device(directory) != Some(own) {
            return None;
        }
        relative.push("..");
        if boxfiles(directory).next().is_some() {
            return Some(relative);
        }
    }
    None
}

/// Returns the users whose Boxfile is used where it is found: this one, root, who could change
/// boxbuild itself, and the one who became root with sudo.
fn trusted_users() -> Vec<u32> {
    let user = geteuid();
    let sudo = env::var("SUDO_UID").ok().filter(|_| user.is_root());
    let sudo = sudo.and_then(|it| it.parse().ok());
    [0, user.as_raw()].into_iter().chain(sudo).collect()
}

/// Returns why a Boxfile is not used only because it is there.
fn distrust(file: &Path, trusted: &[u32]) -> Option<String> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let of = || -> io::Result<_> {
        let directory = fs::metadata(directory)?;
        let owners =
            [directory.uid(), fs::symlink_metadata(file)?.uid(), fs::metadata(file)?.uid()];
        Ok((owners, directory.mode()))
    };
    let (owners, mode) = match of() {
        Ok(found) => found,
        Err(error) => return Some(error.to_string()),
    };
    if let Some(owner) = owners.into_iter().find(|owner| !trusted.contains(owner)) {
        return Some(format!("it or its directory belongs to another user (uid {owner})"));
    }
    (mode & 0o002 != 0).then(|| format!("everybody can write to {}", directory.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A directory `a/b/c` with a Boxfile in `a`.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::write(root.path().join("a/Boxfile.toml"), "").unwrap();
        root
    }

    #[test]
    fn the_nearest_directory_above_is_found() {
        let root = tree();
        let start = root.path().join("a/b/c");
        assert_eq!(above(&start, None), Some("../..".into()));
        fs::write(root.path().join("a/b/Boxfile"), "").unwrap();
        assert_eq!(above(&start, None), Some("..".into()));
    }

    #[test]
    fn nothing_above_the_home_is_found() {
        let root = tree();
        let start = root.path().join("a/b/c");
        let found = |home: &str| above(&start, Some(&root.path().join(home)));
        assert_eq!(found("a"), Some("../..".into()), "the home itself may have one");
        assert_eq!((found("a/b"), found("a/b/c")), (None, None));
    }

    #[test]
    fn another_file_system_is_not_searched() {
        let proc = Path::new("/proc/self");
        assert_ne!(fs::metadata("/").unwrap().dev(), fs::metadata(proc).unwrap().dev());
        assert_eq!(above(proc, None), None);
    }

    #[test]
    fn a_boxfile_that_others_could_have_put_there_is_not_trusted() {
        let root = tree();
        let file = root.path().join("a/Boxfile.toml");
        let me = geteuid().as_raw();
        assert_eq!(distrust(&file, &[me]), None);
        let other = distrust(&file, &[me + 1]).unwrap();
        assert_eq!(other, format!("it or its directory belongs to another user (uid {me})"));
        let open = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(root.path().join("a"), open).unwrap();
        let everybody = distrust(&file, &[me]).unwrap();
        assert!(everybody.starts_with("everybody can write to "), "{everybody}");
    }
}
