//! The directories of the repository and its build output, and cargo commands for them.

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
    /// Finds the repository from the path at which this crate was compiled. Finds the build output from the path of the
    /// running program, which cargo has written there, so that `CARGO_TARGET_DIR` and `--target-dir` are respected.
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

    /// Returns a cargo command for this repository and its build output.
    ///
    /// The command does not inherit the variables that the outer cargo has set for this program's package. For example,
    /// whenever `CARGO_MANIFEST_DIR` has changed, the build script of ring runs again, and all crates that depend on ring
    /// are compiled again.
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
            cargo.env_remove(name);
        }
        cargo
    }
}

/// Returns whether cargo sets this variable for the programs of a package
/// ([Environment Variables](https://doc.rust-lang.org/cargo/reference/environment-variables.html)).
fn is_of_package(variable: &OsStr) -> bool {
    let name = variable.as_encoded_bytes();
    name.starts_with(b"CARGO_PKG_") || name.starts_with(b"CARGO_MANIFEST_")
}

/// Returns the directory of cargo's build output that contains the running program.
fn marked_target() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    marked(&program)
}

/// Returns the nearest ancestor of a path that has `.rustc_info.json`, cargo's cache of the compiler's version. If there is
/// none, returns the nearest one with `CACHEDIR.TAG`, which cargo writes into an output directory that it makes.
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
