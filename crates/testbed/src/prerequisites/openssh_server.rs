//! OpenSSH's server.

use std::fs;
use std::path::PathBuf;

use super::download::unpacked;
use super::{Say, lock};
use crate::{KitError, Result, Workspace};

const PACKAGE: &str = "openssh-server";

/// Returns the directory with the files of Debian's package of OpenSSH's server, such as `usr/sbin/sshd`. If it is missing, the
/// package is downloaded and unpacked into the build output first. The package is not installed, because that would start a
/// service on every network of the host. apt verifies the package with Debian's signatures.
///
/// # Errors
/// The package cannot be downloaded or unpacked.
pub fn openssh_server(workspace: &Workspace, say: Say<'_>) -> Result<PathBuf> {
    let folder = workspace.target(PACKAGE);
    let root = folder.join("root");
    if root.is_dir() {
        return Ok(root);
    }
    let _lock = lock(&folder)?;
    if !root.is_dir() {
        say("fetching an SSH server");
        let scratch = tempfile::tempdir_in(&folder).map_err(KitError::file("make", &folder))?;
        let unpacked = unpacked(PACKAGE, scratch.path(), say)?;
        fs::rename(&unpacked, &root).map_err(KitError::file("rename", &unpacked))?;
    }
    Ok(root)
}
