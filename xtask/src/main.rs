//! `cargo xtask`: the daily work on this repository.
//!
//! `demo` builds an example and boots it; `install` puts the programs in place; `test` runs the tests, and with `--all` every
//! check; `docs` writes what is generated; `fuzz` looks for inputs that break a parser; `dependencies`
//! checks the code of others. One file per subcommand is in `commands/`; all output goes through [`say`].
#![forbid(unsafe_code)]

mod commands;

use std::process::ExitCode;

use clap::Parser;
use commands::{box_init, demo, dependencies, docs, fuzz, install, kernel, setup, test, vmhost};
use tool_output::say;

/// The daily work on this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Install and fetch what the demo and the tests need, and nothing else.
    Setup,
    /// Build an example and boot it: under this machine's KVM where that works, else on the
    /// virtual host. Leaves target/demo/report.json.
    Demo(demo::Options),
    /// Build boxbuild, boxlaunch and box-init, install them with manual pages and completions, and get
    /// a guest kernel.
    Install(install::Options),
    /// Build box-init, PID 1 of the guest, with the same bytes in every directory; prints its path.
    BoxInit,
    /// Write the documents that are generated from the code: docs/boxfile.md, its JSON Schema, and the end of docs/security.md.
    Docs,
    /// Run every test that needs no boot, and the shorter boots. With --all, every check.
    Test(test::Options),
    /// Check the licences, sources and versions of all dependencies; with ADVISORY_DB, their advisories.
    Dependencies,
    /// Look for inputs that break a parser; what is found is left in target/fuzz/found.
    Fuzz(fuzz::Options),
    /// Compile the lean guest kernel from Debian's source, with the same bytes in every directory; prints
    /// its path.
    Kernel(kernel::Options),
    /// Run a command on the virtual host, an emulated machine with KVM; its status is passed on.
    Vmhost(vmhost::Options),
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Setup => setup::run(),
        Task::Demo(options) => demo::run(&options),
        Task::Install(options) => install::run(&options),
        Task::BoxInit => box_init::run(),
        Task::Docs => docs::run(),
        Task::Test(options) => test::run(&options),
        Task::Dependencies => dependencies::run(),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Kernel(options) => kernel::run(&options),
        Task::Vmhost(options) => vmhost::run(&options),
    };
    say::exit_code(outcome)
}
