//! Makes images once, and keeps them in the build output.

use std::fs;
use std::path::{Path, PathBuf};

use box_digest::Digest;

use crate::prerequisites::{Package, Say, lock, packages};
use crate::{KitError, Result, Workspace};

/// Returns the folder `debian-images/KEY` of the build output. KEY is a digest of the recipe. If the folder does not
/// exist, `write` makes its content: its arguments are a folder for scratch files, and the folder to make. A folder that
/// a crash has left incomplete is never used.
///
/// # Errors
/// mmdebstrap is missing and cannot be installed, or `write` fails, or the disk is full.
pub(super) fn kept(
    workspace: &Workspace,
    recipe: &[&str],
    say: Say<'_>,
    write: impl FnOnce(&Path, &Path, Say<'_>) -> Result<()>,
) -> Result<PathBuf> {
    let folder = workspace.target("debian-images");
    let made = folder.join(key(recipe));
    if made.is_dir() {
        return Ok(made);
    }
    let _lock = lock(&folder)?;
    if !made.is_dir() {
        packages(&[Package::Mmdebstrap], say)?;
        let scratch = tempfile::tempdir_in(&folder).map_err(KitError::file("make", &folder))?;
        let draft = scratch.path().join("ready");
        write(scratch.path(), &draft, say)?;
        fs::rename(&draft, &made).map_err(KitError::file("rename", &draft))?;
    }
    Ok(made)
}

/// Returns the key of a folder that [`kept`] has returned. It is part of the recipes of images that are based on it.
pub(super) fn key_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn key(recipe: &[&str]) -> String {
    Digest::of(recipe.join("\0").as_bytes()).hex()[..16].to_owned()
}
