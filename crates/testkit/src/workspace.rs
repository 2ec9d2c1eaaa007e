//! Where the repository and its build output lie.

use std::path::{Path, PathBuf};

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

    /// Returns a path below the repository's root.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Returns a path below the directory of the build output.
    pub fn target(&self, relative: &str) -> PathBuf {
        self.target.join(relative)
    }
}

/// Returns the nearest directory over the running program that cargo has marked as its output.
fn marked_target() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_this_crate_and_the_target_this_test() {
        let workspace = Workspace::find();
        assert!(workspace.path("crates/testkit/Cargo.toml").is_file());
        assert!(std::env::current_exe().unwrap().starts_with(workspace.target("")));
    }
}
