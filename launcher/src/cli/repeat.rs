//! The run of a box, again: its options, its box, and the command that starts it.

use std::path::PathBuf;
use std::process::Command;

use box_cache::Held;
use box_contract::ErrorCode;
use box_digest::Digest;
use box_layout::OpenBox;
use boxlaunch::boxes::Record;
use cli_common::store::{BoxArgument, StoreOption};
use safe_text::shown;

use super::error::{Failure, usage};
use super::found;
use super::paths::SELF;
use super::run::{RunArgs, options_of};
use super::secrets::GivenSecret;
use super::stored::PROGRAM;
use super::terminal::is_quiet;

/// Returns the error of a run that cannot be repeated.
pub(super) fn not_repeatable(name: &str, reason: &str, help: &str) -> Failure {
    let message = format!("the run of {name} cannot be repeated: {reason}");
    Failure::new((ErrorCode::NotRepeatable, shown(help)), shown(&message))
}

/// Returns the recorded options of a run that can be repeated.
pub(super) fn options(record: &Record) -> Result<Vec<String>, Failure> {
    let name = &record.name;
    if record.task.is_some() {
        let reason = "its agent has a task, which would begin again";
        return Err(not_repeatable(name, reason, "run the box anew, when its task is done"));
    }
    options_of(record).ok_or_else(|| {
        let reason = "it was not started with `run --detach`, or an older boxlaunch has started it";
        not_repeatable(name, reason, "run the box anew, with --detach")
    })
}

/// Parses the recorded options of the run of the box `name`.
pub(super) fn parsed(name: &str, options: &[String]) -> Result<RunArgs, Failure> {
    RunArgs::of_options(name, options).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().next().unwrap_or_default();
        let reason = format!("its options are of another version: {reason}");
        not_repeatable(name, &reason, "run the box anew")
    })
}

/// Checks that this process can read the values that the record lacks.
pub(super) fn check_sources(run: &RunArgs) -> Result<(), Failure> {
    for secret in &run.given.secrets {
        if let Some(name) = GivenSecret::parse(secret)?.of_stdin() {
            let message =
                format!("the secret {name} came from standard input, which is not there any more");
            let help = "run the box anew with `--secret NAME=file:PATH` or `env:VARIABLE`";
            return Err(Failure::new((ErrorCode::NotRepeatable, help), message));
        }
    }
    let Some(unset) = run.given.env.iter().find_map(|it| it.unset()) else { return Ok(()) };
    let message = format!(
        "the value of the variable {unset} was not recorded, because it looks like a secret"
    );
    Err(usage(&message, &format!("run `export {unset}=…` first")))
}

/// The box of a record, found again. The store keeps it until this value is dropped.
pub(super) struct Found {
    /// How to name the box: by its digest or, if no store has it, by its directory.
    pub(super) subject: BoxArgument,
    pub(super) opened: OpenBox,
    _held: Option<Held>,
}

/// Finds the box of a record.
///
/// # Errors
/// If neither the store nor its directory has the box any more.
pub(super) fn box_of(record: &Record, store: &StoreOption) -> Result<Found, Failure> {
    let Record { digest, directory, name, .. } = record;
    if let Some(found) = exactly(*digest, directory, store) {
        return Ok(found);
    }
    let message = format!(
        "the box of {name} could not be started again: neither the store nor {directory} has {digest} any more"
    );
    let help = "build or pull that box again, or run another one under a new name";
    Err(Failure::new((ErrorCode::BoxNotFound, help), shown(&message)))
}

/// Finds the box with this digest in a store or in a directory.
pub(super) fn exactly(digest: Digest, directory: &str, store: &StoreOption) -> Option<Found> {
    let pinned = format!("{directory}@{digest}");
    [digest.to_string(), pinned].map(PathBuf::from).into_iter().find_map(|reference| {
        let subject = BoxArgument { reference, store: store.clone() };
        let (opened, held) = found::open_to_run(subject.find(&PROGRAM).ok()?).ok()?;
        Some(Found { subject, opened, _held: held })
    })
}

/// Returns the command that starts a box, detached, with recorded options.
pub(super) fn command(
    subject: &BoxArgument,
    name: &str,
    options: &[String],
    as_json: bool,
) -> Command {
    let mut start = Command::new(SELF);
    start.args(["run", "--detach", "--name", name]).args(options);
    start.args(as_json.then_some("--json")).args(is_quiet().then_some("--quiet"));
    if let Some(store) = &subject.store.store {
        start.arg("--store").arg(store);
    }
    start.arg(&subject.reference);
    start
}
