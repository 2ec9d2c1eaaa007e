#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod checkout;
pub mod kernel;
pub mod known;
pub mod named;
pub mod own;
pub mod publish;
pub mod read;
pub mod stamp;
mod steps;
pub mod trust;
pub mod upward;
pub mod way;

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// A failed operation on a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}", path.display())]
#[allow(missing_docs, reason = "the fields are named by the message")]
pub struct FileError {
    /// The operation, as a verb: `read`, `write`.
    pub doing: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl FileError {
    /// Returns a function that wraps an error with the failed operation, for [`Result::map_err`].
    pub fn of<E: Into<io::Error>>(
        doing: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self { doing, path: path.as_ref().to_owned(), source: source.into() }
    }
}

/// A failed operation of the operating system. The message includes the reason.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are named by the message")]
pub enum OsError {
    /// A file or directory could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The failed action, as a verb: `open`, `read`, `make`.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Another call failed.
    #[error("cannot {action}: {source}")]
    System { action: &'static str, source: io::Error },
}

impl OsError {
    /// Wraps an error about a file.
    pub fn file(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::File { action, path, source }
    }

    /// Wraps an error of another call.
    pub fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { action, source: source.into() }
    }
}

/// Finds a directory of the [XDG Base Directory Specification](https://specifications.freedesktop.org/basedir-spec/0.8/):
/// the absolute path in the variable `name`, or else `default` below `HOME`. `variable` returns a variable's value.
///
/// # Examples
/// ```
/// let home = |name: &str| (name == "HOME").then(|| "/home/ada".into());
/// let cache = host_fs::user_directory("XDG_CACHE_HOME", ".cache", home);
/// assert_eq!(cache, Some("/home/ada/.cache".into()));
/// ```
pub fn user_directory(
    name: &str,
    default: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    absolute_path(variable(name)).or_else(|| Some(named_path(variable("HOME"))?.join(default)))
}

/// Returns a path without `.` and `..`, as if no component were a link: `/x/./a/../b` becomes `/x/b`.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the path in a variable of the XDG specification, which requires programs to ignore relative paths.
pub fn absolute_path(value: Option<OsString>) -> Option<PathBuf> {
    named_path(value).filter(|it| it.is_absolute())
}

/// Returns the path in a variable. `None` if the value is empty.
pub fn named_path(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|it| !it.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_with_an_absolute_path_comes_before_the_home_directory() {
        let find = |state: &str, home: &str| {
            user_directory("XDG_STATE_HOME", ".local/state", |name| match name {
                "XDG_STATE_HOME" => Some(state.into()),
                "HOME" => Some(home.into()),
                other => panic!("{other} is read"),
            })
        };
        assert_eq!(find("/s", "/h"), Some("/s".into()));
        for ignored in ["", "s", "./s"] {
            assert_eq!(find(ignored, "/h"), Some("/h/.local/state".into()));
        }
        assert_eq!(find("", ""), None);
        assert_eq!(user_directory("XDG_CACHE_HOME", ".cache", |_| None), None);
    }
}
