//! `boxlaunch inspect`: describes a box without running it, or one that was started.

use std::path::PathBuf;

use boxlaunch::LaunchError;
use boxlaunch::boxes::{Boxes, is_name};

use super::error::CommandError;
use super::list::describe;
use super::paths;
use super::terminal::{json_line, print};

/// Shows what a box is: digest, components, limits, budget, sizes; or how a box that was started is.
///
/// The value of a variable that looks like a secret is shown as `****`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch inspect ./hello.box --json | jq .plan.budget")]
pub(crate) struct InspectArgs {
    /// The box's directory, or the name of one that was started.
    #[arg(value_name = "BOX|NAME")]
    directory: PathBuf,
    /// Print one JSON object. Of a box: box, name, tree, epoch, kernel_version, plan, masked, unsupported
    /// and blobs; of one that was started: its record.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<u8, CommandError> {
    let path = &args.directory;
    // A box that is here comes before one that was started under its name.
    let is_here = path.join("oci-layout").exists();
    if let Some(name) = path.to_str().filter(|text| is_name(text) && !is_here) {
        match Boxes::new(&paths::state()?).find(name) {
            // The error of the path is more likely to be what helps.
            Err(LaunchError::NoBox(_)) => {}
            record => {
                let record = record?;
                print(&if args.json { json_line(&record)? } else { describe(&record) })?;
                return Ok(0);
            }
        }
    }
    let opened = boxlaunch::open(&args.directory)?;
    print(&if args.json { json_line(&opened.report())? } else { opened.describe() })?;
    Ok(0)
}
