//! `boxlaunch inspect`: describes a box without running it.

use std::path::PathBuf;

use super::error::CommandError;
use super::terminal::{json_line, print};

/// Shows what a box is: digest, components, limits, budget, sizes.
///
/// The value of a variable that looks like a secret is shown as `****`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch inspect ./hello.box --json | jq .plan.budget")]
pub(crate) struct InspectArgs {
    /// The box's directory.
    #[arg(value_name = "BOX")]
    directory: PathBuf,
    /// Print one JSON object: box, name, tree, epoch, kernel_version, plan, masked, unsupported and
    /// blobs.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<u8, CommandError> {
    let opened = boxlaunch::open(&args.directory)?;
    print(&if args.json { json_line(&opened.report())? } else { opened.describe() })?;
    Ok(0)
}
