//! `boxlaunch logs`: what the agent of a box, or its business application, has written.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use box_image::ComponentName;
use box_image::wire::Stream;
use boxlaunch::LaunchError;
use boxlaunch::boxes::{Boxes, Logged, Record, State, since_epoch};
use serde_json::json;

use super::error::CommandError;
use super::paths;
use super::run::component_name;
use super::terminal::{json_line, printed};

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
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,
    /// Whose output: the agent's, or that of the business application's own program (`autostart`).
    #[arg(long = "in", value_parser = component_name(), value_name = "COMPONENT", default_value = "agent")]
    component: ComponentName,
    /// Print one JSON object for each piece of output: time_ms, component, stream and text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// So many milliseconds ago.
    Ago(u64),
    /// At this time, in milliseconds since 1970.
    At(u64),
}

impl Since {
    const fn time_ms(self, now: u64) -> u64 {
        match self {
            Self::Ago(ms) => now.saturating_sub(ms),
            Self::At(ms) => ms,
        }
    }
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
        sleep(LOOK);
        record = match boxes.find(&args.name) {
            // It was started with --rm, and has ended: what is left is in the open file.
            Err(LaunchError::NoBox(_)) => Record { state: State::Ended, ..record },
            found => found?,
        };
    }
}

fn read_error(source: io::Error) -> LaunchError {
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
        return written(&mut io::stdout(), line.as_bytes());
    }
    match entry.stream {
        Stream::Stdout => written(&mut io::stdout(), &entry.data),
        Stream::Stderr => written(&mut io::stderr(), &entry.data),
    }
}

/// Writes a piece of the log; a reader that has had enough ends this as it ends any program.
fn written(to: &mut impl io::Write, data: &[u8]) -> Result<(), CommandError> {
    match to.write_all(data).and_then(|()| to.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(LaunchError::Output(error).into())
        }
        result => printed(result),
    }
}

/// Reads a time of the command line.
fn since(text: &str) -> Result<Since, &'static str> {
    let wrong = "write how long ago, as 90s, 10m, 2h or 1d, or a time in seconds since 1970";
    let digits = text.trim_end_matches(|last: char| last.is_ascii_lowercase());
    let number: u64 = digits.parse().map_err(|_| wrong)?;
    let seconds = match &text[digits.len()..] {
        "" => return number.checked_mul(1000).map(Since::At).ok_or(wrong),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong),
    };
    number.checked_mul(seconds * 1000).map(Since::Ago).ok_or(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_points_or_distances() {
        assert_eq!(since("90s"), Ok(Since::Ago(90_000)));
        assert_eq!(since("2h"), Ok(Since::Ago(7_200_000)));
        assert_eq!(since("1700000000"), Ok(Since::At(1_700_000_000_000)));
        for wrong in
            ["", "s", "-1s", "1w", "1.5h", "10 m", "99999999999999999999", "9999999999999999999d"]
        {
            assert!(since(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Since::Ago(5).time_ms(3), 0);
    }
}
