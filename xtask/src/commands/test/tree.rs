//! Whether the commit that is checked out, without any change, has passed the tests already.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use testbed::{KitError, Result, Workspace, program};

/// Notes that the tests without `--all` have passed on the present commit.
///
/// # Errors
/// The note cannot be written.
pub(super) fn note_passed(workspace: &Workspace) -> Result<()> {
    let Some(tree) = unchanged(workspace) else { return Ok(()) };
    let note = note(workspace);
    fs::write(&note, tree).map_err(KitError::file("write", &note))
}

/// Returns whether they have.
pub(super) fn is_passed(workspace: &Workspace) -> bool {
    let noted = fs::read(note(workspace)).ok();
    noted.is_some() && noted == unchanged(workspace)
}

fn note(workspace: &Workspace) -> PathBuf {
    workspace.target("tested-tree")
}

/// Returns the name of the commit's tree; `None` if a file was changed since, or git does not know.
fn unchanged(workspace: &Workspace) -> Option<Vec<u8>> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        program::run(git.args(arguments).current_dir(workspace.path("."))).ok()
    };
    git(&["status", "--porcelain"]).filter(Vec::is_empty)?;
    git(&["rev-parse", "HEAD^{tree}"])
}
