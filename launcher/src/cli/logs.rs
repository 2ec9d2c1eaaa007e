//! `boxlaunch logs`: prints the output of the agent or of the business application, and the full log of a run.

use std::io::{self, Stderr, Stdout};
use std::time::Duration;

use box_contract::ComponentName;
use box_contract::age::utc;
use box_contract::wire::Stream;
use boxlaunch::boxes::{
    Boxes, Happened, KeptTrajectory, Logged, Record, RecordError, RunEntry, RunLog, State,
    since_epoch,
};
use host_fs::OsError;
use host_fs::known::Identity;
use safe_text::ForeignWriter;
use serde_json::{Value, json};

use super::environment::record_at;
use super::error::Failure;
use super::memory::out_of_memory;
use super::paths;
use super::since::{Since, since};
use super::terminal::{foreign, json_line, notice, pass_on, pause};

/// The interval between two looks at a followed log.
const LOOK: Duration = Duration::from_millis(100);

/// Shows the output of a box's agent or business application, or with --all everything that is kept of the run.
///
/// The program's standard error goes to the standard error of boxlaunch. If a program writes much, only the last four to
/// eight MiB are kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch logs hello
  boxlaunch logs --follow --since 10m hello
  boxlaunch logs --tail 20 --timestamps hello
  boxlaunch logs --all hello | jq 'select(.kind == \"command\").argv'")]
pub(crate) struct LogsArgs {
    /// The box's name [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Wait for more output, until the box ends.
    #[arg(short, long)]
    follow: bool,
    /// Only show output since then: `90s`, `10m`, `2h` or `1d` ago, or a time in seconds since 1970.
    #[arg(long, value_name = "TIME", value_parser = since, allow_hyphen_values = true)]
    since: Option<Since>,
    /// Only show the last N lines, and with --follow what comes after them.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "all")]
    tail: Option<usize>,
    /// Begin each line with its time in UTC, as 2026-01-31T12:00:00.000Z.
    #[arg(short, long, conflicts_with_all = ["all", "json"])]
    timestamps: bool,
    /// The component whose output is shown: the agent, or the business application's own program (`autostart`).
    #[arg(long, visible_alias = "in", value_parser = cli_common::component_name(), value_name = "COMPONENT", default_value = "agent")]
    component: ComponentName,
    /// Show everything that is kept of the run, in the order of time. Each line is a JSON object with time_ms, component and
    /// kind, for output, a connection or an event; the last lines are the trajectories that the agent has left. Events and
    /// trajectories need `logs` in the Boxfile.
    #[arg(short, long, visible_alias = "task", conflicts_with = "component")]
    all: bool,
    /// Print one JSON object for each piece of output: time_ms, component, stream and text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the output unchanged, also to a terminal. By default, a terminal gets text and colours, but no other control
    /// sequences.
    #[arg(long, conflicts_with_all = ["all", "json"])]
    raw: bool,
}

pub(crate) fn logs(args: &LogsArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let record = record_at(&boxes, args.name.as_deref())?;
    let since = args.since.map_or(0, |since| since.time_ms(since_epoch()));
    if args.all {
        return show_run(boxes.run_log(&record.name), since, |each| {
            follow(&boxes, record, args, each).map(drop)
        });
    }
    let name = record.name.clone();
    let mut log = boxes.log(&name, args.component);
    let mut to = Streams::new(args.raw, args.timestamps);
    let mut tail = args.tail;
    let last = follow(&boxes, record, args, &mut || {
        // Only the first look is at what was written before.
        let mut before = tail.take().map(|lines| (lines, Vec::new()));
        while let Some(entry) = log.next_entry().map_err(read_error)? {
            match &mut before {
                _ if entry.time_ms < since => {}
                Some((_, entries)) => entries.push(entry),
                None => show(&entry, args, &mut to)?,
            }
        }
        let before = before.map(|(lines, entries)| last_lines(entries, lines));
        before.into_iter().flatten().try_for_each(|entry| show(&entry, args, &mut to))
    })?;
    let line_end = if to.in_line.stderr { "\n" } else { "" };
    drop(to);
    if last.lacked_memory(args.component) && !args.json {
        let limit = last.memory_limits.get(&args.component).copied();
        notice(&format!("{line_end}{}", out_of_memory(args.component, limit)));
    }
    Ok(0)
}

