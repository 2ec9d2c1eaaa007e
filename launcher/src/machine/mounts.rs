//! The directories, disks and the task that a machine gets of its host.

use std::io;

use box_contract::RunPlan;
use box_contract::wire::HostMessage;

use super::{HostGifts, MachineError};
use crate::mounts::shares;
use crate::mounts::volumes::{self, Volume};

/// Returns the message to init about them, where there are some. The machine is as such a user and group to itself.
///
/// # Errors
/// [`MachineError::TooManyMounts`] where that is too much for one message.
pub(super) fn message(
    gifts: &HostGifts,
    ids: (u32, u32),
) -> Result<Option<HostMessage>, MachineError> {
    let mut mounts = shares::mounts(&gifts.shares, ids).ok_or(MachineError::TooManyMounts)?;
    mounts.mounts.extend(volumes::mounts(&gifts.volumes));
    mounts.task.clone_from(&gifts.task);
    if mounts.mounts.is_empty() && mounts.task.is_none() {
        return Ok(None);
    }
    // What is inside something else comes after it.
    mounts.mounts.sort_by(|one, other| one.guest.cmp(&other.guest));
    let message = HostMessage::Mounts(mounts);
    message.write(&mut io::sink()).map_err(|_| MachineError::TooManyMounts)?;
    Ok(Some(message))
}

/// Returns the size of the largest disk that a machine writes to, in bytes.
pub(super) fn largest_disk(plan: &RunPlan, volumes: &[Volume]) -> u64 {
    let scratch = plan.scratch.iter().map(|it| it.size_bytes);
    scratch.chain(volumes.iter().map(Volume::size_bytes)).max().unwrap_or(0)
}
