//! `boxlaunch events`: prints the events of boxes.

use std::io;
use std::time::{Duration, Instant};

use boxlaunch::boxes::{BoxEvent, Boxes, RecordWatch, since_epoch};
use safe_text::shown;

use super::error::Failure;
use super::paths;
use super::since::{Since, since};
use super::terminal::{json_line, pass_on, pause};

/// The interval between two looks at the records.
const LOOK: Duration = Duration::from_millis(100);
/// The interval between two searches for killed supervisors. It is longer than [`LOOK`] because other commands wait during a
/// search.
const SWEEP: Duration = Duration::from_secs(1);

/// Shows the events of all boxes, until it is interrupted.
///
/// The events: `start`, the start of a box has begun; `ready`, its agent is ready; `updated`, the box has replaced another one,
/// whose name it has now; `connection`, a connection through the egress filter or a request to a service has ended or was
/// denied, a connection to a socket of the host has failed, or the SSH agent was asked for a signature; `restart`, the box has
/// failed, and is started again; `business-end`, the business application's own program has ended with another status than
/// before; `end`, the box has ended; `remove`, its record was removed. Reads the boxes' records ten times a second.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch events
  boxlaunch events --since 1h --json | jq 'select(.event == \"end\")'")]
pub(crate) struct EventsArgs {
    /// Begin with the past events since then: `90s`, `10m`, `2h` or `1d` ago, or a time in seconds since 1970.
    #[arg(long, value_name = "TIME", value_parser = since, allow_hyphen_values = true)]
    since: Option<Since>,
    /// Print one JSON object for each event: time_ms, event, name, box, status, error, and for a connection its fields.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn events(args: &EventsArgs) -> Result<u8, Failure> {
    let now = since_epoch();
    let since_ms = args.since.map_or(now, |since| since.time_ms(now));
    let (mut watch, past) = RecordWatch::new(Boxes::new(&paths::state()?), since_ms)?;
    past.iter().try_for_each(|event| show(event, args))?;
    let mut swept = Instant::now();
    loop {
        pause(LOOK)?;
        let is_due = swept.elapsed() >= SWEEP;
        if is_due {
            swept = Instant::now();
        }
        watch.look(is_due)?.iter().try_for_each(|event| show(event, args))?;
    }
}

fn show(event: &BoxEvent, args: &EventsArgs) -> Result<(), Failure> {
    let line = if args.json { json_line(event)? } else { line(event) };
    pass_on(&mut io::stdout(), line.as_bytes())
}

/// Returns an event as a line of text.
fn line(event: &BoxEvent) -> String {
    let (seconds, kind) = (event.time_ms / 1000, event.event.name());
    let status = event.status.map(|status| format!(" with {status}")).unwrap_or_default();
    let from = event.from.map(|digest| format!(" from {digest} to {}", event.digest));
    let from = from.unwrap_or_default();
    let reason = event.error.as_deref().or_else(|| Some(event.stopped_by?.reason()));
    let error = reason.map(|reason| format!(": {}", shown(reason))).unwrap_or_default();
    let connection = event.connection.as_ref();
    let connection = connection.map(|it| shown(&format!(" {} {it}", it.component.name())));
    let connection = connection.unwrap_or_default();
    format!(
        "{seconds}.{:03} {kind} {}{from}{status}{error}{connection}\n",
        event.time_ms % 1000,
        event.name
    )
}
