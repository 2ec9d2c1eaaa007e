//! `kernel/lean.lock`: the digest of the kernel that its inputs make.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{About, LeanKernel, compiler, inputs, source};
use crate::{KitError, Result, Workspace, digest};

/// The lock's name, below the repository's root.
pub(super) const FILE: &str = "kernel/lean.lock";

/// The content of the lock, a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    /// The sha256 of the inputs, in hexadecimal: the source, the compiler's version, the configuration and the patches.
    pub(super) inputs: String,
    /// The kernel's metadata.
    pub(super) about: About,
}

impl Locked {
    /// Reads the lock. `None` if it is missing, or if an input has changed since it was written.
    ///
    /// # Errors
    /// The lock, the configuration or a patch cannot be read.
    pub fn current(workspace: &Workspace) -> Result<Option<Self>> {
        let path = path(workspace);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read(&path).map_err(KitError::file("read", &path))?;
        let locked: Self =
            serde_json::from_slice(&text).map_err(|error| KitError::malformed(FILE, error))?;
        let now = inputs(workspace, source::SHA256, &locked.about.compiler)?;
        let is_current = locked.inputs == now && locked.about.source_sha256 == source::SHA256;
        Ok(is_current.then_some(locked))
    }

    /// Writes the lock for a kernel that was compiled from the pinned source, if the present lock is not current. Returns whether it
    /// was written.
    ///
    /// # Errors
    /// The lock cannot be read or written.
    pub fn update(workspace: &Workspace, kernel: &LeanKernel) -> Result<bool> {
        if Self::current(workspace)?.is_some() || kernel.about.source_sha256 != source::SHA256 {
            return Ok(false);
        }
        let about = kernel.about.clone();
        let locked = Self { inputs: inputs(workspace, source::SHA256, &about.compiler)?, about };
        let text = serde_json::to_string_pretty(&locked)
            .map_err(|error| KitError::malformed(FILE, error))?;
        let path = path(workspace);
        fs::write(&path, text + "\n").map_err(KitError::file("write", &path))?;
        Ok(true)
    }

    /// Like [`Self::current`], but `None` if this machine has another compiler, which makes another kernel.
    ///
    /// # Errors
    /// The errors of [`Self::current`], or there is no compiler.
    pub fn of_this_machine(workspace: &Workspace) -> Result<Option<Self>> {
        let compiler = compiler()?;
        Ok(Self::current(workspace)?.filter(|locked| locked.about.compiler == compiler))
    }

    /// Returns the kernel's sha256, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.about.sha256
    }

    /// Checks that a file is the kernel.
    pub(super) fn check(&self, elf: &Path) -> Result<()> {
        digest::check(elf, &self.about.sha256)
    }
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.path(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lean_kernel::{CONFIGURATION, PATCHES};

    /// A repository with the inputs and the lock of this one.
    fn copy() -> (tempfile::TempDir, Workspace) {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (Workspace::find(), Workspace::at(directory.path()));
        fs::create_dir(to.path("kernel")).unwrap();
        let names = PATCHES.iter().chain([&CONFIGURATION]).map(|name| format!("kernel/{name}"));
        for name in names.chain([FILE.to_owned()]) {
            fs::copy(from.path(&name), to.path(&name)).unwrap();
        }
        (directory, to)
    }

    #[test]
    fn the_lock_is_of_the_inputs_in_this_repository() {
        let advice = "an input of the kernel was changed: run `cargo xtask kernel`, and commit kernel/lean.lock";
        assert!(Locked::current(&Workspace::find()).unwrap().is_some(), "{advice}");
    }

    #[test]
    fn a_change_of_an_input_makes_the_lock_void() {
        let (_directory, workspace) = copy();
        assert!(Locked::current(&workspace).unwrap().is_some());
        let path = workspace.path(&format!("kernel/{}", PATCHES[0]));
        let patch = fs::read_to_string(&path).unwrap();
        fs::write(&path, patch + "\n").unwrap();
        assert_eq!(Locked::current(&workspace).unwrap(), None);
    }

    #[test]
    fn another_kernel_is_refused() {
        let (directory, workspace) = copy();
        let elf = directory.path().join("vmlinux");
        fs::write(&elf, "another").unwrap();
        let locked = Locked::current(&workspace).unwrap().unwrap();
        assert!(matches!(locked.check(&elf), Err(KitError::Digest { .. })));
    }
}
