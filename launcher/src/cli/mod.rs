//! The command line: one file for each subcommand, and the table of errors.

mod agent;
mod all_users;
mod approvals;
mod asker;
mod check_command;
mod command;
mod complete;
mod consent;
mod copy;
mod credentials;
#[cfg(test)]
mod decisions;
mod detach;
mod doctor;
mod emulated;
mod environment;
mod error;
mod events;
mod exec;
mod explain;
mod found;
mod generate;
mod given_file;
mod groups;
mod health;
mod image;
mod images;
mod inspect;
mod kept;
mod lacks;
mod launch_error;
mod lifecycle;
mod list;
mod logs;
mod ls;
mod mcp;
mod memory;
mod metrics;
mod network;
mod notify;
mod paths;
mod progress;
mod prune;
mod pull;
mod repeat;
mod run;
mod screen;
mod secrets;
mod shares;
mod since;
mod skills;
mod snapshot;
mod start;
mod stats;
mod stored;
mod task;
mod terminal;
mod update;
mod usage;
mod variables;
mod verify;
mod volume;

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::panic::{UnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use box_contract::exit;
use boxlaunch::host::floor_probe::{self, Floor};
use boxlaunch::host::{guest, jail};
use boxlaunch::machine::clock::{milliseconds, process_start};
use boxlaunch::streams::StreamError;
use clap::{Parser, Subcommand};
use cli_common::Problem;
use cli_common::manual::{CompletionsArgs, ManArgs};
use cli_common::store::{LoadArgs, SaveArgs};
use host_fs::OsError;

use launch_error::LaunchError;

use error::Failure;
use terminal::{notice, painted};

/// Runs boxes: bootable images for AI agents, built by boxbuild.
#[derive(Debug, Parser)]
#[command(name = "boxlaunch", version, after_help = exit::help(&EXIT_CODES) + "\n\n\
    Errors and their codes in --json: docs/errors.md. Pages docs/... are in share/doc/boxbuild.\n\
    `run`, `exec`, `shell` and `attach` exit with the status of the command or the agent, or with\n\
    128 + N if signal N ended that program. If its output cannot be written, the program is stopped,\n\
    and a status of 0 becomes 1, or 141 if the reader closed the pipe.")]
struct Cli {
    #[command(flatten)]
    global: terminal::GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

/// The exit codes of this program for its `--help`.
pub(crate) const EXIT_CODES: [(u8, &str); 7] = [
    (exit::DONE, "done"),
    (
        exit::FAILED,
        "the command failed; not healthy (`health`, `agent health`); not run (`check-command`)",
    ),
    (exit::USAGE, "the command line is wrong"),
    (exit::OVER_BUDGET, "the startup budget is exceeded (`run`)"),
    (exit::DIFFERENT, "the box is damaged, or has no trusted signature (`verify`)"),
    (exit::KEPT, "the new box did not become ready, and the old one runs (`update`)"),
    (exit::BUG, "a bug in the program"),
];

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::RunArgs>),
    Up(Box<environment::UpArgs>),
    Down(environment::DownArgs),
    Reset(environment::ResetArgs),
    Snapshot(snapshot::SnapshotArgs),
    #[command(after_help = cli_registry::PullArgs::examples("boxlaunch"))]
    Pull(pull::PullArgs),
    Ps(list::PsArgs),
    Images(images::ImagesArgs),
    Rmi(prune::RmiArgs),
    #[command(after_help = cli_common::store::PruneArgs::examples("boxlaunch prune"))]
    Prune(prune::PruneArgs),
    #[command(after_help = SaveArgs::examples("boxlaunch"))]
    Save(SaveArgs),
    #[command(after_help = LoadArgs::examples("boxlaunch"))]
    Load(LoadArgs),
    Exec(exec::ExecArgs),
    Shell(exec::ShellArgs),
    Attach(lifecycle::AttachArgs),
    Logs(logs::LogsArgs),
    Cp(copy::CopyArgs),
    Ls(ls::LsArgs),
    Health(health::HealthArgs),
    Skills(skills::SkillsArgs),
    Network(network::NetworkArgs),
    Approvals(approvals::ApprovalsArgs),
    Approve(approvals::ApproveArgs),
    Deny(approvals::DenyArgs),
    Task(task::TaskArgs),
    Agent(agent::AgentArgs),
    Mcp(mcp::McpArgs),
    Stats(stats::StatsArgs),
    Metrics(metrics::MetricsArgs),
    Port(list::PortArgs),
    Events(events::EventsArgs),
    Update(update::UpdateArgs),
    Stop(lifecycle::StopArgs),
    Start(start::StartArgs),
    Restart(start::RestartArgs),
    Kill(lifecycle::KillArgs),
    Wait(lifecycle::WaitArgs),
    Rm(lifecycle::RmArgs),
    Volume(volume::VolumeArgs),
    Verify(verify::VerifyArgs),
    Inspect(inspect::InspectArgs),
    #[command(name = "check-command")]
    Classify(check_command::CheckCommandArgs),
    Doctor(doctor::DoctorArgs),
    #[command(after_help = CompletionsArgs::examples("boxlaunch"))]
    Completions(CompletionsArgs),
    #[command(after_help = ManArgs::examples("boxlaunch"))]
    Man(ManArgs),
}

