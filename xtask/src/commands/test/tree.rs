//! Whether the commit that is checked out, without any change, has passed the tests already, with the guest kernel that there is.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use testbed::{KitError, Result, Workspace, lean_kernel, program};

/// A run of the tests without `--all`, with the files that it began with.
pub(super) struct Run<'a> {
    workspace: &'a Workspace,
    tree: Option<Vec<u8>>,
}

impl<'a> Run<'a> {
    /// Begins a run: nothing has passed until it ends.
    pub(super) fn begin(workspace: &'a Workspace) -> Self {
        // There may be no note.
        drop(fs::remove_file(note(workspace)));
        Self { workspace, tree: unchanged(workspace) }
    }

    /// Notes that the tests have passed, if no file has changed meanwhile.
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

/// Returns whether the tests without `--all` have passed on the present commit with the present lean kernel. What is installed on the
/// machine is not compared.
pub(super) fn is_passed(workspace: &Workspace) -> bool {
    let noted = fs::read(note(workspace)).ok();
    noted.is_some() && noted == unchanged(workspace)
}

fn note(workspace: &Workspace) -> PathBuf {
    workspace.target("tested-tree")
}

/// Returns the name of the commit's tree and of the lean kernel that the boots have, if any; `None` if a file was changed since, or
/// git does not know.
fn unchanged(workspace: &Workspace) -> Option<Vec<u8>> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        program::run(git.args(arguments).current_dir(workspace.path("."))).ok()
    };
    // The directory may be an ignored one of another repository.
    git(&["rev-parse", "--show-prefix"]).filter(|prefix| prefix.trim_ascii().is_empty())?;
    git(&["status", "--porcelain", "--untracked-files=normal"]).filter(Vec::is_empty)?;
    let tree = git(&["rev-parse", "HEAD^{tree}"])?;
    let kernel = lean_kernel::find(workspace).ok()?.map(|lean| lean.about.sha256);
    Some([tree, kernel.unwrap_or_default().into_bytes()].concat())
}
