//! The search for a Boxfile in the working directory and the directories above it.
//!
//! Like cargo, a command without `-f` uses the nearest Boxfile. If it is in a directory above, a note names it.
//!
//! A user who can write to a directory above, for example `/tmp`, could put a Boxfile there for others to build. So a
//! Boxfile above is used only if no user could have put it there except the current user, root, and the user who ran
//! sudo. The Boxfile must not be a symbolic link out of its directory, because messages show its lines. The search ends
//! at the home directory, at `/` and at a mount point.

use std::env;
use std::path::{Path, PathBuf};

use box_contract::ErrorCode;
use boxbuild::project::{self, Checkout, NAMES, Project};
use host_fs::trust::Trusted;
use host_fs::upward::Search;
use safe_text::shell_path;

use super::failure::{Failure, chain};
use super::terminal;

/// Returns the Boxfile to use: the named one, or the nearest.
pub(crate) fn boxfile(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let found = match named {
        Some(path) => path.to_owned(),
        None => nearest()?,
    };
    terminal::detail("Boxfile", found.display());
    Ok(found)
}

/// Returns the project of the named or nearest Boxfile, with the named or found checkout.
pub(crate) fn project(named: Option<&Path>, checkout: Option<&Path>) -> Result<Project, Failure> {
    let file = boxfile(named)?;
    let base = project::base(&file);
    let checkout = match checkout {
        Some(directory) => Checkout::named(directory, base, search().homes).map_err(|error| {
            let help = "name a directory that contains the Boxfile and everything that it names: `--checkout DIR`";
            Failure::new((ErrorCode::Usage, help), chain(&error))
        })?,
        None => Checkout::find(base, &search())
            .map_err(|error| Failure::new(ErrorCode::BoxfileNotFound, chain(&error)))?,
    };
    let shown = checkout.directory().map_or("none".to_owned(), |it| it.display().to_string());
    terminal::detail("checkout", shown);
    Ok(Project::within(&file, checkout).found(named.is_none()))
}

/// Returns the limits of the search for a Boxfile and for its checkout.
pub(super) fn search() -> Search {
    Search::of_user(|name| env::var_os(name))
}

/// Finds the nearest Boxfile, and notes its path if it is not in the working directory.
fn nearest() -> Result<PathBuf, Failure> {
    if let Some(here) = in_directory(Path::new("")) {
        return check_link(here);
    }
    let start = env::current_dir().map_err(|error| {
        Failure::new(ErrorCode::Io, format!("cannot find out the current directory: {error}"))
    })?;
    let found = above(&start, &search()).and_then(|above| in_directory(&above));
    let found = check_link(found.ok_or_else(|| {
        let help = "go to the directory that has one, name it with `-f PATH`, or make one with \
                    `boxbuild init`";
        let message = "there is no Boxfile in this directory or above it";
        Failure::new((ErrorCode::BoxfileNotFound, help), message)
    })?)?;
    if let Some(reason) = distrust(&found, &trusted()) {
        let shown = found.display();
        let help = format!("if you trust it, name it with `-f {}`", shell_path(&found));
        let message = format!("{shown} is not used unless it is named: {reason}");
        return Err(Failure::new((ErrorCode::BoxfileNotFound, help), message));
    }
    terminal::note(&format!("note: using {}", found.display()));
    Ok(found)
}

/// Refuses a Boxfile that is a symbolic link out of its directory.
fn check_link(found: PathBuf) -> Result<PathBuf, Failure> {
    let help = "name the Boxfile to use with `-f PATH`";
    let failed = |error| Failure::new((ErrorCode::BoxfileNotFound, help), chain(&error));
    Project::check_unnamed(&found).map_err(failed)?;
    Ok(found)
}

/// Returns the Boxfile of a directory, and warns if there are others.
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
    // A directory or a dangling link with such a name is also returned: the command then fails when it reads it.
    NAMES.iter().map(|name| directory.join(name)).filter(|it| it.symlink_metadata().is_ok())
}

/// Returns the nearest directory above `start` with a Boxfile, as a path relative to `start`. The directory has to be
/// on the same file system as `start`, and not above the home directory.
fn above(start: &Path, search: &Search) -> Option<PathBuf> {
    let mut relative = PathBuf::new();
    for directory in search.above(start) {
        relative.push("..");
        if boxfiles(directory).next().is_some() {
            return Some(relative);
        }
    }
    None
}

/// Returns the users whose files may be used without naming them: this user, root, and the user who ran sudo.
pub(super) fn trusted() -> Trusted {
    Trusted::of_user(|name| env::var_os(name))
}

/// Returns why a file must not be used unless the user names it. `None` if the file may be used.
pub(super) fn distrust(file: &Path, trusted: &Trusted) -> Option<String> {
    let stranger = trusted.untrusted_user_on_path(file);
    stranger.map_or_else(|error| Some(error.to_string()), |it| Some(it?.to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use host_fs::known::Known;

    use super::*;

    /// A directory `a/b/c` with a Boxfile in `a`.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::write(root.path().join("a/Boxfile.toml"), "").unwrap();
        root
    }

    /// Returns a search that ends at `home`.
    fn up_to(home: Option<PathBuf>) -> Search {
        Search { homes: Known::of(home), trusted: Trusted::this_user() }
    }

    #[test]
    fn the_nearest_directory_above_is_found() {
        let root = tree();
        let start = root.path().join("a/b/c");
        assert_eq!(above(&start, &up_to(None)), Some("../..".into()));
        fs::write(root.path().join("a/b/Boxfile"), "").unwrap();
        assert_eq!(above(&start, &up_to(None)), Some("..".into()));
    }

    #[test]
    fn the_search_ends_at_the_home_directory() {
        let root = tree();
        let start = root.path().join("a/b/c");
        let found = |home: &str| above(&start, &up_to(Some(root.path().join(home))));
        assert_eq!(found("a"), Some("../..".into()), "the home itself may have one");
        assert_eq!((found("a/b"), found("a/b/c")), (None, None));
    }

    #[test]
    fn a_boxfile_that_others_could_have_put_there_is_not_trusted() {
        let root = tree();
        let file = root.path().join("a/Boxfile.toml");
        let trusted = Trusted::this_user();
        assert_eq!(distrust(&file, &trusted), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let everybody = distrust(&file, &trusted).unwrap();
        assert!(everybody.starts_with("everybody can write to "), "{everybody}");
    }

    #[test]
    fn a_boxfile_that_is_no_file_is_not_passed_over() {
        let root = tree();
        let start = root.path().join("a/b/c");
        std::os::unix::fs::symlink("nothing", root.path().join("a/b/Boxfile")).unwrap();
        assert_eq!(above(&start, &up_to(None)), Some("..".into()));
        fs::create_dir(start.join("Boxfile.kdl")).unwrap();
        assert_eq!(in_directory(&start), Some(start.join("Boxfile.kdl")));
    }
}
