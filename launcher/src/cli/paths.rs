//! The directories that the environment decides.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::CommandError;

/// Returns where receipts are kept: `$BOXLAUNCH_STATE`, else the user's state directory.
pub(crate) fn state() -> Result<PathBuf, CommandError> {
    state_from(|name| env::var_os(name)).ok_or_else(|| {
        CommandError::usage("neither BOXLAUNCH_STATE nor HOME is set; set one, to say where to remember what was verified".to_owned())
    })
}

fn state_from(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("BOXLAUNCH_STATE")
        .or_else(|| set("XDG_STATE_HOME").map(|state| state.join("boxbuild")))
        .or_else(|| set("HOME").map(|home| home.join(".local/state/boxbuild")))
}

/// Returns where a run makes its private directory: the user's runtime directory, else the
/// directory for temporary files.
pub(crate) fn runtime_base() -> PathBuf {
    let of_user = || PathBuf::from(format!("/run/user/{}", nix::unistd::getuid()));
    let named = env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    let wanted = named.unwrap_or_else(of_user);
    if Path::is_dir(&wanted) { wanted } else { env::temp_dir() }
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
}
