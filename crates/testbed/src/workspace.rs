//! The directories of the repository and its build output, and the cargo that works in them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository and the directory of its build output.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Finds both: the root by where this crate was compiled, the output by the running program,
    /// which cargo puts there. So `CARGO_TARGET_DIR` and `--target-dir` are followed.
    pub fn find() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().nth(2).unwrap_or(here).to_owned();
        let target = marked_target().unwrap_or_else(|| root.join("target"));
        Self { root, target }
    }

    /// Returns the repository at `root` whose build output is `root`/target.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), target: root.join("target") }
    }

    /// Returns a path below the repository's root.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Returns a path below the directory of the build output.
    pub fn target(&self, relative: &str) -> PathBuf {
        self.target.join(relative)
    }

    /// Returns a cargo command that works in this repository and its build output.
    ///
    /// It does not see what the cargo that started this program told it of its own package. The build
    /// script of ring, for one, runs again whenever `CARGO_MANIFEST_DIR` has changed, and all that
    /// depends on it is then compiled again.
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
            cargo.env_remove(name);
        }
        cargo
    }
}

/// Returns whether cargo sets this variable for the programs of a package (The Cargo Book,
/// "Environment Variables").
fn is_of_package(variable: &OsStr) -> bool {
    let name = variable.as_encoded_bytes();
    name.starts_with(b"CARGO_PKG_") || name.starts_with(b"CARGO_MANIFEST_")
}

/// Returns the directory above the running program that cargo uses for its output.
fn marked_target() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    marked(&program)
}

/// Returns the nearest directory above a path with cargo's notes on the compiler; where there is
/// none, with the tag that cargo writes into a directory for output which it makes itself.
fn marked(program: &Path) -> Option<PathBuf> {
    let with = |mark: &str| program.ancestors().find(|folder| folder.join(mark).is_file());
    with(".rustc_info.json").or_else(|| with("CACHEDIR.TAG")).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_this_crate_and_the_target_this_test() {
        let workspace = Workspace::find();
        assert!(workspace.path("crates/testbed/Cargo.toml").is_file());
        assert!(std::env::current_exe().unwrap().starts_with(workspace.target("")));
    }

    #[test]
    fn cargo_sees_nothing_of_the_package_that_calls_it() {
        let cargo = Workspace::find().cargo();
        let removed =
            |name: &str| cargo.get_envs().any(|(it, value)| it == name && value.is_none());
        assert!(removed("CARGO_MANIFEST_DIR") && removed("CARGO_PKG_NAME"));
        assert!(!removed("PATH") && !removed("CARGO_HOME"));
    }

    #[test]
    fn a_target_directory_that_was_there_before_is_found_too() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("output");
        let program = target.join("debug/deps/program");
        std::fs::create_dir_all(&target).unwrap();
        std::fs::write(directory.path().join("CACHEDIR.TAG"), "").unwrap();
        assert_eq!(marked(&program).as_deref(), Some(directory.path()));
        std::fs::write(target.join(".rustc_info.json"), "").unwrap();
        assert_eq!(marked(&program), Some(target));
    }
}
