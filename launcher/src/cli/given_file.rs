//! Files and directories of the command line, whose paths may contain links that a box has made.

use std::env;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use cli_common::output::link_help;
use host_fs::OsError;
use host_fs::named::{self, FileSlot, NamedError};
use host_fs::upward::Search;
use host_fs::way::Way;

use super::error::{Failure, usage};

/// Opens the file of an option. An earlier box may have replaced the file with a link in a directory that it could write to. So a
/// link may lead only to files of the repository that contains the link or, outside of repositories, to files of the link's
/// directory.
///
/// # Errors
/// The link is refused, or the result of `failed` for an error of the operating system.
pub(super) fn open(
    path: &Path,
    failed: impl FnOnce(io::Error) -> Failure,
) -> Result<File, Failure> {
    with_path(path, failed).map(|(file, _)| file)
}

/// Opens the file of an option like [`open`]. Also returns its path without links.
///
/// # Errors
/// As for [`open`].
pub(super) fn with_path(
    path: &Path,
    failed: impl FnOnce(io::Error) -> Failure,
) -> Result<(File, PathBuf), Failure> {
    let opened = FileSlot::of_file(path, &search())
        .and_then(|slot| Ok((slot.open()?, slot.path().to_owned())));
    opened.map_err(|error| refused(error, "file", failed))
}

/// Resolves the path of an option's existing file, which is not opened. Links in the path are treated as in [`open`].
///
/// # Errors
/// As for [`open`].
pub(super) fn real_path(
    path: &Path,
    failed: impl FnOnce(io::Error) -> Failure,
) -> Result<PathBuf, Failure> {
    let found = FileSlot::of_file(path, &search()).map(|slot| slot.path().to_owned());
    found.map_err(|error| refused(error, "file", failed))
}

/// Opens a directory for reading or writing its entries. Links in the path, including its last component, are treated as in
/// [`open`].
///
/// # Errors
/// The link is refused, or the result of `failed` for an error of the operating system.
pub(super) fn directory(
    path: &Path,
    failed: impl FnOnce(io::Error) -> Failure,
) -> Result<OwnedFd, Failure> {
    let found = named::directory(path, &search()).map(Way::into_open);
    found.map_err(|error| refused(error, "directory", failed))
}

/// Resolves the path of an option's output file once, so that a running box cannot redirect it by replacing a directory of the
/// path. Links in the path are treated as in [`open`]. `action` is the failed action in the error, for example `write`.
///
/// # Errors
/// The link is refused, or an error of the operating system.
pub(super) fn place(path: &Path, action: &'static str) -> Result<FileSlot, Failure> {
    let failed = |error| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        OsError::file(action, path)(error).into()
    };
    FileSlot::of_new(path, &search()).map_err(|error| refused(error, "file", failed))
}

/// Returns the error of an option's file that cannot be read. `what` is the content that was expected.
pub(super) fn unread(what: &str, path: &Path, error: &io::Error) -> Failure {
    let help = match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => "correct the path: there is no such file",
        ErrorKind::PermissionDenied => "name a file that you can read",
        ErrorKind::FileTooLarge => "name a smaller file",
        ErrorKind::InvalidData => "write it in UTF-8",
        _ => "name a regular file, not a directory or a pipe",
    };
    usage(&format!("cannot read {what} from {}: {error}", path.display()), help)
}

/// Returns the error of a refused link, with the path to type instead, or the result of `failed` for an error of the operating
/// system.
fn refused(error: NamedError, what: &str, failed: impl FnOnce(io::Error) -> Failure) -> Failure {
    let help = link_help(&error, what).unwrap_or_default();
    match error {
        NamedError::Io(error) => failed(error),
        NamedError::Leads { .. } => usage(&error.to_string(), &help),
    }
}

/// Returns the settings for finding checkouts.
fn search() -> Search {
    Search::of_user(|name| env::var_os(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_named_with_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let tried = |path: &Path| {
            let failed = |error| unread("the task", path, &error);
            let error = open(path, failed).unwrap_err();
            assert_eq!(error.exit, 2);
            error.text().replace(&*path.to_string_lossy(), "PATH")
        };
        insta::assert_snapshot!(tried(directory.path()), @"
        error: cannot read the task from PATH: it is not a regular file
          = help: name a regular file, not a directory or a pipe
        ");
        insta::assert_snapshot!(tried(&directory.path().join("none")), @"
        error: cannot read the task from PATH: No such file or directory (os error 2)
          = help: correct the path: there is no such file
        ");
        let text = io::read_to_string(&b"\xFF"[..]).unwrap_err();
        insta::assert_snapshot!(unread("the variables", Path::new("a.env"), &text).text(), @"
        error: cannot read the variables from a.env: stream did not contain valid UTF-8
          = help: write it in UTF-8
        ");
    }
}
