//! The disk of a run, for the files that components write to their roots.

use std::path::Path;
use std::time::{Duration, Instant};

use box_contract::wire::MAX_DEVICES;
use box_contract::{ErrorCode, RunPlan};
use box_layout::OpenBox;
use boxlaunch::boxes::{Entry, Snapshot, Snapshots};
use boxlaunch::host::policy::most_scratch;
use boxlaunch::mounts::roots_disk::{DiskChoice, RootsDisk, SINCE, size_for};
use boxlaunch::mounts::shares::devices;
use host_fs::OsError;
use vmm::signals::StopSignals;

use super::Asked;
use super::options::RunArgs;
use super::volumes::of_run;
use crate::cli::error::{Failure, usage};

/// Returns the number of disks that a run has besides the box's: scratch disks and volumes.
pub(in crate::cli) fn others(args: &RunArgs, plan: &RunPlan) -> usize {
    plan.scratch.len() + of_run(args, plan).len()
}

/// Returns the snapshot with which the disk of a run begins.
///
/// # Errors
/// If there is no such snapshot, if it is of another box, or if the options of the run keep what the box writes in memory.
pub(super) fn snapshot(
    args: &RunArgs,
    opened: &OpenBox,
    state: &Path,
) -> Result<Option<Snapshot>, Failure> {
    let Some(name) = &args.from else { return Ok(None) };
    let snapshot = Snapshots::new(state).find(name)?;
    snapshot.check_box(opened.digest)?;
    if args.given.disk == Some(DiskChoice::Memory) {
        let of = args.name.as_deref().unwrap_or_default();
        let message = format!("{of} has no disk: its first start had --disk none");
        let help = "add --forget, which starts it with the options of this command line alone";
        return Err(usage(&message, help));
    }
    Ok(Some(snapshot))
}

/// Returns the size of the box's disk in bytes; `None` if the box has no disk. `left` is what the limit for declared disks
/// leaves, also in bytes. A disk that begins with a snapshot has the size of the snapshot.
///
/// # Errors
/// If the command line asks for a disk, and the box is too old to use one.
pub(super) fn size(
    args: &RunArgs,
    opened: &OpenBox,
    asked: &Asked,
    (left, state): (u64, &Path),
) -> Result<Option<u64>, Failure> {
    if let Some(snapshot) = &asked.snapshot {
        return Ok(Some(snapshot.size_bytes));
    }
    let (plan, shares) = (opened.plan(), &asked.shared.directories);
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

/// Begins the disk of a run with a snapshot, if it has one. Returns how long the copy has taken.
///
/// # Errors
/// If a signal has ended the copy, and errors of the operating system. An old disk is then unchanged.
pub(super) fn begin(
    snapshot: Option<&Snapshot>,
    entry: &mut Entry,
    signals: &StopSignals,
) -> Result<Duration, Failure> {
    let started = Instant::now();
    snapshot.map_or(Ok(()), |it| entry.begin_with(it, signals))?;
    Ok(started.elapsed())
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
