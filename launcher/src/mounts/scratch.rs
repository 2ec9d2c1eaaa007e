//! Scratch disks: empty file systems in unlinked files. The kernel frees them when the VM ends, even after a crash.

use std::fs::{File, OpenOptions, remove_file};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use box_contract::{ComponentName, RunPlan, Scope, ScratchPlan};
use ext4_image::Options;
use host_fs::OsError;

/// The owner and the mode of the root directory of a disk that both components use, as for `/tmp`.
pub(crate) const SHARED_ROOT: ((u32, u32), u16) = ((0, 0), 0o1777);

/// Creates the disks of a plan, in the plan's order. The disks are sparse files in the file system of `directory`,
/// which grow when the guest writes.
///
/// # Errors
/// If a file cannot be created, or its file system does not support that size.
pub fn make(plan: &RunPlan, directory: &Path) -> Result<Vec<File>, OsError> {
    plan.scratch.iter().map(|disk| make_one(plan, disk, directory)).collect()
}

fn make_one(plan: &RunPlan, disk: &ScratchPlan, directory: &Path) -> Result<File, OsError> {
    let make = || -> io::Result<File> {
        let file = unnamed(directory)?;
        let uuid = random()?;
        let (root_owner, root_mode) = owner(plan, disk.scope);
        let options = Options { uuid, journal: false, root_owner, root_mode };
        ext4_image::format(&file, disk.size_bytes, &options).map_err(io::Error::other)?;
        Ok(file)
    };
    make().map_err(OsError::file("make a scratch disk in", directory))
}

/// Creates a file that only this user can open, and unlinks it.
fn unnamed(directory: &Path) -> io::Result<File> {
    let name = u64::from_ne_bytes(random::<8>()?);
    let path = directory.join(format!(".scratch-{name:016x}"));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}

/// Returns random bytes from the kernel.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Returns the owner and the mode of a disk's root directory. If one component uses the disk, its user is the owner;
/// otherwise [`SHARED_ROOT`] applies.
fn owner(plan: &RunPlan, scope: Scope) -> ((u32, u32), u16) {
    let of = |name| plan.component(name).map(|it| (it.user.uid, it.user.gid));
    let only = match scope {
        Scope::Agent => of(ComponentName::Agent),
        Scope::Business => of(ComponentName::Business),
        Scope::Both => None,
    };
    only.map_or(SHARED_ROOT, |user| (user, 0o755))
}
