//! A Debian tree, made by mmdebstrap.

use std::path::Path;
use std::process::Command;

use crate::images::LayerTar;
use crate::prerequisites::Say;
use crate::{Result, program};

/// The Debian release of all trees.
pub(super) const SUITE: &str = "bookworm";
/// No file is newer than this: 2026-01-01, in seconds since 1970.
pub(super) const SOURCE_DATE_EPOCH: &str = "1767225600";

/// Makes a tree of the packages that the options choose and of those named (with commas between),
/// as a tar stream. Nobody needs the tree after a crash, so nothing waits for the disk.
pub(super) fn debian_tree(
    options: &[&str],
    include: &str,
    scratch: &Path,
    say: Say<'_>,
) -> Result<LayerTar> {
    let tar = scratch.join(format!("{SUITE}-{include}.tar"));
    let mut command = Command::new("mmdebstrap");
    command.env("SOURCE_DATE_EPOCH", SOURCE_DATE_EPOCH).arg("--quiet").args(options);
    command.arg("--dpkgopt=force-unsafe-io");
    if !include.is_empty() {
        command.arg(format!("--include={include}"));
    }
    command.arg(SUITE).arg(&tar);
    say(&format!("making a Debian tree: {}", program::shown(&command)));
    program::run(&mut command)?;
    LayerTar::read(&tar)
}
