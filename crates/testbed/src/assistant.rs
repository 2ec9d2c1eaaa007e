//! The two images of examples/assistant.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::debian::DebianImages;
use crate::prerequisites::Say;
use crate::{KitError, Result, Workspace};

/// Makes links to the images in `folder`: `python` for the agent, and `node` for the business component. Missing
/// images are made first, which takes a minute or more.
///
/// # Errors
/// The images cannot be made, or the directory cannot be written.
pub fn link_images(workspace: &Workspace, folder: &Path, say: Say<'_>) -> Result<()> {
    let images = DebianImages::make(workspace, say)?;
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(KitError::file("remove", folder))?;
    }
    fs::create_dir_all(folder).map_err(KitError::file("make", folder))?;
    for (name, image) in [("python", images.python), ("node", images.business)] {
        let link = folder.join(name);
        symlink(image, &link).map_err(KitError::file("make", &link))?;
    }
    Ok(())
}