impl Cli {
    /// Applies the global options and runs the command. Returns the same as [`Command::run`].
    fn run(&self, started: Instant) -> (Result<u8, Failure>, bool) {
        self.global.apply();
        self.command.run(started)
    }
}

impl Command {
    /// Runs the command. Returns its exit code, and whether it reports as JSON.
    fn run(&self, started: Instant) -> (Result<u8, Failure>, bool) {
        match self {
            Self::Run(args) => (run::run(args, started), args.json),
            Self::Up(args) => (environment::up(args), args.json),
            Self::Down(args) => (environment::down(args), args.json),
            Self::Reset(args) => (environment::reset(args), args.json),
            Self::Snapshot(args) => (snapshot::snapshot(args), args.is_json()),
            Self::Pull(args) => (pull::pull(args), args.pull.json),
            Self::Ps(args) => (list::ps(args), args.json),
            Self::Images(args) => (images::images(args), args.json),
            Self::Rmi(args) => (prune::rmi(args), args.json),
            Self::Prune(args) => (prune::prune(args), args.prune.json),
            Self::Save(args) => (stored::save(args), args.json),
            Self::Load(args) => (stored::load(args), args.json),
            Self::Exec(args) => (exec::exec(args), args.json),
            Self::Shell(args) => (exec::shell(args), false),
            Self::Attach(args) => (lifecycle::attach(args), false),
            Self::Logs(args) => (logs::logs(args), args.json),
            Self::Cp(args) => (copy::copy(args), args.json),
            Self::Ls(args) => (ls::ls(args), args.json),
            Self::Health(args) => (health::health(args), args.json),
            Self::Skills(args) => (skills::skills(args), args.json),
            Self::Network(args) => (network::network(args), args.json),
            Self::Approvals(args) => (approvals::approvals(args), args.json),
            Self::Approve(args) => (approvals::approve(args), args.is_json()),
            Self::Deny(args) => (approvals::deny(args), args.is_json()),
            Self::Task(args) => (task::task(args), args.json),
            Self::Agent(args) => (agent::agent(args), args.is_json()),
            Self::Mcp(args) => (mcp::mcp(args), false),
            Self::Stats(args) => (stats::stats(args), args.json),
            Self::Metrics(args) => (metrics::metrics(args), false),
            Self::Port(args) => (list::port(args), args.json),
            Self::Events(args) => (events::events(args), args.json),
            Self::Update(args) => (update::update(args), args.json),
            Self::Stop(args) => (lifecycle::stop(args), args.json),
            Self::Start(args) => (start::start(args), args.json),
            Self::Restart(args) => (start::restart(args), args.start.json),
            Self::Kill(args) => (lifecycle::kill(args), args.json),
            Self::Wait(args) => (lifecycle::wait(args), args.json),
            Self::Rm(args) => (lifecycle::rm(args), args.json),
            Self::Volume(args) => (volume::volume(args), args.is_json()),
            Self::Verify(args) => (verify::verify(args), args.json),
            Self::Inspect(args) => (inspect::inspect(args), args.json),
            Self::Classify(args) => (check_command::check_command(args), args.json),
            Self::Doctor(args) => (doctor::doctor(args), args.json),
            Self::Completions(args) => (generate::completions(args), false),
            Self::Man(args) => (generate::man(args), false),
        }
    }
}

/// Runs `boxlaunch`, and returns its exit code.
pub(crate) fn main() -> ExitCode {
    ExitCode::from(guarded(dispatch))
}

