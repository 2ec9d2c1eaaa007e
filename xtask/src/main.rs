//! `cargo xtask`: the development tasks of this repository.
//!
//! `cargo xtask --help` lists the tasks. For example, `cargo xtask test --landing` is the check before a merge. Each subcommand has a
//! file or folder in `commands/`, and prints with [`say`].
#![forbid(unsafe_code)]

mod commands;

use std::process::ExitCode;

use clap::Parser;
use commands::{
    box_init, demo, dependencies, dist, docs, fuzz, install, kernel, setup, test, vmhost,
};
use tool_output::say;

/// The development tasks of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Install and download the prerequisites of the demo and the tests.
    Setup,
    /// Build an example and boot it: under this host's KVM if possible, else on the
    /// virtual host. Writes target/demo/report.json.
    Demo(demo::Options),
    /// Build boxbuild, boxlaunch and box-init, install them with manual pages and completions, and download
    /// a guest kernel.
    Install(install::Options),
    /// Make the files of a release: an archive with static programs and the lean kernel, its bill of materials, and their checksums.
    Dist(dist::Options),
    /// Build box-init, PID 1 of the guest, with the same bytes in every directory, and print its path.
    BoxInit,
    /// Generate documents from the code: docs/boxfile.md, its JSON Schema, and the end of docs/security.md.
    /// With --measured, the last column of SPECIFICATION.md.
    Docs(docs::Options),
    /// Run every test that needs no boot, and the shorter boots. With --landing, every check but some boots; with --all, every check.
    Test(test::Options),
    /// Check the licences, sources and versions of all dependencies; with ADVISORY_DB, their advisories too.
    Dependencies,
    /// Search for inputs that break a parser, and write them to target/fuzz/found.
    Fuzz(fuzz::Options),
    /// Compile the lean guest kernel from Debian's source, with the same bytes in every directory, and print
    /// its path.
    Kernel(kernel::Options),
    /// Run a command on the virtual host, an emulated host with KVM, and exit with its status.
    Vmhost(vmhost::Options),
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Setup => setup::run(),
        Task::Demo(options) => demo::run(&options),
        Task::Dist(options) => dist::run(&options),
        Task::Install(options) => install::run(&options),
        Task::BoxInit => box_init::run(),
        Task::Docs(options) => docs::run(&options),
        Task::Test(options) => test::run(&options),
        Task::Dependencies => dependencies::run(),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Kernel(options) => kernel::run(&options),
        Task::Vmhost(options) => vmhost::run(&options),
    };
    say::exit_code(outcome)
}
