//! `boxlaunch inspect`: what a box is, without running it.

use std::path::PathBuf;

use super::error::CommandError;
use super::{json_line, print};

/// Shows what a box is: digest, components, limits, budget, sizes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch inspect ./hello.box --json | jq .plan.budget")]
pub(crate) struct InspectArgs {
    /// The box's directory.
    #[arg(value_name = "BOX")]
    directory: PathBuf,
    /// Print one JSON object: box, name, tree, epoch, kernel_version, plan, unsupported and blobs.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<u8, CommandError> {
    let opened = boxlaunch::open(&args.directory)?;
    // Values may be secrets of an image; `boxbuild inspect` knows which look like it.
    let text = || opened.describe(|name, _| name.to_owned());
    print(&if args.json { json_line(&opened.report())? } else { text() })?;
    Ok(0)
}
