//! Debian's registry server.

use std::fs;
use std::path::PathBuf;

use super::download::unpacked;
use super::{Say, lock};
use crate::{KitError, Result, Workspace};

const PACKAGE: &str = "docker-registry";

/// Returns the program `docker-registry`. A missing one is downloaded first, and unpacked into the build output:
/// installing the package would start a service on every network of the host. apt verifies its Debian signatures.
///
/// # Errors
/// It cannot be downloaded or unpacked.
pub fn docker_registry(workspace: &Workspace, say: Say<'_>) -> Result<PathBuf> {
    let folder = workspace.target(PACKAGE);
    let program = folder.join(PACKAGE);
    if program.is_file() {
        return Ok(program);
    }
    let _lock = lock(&folder)?;
    if !program.is_file() {
        say("fetching a registry server");
        let scratch = tempfile::tempdir_in(&folder).map_err(KitError::file("make", &folder))?;
        let unpacked = unpacked(PACKAGE, scratch.path(), say)?.join("usr/bin").join(PACKAGE);
        fs::rename(&unpacked, &program).map_err(KitError::file("rename", &unpacked))?;
    }
    Ok(program)
}
