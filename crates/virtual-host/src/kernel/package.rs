//! Fetching the kernel: a Debian package, by its name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{HostKernel, prepare, publish};
use crate::{HostError, Result, programs};

/// The packages that depend on the newest kernel package of a series, in the order in which they are looked for: Debian 12 has
/// Linux 6.12 beside its own 6.1, and a start takes a tenth fewer instructions with it. Debian 13's own is 6.12.
const METAPACKAGES: [&str; 2] = ["linux-image-6.12-cloud-amd64", "linux-image-cloud-amd64"];
/// How the names of kernel packages start.
const IMAGE: &str = "linux-image-";

/// Returns the name of the newest kernel package that this machine's apt knows.
///
/// # Errors
/// There is no apt, or its lists know of no such package: `apt-get update` makes them.
pub fn newest_package() -> Result<String> {
    let [first, other] = METAPACKAGES;
    dependency_of(first).or_else(|_| dependency_of(other))
}

/// Returns the kernel package that a metapackage depends on.
fn dependency_of(metapackage: &str) -> Result<String> {
    let text = programs::run(Command::new("apt-cache").args(["depends", metapackage]))?;
    parse_depends(&String::from_utf8_lossy(&text))
        .ok_or_else(|| HostError::malformed(metapackage, "it depends on no kernel package"))
}

/// Returns the kernel package from what `apt-cache depends` prints.
fn parse_depends(text: &str) -> Option<String> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.into_iter().find(|name| name.starts_with(IMAGE)).map(str::to_owned)
}

/// Downloads a kernel package and prepares it in a cache directory. Nothing is installed, and root is not
/// needed. apt checks the package against Debian's signatures.
///
/// # Errors
/// It cannot be downloaded, unpacked or prepared.
pub fn fetch(package: &str, cache: &Path) -> Result<HostKernel> {
    fs::create_dir_all(cache).map_err(HostError::file("make", cache))?;
    let scratch = tempfile::tempdir_in(cache).map_err(HostError::file("make", cache))?;
    let mut download = Command::new("apt-get");
    download.args(["--quiet=2", "download", package]).current_dir(scratch.path());
    programs::run(&mut download)?;
    let file = only_file(scratch.path())?;
    prepared(&file, cache, false)
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(folder).map_err(HostError::file("list", folder))?;
    let file = entries.find_map(|entry| Some(entry.ok()?.path()));
    file.ok_or_else(|| HostError::malformed("the download", "apt-get left no file"))
}

/// Prepares the kernel in a Debian package's file in a cache directory, in place of one of the same version.
///
/// # Errors
/// It cannot be unpacked, or has no kernel of the expected form.
pub fn prepare_package(file: &Path, cache: &Path) -> Result<HostKernel> {
    prepared(file, cache, true)
}

fn prepared(file: &Path, cache: &Path, replace: bool) -> Result<HostKernel> {
    fs::create_dir_all(cache).map_err(HostError::file("make", cache))?;
    let scratch = tempfile::tempdir_in(cache).map_err(HostError::file("make", cache))?;
    let unpacked = scratch.path().join("unpacked");
    programs::run(Command::new("dpkg-deb").arg("-x").arg(file).arg(&unpacked))?;
    let version = version(&unpacked)?;
    let draft = scratch.path().join("ready");
    prepare(&unpacked, &version, &draft)?;
    publish(&draft, &version, scratch.path(), cache, replace)
}

/// Returns the directory of a package's modules. Since Debian 13 `/lib` is not in packages any more.
pub(super) fn modules(unpacked: &Path) -> PathBuf {
    let merged = unpacked.join("usr/lib/modules");
    if merged.exists() { merged } else { unpacked.join("lib/modules") }
}

/// Returns the version that names the package's directory of modules.
fn version(unpacked: &Path) -> Result<String> {
    let folder = modules(unpacked);
    let entries = fs::read_dir(&folder).map_err(HostError::file("list", &folder))?;
    let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.next().ok_or_else(|| HostError::malformed("the package", "it has no kernel modules"))
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
