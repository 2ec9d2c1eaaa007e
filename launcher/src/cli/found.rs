//! The box that a command line names.

use box_cache::Held;
use box_find::Found;
use box_layout::OpenBox;
use cli_common::store::BoxArgument;

use super::error::CommandError;
use super::stored::PROGRAM;

/// Opens the box that a command is about.
pub(crate) fn open_argument(subject: &BoxArgument) -> Result<OpenBox, CommandError> {
    open(subject.find(&PROGRAM)?)
}

/// Opens a box that was found, to run it.
pub(crate) fn open(found: Found) -> Result<OpenBox, CommandError> {
    let opened = found.open()?;
    boxlaunch::opened::check_owners(&opened)?;
    Ok(opened)
}

/// Opens a box that was found and starts now. The store keeps it as long as the second value is there, which ends with this
/// process.
pub(crate) fn open_to_run(found: Found) -> Result<(OpenBox, Option<Held>), CommandError> {
    let (opened, held) = found.open_to_run()?;
    boxlaunch::opened::check_owners(&opened)?;
    Ok((opened, held))
}
