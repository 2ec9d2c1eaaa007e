//! The part of a VMM process's jail that the supervisor sets up.

use std::collections::BTreeSet;
use std::fs::File;
use std::mem;
use std::os::unix::fs::fchown;
use std::path::Path;
use std::time::Instant;

use box_contract::Vm as Size;
use host_fs::OsError;
use nix::sys::prctl;
use nix::unistd::{Pid, geteuid};

use crate::jail::control_group::ControlGroup;
use crate::jail::shares::ServedShare;
use crate::jail::{Ids, Layer, Missing, Policy, Report, Terms};
use crate::runtime_dir::RuntimeDir;
use crate::signals::StopSignals;
use crate::{Vmm, VmmError};

/// Decides on the jail of the VMM process `vmm`, before the process gets its configuration.
///
/// # Errors
/// If `device` cannot be opened, the writable shares have several owners, or the kernel refuses a call that works on
/// every host.
pub fn terms<'a>(
    blobs: impl IntoIterator<Item = &'a File>,
    disks: &[&File],
    device: &Path,
    runtime: &RuntimeDir,
    policy: Policy,
    shares: Vec<ServedShare>,
    vmm: &mut Vmm,
) -> Result<Terms, VmmError> {
    // A VMM process must neither read nor trace this process's memory. The VMM process was started before this call,
    // because its uid_map could not be written afterwards.
    prctl::set_dumpable(false).map_err(OsError::system("hide the memory"))?;
    let mut missing = mem::take(&mut vmm.missing);
    let device = File::open(device).map_err(OsError::file("open", device))?;
    let owner = owner(&shares)?;
    let ids = Ids::choose(&device, blobs, owner);
    // If this process is root only in a user namespace, that namespace may map no other user, and the change of owners
    // fails.
    let given = ids.and_then(|ids| {
        let given = ids.map(|ids| {
            let own = |disk| fchown(disk, Some(ids.uid), Some(ids.gid));
            disks.iter().try_for_each(own).map_err(OsError::system("give a disk away"))?;
            runtime.give_away((ids.uid, ids.gid))
        });
        given.transpose().map(|_| ids).map_err(|error| error.to_string())
    });
    let ids = given.unwrap_or_else(|reason| {
        missing.push(Missing::new(Layer::UserId, reason));
        None
    });
    let (is_root, runtime) = (geteuid().is_root(), runtime.path().to_owned());
    Ok(Terms { policy, runtime, is_root, ids, shares, missing })
}

/// Returns the user and group that own the writable shares, or the read-only shares if none is writable. The VM has
/// to run as this user. Returns `None` if there are no shares, or only read-only ones of several owners.
///
/// # Errors
/// [`VmmError::SharedOwners`] if the writable shares have several owners.
fn owner(shares: &[ServedShare]) -> Result<Option<(u32, u32)>, VmmError> {
    let owners = |writable: bool| {
        let of: BTreeSet<_> =
            shares.iter().filter(|it| it.is_writable == writable).map(|it| it.owner).collect();
        of.into_iter().collect::<Vec<_>>()
    };
    match (&*owners(true), &*owners(false)) {
        ([owner], _) | ([], [owner]) => Ok(Some(*owner)),
        ([], _) => Ok(None),
        _ => Err(VmmError::SharedOwners),
    }
}

/// Moves a configured VMM process into its control group, and waits until the process has confined itself. If possible,
/// this process and the process that serves the VM's network (`serving`) get another group. Returns `None` if the VMM
/// process has ended without a report.
///
/// # Errors
/// [`VmmError::Jail`] if the policy requires a layer that is missing, [`VmmError::Stopped`], and [`VmmError::NoJail`]
/// at the deadline.
pub fn finish(
    size: Size,
    runtime: &RuntimeDir,
    policy: Policy,
    vmm: &mut Vmm,
    serving: Option<Pid>,
    (deadline, signals): (Instant, &StopSignals),
) -> Result<Option<Report>, VmmError> {
    // Moving the VMM process takes a grace period of the kernel's RCU, about 3 ms, so it is done while the process
    // confines itself.
    let group = ControlGroup::create(runtime.path(), size, vmm.id(), serving);
    if let Err(reason) = group.and_then(|group| vmm.join(group)) {
        vmm.missing.push(Missing::new(Layer::ControlGroup, reason));
    }
    match vmm.await_report(deadline, signals)? {
        Some(Report { unshared: Some(reason), .. }) => Err(reason.into()),
        Some(report) if policy == Policy::Require && !report.missing.is_empty() => {
            Err(VmmError::Jail(report.missing))
        }
        report => Ok(report),
    }
}
