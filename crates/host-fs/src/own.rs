//! The directories that boxbuild has among a user's files. boxlaunch knows them, too: no box may write there.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::{named_path, user_directory};

/// The name of each of them in the user's directory for such files.
const NAME: &str = "boxbuild";

/// Returns the directory of the store, by a function that returns a variable's value: `$BOXBUILD_STORE`, else the one of the
/// user's caches.
pub fn store(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let users = || user_directory("XDG_CACHE_HOME", ".cache", &variable);
    named_path(variable("BOXBUILD_STORE")).or_else(|| Some(users()?.join(NAME)))
}

/// Returns the directory of the user's configuration, with `registries.toml`.
pub fn configuration(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    Some(user_directory("XDG_CONFIG_HOME", ".config", variable)?.join(NAME))
}

/// Returns the directory of what `boxbuild setup` has fetched: guest kernels.
pub fn data(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    Some(user_directory("XDG_DATA_HOME", ".local/share", variable)?.join(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_comes_before_the_home_directory() {
        let with = |set: &'static [(&str, &str)]| {
            move |name: &str| set.iter().find(|it| it.0 == name).map(|it| it.1.into())
        };
        let all = with(&[
            ("BOXBUILD_STORE", "s"),
            ("XDG_CACHE_HOME", "/c"),
            ("XDG_CONFIG_HOME", "/e"),
            ("XDG_DATA_HOME", "/d"),
        ]);
        assert_eq!(store(all), Some("s".into()));
        assert_eq!(configuration(all), Some("/e/boxbuild".into()));
        assert_eq!(data(all), Some("/d/boxbuild".into()));
        assert_eq!(store(with(&[("XDG_CACHE_HOME", "/c")])), Some("/c/boxbuild".into()));
        let home = with(&[("HOME", "/h"), ("BOXBUILD_STORE", "")]);
        assert_eq!(store(home), Some("/h/.cache/boxbuild".into()));
        assert_eq!(configuration(home), Some("/h/.config/boxbuild".into()));
        assert_eq!(data(home), Some("/h/.local/share/boxbuild".into()));
        assert_eq!(store(with(&[])), None);
    }
}
