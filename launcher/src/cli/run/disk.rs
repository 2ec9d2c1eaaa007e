//! The disk of a run, for the files that components write to their roots.

use std::path::Path;

use box_contract::wire::MAX_DEVICES;
use box_contract::{ErrorCode, RunPlan};
use box_layout::OpenBox;
use boxlaunch::boxes::Entry;
use boxlaunch::host::policy::most_scratch;
use boxlaunch::mounts::roots_disk::{RootsDisk, SINCE, size_for};
use boxlaunch::mounts::shares::{HostShare, devices};
use host_fs::OsError;

use super::options::RunArgs;
use super::volumes::of_run;
use crate::cli::error::Failure;

/// Returns the number of disks that a run has besides the box's: scratch disks and volumes.
pub(in crate::cli) fn others(args: &RunArgs, plan: &RunPlan) -> usize {
    plan.scratch.len() + of_run(args, plan).len()
}

/// Returns the size of the box's disk in bytes; `None` if the box has no disk. `left` is what the limit for declared disks
/// leaves, also in bytes.
///
/// # Errors
/// If the command line asks for a disk, and the box is too old to use one.
pub(super) fn size(
    args: &RunArgs,
    opened: &OpenBox,
    shares: &[HostShare],
    (left, state): (u64, &Path),
) -> Result<Option<u64>, Failure> {
    let plan = opened.plan();
    let is_used = opened.config.protocol.is_some_and(|it| it >= SINCE);
    let has_room = devices(others(args, plan) + 1, shares, plan.network.mode) <= MAX_DEVICES;
    let spare = if is_used && has_room { left.min(most_scratch(state).unwrap_or(0)) } else { 0 };
    let size = size_for(plan, args.given.disk, spare);
    if size.is_some() && !is_used {
        let message = "--disk has no effect: the box was built before boxes had disks";
        return Err(Failure::new(
            (ErrorCode::Usage, "build the box again, or leave it out"),
            message,
        ));
    }
    Ok(size)
}

/// Makes the disk of a run, or opens the disk that an earlier run of the same box has left.
///
/// # Errors
/// Errors of the operating system.
pub(super) fn take(
    args: &RunArgs,
    entry: &Entry,
    state: &Path,
) -> Result<Option<RootsDisk>, OsError> {
    let make = |size| match args.keeps_disk() {
        true => RootsDisk::keep(entry.directory(), size),
        false => RootsDisk::lost(state, size),
    };
    entry.record.disk_bytes.map(make).transpose()
}
