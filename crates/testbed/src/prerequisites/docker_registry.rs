//! Debian's registry server.

use std::fs;
use std::path::PathBuf;

use super::download::unpacked;
use super::{Say, lock};
use crate::{KitError, Result, Workspace};

const PACKAGE: &str = "docker-registry";

/// Returns the path of the program `docker-registry`. If it is missing, its package is downloaded and unpacked into the build
/// output first. The package is not installed, because that would start a service on every network of the host. apt verifies
/// the package with Debian's signatures.
///
/// # Errors
/// The package cannot be downloaded or unpacked.
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