/// Runs as process 1 of a virtual host, which it powers off at the end. Prints errors to the virtual host's console.
fn init_of_virtual_host() -> u8 {
    let ended = virtual_host::guest::run().and_then(|()| virtual_host::guest::power_off());
    if let Err(error) = ended {
        notice(&format!("boxlaunch: {error}\n"));
    }
    exit::FAILED
}

/// Runs `body` and returns its exit code. If `body` panics, prints how to report the bug, and returns [`exit::BUG`].
fn guarded(body: impl FnOnce() -> u8 + UnwindSafe) -> u8 {
    catch_unwind(body).unwrap_or_else(|_| {
        notice(&(painted(&Problem::panicked("boxlaunch").text()) + "\n"));
        exit::BUG
    })
}

fn dispatch() -> u8 {
    if let Some(answered) = complete::asked() {
        return answered.unwrap_or_else(|error| error::report(&error, false));
    }
    // Hidden subcommands are handled first: in the VMM process, all other steps would add to the startup time.
    if let Some(done) = env::args_os().nth(1).and_then(|first| helper(&first)) {
        return done.map_or_else(
            |failure| {
                // The parent process adds this text to its error.
                notice(&format!("boxlaunch: {failure}\n"));
                exit::FAILED
            },
            |()| exit::DONE,
        );
    }
    // Checked only after the hidden subcommands, because a VMM process is also process 1, of its PID namespace.
    if virtual_host::guest::is_init() {
        return init_of_virtual_host();
    }
    let (result, as_json) = match (process_start(), usage::parse()) {
        (_, Err(error)) => (usage::report(error), false),
        (Err(error), Ok(_)) => (Err(error.into()), false),
        (Ok(started), Ok(cli)) => cli.run(started),
    };
    result.unwrap_or_else(|error| error::report(&error, as_json))
}

/// Runs a hidden subcommand, in a process that boxlaunch started. Returns `None` for other subcommands. [`vmm::SUBCOMMAND`] and
/// [`guest::SUBCOMMAND`] turn the process into a VM, so they return only on an error.
fn helper(subcommand: &OsStr) -> Option<Result<(), LaunchError>> {
    match subcommand.to_str()? {
        vmm::SUBCOMMAND => Some(Err(vmm::enter(io::stdin().lock()).into())),
        guest::SUBCOMMAND => {
            let supervisor = env::args().nth(2).and_then(|pid| pid.parse().ok());
            Some(Err(guest::enter(supervisor).into()))
        }
        jail::SUBCOMMAND => Some(jail::enter(io::stdin().lock()).map_err(Into::into)),
        floor_probe::SUBCOMMAND => Some(measure_floor()),
        virtual_host::FOLLOW => {
            let arguments: Vec<_> = env::args_os().skip(2).collect();
            Some(Err(vmm::follow_as(&arguments).into()))
        }
        _ => None,
    }
}

/// Boots a kernel with an init that only connects to the host. Prints the time from the start to the connection, in milliseconds,
/// as one JSON object.
fn measure_floor() -> Result<(), LaunchError> {
    let started = process_start()?;
    let arguments: Vec<_> = env::args().skip(2).collect();
    let Some(floor) = Floor::parse(&arguments) else {
        let source = io::Error::other("usage: boxlaunch floor KERNEL CPUS MEMORY_MIB");
        return Err(OsError::System { action: "measure the floor", source }.into());
    };
    Err(floor.enter(&paths::runtime_base(), move |arrived| end_floor(started, arrived)).into())
}

/// Prints the measured time or the error, and exits. The main thread runs the VM, which does not end by itself.
#[expect(clippy::exit, reason = "no other thread can return from main")]
fn end_floor(started: Instant, arrived: Result<(), StreamError>) {
    let ready_ms = milliseconds(started.elapsed());
    let printed = arrived.map(|()| {
        // If standard output is closed, the measurement has still succeeded.
        drop(writeln!(io::stdout(), "{{\"ready_ms\": {ready_ms:.6}}}"));
    });
    if let Err(error) = &printed {
        notice(&format!("boxlaunch: {error}\n"));
    }
    std::process::exit(if printed.is_ok() { exit::DONE } else { exit::FAILED }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_bug() {
        assert_eq!(guarded(|| panic!("at once")), exit::BUG);
        assert_eq!(guarded(|| 3), 3);
    }
}
