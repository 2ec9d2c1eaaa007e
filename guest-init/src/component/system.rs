//! The read-only system of a component ([`SystemDirectories::ReadOnly`](box_contract::SystemDirectories::ReadOnly)).
//!
//! The mount of the component's root becomes read-only as a whole, so that nothing at the top of the root is made, replaced
//! or removed. That includes symbolic links such as `/bin`. Before that, each directory at the top that is not a part of the
//! system is bound to itself, and keeps the permission to write. Each package database becomes a read-only mount
//! inside such a directory. A directory that contains a database is a mount, too: the kernel renames no mount point
//! (`EBUSY`), so no program can put another directory in the place of the one with the database.
//!
//! Mounts inside the root, such as shares, keep their flags: a mount is read-only by itself, and each bind is recursive.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use box_contract::plan::{PACKAGE_DATABASES, SYSTEM_DIRECTORIES};
use nix::mount::{MsFlags, mount};

use super::rootfs::change_mount;
use crate::error::{InitError, Step as _};

/// The flags by which a mount in the component's root becomes read-only. `nodev` is kept: a remount replaces all flags.
const TO_READ_ONLY: MsFlags =
    MsFlags::MS_REMOUNT.union(MsFlags::MS_BIND).union(MsFlags::MS_RDONLY).union(MsFlags::MS_NODEV);
const READ_ONLY_STEP: &str = "make the system read-only";

/// Makes the system of the component read-only, whose root is this process's root. Must be called after all files and mounts
/// of init are in the root, and before a program of the component runs.
///
/// # Errors
/// The kernel's error, with the directory.
pub(super) fn make_read_only() -> Result<(), InitError> {
    for path in parts_of_root().step(READ_ONLY_STEP)? {
        if is_among(&path, &SYSTEM_DIRECTORIES) {
            continue;
        }
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(&path), &path, None::<&str>, flags, None::<&str>)
            .step_with(|| format!("{READ_ONLY_STEP}: bind {}", path.display()))?;
        if is_among(&path, &PACKAGE_DATABASES) {
            change_mount(&path, TO_READ_ONLY, READ_ONLY_STEP)?;
        }
    }
    change_mount(Path::new("/"), TO_READ_ONLY, READ_ONLY_STEP)
}

/// Returns the directories that can be mounts of the root's own file system: those at the top of the root, and the package
/// databases with the directories above them. Omits missing ones, symbolic links, and directories on another file
/// system.
///
/// # Errors
/// The kernel's error.
pub(super) fn parts_of_root() -> io::Result<Vec<PathBuf>> {
    let root = Path::new("/");
    let device = fs::symlink_metadata(root)?.dev();
    let top = fs::read_dir(root)?.map(|entry| entry.map(|it| it.path()));
    let mut all = top.collect::<io::Result<Vec<PathBuf>>>()?;
    all.extend(inner_parts().into_iter().map(Path::to_owned));
    all.retain(|path| is_part(path, device));
    Ok(all)
}

/// Returns the package databases and the directories above them, except those at the top of the root. A directory precedes
/// the directories in it.
fn inner_parts() -> BTreeSet<&'static Path> {
    let all = PACKAGE_DATABASES.into_iter().flat_map(|it| Path::new(it).ancestors());
    // The root directory counts as a component of a path.
    all.filter(|it| it.components().count() > 2).collect()
}

/// Returns whether a path leads to a directory of the file system `device` through directories of this file system alone.
fn is_part(path: &Path, device: u64) -> bool {
    let is_own = |it: fs::Metadata| it.is_dir() && it.dev() == device;
    path.ancestors().all(|it| fs::symlink_metadata(it).is_ok_and(is_own))
}

fn is_among(path: &Path, paths: &[&str]) -> bool {
    paths.iter().any(|it| Path::new(it) == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_precedes_the_databases_in_it() {
        let inner: Vec<_> = inner_parts().into_iter().collect();
        let expected =
            ["/var/lib", "/var/lib/apt", "/var/lib/dpkg", "/var/lib/pacman", "/var/lib/rpm"];
        assert_eq!(inner, expected.map(Path::new));
    }

    #[test]
    fn links_and_other_file_systems_are_no_parts() {
        let device = fs::symlink_metadata("/").unwrap().dev();
        assert!(is_part(Path::new("/"), device) && !is_part(Path::new("/"), device + 1));
        assert!(!is_part(Path::new("/proc"), device), "another file system");
        assert!(!is_part(Path::new("/nowhere/at/all"), device));
        let parts = parts_of_root().unwrap();
        assert!(!parts.is_empty());
        for path in &parts {
            assert!(!path.is_symlink(), "{}", path.display());
        }
    }
}
