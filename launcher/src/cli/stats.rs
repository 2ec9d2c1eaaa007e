//! `boxlaunch stats`: the resources that boxes use.

use box_image::text::readable;
use box_image::wire::{ComponentUsage, Follow, Usage};
use boxlaunch::LaunchError;
use boxlaunch::boxes::{Boxes, Record, State};
use boxlaunch::client::Client;
use boxlaunch::signals::StopSignals;
use boxlaunch::usage::{MachineUsage, of_machine};
use serde_json::{Value, json};

use super::error::CommandError;
use super::paths;
use super::terminal::{aligned, json_line, print};

/// Shows the memory, processor time, processes and scratch space that boxes use.
///
/// For each box there is a line of its virtual machine as the host counts it, and one of each component as the guest
/// does. Times are since the start. The scratch space of a component is part of its memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch stats
  watch boxlaunch stats hello
  boxlaunch stats --json hello | jq '.boxes[0].components'")]
pub(crate) struct StatsArgs {
    /// The boxes' names [default: all that run].
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print one JSON object with the figures of the boxes.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The figures of a box.
struct Figures {
    record: Record,
    machine: Option<MachineUsage>,
    components: Vec<ComponentUsage>,
}

pub(crate) fn stats(args: &StatsArgs) -> Result<u8, CommandError> {
    let boxes = Boxes::new(&paths::state()?);
    let signals = StopSignals::block()?;
    let figures = if args.names.is_empty() {
        all_running(&boxes, &signals)?
    } else {
        let of = |name: &String| measure(boxes.find(name)?, &signals);
        args.names.iter().map(of).collect::<Result<Vec<_>, _>>()?
    };
    print(&if args.json {
        let boxes: Vec<_> = figures.iter().map(Figures::json).collect();
        json_line(&json!({ "boxes": boxes }))?
    } else {
        table(&figures)
    })?;
    Ok(0)
}

/// Measures all boxes that run, without those that end meanwhile.
fn all_running(boxes: &Boxes, signals: &StopSignals) -> Result<Vec<Figures>, LaunchError> {
    let running = boxes.all()?.into_iter().filter(|it| it.state == State::Running);
    let measured = running.map(|record| match measure(record, signals) {
        Err(LaunchError::NotRunning(_) | LaunchError::BoxEnded(_)) => Ok(None),
        measured => measured.map(Some),
    });
    measured.filter_map(Result::transpose).collect()
}

fn measure(record: Record, signals: &StopSignals) -> Result<Figures, LaunchError> {
    let Usage { mut components } = Client::connect(&record, Follow::Nothing, signals)?.measure()?;
    // The guest reports this: keep one entry for each component that the box really has.
    components.sort_by_key(|it| it.component);
    components.dedup_by_key(|it| it.component);
    components.retain(|it| record.components.contains(&it.component));
    let machine = record.vmm.and_then(of_machine);
    Ok(Figures { record, machine, components })
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
        let component = |it: &ComponentUsage| {
            let of = |taken, most| format!("{} of {}", readable(taken), readable(most));
            let kills = if it.oom_kills == 0 {
                String::new()
            } else {
                format!(", {} killed for memory", it.oom_kills)
            };
            [
                name.clone(),
                it.component.name().to_owned(),
                of(it.memory_bytes, it.memory_max_bytes) + &kills,
                seconds(it.cpu_us),
                format!("{} of {}", it.pids, it.pids_max),
                of(it.disk_bytes, it.disk_max_bytes),
            ]
        };
        machine.into_iter().chain(self.components.iter().map(component)).collect()
    }
}

fn table(figures: &[Figures]) -> String {
    let head = ["NAME", "OF", "MEMORY", "CPU TIME", "PROCESSES", "SCRATCH"].map(str::to_owned);
    let rows = figures.iter().flat_map(Figures::rows);
    aligned(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

/// Writes a time in seconds.
fn seconds(microseconds: u64) -> String {
    let hundredths = microseconds / 10_000;
    format!("{}.{:02} s", hundredths / 100, hundredths % 100)
}
