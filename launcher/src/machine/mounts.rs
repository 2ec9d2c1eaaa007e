//! The shares, the disks and the task that a VM gets from its host.

use std::io;

use box_contract::RunPlan;
use box_contract::wire::HostMessage;

use super::{HostResources, MachineError};
use crate::mounts::files::FileCopy;
use crate::mounts::roots_disk::RootsDisk;
use crate::mounts::shares;
use crate::mounts::sockets::SharedSocket;
use crate::mounts::volumes::{self, Volume};

/// Returns the message to init about the shares, the files, the sockets, the volumes and the task; `None` if there are none. `ids` are the user
/// and the group of the VMM process in its user namespace, and `together` is what [`are_together`] has returned before the
/// VMM process was configured.
///
/// # Errors
/// [`MachineError::TooManyMounts`] if the mounts and the task do not fit into one message.
pub(super) fn message(
    gifts: &HostResources,
    ids: (u32, u32),
    together: bool,
) -> Result<Option<HostMessage>, MachineError> {
    let mounts = shares::mounts(&gifts.shares, ids, together);
    let mut mounts = mounts.ok_or(MachineError::TooManyMounts)?;
    mounts.mounts.extend(volumes::mounts(&gifts.volumes));
    mounts.files = gifts.files.iter().map(FileCopy::described).collect();
    mounts.sockets = gifts.sockets.iter().map(SharedSocket::described).collect();
    mounts.task.clone_from(&gifts.task);
    let has_files = !mounts.files.is_empty() || !mounts.sockets.is_empty();
    if mounts.mounts.is_empty() && !has_files && mounts.task.is_none() {
        return Ok(None);
    }
    // Init mounts in this order, so a mount inside another one must come after it: `/a` before `/a/b`.
    mounts.mounts.sort_by(|one, other| one.guest.cmp(&other.guest));
    let message = HostMessage::Mounts(mounts);
    message.write(&mut io::sink()).map_err(|_| MachineError::TooManyMounts)?;
    Ok(Some(message))
}

/// Returns the size of the largest disk that the VM can write to, in bytes.
pub(super) fn largest_disk(plan: &RunPlan, gifts: &HostResources) -> u64 {
    let scratch = plan.scratch.iter().map(|it| it.size_bytes);
    let volumes = gifts.volumes.iter().map(Volume::size_bytes);
    let roots = gifts.roots_disk.iter().map(RootsDisk::size_bytes);
    scratch.chain(volumes).chain(roots).max().unwrap_or(0)
}

/// Returns whether all writable shares are on one device.
pub(super) fn are_together(plan: &RunPlan, gifts: &HostResources) -> bool {
    let disks = plan.scratch.len() + gifts.volumes.len() + usize::from(gifts.roots_disk.is_some());
    shares::are_together(disks, &gifts.shares, plan.network.mode)
}
