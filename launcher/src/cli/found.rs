//! Opens the box that a command line names.

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

/// Opens a found box. Refuses a box that users other than root and this one could change.
pub(crate) fn open(found: Found) -> Result<OpenBox, Failure> {
    let opened = found.open()?;
    boxlaunch::opened::check_owners(&opened)?;
    Ok(opened)
}

/// Opens a found box to run it now. The store keeps the box until the returned [`Held`] is dropped or this process ends.
pub(crate) fn open_to_run(found: Found) -> Result<(OpenBox, Option<Held>), Failure> {
    let (opened, held) = found.open_to_run()?;
    boxlaunch::opened::check_owners(&opened)?;
    Ok((opened, held))
}
