//! Scratch disks: empty file systems in unlinked files. The kernel frees them when the VM ends, even after a crash.

use std::fs::File;
use std::path::Path;

use box_contract::{ComponentName, RunPlan, Scope, ScratchPlan};
use host_fs::OsError;

use super::disk_file::{Root, make_lost};

/// The owner and the mode of the root directory of a disk that both components use, as for `/tmp`.
pub(crate) const SHARED_ROOT: Root = ((0, 0), 0o1777);

/// Creates the disks of a plan, in the plan's order. The disks are sparse files in the file system of `directory`,
/// which grow when the guest writes.
///
/// # Errors
/// If a file cannot be created, or its file system does not support that size.
pub fn make(plan: &RunPlan, directory: &Path) -> Result<Vec<File>, OsError> {
    plan.scratch.iter().map(|disk| make_one(plan, disk, directory)).collect()
}

fn make_one(plan: &RunPlan, disk: &ScratchPlan, directory: &Path) -> Result<File, OsError> {
    let made = make_lost(directory, disk.size_bytes, owner(plan, disk.scope));
    made.map_err(OsError::file("make a scratch disk in", directory))
}

/// Returns the owner and the mode of a disk's root directory. If one component uses the disk, its user is the owner;
/// otherwise [`SHARED_ROOT`] applies.
fn owner(plan: &RunPlan, scope: Scope) -> Root {
    let of = |name| plan.component(name).map(|it| (it.user.uid, it.user.gid));
    let only = match scope {
        Scope::Agent => of(ComponentName::Agent),
        Scope::Business => of(ComponentName::Business),
        Scope::Both => None,
    };
    only.map_or(SHARED_ROOT, |user| (user, 0o755))
}