/// Calls `each` once, or with `--follow` repeatedly until the box has ended. Returns the last record of the box.
fn follow(
    boxes: &Boxes,
    mut record: Record,
    args: &LogsArgs,
    each: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<Record, Failure> {
    loop {
        let has_ended = record.state == State::Ended;
        each()?;
        if !args.follow || has_ended {
            return Ok(record);
        }
        pause(LOOK)?;
        record = match boxes.find(&record.name) {
            // The box was started with `--rm` and has ended. The open log file still has the remaining lines.
            Err(RecordError::NoBox(_)) => Record { state: State::Ended, ..record },
            found => found?,
        };
    }
}

/// Returns the last lines of the output. The pieces of both streams count as one text.
pub(super) fn last_lines(mut entries: Vec<Logged>, lines: usize) -> Vec<Logged> {
    if lines == 0 {
        return Vec::new();
    }
    let (mut ends, mut is_last) = (0, true);
    for at in (0..entries.len()).rev() {
        for (offset, byte) in entries[at].data.iter().enumerate().rev() {
            // The line end at the very end begins no further line.
            ends += usize::from(*byte == b'\n' && !is_last);
            is_last = false;
            if ends == lines {
                entries[at].data.drain(..=offset);
                return entries.split_off(at);
            }
        }
    }
    entries
}

/// Prints the entries of a run's log since the time `since`, and then the trajectories since that time.
fn show_run(
    mut log: RunLog,
    since: u64,
    follow: impl FnOnce(&mut dyn FnMut() -> Result<(), Failure>) -> Result<(), Failure>,
) -> Result<u8, Failure> {
    follow(&mut || {
        while let Some(entry) = log.next_entry().map_err(read_error)? {
            if entry.time_ms >= since {
                print_line(&run_line(entry))?;
            }
        }
        Ok(())
    })?;
    let kept = log.trajectories().map_err(read_error)?;
    kept.into_iter()
        .filter(|it| it.time_ms >= since)
        .try_for_each(|it| print_line(&trajectory_line(it)))?;
    Ok(0)
}

/// Returns an entry of a run's log as JSON.
fn run_line(entry: RunEntry) -> Value {
    let (kind, mut line) = match entry.what {
        Happened::Output(logged) => ("output", of_output(&logged)),
        Happened::Connection(decision) => ("connection", json!({ "connection": decision })),
        Happened::Event(event) => (event.kind.name(), json!(event)),
    };
    line["time_ms"] = json!(entry.time_ms);
    line["component"] = json!(entry.component);
    line["kind"] = json!(kind);
    line
}

/// Returns a trajectory with its content: as JSON if it parses, else as text.
fn trajectory_line(kept: KeptTrajectory) -> Value {
    let KeptTrajectory { time_ms, name, data } = kept;
    let mut line = json!({ "time_ms": time_ms, "component": ComponentName::Agent, "kind": "trajectory", "file": name });
    match serde_json::from_slice::<Value>(&data) {
        Ok(value) => line["trajectory"] = value,
        Err(_) => line["text"] = json!(String::from_utf8_lossy(&data)),
    }
    line
}

fn print_line(line: &Value) -> Result<(), Failure> {
    pass_on(&mut io::stdout(), json_line(line)?.as_bytes())
}

pub(super) fn read_error(source: io::Error) -> OsError {
    OsError::System { action: "read the log", source }
}

/// The destinations of a program's output.
struct Streams {
    stdout: ForeignWriter<Stdout>,
    stderr: ForeignWriter<Stderr>,
    in_line: InLine,
    stamps: Option<Stamps>,
}

/// Puts the time before each line.
#[derive(Debug, Default)]
struct Stamps {
    /// The streams whose last line is unfinished.
    unfinished: Vec<Stream>,
}

impl Stamps {
    /// Returns `data` with the time before each line that begins in it.
    fn stamped(&mut self, entry: &Logged) -> Vec<u8> {
        let seconds = i64::try_from(entry.time_ms / 1000).unwrap_or(i64::MAX);
        let time = utc(seconds).replace(' ', "T");
        let stamp = format!("{time}.{:03}Z ", entry.time_ms % 1000);
        let mut stamped = Vec::new();
        for line in entry.data.split_inclusive(|it| *it == b'\n') {
            if !self.unfinished.contains(&entry.stream) {
                stamped.extend_from_slice(stamp.as_bytes());
            }
            stamped.extend_from_slice(line);
            self.unfinished.retain(|it| *it != entry.stream);
            if !line.ends_with(b"\n") {
                self.unfinished.push(entry.stream);
            }
        }
        stamped
    }
}

/// Tracks whether the last line on standard error is unfinished.
#[derive(Debug, Default, PartialEq, Eq)]
struct InLine {
    /// Whether the last line on standard error, or on the destination that both streams share, has no line end.
    stderr: bool,
    /// Whether both streams lead to the same terminal, file or pipe.
    is_one: bool,
}

impl Streams {
    fn new(is_raw: bool, has_times: bool) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let is_one = match (Identity::of_open(&stdout), Identity::of_open(&stderr)) {
            (Ok(stdout), Ok(stderr)) => stdout == stderr,
            _ => false,
        };
        let in_line = InLine { is_one, ..InLine::default() };
        Self {
            stdout: foreign(stdout, is_raw),
            stderr: foreign(stderr, is_raw),
            in_line,
            stamps: has_times.then(Stamps::default),
        }
    }

    fn show(&mut self, entry: &Logged) -> Result<(), Failure> {
        self.in_line.note(entry.stream, &entry.data);
        let stamped = self.stamps.as_mut().map(|it| it.stamped(entry));
        let data = stamped.as_deref().unwrap_or(&entry.data);
        match entry.stream {
            Stream::Stdout => pass_on(&mut self.stdout, data),
            Stream::Stderr => pass_on(&mut self.stderr, data),
        }
    }
}

