//! Makes images once, and keeps them in the cache of the checks.

use std::path::{Path, PathBuf};

use box_digest::Digest;

use crate::prerequisites::{Package, Say, packages};
use crate::{Cache, Result, Workspace};

/// Returns the folder `debian-images/KEY` of the cache. KEY is a digest of the recipe. If the folder does not exist, `write` makes
/// its content: its arguments are a folder for scratch files, and the folder to make.
///
/// # Errors
/// mmdebstrap is missing and cannot be installed, or `write` fails, or the disk is full.
pub(super) fn kept(
    workspace: &Workspace,
    recipe: &[&str],
    say: Say<'_>,
    write: impl FnOnce(&Path, &Path, Say<'_>) -> Result<()>,
) -> Result<PathBuf> {
    let cache = Cache::of_user(workspace);
    cache.made(("debian-images", &key(recipe)), |scratch, draft| {
        packages(&[Package::Mmdebstrap], say)?;
        write(scratch, draft, say)
    })
}

/// Returns the key of a folder that [`kept`] has returned. It is part of the recipes of images that are based on it.
pub(super) fn key_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn key(recipe: &[&str]) -> String {
    Digest::of(recipe.join("\0").as_bytes()).hex()[..16].to_owned()
}
