//! The volumes of a run.

use std::path::Path;

use box_image::{ErrorCode, RunPlan};
use boxlaunch::LaunchError;
use boxlaunch::places::check_apart;
use boxlaunch::volumes::{Volume, Volumes, check_once};

use super::options::RunArgs;
use crate::cli::error::CommandError;

/// Checks that volumes and directories of a command line have places in a box.
pub(super) fn checked(args: &RunArgs, plan: &RunPlan) -> Result<(), CommandError> {
    let guests = args.volumes.iter().map(|it| it.guest.as_str()).chain(args.own_shares());
    let guests: Vec<_> = guests.collect();
    check_once(&args.volumes).and_then(|()| check_apart(&guests, plan)).map_err(|why| {
        let help = "`boxlaunch inspect BOX` shows what the box itself mounts; choose another place";
        CommandError::new((ErrorCode::Usage, help), why)
    })
}

/// Takes them for the box with this name.
pub(super) fn take(args: &RunArgs, state: &Path, name: &str) -> Result<Vec<Volume>, LaunchError> {
    let volumes = Volumes::new(state);
    args.volumes.iter().map(|place| volumes.take(place, name)).collect()
}
