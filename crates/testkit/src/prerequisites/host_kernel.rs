//! The virtual host's kernel: Debian's, for virtual machines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::with_fresh_lists;
use super::download::unpacked;
use super::{Say, lock};
use crate::vmhost::{HostKernel, kernel};
use crate::{KitError, Result, Workspace, program};

/// The package that depends on the newest kernel package.
const METAPACKAGE: &str = "linux-image-cloud-amd64";
const IMAGE: &str = "linux-image-";

/// Returns the virtual host's kernel, after it was downloaded where it was missing. It is unpacked
/// into the build output and not installed. apt checks it against Debian's signatures.
///
/// # Errors
/// It cannot be downloaded or unpacked.
pub fn host_kernel(workspace: &Workspace, say: Say<'_>) -> Result<HostKernel> {
    let folder = workspace.target("vmhost");
    if let Some(kernel) = existing(&folder) {
        return Ok(kernel);
    }
    let _lock = lock(&folder)?;
    if existing(&folder).is_none() {
        fetch(&folder, say)?;
    }
    existing(&folder).ok_or_else(|| KitError::malformed(METAPACKAGE, "it gave no kernel"))
}

fn fetch(folder: &Path, say: Say<'_>) -> Result<()> {
    let package = with_fresh_lists(say, newest_package)?;
    say("fetching the virtual host's kernel");
    let version = package.trim_start_matches(IMAGE);
    let scratch = tempfile::tempdir_in(folder).map_err(KitError::file("make", folder))?;
    let unpacked = unpacked(&package, scratch.path(), say)?;
    let draft = scratch.path().join("ready");
    kernel::prepare(&unpacked, version, &draft)?;
    let into = folder.join(format!("kernel-{version}"));
    fs::rename(&draft, &into).map_err(KitError::file("rename", &draft))
}

fn existing(folder: &Path) -> Option<HostKernel> {
    let mut kernels: Vec<PathBuf> =
        fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    kernels.sort();
    kernels.into_iter().rev().find_map(HostKernel::open)
}

fn newest_package() -> Result<String> {
    let text = program::run(Command::new("apt-cache").args(["depends", METAPACKAGE]))?;
    parse_depends(&String::from_utf8_lossy(&text))
        .ok_or_else(|| KitError::malformed(METAPACKAGE, "it depends on no kernel package"))
}

/// Returns the kernel package from what `apt-cache depends` prints.
fn parse_depends(text: &str) -> Option<String> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.into_iter().find(|name| name.starts_with(IMAGE)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_package_is_found() {
        let text = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n";
        assert_eq!(parse_depends(text).as_deref(), Some("linux-image-6.1.0-56-cloud-amd64"));
        assert_eq!(parse_depends("linux-image-cloud-amd64\n"), None);
    }
}
