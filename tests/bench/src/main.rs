//! The benchmarks: builds, starts, files, connections and transfers of boxes, compared with other programs or the host.
//!
//! `cargo run -p boxbuild-bench -- --help` prints the options. This program is compiled with the tests' profile, and the
//! programs that it measures with the release profile. All output is printed with [`say`].
#![forbid(unsafe_code)]

mod builds;
mod files;
mod measure;
mod network;
mod peers;
mod places;
mod promised;
mod report;
mod ship;
mod start;

use std::process::ExitCode;

use clap::Parser;
use testbed::prerequisites::{Package, with_program};
use testbed::{KitError, Result, VirtualHost};
use tool_output::say;

const HELP: &str = "\
Examples:
  cargo run -p boxbuild-bench -- --runs 9
  cargo run -p boxbuild-bench -- --start
  cargo run -p boxbuild-bench -- --files --runs 1";

/// The result of a comparison: the exit code, or the error that prevented the comparison.
type Outcome = Result<ExitCode>;

/// Build a box of two images of full size, and let other programs do the like; or compare starts, files or connections, or
/// count what pushes and pulls take.
/// Prints the medians and leaves target/bench/report.json, start.json, files.json, network.json or ship.json.
#[derive(Debug, Parser)]
#[command(name = "boxbuild-bench", bin_name = "cargo run -p boxbuild-bench --", after_help = HELP)]
struct Options {
    /// How often each program runs; the medians count.
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Compare how long a start takes, on the virtual host, instead of how long a build takes.
    #[arg(long)]
    start: bool,
    /// Compare how long files of a shared directory take in a box and on the host, on the virtual host.
    #[arg(long, conflicts_with = "start")]
    files: bool,
    /// Compare how fast a box gets a file of another host through its filter, with how fast its host gets it, on the virtual
    /// host.
    #[arg(long, conflicts_with_all = ["start", "files"])]
    network: bool,
    /// Count the bytes that pushes and pulls of boxes take, through a registry on this machine. Each is done once.
    #[arg(long, conflicts_with_all = ["start", "files", "network"])]
    ship: bool,
    /// How many small files there are.
    #[arg(long, default_value_t = 10_000, value_name = "N", requires = "files",
          value_parser = clap::value_parser!(u32).range(1..=500_000))]
    count: u32,
}

fn main() -> ExitCode {
    say::exit_code(match Options::parse() {
        Options { start: true, runs, .. } => start::run(runs),
        Options { files: true, runs, count, .. } => files::run(runs, count),
        Options { network: true, runs, .. } => network::run(runs),
        Options { ship: true, .. } => ship::run(),
        Options { runs, .. } => builds::run(runs),
    })
}

/// Adds mke2fs, which makes a benchmark's file systems, to the virtual host.
fn with_mke2fs(host: VirtualHost) -> Result<VirtualHost> {
    with_program(host, &Package::E2fs.path()?, "/bench/mke2fs")
}

/// Runs a benchmark's script on the virtual host with the number of runs, and returns its stdout.
fn scripted(host: &VirtualHost, runs: u32) -> Result<String> {
    let output = host.run(&["sh", "/bench/script", &runs.to_string()])?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status != 0 {
        return Err(KitError::Failed {
            command: "the benchmark's script on the virtual host".to_owned(),
            status: format!("exit status: {}", output.status),
            output: text(&output.stderr),
        });
    }
    Ok(text(&output.stdout))
}
