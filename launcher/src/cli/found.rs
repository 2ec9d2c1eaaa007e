//! The box of a command line.

use box_cache::Held;
use box_find::Found;
use box_layout::OpenBox;
use cli_common::store::BoxArgument;

use super::error::Failure;
use super::stored::PROGRAM;

/// Opens the box of a command's argument.
pub(crate) fn open_argument(subject: &BoxArgument) -> Result<OpenBox, Failure> {
    open(subject.find(&PROGRAM)?)
}

/// Opens a found box to run it.
pub(crate) fn open(found: Found) -> Result<OpenBox, Failure> {
    let opened = found.open()?;
    boxlaunch::opened::check_owners(&opened)?;
    Ok(opened)
}

/// Opens a found box that starts now. While the second value exists, the store does not remove the box. It is dropped when this
/// process ends.
pub(crate) fn open_to_run(found: Found) -> Result<(OpenBox, Option<Held>), Failure> {
    let (opened, held) = found.open_to_run()?;
    boxlaunch::opened::check_owners(&opened)?;
    Ok((opened, held))
}
