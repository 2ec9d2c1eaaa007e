//! The volumes of a run.

use std::path::Path;

use box_contract::RunPlan;
use boxlaunch::mounts::guest_paths::{Taken, check_free};
use boxlaunch::mounts::volumes::{Volume, VolumeError, VolumePlace, Volumes, check_once};
use safe_text::readable;

use super::options::RunArgs;
use crate::cli::error::{Failure, usage};
use crate::cli::progress::Shown;
use crate::cli::shares::ShareArg;

/// Checks that no volume is given twice, and that the guest paths of volumes and shares are free in the box.
pub(super) fn checked(args: &RunArgs, plan: &RunPlan) -> Result<(), Failure> {
    let guests = args.volumes.iter().map(|it| it.guest.as_str()).chain(args.own_shares());
    let guests: Vec<_> = guests.collect();
    check_once(&args.volumes).map_err(|reason| usage(&reason, "leave one out"))?;
    check_free(&guests, plan).map_err(|reason| usage(&reason.to_string(), &help(args, &reason)))
}

/// Returns the help for a guest path that is in use.
fn help(args: &RunArgs, taken: &Taken) -> String {
    let Taken::ByBox { place, .. } = taken else {
        return "give each its own path".to_owned();
    };
    let volume = args.volumes.iter().find(|it| it.guest == *place);
    let volume = volume.map(|it| format!("--volume {}:/PATH", it.volume));
    let share = || args.shares.iter().find(|it| it.place() == Some(place)).map(ShareArg::elsewhere);
    let option = volume.or_else(share).unwrap_or_default();
    format!("choose another path: `{option}`")
}

/// Locks the volumes for the box named `name`. Creates missing volumes, and prints a notice about each.
pub(super) fn take(
    args: &RunArgs,
    state: &Path,
    name: &str,
    watch: &Shown<'_>,
) -> Result<Vec<Volume>, VolumeError> {
    let volumes = Volumes::new(state);
    let take = |place: &VolumePlace| {
        let volume = volumes.take(place, name)?;
        if volume.is_new() {
            let (name, size) = (&place.volume, readable(volume.size_bytes()));
            watch.note(&format!("boxlaunch: made the volume {name} ({size})\n"));
        }
        Ok(volume)
    };
    args.volumes.iter().map(take).collect()
}
