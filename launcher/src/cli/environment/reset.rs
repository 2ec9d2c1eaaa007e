//! `boxlaunch down` and `boxlaunch reset`.

use std::path::PathBuf;

use box_contract::ErrorCode;
use boxlaunch::boxes::{Boxes, Record, State};
use cli_common::store::StoreOption;
use safe_text::shown;
use vmm::signals::StopSignals;

use super::{Environment, here, project_at};
use crate::cli::error::Failure;
use crate::cli::lifecycle::{GraceOption, each, end};
use crate::cli::paths;
use crate::cli::start::StartArgs;

/// Stops the environment of a project, which `boxlaunch up` starts again.
///
/// Prints the git repositories, the operations of git and the changed files that the box may have left for programs of this host.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  boxlaunch down\n  boxlaunch down ~/src/page")]
pub(crate) struct DownArgs {
    /// The directory of the project [default: that of the environment around the current directory].
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(flatten)]
    grace: GraceOption,
    /// Print one JSON object with the name of the box that was stopped.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Removes what was written to the root of boxes with a disk: installed packages, caches and settings outside of volumes.
///
/// Volumes, shares and the directory of a project stay. A box that runs is stopped, and started again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  boxlaunch reset\n  boxlaunch reset hello")]
pub(crate) struct ResetArgs {
    /// The boxes' names [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    grace: GraceOption,
    /// Print one JSON object with the names of the boxes.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    store: StoreOption,
}

/// Runs `boxlaunch down`.
pub(crate) fn down(args: &DownArgs) -> Result<u8, Failure> {
    let state = paths::state()?;
    let boxes = Boxes::new(&state);
    let name = match &args.directory {
        None => here::named(&boxes, None)?,
        Some(directory) => {
            let project = project_at(directory)?;
            let around = boxes.environment_around(project.path())?;
            around.map(|it| it.name).ok_or_else(|| none(&project.path().display().to_string()))?
        }
    };
    each(&[name], args.json, |name| {
        let record = boxes.find(name)?;
        if record.state != State::Ended {
            end(&boxes, &record, args.grace.time())?;
        }
        Environment::of(&state, &record).map_or(Ok(()), |it| it.stopped(&record))
    })
}

fn none(directory: &str) -> Failure {
    let help = "`boxlaunch ps -a` lists the environments";
    Failure::new((ErrorCode::BoxNotFound, help), shown(&format!("{directory} has no environment")))
}

/// Runs `boxlaunch reset`.
pub(crate) fn reset(args: &ResetArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let names = here::names_of(&boxes, &args.names)?;
    let signals = StopSignals::block()?;
    let start = StartArgs::of(&args.store);
    each(&names, args.json, |name| {
        let _alone = boxes.updating(name)?;
        let record = boxes.find(name)?;
        let runs = record.state != State::Ended;
        if runs {
            // Nothing is stopped that could not be started again.
            start.check(&record)?;
            end(&boxes, &record, args.grace.time())?;
        }
        remove_disk(&boxes, &record)?;
        if runs { start.start(&boxes, name, &signals) } else { Ok(()) }
    })
}

fn remove_disk(boxes: &Boxes, record: &Record) -> Result<(), Failure> {
    if record.disk_bytes.is_some() {
        return Ok(boxes.remove_disk(&record.name)?);
    }
    let message = format!("{} has no disk, so nothing of its root is kept", record.name);
    Err(Failure::new((ErrorCode::Usage, "leave it out"), shown(&message)))
}
