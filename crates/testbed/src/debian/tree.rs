//! Makes Debian trees with mmdebstrap: a base, and the layers of additional packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::diff::layer_between;
use super::kept::kept;
use crate::prerequisites::Say;
use crate::{KitError, Result, Workspace, program};
use testkit::images::LayerTar;

/// The Debian release of all trees.
pub(super) const SUITE: &str = "bookworm";
/// The newest modification time of a file: 2026-01-01, in seconds since 1970.
pub(super) const SOURCE_DATE_EPOCH: &str = "1767225600";
const SLIM: &str = "1";
/// The options of the base: the essential packages, without documentation, manuals and translations.
const SLIM_OPTIONS: [&str; 4] = [
    "--variant=essential",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
];

/// Returns the folder of the base of all test images, for [`Base::read`]: the essential packages without
/// documentation. A missing base is made first.
///
/// # Errors
/// mmdebstrap is missing and cannot be installed, or fails, or the disk is full.
pub(super) fn slim_base(workspace: &Workspace, say: Say<'_>) -> Result<PathBuf> {
    let recipe = [&["slim", SLIM, SUITE, SOURCE_DATE_EPOCH][..], &SLIM_OPTIONS].concat();
    kept(workspace, &recipe, say, |_, draft, say| {
        fs::create_dir(draft).map_err(KitError::file("make", draft))?;
        mmdebstrap(&SLIM_OPTIONS, &draft.join(TAR), say)
    })
}

const TAR: &str = "base.tar";

/// A tree in which packages can be installed.
pub(super) struct Base {
    tar: PathBuf,
    /// The whole tree as a layer.
    pub(super) layer: LayerTar,
}

impl Base {
    /// Makes a tree of the packages that the options select, and writes it to a folder.
    ///
    /// # Errors
    /// mmdebstrap fails, or the disk is full.
    pub(super) fn make(options: &[&str], folder: &Path, say: Say<'_>) -> Result<Self> {
        mmdebstrap(options, &folder.join(TAR), say)?;
        Self::read(folder)
    }

    /// Reads the tree from a folder.
    ///
    /// # Errors
    /// The archive is missing, or cannot be read.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let tar = folder.join(TAR);
        Ok(Self { layer: LayerTar::read(&tar)?, tar })
    }

    /// Installs packages, separated by commas, in a copy of the tree, and returns the whole tree. Only missing
    /// packages are downloaded and configured.
    ///
    /// # Errors
    /// mmdebstrap fails, or the disk is full.
    pub(super) fn tree_with(
        &self,
        packages: &str,
        scratch: &Path,
        say: Say<'_>,
    ) -> Result<LayerTar> {
        Ok(LayerTar::read(&self.tar_with(packages, scratch, say)?)?)
    }

    /// Like [`Base::tree_with`], but returns the path of the tree's archive.
    ///
    /// # Errors
    /// The errors of [`Base::tree_with`].
    pub(super) fn tar_with(&self, packages: &str, scratch: &Path, say: Say<'_>) -> Result<PathBuf> {
        let tar = scratch.join(format!("{packages}.tar"));
        // mmdebstrap makes the devices itself, before the hook. mmdebstrap's own `tar-in` is not used: it writes to a
        // pipe that tar closes before the padding, and sometimes fails.
        let unpack = format!(
            "--setup-hook=tar --extract --numeric-owner --xattrs --xattrs-include='*' --exclude='./dev/*' \
             --directory \"$1\" --file '{}'",
            self.tar.display()
        );
        let include = format!("--include={packages}");
        let options = ["--variant=custom", &unpack, &include];
        mmdebstrap(&options, &tar, say)?;
        Ok(tar)
    }

    /// Returns the layer that adds packages, separated by commas, to the tree.
    ///
    /// # Errors
    /// The errors of [`Base::tree_with`].
    pub(super) fn layer_of(
        &self,
        packages: &str,
        scratch: &Path,
        say: Say<'_>,
    ) -> Result<LayerTar> {
        layer_between(&self.layer, &self.tree_with(packages, scratch, say)?)
    }
}

/// Runs mmdebstrap without flushing to the disk, because the tree is not needed after a crash.
fn mmdebstrap(options: &[&str], tar: &Path, say: Say<'_>) -> Result<()> {
    let mut command = Command::new("mmdebstrap");
    command.env("SOURCE_DATE_EPOCH", SOURCE_DATE_EPOCH).arg("--quiet").args(options);
    command.args(["--dpkgopt=force-unsafe-io", SUITE]).arg(tar);
    say(&format!("making a Debian tree: {}", program::shown(&command)));
    program::run(&mut command).map(drop)
}
