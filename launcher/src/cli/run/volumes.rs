//! The volumes of a run.

use std::path::Path;

use box_image::{ErrorCode, RunPlan};
use boxlaunch::LaunchError;
use boxlaunch::volumes::{Volume, Volumes, check};

use super::options::RunArgs;
use crate::cli::error::CommandError;

/// Checks that the volumes of a command line have places in a box.
pub(super) fn checked(args: &RunArgs, plan: &RunPlan) -> Result<(), CommandError> {
    check(&args.volumes, plan).map_err(|why| {
        let help = "`boxlaunch inspect BOX` shows what the box itself mounts; docs/volumes.md says what fits";
        CommandError::new((ErrorCode::Usage, help), format!("--volume: {why}"))
    })
}

/// Takes them for the box with this name.
pub(super) fn take(args: &RunArgs, state: &Path, name: &str) -> Result<Vec<Volume>, LaunchError> {
    let volumes = Volumes::new(state);
    args.volumes.iter().map(|place| volumes.take(place, name)).collect()
}
