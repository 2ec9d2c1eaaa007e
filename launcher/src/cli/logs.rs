//! `boxlaunch logs`: what the agent of a box, or its business application, has written.

use std::io;
use std::time::Duration;

use box_image::ComponentName;
use box_image::wire::Stream;
use boxlaunch::LaunchError;
use boxlaunch::boxes::{Boxes, Logged, Record, State, since_epoch};
use serde_json::json;

use super::error::CommandError;
use super::paths;
use super::run::component_name;
use super::since::{Since, since};
use super::terminal::{json_line, pass_on, pause};

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Shows what the agent of a box, or its business application, has written.
///
/// Its standard error comes out of boxlaunch's. Of a program that writes much, the last four to eight
/// MiB are kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch logs hello
  boxlaunch logs --follow --since 10m hello")]
pub(crate) struct LogsArgs {
    /// The box's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// Wait for more, until the box ends.
    #[arg(short, long)]
    follow: bool,
    /// Only what was written since then: `90s`, `10m`, `2h` or `1d` ago, or a time in seconds since 1970.
    #[arg(long, value_name = "TIME", value_parser = since, allow_hyphen_values = true)]
    since: Option<Since>,
    /// Whose output: the agent's, or that of the business application's own program (`autostart`).
    #[arg(long = "in", value_parser = component_name(), value_name = "COMPONENT", default_value = "agent")]
    component: ComponentName,
    /// Print one JSON object for each piece of output: time_ms, component, stream and text.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn logs(args: &LogsArgs) -> Result<u8, CommandError> {
    let boxes = Boxes::new(&paths::state()?);
    let mut record = boxes.find(&args.name)?;
    let mut log = boxes.log(&record.name, args.component);
    let since = args.since.map_or(0, |since| since.time_ms(since_epoch()));
    loop {
        let has_ended = record.state == State::Ended;
        while let Some(entry) = log.next_entry().map_err(read_error)? {
            if entry.time_ms >= since {
                show(&entry, args)?;
            }
        }
        if !args.follow || has_ended {
            return Ok(0);
        }
        pause(LOOK)?;
        record = match boxes.find(&args.name) {
            // It was started with --rm, and has ended: what is left is in the open file.
            Err(LaunchError::NoBox(_)) => Record { state: State::Ended, ..record },
            found => found?,
        };
    }
}

pub(super) fn read_error(source: io::Error) -> LaunchError {
    LaunchError::System { action: "read the log", source }
}

fn show(entry: &Logged, args: &LogsArgs) -> Result<(), CommandError> {
    let name = match entry.stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    };
    if args.json {
        let text = String::from_utf8_lossy(&entry.data);
        let line = json_line(&json!({
            "time_ms": entry.time_ms,
            "component": args.component,
            "stream": name,
            "text": text,
        }))?;
        return pass_on(&mut io::stdout(), line.as_bytes());
    }
    match entry.stream {
        Stream::Stdout => pass_on(&mut io::stdout(), &entry.data),
        Stream::Stderr => pass_on(&mut io::stderr(), &entry.data),
    }
}