impl InLine {
    /// Records that `data` was written to `stream`.
    fn note(&mut self, stream: Stream, data: &[u8]) {
        let Some(last) = data.last() else { return };
        if self.is_one || stream == Stream::Stderr {
            self.stderr = *last != b'\n';
        }
    }
}

fn show(entry: &Logged, args: &LogsArgs, to: &mut Streams) -> Result<(), Failure> {
    if args.json {
        let mut line = of_output(entry);
        line["time_ms"] = json!(entry.time_ms);
        line["component"] = json!(args.component);
        return print_line(&line);
    }
    to.show(entry)
}

/// Returns a piece of output as JSON.
fn of_output(entry: &Logged) -> Value {
    let stream = match entry.stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    };
    json!({ "stream": stream, "text": String::from_utf8_lossy(&entry.data) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(pieces: &[(Stream, &str)]) -> Vec<Logged> {
        let pieces = pieces.iter().zip(1_700_000_000_001..);
        let entry = |(&(stream, text), time_ms): (&(Stream, &str), _)| Logged {
            time_ms,
            stream,
            data: text.into(),
        };
        pieces.map(entry).collect()
    }

    #[test]
    fn the_last_lines_are_counted_over_pieces_and_streams() {
        use Stream::{Stderr, Stdout};
        let pieces = [(Stdout, "one\ntw"), (Stdout, "o\n"), (Stderr, "three\n"), (Stdout, "four")];
        let last = |lines| {
            let entries = last_lines(logged(&pieces), lines);
            entries
                .iter()
                .map(|it| String::from_utf8_lossy(&it.data).into_owned())
                .collect::<String>()
        };
        assert_eq!(last(0), "");
        assert_eq!(last(1), "four");
        assert_eq!(last(2), "three\nfour");
        assert_eq!(last(3), "two\nthree\nfour");
        assert_eq!(
            (last(4), last(9)),
            ("one\ntwo\nthree\nfour".into(), "one\ntwo\nthree\nfour".into())
        );
        assert!(last_lines(logged(&[(Stdout, "a\nb\n")]), 1)[0].data == b"b\n");
    }

    #[test]
    fn each_line_has_the_time_at_which_it_began() {
        use Stream::{Stderr, Stdout};
        let mut stamps = Stamps::default();
        let pieces = logged(&[(Stdout, "a\nb"), (Stderr, "x\n"), (Stdout, "c\nd\n")]);
        let text: Vec<u8> = pieces.iter().flat_map(|it| stamps.stamped(it)).collect();
        insta::assert_snapshot!(String::from_utf8(text).unwrap(), @"
        2023-11-14T22:13:20.001Z a
        2023-11-14T22:13:20.001Z b2023-11-14T22:13:20.002Z x
        c
        2023-11-14T22:13:20.003Z d
        ");
    }

    #[test]
    fn a_line_without_an_end_is_known_by_the_stream_on_which_it_is() {
        let after = |is_one: bool, written: &[(Stream, &str)]| {
            let mut in_line = InLine { is_one, ..InLine::default() };
            written.iter().for_each(|(stream, text)| in_line.note(*stream, text.as_bytes()));
            in_line.stderr
        };
        use Stream::{Stderr, Stdout};
        assert!(!after(false, &[(Stdout, "out")]) && after(true, &[(Stdout, "out")]));
        assert!(after(false, &[(Stderr, "x\nerr"), (Stdout, "out\n")]));
        assert!(!after(true, &[(Stderr, "err"), (Stdout, "out\n")]));
        assert!(!after(true, &[(Stderr, "err\n"), (Stdout, "")]));
    }
}
