//! The directories of a user's files, as the XDG Base Directory Specification (version 0.8) names them.
//! The caller reads the environment.

use std::ffi::OsString;
use std::path::PathBuf;

/// A directory in which each program has one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserDirectory {
    /// What can be made again.
    Cache,
    /// What a user configures.
    Config,
    /// What a user would keep.
    Data,
    /// What a program remembers from one run to the next.
    State,
}

impl UserDirectory {
    /// Finds the directory by a function that returns a variable's value: the absolute path in the
    /// variable for it, else the default below `HOME`; `None` where `HOME` is not set.
    pub fn find(self, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let (name, default) = match self {
            Self::Cache => ("XDG_CACHE_HOME", ".cache"),
            Self::Config => ("XDG_CONFIG_HOME", ".config"),
            Self::Data => ("XDG_DATA_HOME", ".local/share"),
            Self::State => ("XDG_STATE_HOME", ".local/state"),
        };
        absolute_path(variable(name)).or_else(|| Some(path(variable("HOME"))?.join(default)))
    }
}

/// Returns the path in a variable, unless it is empty.
pub fn path(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|it| !it.is_empty()).map(PathBuf::from)
}

/// Returns the path in a variable of the specification, which says to ignore one that is relative.
pub fn absolute_path(value: Option<OsString>) -> Option<PathBuf> {
    path(value).filter(|it| it.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_with_an_absolute_path_comes_before_the_home_directory() {
        let find = |state: &str, home: &str| {
            UserDirectory::State.find(|name| match name {
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
        assert_eq!(UserDirectory::Cache.find(|_| None), None);
    }
}
