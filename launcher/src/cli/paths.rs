//! The directories that environment variables determine.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use box_contract::ErrorCode;
use host_fs::trust::Trusted;
use host_fs::{OsError, absolute_path, named_path, user_directory};
use nix::unistd::getuid;

use super::error::{Failure, usage};

/// The path that starts this program again, even if the program's file was moved.
pub(crate) const SELF: &str = "/proc/self/exe";

/// Returns the directory of the user's state (records, logs, disks, volumes, receipts): `$BOXLAUNCH_STATE`, else the user's state
/// directory.
pub(crate) fn state() -> Result<PathBuf, Failure> {
    let state = state_from(|name| env::var_os(name)).ok_or_else(|| {
        let help = "set one of them: boxlaunch keeps the records of boxes there";
        Failure::new((ErrorCode::Usage, help), "neither BOXLAUNCH_STATE nor HOME is set")
    })?;
    check_state(&state)?;
    // Made absolute, because a detached box has another current directory.
    Ok(std::path::absolute(&state).map_err(OsError::system("find the current directory"))?)
}

/// Checks that `state` is a directory, or does not exist yet.
fn check_state(state: &Path) -> Result<(), Failure> {
    if !state.exists() || state.is_dir() {
        return Ok(());
    }
    let variable = if named_path(env::var_os("BOXLAUNCH_STATE")).is_some() {
        "BOXLAUNCH_STATE is"
    } else {
        "the state directory is"
    };
    let message = format!("{variable} {}, which is not a directory", state.display());
    Err(usage(&message, "set BOXLAUNCH_STATE to a directory, which need not exist yet"))
}

fn state_from(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let users = || user_directory("XDG_STATE_HOME", ".local/state", &variable);
    named_path(variable("BOXLAUNCH_STATE")).or_else(|| Some(users()?.join("boxbuild")))
}

/// Returns the directory of the virtual host's kernel: `boxbuild/virtual-host` below the user's cache directory.
pub(crate) fn cache() -> Result<PathBuf, Failure> {
    virtual_host::kernel::cache(|name| env::var_os(name)).ok_or_else(|| {
        let help = "set one of them: boxlaunch keeps the virtual host's kernel there";
        Failure::new((ErrorCode::Usage, help), "neither XDG_CACHE_HOME nor HOME is set")
    })
}

/// Returns `PATH`, the directories to search for programs.
pub(crate) fn programs() -> OsString {
    env::var_os("PATH").unwrap_or_default()
}

/// Returns the directory in which a run creates its private directory: the user's runtime directory, else the directory for
/// temporary files. Skips a directory in which another user could replace the run's directory. For example, after `sudo -E`,
/// root's `XDG_RUNTIME_DIR` belongs to another user.
pub(crate) fn runtime_base() -> PathBuf {
    let wanted = [runtime_from(env::var_os("XDG_RUNTIME_DIR")), env::temp_dir()];
    let is_safe = |it: &PathBuf| matches!(Trusted::alone().untrusted_replacer(it), Ok(None));
    wanted.into_iter().find(is_safe).unwrap_or_else(|| PathBuf::from("/tmp"))
}

fn runtime_from(variable: Option<OsString>) -> PathBuf {
    let of_user = || PathBuf::from(format!("/run/user/{}", getuid()));
    absolute_path(variable).unwrap_or_else(of_user)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_with(set: &[(&str, &str)]) -> Option<PathBuf> {
        let find =
            |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        state_from(find)
    }

    #[test]
    fn the_nearest_variable_wins() {
        let all = [("HOME", "/h"), ("XDG_STATE_HOME", "/s"), ("BOXLAUNCH_STATE", "/b")];
        assert_eq!(state_with(&all), Some("/b".into()));
        assert_eq!(state_with(&all[..2]), Some("/s/boxbuild".into()));
        assert_eq!(state_with(&all[..1]), Some("/h/.local/state/boxbuild".into()));
        assert_eq!(state_with(&[("HOME", "")]), None);
    }

    #[test]
    fn the_state_is_a_directory_or_does_not_exist_yet() {
        // Cargo runs the tests of a package in its directory.
        for path in ["src", "src/none/yet"] {
            assert!(check_state(Path::new(path)).is_ok(), "{path}");
        }
        let error = check_state(Path::new("Cargo.toml")).unwrap_err().text();
        assert!(error.contains(" Cargo.toml, which is not a directory\n"), "{error}");
    }

    #[test]
    fn a_relative_path_of_an_xdg_variable_is_ignored() {
        let user = PathBuf::from(format!("/run/user/{}", nix::unistd::getuid()));
        for ignored in [None, Some(""), Some("run"), Some("./run")] {
            assert_eq!(runtime_from(ignored.map(OsString::from)), user, "{ignored:?}");
        }
        assert_eq!(runtime_from(Some("/r".into())), Path::new("/r"));
    }
}
