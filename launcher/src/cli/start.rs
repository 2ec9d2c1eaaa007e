//! `boxlaunch start` and `restart`: boxes that have ended run again, with what they have written.

use box_contract::{ErrorCode, exit};
use box_layout::OpenBox;
use boxlaunch::boxes::{Boxes, Record, State};
use cli_common::store::StoreOption;
use safe_text::shown;
use serde_json::Value;
use vmm::signals::StopSignals;

use super::detach;
use super::environment::names_of;
use super::error::Failure;
use super::lifecycle::{GraceOption, each, end};
use super::paths;
use super::repeat::{box_of, check_sources, command, not_repeatable, options, parsed};
use super::run::{self, RunArgs};
use super::secrets;

/// Starts boxes again that were stopped or have ended.
///
/// A box that was started with `run --detach` keeps its options, its published ports, and its disk: the files that its programs
/// wrote to their roots. A box that runs already is left as it is.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  boxlaunch start hello\n  boxlaunch stop hello && boxlaunch start hello"
)]
pub(crate) struct StartArgs {
    /// The boxes' names [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print one JSON object with the names of the boxes that run.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    store: StoreOption,
}

/// Stops boxes and starts them again, as `boxlaunch start` does. A box that has ended is only started.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch restart hello")]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    pub(crate) start: StartArgs,
    #[command(flatten)]
    grace: GraceOption,
}

/// Runs `boxlaunch start`.
pub(crate) fn start(args: &StartArgs) -> Result<u8, Failure> {
    args.each(|_, _| Ok(()))
}

/// Runs `boxlaunch restart`.
pub(crate) fn restart(args: &RestartArgs) -> Result<u8, Failure> {
    let grace = args.grace.time();
    args.start.each(|boxes, name| {
        let record = boxes.find(name)?;
        // Nothing is stopped that could not be started again.
        args.start.check(&record)?;
        if record.state != State::Ended {
            end(boxes, &record, grace)?;
        }
        Ok(())
    })
}

impl StartArgs {
    /// Returns the arguments of a start without names, whose box is in this store.
    pub(super) fn of(store: &StoreOption) -> Self {
        Self { names: Vec::new(), json: false, store: store.clone() }
    }

    /// Calls `before` for each box, and starts it.
    fn each(&self, before: impl Fn(&Boxes, &str) -> Result<(), Failure>) -> Result<u8, Failure> {
        let boxes = Boxes::new(&paths::state()?);
        let signals = StopSignals::block()?;
        let names = names_of(&boxes, &self.names)?;
        each(&names, self.json, |name| {
            let _alone = boxes.updating(name)?;
            before(&boxes, name)?;
            self.start(&boxes, name, &signals)
        })
    }

    /// Checks that a box can be started again, as far as that is known before it is stopped. Returns its options.
    pub(super) fn check(&self, record: &Record) -> Result<Vec<String>, Failure> {
        let found = box_of(record, &self.store)?;
        check_with(record, &found.opened)
    }

    /// Starts a box, unless it runs.
    pub(super) fn start(
        &self,
        boxes: &Boxes,
        name: &str,
        signals: &StopSignals,
    ) -> Result<(), Failure> {
        let record = boxes.find(name)?;
        if record.state != State::Ended {
            return Ok(());
        }
        let options = self.check(&record)?;
        let found = box_of(&record, &self.store)?;
        let mut start = command(&found.subject, name, &options, self.json);
        start.arg("--again");
        let (output, code) = detach::follow(&mut start, signals)?;
        if code() == exit::DONE {
            return Ok(());
        }
        Err(not_started(name, &output))
    }
}

/// Checks that the run of a record can be repeated with a box, as far as that is known before the start. Returns its options.
pub(super) fn check_with(record: &Record, opened: &OpenBox) -> Result<Vec<String>, Failure> {
    let name = &record.name;
    let options = options(record)?;
    if record.remove {
        let reason = "it was started with --rm, so nothing of it is kept";
        return Err(not_repeatable(name, reason, "run the box anew, without --rm"));
    }
    if record.service {
        let help = "use the service manager, for example `systemctl restart boxbuild@NAME`";
        return Err(not_repeatable(name, "it is a service", help));
    }
    let run = RunArgs { again: true, ..parsed(name, &options)? };
    check_sources(&run)?;
    run::check(&run, opened)?;
    secrets::check_sources(&run, opened.plan())?;
    Ok(options)
}

/// Returns the failure of a box that was not started again. With --json, `output` is the report of the start, with the reason, which
/// has been printed otherwise.
pub(super) fn not_started(name: &str, output: &[u8]) -> Failure {
    let report: Value = serde_json::from_slice(output).unwrap_or_default();
    let error = &report["errors"][0];
    let text = |field: &str| error[field].as_str().unwrap_or_default();
    let code = ErrorCode::named(text("code")).unwrap_or(ErrorCode::NotRunning);
    let reason = match text("message") {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let message = format!("{name} was not started again{reason}");
    let help = "what its programs have written is kept: start it when the reason is gone";
    let help = match text("help") {
        "" => help.to_owned(),
        first => format!("{first}\n{help}"),
    };
    Failure::new((code, help), shown(&message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_start_has_the_code_and_the_help_of_its_reason() {
        let report =
            br#"{"errors":[{"code":"disk-full","message":"no space","help":"make room"}]}"#;
        let failure = not_started("work", report);
        assert!(failure.has(ErrorCode::DiskFull));
        let text = failure.text();
        assert!(text.contains("work was not started again: no space"), "{text}");
        assert!(text.contains("make room") && text.contains("is kept"), "{text}");
        assert!(not_started("work", b"").has(ErrorCode::NotRunning));
    }
}
