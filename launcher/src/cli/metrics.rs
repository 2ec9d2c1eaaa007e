//! `boxlaunch metrics`: figures of boxes for Prometheus.

use std::fmt::Write as _;

use box_contract::exit;
use boxlaunch::boxes::all_users::UserState;
use boxlaunch::boxes::{Boxes, Record, State};
use boxlaunch::host::resources::{MachineUsage, of_child, of_machine};
use nix::unistd::getuid;
use safe_text::shown;

use super::error::Failure;
use super::terminal::print;
use super::{all_users, paths};

/// Prints figures of boxes for Prometheus.
///
/// Prints Prometheus' text format, version 0.0.4: how many boxes were started and how they are, and for each box that has not
/// ended its memory, processor time, start and denied connections. Asks no box, so that no box can delay it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch metrics
  sudo boxlaunch metrics --all-users")]
pub(crate) struct MetricsArgs {
    /// The boxes of all users, for root. Of other users, only state directories in which a box runs are found.
    #[arg(long)]
    all_users: bool,
}

pub(crate) fn metrics(args: &MetricsArgs) -> Result<u8, Failure> {
    let state = paths::state()?;
    let all = if args.all_users { all_users::look()? } else { None };
    let states = if let Some(mut all) = all {
        all.include(getuid().as_raw(), &state);
        let states = all.all();
        all_users::notice_left_out(&all);
        states.into_iter().map(|it| Measured::new(it, usage_of_child)).collect()
    } else {
        let boxes = Boxes::new(&state);
        let (records, starts) = (boxes.all()?, boxes.starts());
        let own = UserState { uid: getuid().as_raw(), state, starts, records };
        vec![Measured::new(own, |record| record.vmm.and_then(of_machine))]
    };
    print(&text(&states))?;
    Ok(exit::DONE)
}

/// Measures the VM of another user's box. The process id in the record is believed only if the supervisor is its parent.
fn usage_of_child(record: &Record) -> Option<MachineUsage> {
    of_child(record.supervisor, record.vmm?)
}

/// A state directory, and what its boxes use.
struct Measured {
    user: String,
    directory: String,
    starts: u64,
    boxes: Vec<(Record, Option<MachineUsage>)>,
}

impl Measured {
    fn new(of: UserState, usage: impl Fn(&Record) -> Option<MachineUsage>) -> Self {
        let measure = |record: Record| {
            let usage = usage(&record);
            (record, usage)
        };
        Self {
            user: all_users::user(of.uid),
            directory: shown(&of.state.to_string_lossy()),
            starts: of.starts,
            boxes: of.records.into_iter().map(measure).collect(),
        }
    }

    /// Returns the labels of a series, with `more` labels between the user's and the directory's.
    fn labels(&self, more: &[(&str, &str)]) -> String {
        let first = ("user", self.user.as_str());
        let last = ("state_directory", self.directory.as_str());
        let all = std::iter::once(&first).chain(more).chain(std::iter::once(&last));
        let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
        all.map(label).collect::<Vec<_>>().join(",")
    }

    /// Counts the boxes in a state.
    fn count(&self, state: &str) -> usize {
        self.boxes.iter().filter(|(record, _)| state_of(record) == state).count()
    }
}

/// The states of `boxlaunch_boxes`.
const STATES: [&str; 4] = ["starting", "running", "ended", "failed"];

fn state_of(record: &Record) -> &'static str {
    match (record.state, &record.error) {
        (State::Starting, _) => "starting",
        (State::Running, _) => "running",
        (State::Ended, None) => "ended",
        (State::Ended, Some(_)) => "failed",
    }
}

/// A figure of a box that has not ended. `None` if it is unknown.
type Figure = fn(&Record, Option<MachineUsage>) -> Option<String>;

/// The series of each box: name, help and figure. A name that ends in `_total` is a counter, any other a gauge.
const SERIES: &[(&str, &str, Figure)] = &[
    (
        "boxlaunch_box_start_time_seconds",
        "When the start of the box began, in seconds since 1970.",
        |it, _| Some(thousandths(it.created_ms)),
    ),
    (
        "boxlaunch_box_ready_seconds",
        "How long the start took until the agent was ready.",
        |it, _| it.phases_ms.map(|it| (it.total / 1e3).to_string()),
    ),
    ("boxlaunch_box_memory_bytes", "Resident memory of the VM.", |_, usage| {
        usage.map(|it| it.memory_bytes.to_string())
    }),
    ("boxlaunch_box_memory_limit_bytes", "Size of the VM's memory.", |it, _| {
        Some((u64::from(it.vm.memory_mib) << 20).to_string())
    }),
    ("boxlaunch_box_cpu_seconds_total", "CPU time of the VM since it began.", |_, usage| {
        usage.map(|it| format!("{}.{:06}", it.cpu_us / 1_000_000, it.cpu_us % 1_000_000))
    }),
    ("boxlaunch_box_restarts_total", "Restarts by `--restart`.", |it, _| {
        Some(it.restarted.as_ref().map_or(0, |it| it.count).to_string())
    }),
    (
        "boxlaunch_box_denied_connections_total",
        "Connections that the box's filter has denied.",
        |it, _| Some(it.denied.to_string()),
    ),
    (
        "boxlaunch_box_oom_killed",
        "Whether the kernel has killed a process of the box for lack of memory.",
        |it, _| Some(u8::from(!it.oom_killed.is_empty()).to_string()),
    ),
];

