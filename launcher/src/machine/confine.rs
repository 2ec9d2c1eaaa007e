//! The supervisor's part of the jail of a VMM process.

use std::fs::File;
use std::mem;
use std::path::Path;

use box_image::Vm as Size;
use box_layout::OpenBox;
use nix::sys::prctl;
use nix::unistd::geteuid;

use crate::LaunchError;
use crate::jail::control_group::ControlGroup;
use crate::jail::{Ids, Layer, Missing, Policy, Terms};
use crate::runtime_dir::RuntimeDir;
use crate::vmm::{CONTROL_SOCKET, Vmm};

/// Decides on the jail of a VMM process that has no configuration yet.
///
/// # Errors
/// When the kernel refuses what every host gives.
pub(super) fn terms(
    opened: &OpenBox,
    device: &Path,
    runtime: &RuntimeDir,
    policy: Policy,
    vmm: &mut Vmm,
) -> Result<Terms, LaunchError> {
    // Whoever is a VMM must not read this process's memory, nor trace it. The VMM process was made before, as its
    // maps could not be written afterwards.
    prctl::set_dumpable(false).map_err(LaunchError::system("hide the memory"))?;
    let mut missing = mem::take(&mut vmm.missing);
    let device = File::open(device).map_err(LaunchError::file("open", device))?;
    let ids = Ids::choose(&device, opened.boot_blobs().map(|blob| &blob.file));
    // Where root is that of a user namespace, there may be no other user in it.
    let given = ids.and_then(|ids| {
        let given = ids.map(|ids| runtime.give_away(CONTROL_SOCKET, ids.id));
        given.transpose().map(|_| ids).map_err(|error| error.to_string())
    });
    let ids = given.unwrap_or_else(|reason| {
        missing.push(Missing::new(Layer::UserId, reason));
        None
    });
    let (is_root, runtime) = (geteuid().is_root(), runtime.path().to_owned());
    Ok(Terms { policy, runtime, is_root, ids, missing })
}

/// Puts a VMM process into a control group of its own.
///
/// # Errors
/// When the host gives no group, and the policy requires one.
pub(super) fn join_group(
    size: Size,
    runtime: &RuntimeDir,
    policy: Policy,
    vmm: &mut Vmm,
) -> Result<(), LaunchError> {
    let group = ControlGroup::create(runtime.path(), size);
    let Err(reason) = group.and_then(|group| vmm.join(group)) else { return Ok(()) };
    vmm.missing.push(Missing::new(Layer::ControlGroup, reason));
    if policy != Policy::Require {
        return Ok(());
    }
    // All that is missing is named at once. The process waits, and so does its guest.
    let report = vmm.await_report();
    let missing = report.map_or_else(|| mem::take(&mut vmm.missing), |report| report.missing);
    Err(LaunchError::Jail(missing))
}
