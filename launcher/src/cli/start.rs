//! `boxlaunch start` and `restart`: boxes that have ended run again, with what they have written.

use std::time::Duration;

use box_contract::exit;
use boxlaunch::boxes::{Boxes, State};
use cli_common::store::StoreOption;
use serde_json::{Value, json};
use vmm::signals::StopSignals;

use super::detach;
use super::error::Failure;
use super::lifecycle::{each, end};
use super::paths;
use super::repeat::{box_of, check_sources, command, not_repeatable, parsed};
use super::run::{options_of, seconds};
use super::terminal::{json_line, print};

/// Starts boxes again that were stopped or have ended.
///
/// A box that was started with `run --detach` keeps its options, its published ports, and its disk: the files that its programs
/// wrote to their roots. A box that runs already is left as it is.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  boxlaunch start hello\n  boxlaunch stop hello && boxlaunch start hello"
)]
pub(crate) struct StartArgs {
    /// The boxes' names.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Print one JSON object instead.
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
    /// How many seconds programs may take to end before they are killed.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = seconds(0), allow_negative_numbers = true)]
    grace: u32,
}

/// Runs `boxlaunch start`.
pub(crate) fn start(args: &StartArgs) -> Result<u8, Failure> {
    args.each(|_, _| Ok(()))
}

/// Runs `boxlaunch restart`.
pub(crate) fn restart(args: &RestartArgs) -> Result<u8, Failure> {
    let grace = Duration::from_secs(args.grace.into());
    args.start.each(|boxes, name| {
        let record = boxes.find(name)?;
        // Nothing is stopped that could not be started again.
        args.start.check(boxes, name)?;
        if record.state != State::Ended {
            end(boxes, &record, grace)?;
        }
        Ok(())
    })
}

impl StartArgs {
    /// Calls `before` for each box, and starts it.
    fn each(&self, before: impl Fn(&Boxes, &str) -> Result<(), Failure>) -> Result<u8, Failure> {
        let boxes = Boxes::new(&paths::state()?);
        let signals = StopSignals::block()?;
        let mut started = Vec::new();
        let code = each(&self.names, |name| {
            let _alone = boxes.updating(name)?;
            before(&boxes, name)?;
            if self.start(&boxes, name, &signals)? {
                started.push(name.to_owned());
            }
            Ok(())
        })?;
        if self.json {
            let find = |name: &String| boxes.find(name).ok();
            let records: Vec<_> = started.iter().filter_map(find).collect();
            print(&json_line(&json!({ "boxes": records }))?)?;
            return Ok(code);
        }
        print(&started.iter().map(|name| format!("{name}\n")).collect::<String>())?;
        Ok(if started.len() < self.names.len() && code == exit::DONE { exit::FAILED } else { code })
    }

    /// Checks that a box can be started again.
    fn check(&self, boxes: &Boxes, name: &str) -> Result<Vec<String>, Failure> {
        let record = boxes.find(name)?;
        let Some(options) = options_of(&record) else {
            let reason = "it was not started with `run --detach`, or by an older boxlaunch";
            return Err(not_repeatable(name, reason, "run the box anew, with --detach"));
        };
        if record.remove {
            let reason = "it was started with --rm, so nothing of it is kept";
            return Err(not_repeatable(name, reason, "run the box anew, without --rm"));
        }
        check_sources(&parsed(name, &options)?)?;
        box_of(&record, &self.store)?;
        Ok(options)
    }

    /// Starts a box, unless it runs. Returns whether it runs now; otherwise the error was printed.
    fn start(&self, boxes: &Boxes, name: &str, signals: &StopSignals) -> Result<bool, Failure> {
        let record = boxes.find(name)?;
        if record.state != State::Ended {
            return Ok(true);
        }
        let options = self.check(boxes, name)?;
        let (subject, _held) = box_of(&record, &self.store)?;
        let mut start = command(&subject, name, &options, self.json);
        start.arg("--again");
        let (output, code) = detach::follow(&mut start, signals)?;
        let is_started = code() == exit::DONE;
        if self.json && !is_started {
            let report: Value = serde_json::from_slice(&output).unwrap_or_default();
            print(&json_line(&report)?)?;
        }
        Ok(is_started)
    }
}
