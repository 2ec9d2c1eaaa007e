//! The root file system of a host with systemd.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::kept::{kept, key_of};
use super::tree::{Base, slim_base};
use crate::prerequisites::Say;
use crate::{KitError, Result, Workspace, program};

const RECIPE: &str = "1";
const PACKAGES: &str = "systemd";
/// What the host needs no file of: devices, which only root can unpack, and the lists and packages of apt.
const LEFT_OUT: [&str; 3] = ["./dev/*", "./var/cache/*", "./var/lib/apt/*"];

/// The directory with Debian's essential packages and systemd, without devices.
#[derive(Debug, Clone)]
pub struct SystemdTree(pub PathBuf);

impl SystemdTree {
    /// Returns the directory. A missing one is made first, which takes half a minute and downloads about 10 MB.
    ///
    /// # Errors
    /// mmdebstrap is missing and cannot be installed, or fails, or the disk is full.
    pub fn make(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        let base = slim_base(workspace, say)?;
        let key = key_of(&base);
        let recipe = [&["systemd", RECIPE, &key, PACKAGES][..], &LEFT_OUT].concat();
        kept(workspace, &recipe, say, |scratch, draft, say| {
            let tar = Base::read(&base)?.tar_with(PACKAGES, scratch, say)?;
            fs::create_dir(draft).map_err(KitError::file("make", draft))?;
            let mut unpack = Command::new("tar");
            unpack.args(LEFT_OUT.map(|it| format!("--exclude={it}"))).arg("-C").arg(draft);
            program::run(unpack.arg("-xf").arg(tar)).map(drop)
        })
        .map(Self)
    }
}
