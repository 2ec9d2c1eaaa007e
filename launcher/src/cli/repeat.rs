//! The run of a box, again: its options, its box, and the command that starts it.

use std::path::PathBuf;
use std::process::Command;

use box_cache::Held;
use box_contract::ErrorCode;
use boxlaunch::boxes::Record;
use cli_common::store::{BoxArgument, StoreOption};
use safe_text::shown;

use super::error::{Failure, usage};
use super::found;
use super::paths::SELF;
use super::run::RunArgs;
use super::secrets::GivenSecret;
use super::stored::PROGRAM;
use super::terminal::is_quiet;

/// Returns the error of a run that cannot be repeated.
pub(super) fn not_repeatable(name: &str, reason: &str, help: &str) -> Failure {
    let message = format!("the run of {name} cannot be repeated: {reason}");
    Failure::new((ErrorCode::NotRepeatable, shown(help)), shown(&message))
}

/// Parses the recorded options of the run of the box `name`.
pub(super) fn parsed(name: &str, options: &[String]) -> Result<RunArgs, Failure> {
    RunArgs::of_options(options).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().next().unwrap_or_default();
        let reason = format!("its options are of another version: {reason}");
        not_repeatable(name, &reason, "run the box anew")
    })
}

/// Checks that this process can read the values that the record lacks.
pub(super) fn check_sources(run: &RunArgs) -> Result<(), Failure> {
    for secret in &run.secrets {
        if let Some(name) = GivenSecret::parse(secret)?.of_stdin() {
            let message =
                format!("the secret {name} came from standard input, which is not there any more");
            let help = "run the box anew with `--secret NAME=file:PATH` or `env:VARIABLE`";
            return Err(Failure::new((ErrorCode::NotRepeatable, help), message));
        }
    }
    let Some(unset) = run.env.iter().find_map(|it| it.unset()) else { return Ok(()) };
    let message = format!(
        "the value of the variable {unset} was not recorded, because it looks like a secret"
    );
    Err(usage(&message, &format!("run `export {unset}=…` first")))
}

/// Returns how to name the box of a record: by its digest or, if no store has it, by its directory. The store keeps the box
/// until the returned [`Held`] is dropped.
///
/// # Errors
/// If the box is not found any more.
pub(super) fn box_of(
    record: &Record,
    store: &StoreOption,
) -> Result<(BoxArgument, Option<Held>), Failure> {
    let Record { digest, directory, name, .. } = record;
    let pinned = format!("{directory}@{digest}");
    for reference in [digest.to_string(), pinned].map(PathBuf::from) {
        let subject = BoxArgument { reference, store: store.clone() };
        let found = subject.find(&PROGRAM);
        if let Some((_, held)) = found.ok().and_then(|it| found::open_to_run(it).ok()) {
            return Ok((subject, held));
        }
    }
    let message =
        format!("the box of {name} could not be started again: {directory} has another one by now");
    let help = "run the new box; build new versions into other directories, or into the store";
    Err(Failure::new((ErrorCode::BoxNotFound, help), shown(&message)))
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
