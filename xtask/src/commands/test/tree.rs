//! Records that the tests without `--all` have passed on a clean checkout with a guest kernel, so that `--all` need not repeat
//! them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use testbed::{KitError, Result, Workspace, lean_kernel, program};

/// A run of the tests without `--all`, and the state of the checkout at its start.
pub(super) struct Run<'a> {
    workspace: &'a Workspace,
    tree: Option<Vec<u8>>,
}

impl<'a> Run<'a> {
    /// Begins a run, and removes the note that an earlier run has left.
    pub(super) fn begin(workspace: &'a Workspace) -> Self {
        // Removing the note fails if there is none.
        drop(fs::remove_file(note(workspace)));
        Self { workspace, tree: unchanged(workspace) }
    }

    /// Notes that the tests have passed, if no file has changed since the start.
    ///
    /// # Errors
    /// The note cannot be written.
    pub(super) fn passed(self) -> Result<()> {
        let Some(tree) = self.tree.filter(|tree| unchanged(self.workspace).as_ref() == Some(tree))
        else {
            return Ok(());
        };
        let note = note(self.workspace);
        fs::write(&note, tree).map_err(KitError::file("write", &note))
    }
}

/// Returns whether the tests without `--all` have passed on the current commit with the current lean kernel. Changes of installed
/// programs are not detected.
pub(super) fn is_passed(workspace: &Workspace) -> bool {
    let noted = fs::read(note(workspace)).ok();
    noted.is_some() && noted == unchanged(workspace)
}

fn note(workspace: &Workspace) -> PathBuf {
    workspace.target("tested-tree")
}

/// Returns the ID of the commit's tree, followed by the sha256 of the lean kernel, if there is one. `None` if the checkout has
/// changes or is not a git repository.
fn unchanged(workspace: &Workspace) -> Option<Vec<u8>> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        program::run(git.args(arguments).current_dir(workspace.path("."))).ok()
    };
    // The checkout may be in an ignored directory of another repository, which git would then examine.
    git(&["rev-parse", "--show-prefix"]).filter(|prefix| prefix.trim_ascii().is_empty())?;
    git(&["status", "--porcelain", "--untracked-files=normal"]).filter(Vec::is_empty)?;
    let tree = git(&["rev-parse", "HEAD^{tree}"])?;
    let kernel = lean_kernel::find(workspace).ok()?.map(|lean| lean.about.sha256);
    Some([tree, kernel.unwrap_or_default().into_bytes()].concat())
}
