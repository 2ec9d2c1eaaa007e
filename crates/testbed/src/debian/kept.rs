//! Images that are made once and kept in the build output.

use std::fs;
use std::path::{Path, PathBuf};

use box_digest::Digest;

use crate::prerequisites::{Package, Say, lock, packages};
use crate::{KitError, Result, Workspace};

/// Returns the folder `debian-images/KEY` of the build output, where KEY is a digest of the recipe. If it does not
/// exist, `write` fills it: it gets a folder for scratch files and the folder to fill. Leftovers of a crash are never
/// used as images.
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

/// Returns the key of a folder from [`kept`], for the recipe of images that are based on it.
pub(super) fn key_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn key(recipe: &[&str]) -> String {
    Digest::of(recipe.join("\0").as_bytes()).hex()[..16].to_owned()
}
