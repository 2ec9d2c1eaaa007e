//! `boxlaunch stats`: the resources that boxes use.

use box_contract::exit;
use box_contract::wire::{ComponentUsage, Follow};
use boxlaunch::boxes::{Boxes, Record, State};
use boxlaunch::client::{Client, ClientError};
use boxlaunch::host::resources::{MachineUsage, of_machine};
use boxlaunch::streams::StreamError;
use safe_text::{readable, shown};
use serde_json::{Value, json};
use vmm::signals::StopSignals;

use super::error::Failure;
use super::launch_error::LaunchError;
use super::paths;
use super::terminal::{aligned, json_line, notice, print};

/// Shows the memory, processor time, processes and disk space that boxes use.
///
/// Prints a line for the VM of each box, measured by the host, and a line for each component, measured by the guest.
/// Processor times are since the start of the box. The disk of a box is one for all its components; without one, the files of a component are part of its memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch stats
  watch boxlaunch stats hello
  boxlaunch stats --json hello | jq '.boxes[0].components'")]
pub(crate) struct StatsArgs {
    /// The boxes' names [default: all running boxes].
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Accepted for compatibility with docker; the figures are always a single sample.
    #[arg(long, hide = true)]
    no_stream: bool,
    /// Print one JSON object with the figures of the boxes.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The resources that a box uses.
struct Figures {
    record: Record,
    machine: Option<MachineUsage>,
    /// `None` if the guest does not answer, refuses, or is too old.
    components: Option<Vec<ComponentUsage>>,
}

pub(crate) fn stats(args: &StatsArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let signals = StopSignals::block()?;
    let (mut figures, mut code) = (Vec::new(), exit::DONE);
    if args.names.is_empty() {
        figures = all_running(&boxes, &signals)?;
    }
    for name in &args.names {
        match boxes.find(name).map_err(LaunchError::from).and_then(|it| Ok(measure(it, &signals)?))
        {
            Ok(measured) => figures.push(measured),
            // With `--json`, prints one object: the figures or the error.
            Err(error) if args.json => return Err(error.into()),
            Err(error) => {
                let error = Failure::from(error);
                notice(&error.text());
                code = error.exit;
            }
        }
    }
    if figures.iter().any(|it| it.components.is_none()) {
        code = exit::FAILED;
    }
    if figures.is_empty() && !args.names.is_empty() {
        return Ok(code);
    }
    print(&if args.json {
        let boxes: Vec<_> = figures.iter().map(Figures::json).collect();
        json_line(&json!({ "boxes": boxes }))?
    } else {
        table(&figures)
    })?;
    Ok(code)
}

/// Measures all running boxes, except boxes that end meanwhile.
fn all_running(boxes: &Boxes, signals: &StopSignals) -> Result<Vec<Figures>, LaunchError> {
    let running = boxes.all()?.into_iter().filter(|it| it.state == State::Running);
    let measured = running.map(|record| match measure(record, signals) {
        Err(ClientError::NotRunning(_) | ClientError::BoxEnded(_)) => Ok(None),
        measured => Ok(Some(measured?)),
    });
    measured.filter_map(Result::transpose).collect()
}

fn measure(record: Record, signals: &StopSignals) -> Result<Figures, ClientError> {
    let machine = record.vmm.and_then(of_machine);
    let mut components = match Client::connect(&record, Follow::Nothing, signals)?.measure() {
        Ok(usage) => usage.components,
        // Reports these errors as a notice, because the figures of other boxes do not depend on this guest.
        Err(
            error @ (ClientError::NoAnswer
            | ClientError::Stream(StreamError::OlderBox(_))
            | ClientError::Refused { .. }),
        ) => {
            notice(&unmeasured(&record.name, &error));
            return Ok(Figures { record, machine, components: None });
        }
        Err(error) => return Err(error),
    };
    // The guest is not trusted: keeps one entry for each component that the box really has.
    components.sort_by_key(|it| it.component);
    components.dedup_by_key(|it| it.component);
    components.retain(|it| record.components.contains(&it.component));
    Ok(Figures { record, machine, components: Some(components) })
}

/// Returns the notice that a box has no figures of its components. Control characters are replaced, because `error` may contain
/// text of the guest.
fn unmeasured(name: &str, error: &ClientError) -> String {
    shown(&format!("boxlaunch: {name}: {error}")) + "\n"
}

impl Figures {
    fn json(&self) -> Value {
        json!({
            "name": self.record.name,
            "machine": self.machine,
            "components": self.components,
            "phases_ms": self.record.phases_ms,
        })
    }

    fn rows(&self) -> Vec<[String; 6]> {
        let name = &self.record.name;
        let none = || "-".to_owned();
        let machine = self.machine.map(|it| {
            let (memory, time) = (readable(it.memory_bytes), seconds(it.cpu_us));
            [name.clone(), "machine".to_owned(), memory, time, none(), none()]
        });
        let component = |usage: &ComponentUsage| {
            let of = |taken, most| format!("{} of {}", readable(taken), readable(most));
            let kills = if usage.oom_kills == 0 {
                String::new()
            } else {
                format!(", {} killed for memory", usage.oom_kills)
            };
            [
                name.clone(),
                usage.component.name().to_owned(),
                of(usage.memory_bytes, usage.memory_max_bytes) + &kills,
                seconds(usage.cpu_us),
                format!("{} of {}", usage.pids, usage.pids_max),
                of(usage.disk_bytes, usage.disk_max_bytes),
            ]
        };
        machine.into_iter().chain(self.components.iter().flatten().map(component)).collect()
    }
}

fn table(figures: &[Figures]) -> String {
    let head = ["NAME", "PART", "MEMORY", "CPU TIME", "PROCESSES", "DISK"].map(str::to_owned);
    let rows = figures.iter().flat_map(Figures::rows);
    aligned(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

/// Returns a duration in seconds with two decimal places, for example `1.50 s`.
fn seconds(microseconds: u64) -> String {
    let hundredths = microseconds / 10_000;
    format!("{}.{:02} s", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_guest_moves_no_terminal() {
        let (step, reason) =
            ("measure\u{1b}[2J".to_owned(), "no\r\nboxlaunch: all is well".to_owned());
        let text = unmeasured("hello", &ClientError::Refused { step, reason });
        assert!(text.starts_with("boxlaunch: hello: ") && text.ends_with('\n'), "{text}");
        assert_eq!(text.chars().filter(|it| it.is_control()).count(), 1, "{text}");
    }
}
