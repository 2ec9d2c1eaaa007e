//! Downloads Debian packages without installing them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Say;
use super::apt::{apt_get, with_fresh_lists};
use crate::{KitError, Result, program};

/// Downloads packages (`NAME` or `NAME=VERSION`) into a folder and returns their files, in the order of `names`. apt
/// verifies the packages with Debian's signatures.
///
/// # Errors
/// A package is unknown or cannot be downloaded.
pub(crate) fn download(names: &[&str], folder: &Path, say: Say<'_>) -> Result<Vec<PathBuf>> {
    say(&format!("downloading: apt-get download {}", names.join(" ")));
    let fetch = || program::run(apt_get().arg("download").args(names).current_dir(folder));
    with_fresh_lists(say, fetch)?;
    let entries = std::fs::read_dir(folder).map_err(KitError::file("list", folder))?;
    let files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let of = |name: &&str| {
        let plain = name.split('=').next().unwrap_or(name);
        let found = files.iter().find(|path| is_of(path, plain)).cloned();
        found.ok_or_else(|| KitError::malformed(*name, "apt-get download left no .deb file"))
    };
    names.iter().map(of).collect()
}

/// Downloads a package, unpacks it below `folder`, and returns the directory.
///
/// # Errors
/// The package is unknown, or cannot be downloaded or unpacked.
pub(super) fn unpacked(name: &str, folder: &Path, say: Say<'_>) -> Result<PathBuf> {
    let files = download(&[name], folder, say)?;
    let unpacked = folder.join("unpacked");
    program::run(Command::new("dpkg-deb").arg("-x").args(&files).arg(&unpacked))?;
    Ok(unpacked)
}

/// Returns whether a file is the package `name`. The file of a package is called `NAME_VERSION_ARCHITECTURE.deb`.
fn is_of(path: &Path, name: &str) -> bool {
    let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    file.ends_with(".deb") && file.split('_').next() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_distinguished_from_longer_names() {
        let file = Path::new("/tmp/git_1%3a2.39.5-0+deb12u3_amd64.deb");
        assert!(is_of(file, "git") && !is_of(file, "gi") && !is_of(file, "git-man"));
        assert!(!is_of(Path::new("git_1"), "git"));
    }
}