/// Returns the figures in [the text format](https://prometheus.io/docs/instrumenting/exposition_formats/).
fn text(states: &[Measured]) -> String {
    let mut text = String::new();
    let mut lines = Vec::new();
    for of in states {
        lines.extend(STATES.map(|it| (of.labels(&[("state", it)]), of.count(it).to_string())));
    }
    family(&mut text, "boxlaunch_boxes", "Boxes that have a record.", &lines);
    let starts = states.iter().map(|it| (it.labels(&[]), it.starts.to_string()));
    let help = "Boxes that were started, including those without a record.";
    family(&mut text, "boxlaunch_starts_total", help, &starts.collect::<Vec<_>>());
    for (name, help, figure) in SERIES {
        family(&mut text, name, help, &figures(states, *figure));
    }
    text
}

/// Returns the labels and the value of a figure, for each box that has not ended.
fn figures(states: &[Measured], figure: Figure) -> Vec<(String, String)> {
    let of_state = |of: &Measured| {
        let running = of.boxes.iter().filter(|(record, _)| record.state != State::Ended);
        let line = |(record, usage): &(Record, Option<MachineUsage>)| {
            let digest = record.digest.to_string();
            let labels = of.labels(&[("name", &record.name), ("box", &digest)]);
            Some((labels, figure(record, *usage)?))
        };
        running.filter_map(line).collect::<Vec<_>>()
    };
    states.iter().flat_map(of_state).collect()
}

/// Adds a family of series with their labels and values. Nothing if there is none.
fn family(text: &mut String, name: &str, help: &str, lines: &[(String, String)]) {
    if lines.is_empty() {
        return;
    }
    let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
    // A write to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in lines {
        let _ = writeln!(text, "{name}{{{labels}}} {value}");
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns a number of milliseconds in seconds.
fn thousandths(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(name: &str, more: &Value) -> Record {
        let mut record = json!({
            "name": name, "box": format!("sha256:{}", "0".repeat(64)), "directory": "/hello.box",
            "components": ["agent"], "vm": { "cpus": 1, "memory-mib": 256 }, "state": "running",
            "supervisor": 1, "runtime": "/none", "created_ms": 1_700_000_000_042_u64, "remove": false,
        });
        let fields = more.as_object().unwrap().clone();
        record.as_object_mut().unwrap().extend(fields);
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn each_figure_has_a_series_and_what_is_unknown_has_none() {
        let phases = json!({ "vmm": 1.0, "kernel": 1.0, "init": 1.0, "ready": 1.0, "total": 81.5 });
        let ready = json!({ "phases_ms": phases, "denied": 3, "oom_killed": ["agent"] });
        let usage = Some(MachineUsage { memory_bytes: 12_288, cpu_us: 1_500_000 });
        let boxes = vec![
            (record("ready", &ready), usage),
            (record("starting", &json!({ "state": "starting" })), None),
            (record("ended", &json!({ "state": "ended" })), None),
            (record("failed", &json!({ "state": "ended", "error": "no" })), None),
        ];
        let me = Measured { user: "me".to_owned(), directory: "/s".to_owned(), starts: 7, boxes };
        insta::assert_snapshot!(text(&[me]));
        assert_eq!(text(&[]), "");
    }

    /// A line that another user could add would be a figure of his choice.
    #[test]
    fn no_text_of_another_user_leaves_its_label() {
        let hostile = "a\"} 1\nboxlaunch_boxes{user=\"root\\";
        let boxes = vec![(record(hostile, &json!({})), None)];
        let user = hostile.to_owned();
        let of = Measured { user, directory: hostile.to_owned(), starts: 0, boxes };
        let text = text(&[of]);
        let label = r#"="a\"} 1\nboxlaunch_boxes{user=\"root\\""#;
        let lines: Vec<_> = text.lines().filter(|it| !it.starts_with('#')).collect();
        assert_eq!(lines.len(), 10, "{text}");
        for line in lines {
            let counted = line.matches(label).count();
            assert!(counted == 2 || counted == 3 && line.contains("name="), "{line}");
        }
    }
}
