//! `cargo xtask`: the daily work on this repository.
//!
//! `demo` builds the example and boots it; `test` runs every check. One file per subcommand lies in
//! `commands/`; all output goes through [`say`].
#![forbid(unsafe_code)]

mod commands;
mod say;

use std::process::ExitCode;

use clap::Parser;
use commands::{demo, setup, test, vmhost};

/// The daily work on this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Install and fetch what the demo and the tests need, and nothing else.
    Setup,
    /// Build examples/hello and boot it: under this machine's KVM where that works, else on the
    /// virtual host. Leaves target/demo/report.json.
    Demo,
    /// Run every check: formatting, lints, documentation, tests.
    Test,
    /// Run a command on the virtual host, an emulated machine with KVM; its status is passed on.
    Vmhost(vmhost::Options),
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Setup => setup::run(),
        Task::Demo => demo::run(),
        Task::Test => test::run(),
        Task::Vmhost(options) => vmhost::run(&options),
    };
    outcome.unwrap_or_else(|error| {
        say::error(&error);
        ExitCode::FAILURE
    })
}
