//! The demo of examples/hello: starts a box, waits until its agent is ready, and runs a command in it.

mod report;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testbed::{Result, VirtualHost, hello, program};
use tool_output::say;

use super::boot::{self, Places};
use super::{Demo, write_report};
use crate::commands::{Outcome, setup};

/// The time limit of a start under this host's KVM, in seconds.
const PATIENCE: &str = "20";
/// The memory of the demo's box, in MiB.
const GUEST_MIB: u32 = 256;

pub(super) fn run() -> Outcome {
    say::note("the first run compiles for minutes");
    let demo = Demo::compiled("hello", "hello-agent")?;
    say::step("assembling the two images", || {
        hello::write_images(&demo.artefacts.hello_agent, &demo.example("images"))
    })?;
    let digest = say::step("building the box", || demo.build())?;
    let report = say::step("booting the box", || boot::boot(&demo, &Hello))?;
    write_report(&report, &demo.workspace.target("demo/report.json"))?;
    demo.conclude(&report::for_people(&report, &digest), report::is_good(&report))
}

struct Hello;

impl Places for Hello {
    fn under_kvm(&self, demo: &Demo) -> Result<Value> {
        let mut boxlaunch = Command::new(&demo.artefacts.boxlaunch);
        boxlaunch.args(run_words(&demo.bundle, &["--startup-timeout", PATIENCE]));
        let output = program::finish(&mut boxlaunch)?;
        let status = output.status.code().unwrap_or(-1);
        boot::parse(status, &output.stdout, &output.stderr)
    }

    /// Runs the box on the virtual host. The launcher hashes the box, because it has never run there.
    fn on_virtual_host(&self, demo: &Demo) -> Result<Value> {
        let kernel = setup::for_virtual_host(&demo.workspace)?;
        let host = VirtualHost::new(&kernel, &demo.artefacts.boxlaunch)
            .for_guest(GUEST_MIB)
            .disk(&demo.bundle, "/hello.box");
        let mut command = vec!["boxlaunch".to_owned()];
        command.extend(run_words(Path::new("/hello.box"), &[]));
        boot::note_machine(&host)?;
        let output = host.run(&command)?;
        boot::parse(output.status, &output.stdout, &output.stderr)
    }
}

/// Returns the command for the business component.
fn business_command() -> [&'static str; 3] {
    ["/bin/sh", "-c", "echo \"business runs on $(hostname), and its root is:\"; ls /"]
}

/// Returns the arguments with which `boxlaunch` runs the box at `bundle`. With `--budget report`, a start over the budget is not
/// stopped, because a stopped start would report no phases.
fn run_words<'a>(bundle: &'a Path, options: &[&'a str]) -> Vec<String> {
    let mut words = ["run", "--json", "--budget", "report"].map(str::to_owned).to_vec();
    words.extend(options.iter().map(|&option| option.to_owned()));
    words.push(bundle.to_string_lossy().into_owned());
    words.push("--".to_owned());
    words.extend(business_command().map(str::to_owned));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_room_for_the_boxs_memory() {
        let boxfile = include_str!("../../../../../examples/hello/Boxfile");
        assert!(boxfile.contains(&format!("\nvm cpus=1 memory=\"{GUEST_MIB}MiB\"\n")));
    }

    #[test]
    fn the_budget_stops_no_run_of_the_demo() {
        let words = run_words(Path::new("/x.box"), &["--startup-timeout", "20"]);
        let options = words.split(|it| it == "/x.box").next().unwrap();
        assert!(options.windows(2).any(|it| it == ["--budget", "report"]), "{words:?}");
    }
}
