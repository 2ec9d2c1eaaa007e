//! `boxlaunch run`: boots a box, holds its start to the budget, and runs what it is for.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use box_image::rules::{LEAST_VM_MIB, MAX_CPUS, MAX_TIMEOUT, MOST_VM_MIB};
use box_image::text::readable;
use box_image::wire::Follow;
use box_image::{ComponentName, ErrorCode, Phase, RunPlan, Vm, exit};
use box_layout::OpenBox;
use boxlaunch::boxes::{Boxes, Entry, Record};
use boxlaunch::client::{Client, CommandSetup};
use boxlaunch::host;
use boxlaunch::machine::Setup;
use boxlaunch::output::{Captured, Prefixed, Route};
use boxlaunch::receipt::Receipts;
use boxlaunch::report::{CommandReport, RunFacts, budget_table, run_report};
use boxlaunch::runtime_dir::RuntimeDir;
use boxlaunch::signals::StopSignals;
use boxlaunch::supervisor::{Started, Terms};
use boxlaunch::verify::Trust;
use boxlaunch::{LaunchError, RunFailure};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use error_report::Problem;
use nix::fcntl::OFlag;
use serde_json::json;

use super::command::{CommandOptions, component};
use super::error::{CommandError, signal_code};
use super::paths::{self, SELF};
use super::progress::Shown;
use super::screen::Screen;
use super::terminal::{is_quiet, json_line, painted};
use super::{detach, emulated, notify};

/// Boots a box and runs its agent, or a command beside it.
///
/// Without CMD, the box runs until its agent ends, and boxlaunch exits with the agent's status. With
/// CMD, the command runs once the agent is ready, and the box is stopped after it. With --detach,
/// boxlaunch prints the box's name as soon as the agent is ready, and the box keeps running. A
/// signal (SIGINT, SIGTERM, SIGHUP) shuts the box down; a second one kills it. A box with declarations
/// that this version does not support is not started.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The box's directory.
    #[arg(value_name = "BOX")]
    directory: PathBuf,
    /// Print one JSON object at the end, with the programs' output in it.
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave the box running once its agent is ready, and print its name.
    #[arg(short, long, conflicts_with_all = ["command", "until_ready", "emulated"])]
    pub(super) detach: bool,
    /// Be the process that keeps running.
    #[arg(long, hide = true, requires = "detach")]
    pub(super) detached: bool,
    /// The name by which other commands know the box [default: the box's own with a random ending].
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Remove the box's record and its log when it ends.
    #[arg(long)]
    pub(super) rm: bool,
    /// The number of virtual CPUs [default: the box's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_CPUS)))]
    cpus: Option<u8>,
    /// The memory of the machine in MiB [default: the box's].
    #[arg(long, value_name = "MIB", value_parser = machine_memory())]
    memory: Option<u32>,
    /// How to treat a start that takes longer than the budget.
    #[arg(long, value_enum, default_value_t = BudgetPolicy::Enforce)]
    budget: BudgetPolicy,
    /// The component to run CMD in [default: business where the box has one, else agent].
    #[arg(long = "in", value_parser = component_name(), value_name = "COMPONENT", requires = "command")]
    component: Option<ComponentName>,
    /// Hash the box's files even if they have not changed since they were last hashed.
    #[arg(long)]
    verify: bool,
    /// Write the guest's console to this file, at most 1 MiB of it.
    #[arg(long, value_name = "FILE")]
    pub(super) console: Option<PathBuf>,
    /// Create the Unix socket for the agent's port at this path.
    #[arg(long, value_name = "PATH")]
    pub(super) agent_socket: Option<PathBuf>,
    /// How long the agent may take to be ready, where the budget does not end the start before that.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = seconds(1), allow_negative_numbers = true)]
    startup_timeout: u32,
    /// How long programs may take to end when the box is stopped.
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    #[arg(value_parser = seconds(0), allow_negative_numbers = true)]
    grace: u32,
    /// Run the box on an emulated CPU, without KVM: slow. Needs QEMU.
    #[arg(long)]
    emulated: bool,
    /// Stop the box as soon as its agent is ready, and exit with 0.
    #[arg(long, conflicts_with = "command")]
    until_ready: bool,
    /// The command to run, and its arguments.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
    #[command(flatten)]
    pub(super) options: CommandOptions,
}

impl RunArgs {
    /// Returns the command line of the same run of a box at another place.
    pub(super) fn words(&self, bundle: &str) -> Vec<String> {
        // Each option, so that one that comes later is not forgotten.
        let Self {
            directory: _,
            verify: _,
            console: _,
            agent_socket: _,
            emulated: _,
            detach: _,
            detached: _,
            name: _,
            rm: _,
            cpus,
            memory,
            json,
            budget,
            component,
            startup_timeout,
            grace,
            until_ready,
            options,
            command,
        } = self;
        let budget = budget.to_possible_value().map(|it| it.get_name().to_owned());
        let values = [
            ("--budget", budget),
            ("--in", component.map(|it| it.name().to_owned())),
            ("--startup-timeout", Some(startup_timeout.to_string())),
            ("--grace", Some(grace.to_string())),
            ("--cpus", cpus.map(|it| it.to_string())),
            ("--memory", memory.map(|it| it.to_string())),
        ];
        let flags = [("--json", *json), ("--until-ready", *until_ready), ("--quiet", is_quiet())];
        let mut words = vec!["boxlaunch".to_owned(), "run".to_owned()];
        words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(it, _)| (*it).to_owned()));
        for (option, value) in values {
            words.extend(value.into_iter().flat_map(|it| [option.to_owned(), it]));
        }
        words.extend(options.words());
        words.push(bundle.to_owned());
        if !command.is_empty() {
            words.push("--".to_owned());
            words.extend_from_slice(command);
        }
        words
    }

    /// Returns how long the start may take before the box is stopped.
    fn enforced_total(&self, plan: &RunPlan) -> Option<Duration> {
        let total = plan.budget.limit(Phase::Total).map(Duration::from_millis);
        total.filter(|_| self.budget == BudgetPolicy::Enforce)
    }

    /// Returns the size of the machine.
    pub(super) fn size(&self, plan: &RunPlan) -> Vm {
        let Vm { cpus, memory_mib } = plan.vm;
        Vm { cpus: self.cpus.unwrap_or(cpus), memory_mib: self.memory.unwrap_or(memory_mib) }
    }

    fn grace(&self) -> Duration {
        Duration::from_secs(self.grace.into())
    }
}

const EXAMPLES: &str = "\
Examples:
  boxlaunch run ./hello.box
  boxlaunch run ./hello.box -- sh -c 'echo $((40 + 2))'
  boxlaunch run ./hello.box -it -- sh
  boxlaunch run ./hello.box -i -e LANG=C -w /tmp -u nobody --timeout 60 -- sort <words.txt
  boxlaunch run ./hello.box --budget report -- sh -c 'hostname; ls /a3s/skills'
  boxlaunch run ./NAME.box --in agent -- python3 -c 'print(40 + 2)'
  boxlaunch run ./hello.box --json --verify -- true
  boxlaunch run ./hello.box --detach --name hello && boxlaunch exec hello ls /

The records and logs of boxes, which files were hashed before, and whether this host's KVM works, are kept
in $BOXLAUNCH_STATE, else $XDG_STATE_HOME/boxbuild, else ~/.local/state/boxbuild.";

/// How to treat a start that takes longer than its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BudgetPolicy {
    /// Print what each phase took, and continue.
    Report,
    /// Stop the box once its total has passed or a phase was over, and exit with 4.
    Enforce,
    /// Do nothing.
    Off,
}

/// Reads the memory of a machine, in MiB.
fn machine_memory() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(i64::from(LEAST_VM_MIB)..=i64::from(MOST_VM_MIB))
}

/// Reads the name of a component.
pub(super) fn component_name() -> impl TypedValueParser<Value = ComponentName> {
    let named = |name: String| ComponentName::ALL.into_iter().find(|it| it.name() == name);
    PossibleValuesParser::new(ComponentName::ALL.map(ComponentName::name))
        .try_map(move |name| named(name).ok_or("there is no such component"))
}

/// Reads a number of seconds, from `least` on.
pub(super) fn seconds(least: u32) -> impl Fn(&str) -> Result<u32, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|it| (least..=MAX_TIMEOUT).contains(it));
        number.ok_or_else(|| format!("write a number of seconds from {least} to {MAX_TIMEOUT}"))
    }
}

/// How a run ended after its start.
enum Ending {
    OverBudget(Problem),
    Ready,
    Agent(u8),
    Command(CommandReport),
    Signal(i32),
}

impl Ending {
    /// Returns the exit code of the run.
    fn code(&self) -> u8 {
        match self {
            Self::OverBudget(error) => error.code.exit(),
            Self::Ready => exit::DONE,
            Self::Agent(status) => *status,
            Self::Signal(signal) => signal_code(*signal),
            Self::Command(report) => report.code(),
        }
    }
}

pub(crate) fn run(args: &RunArgs, started: Instant) -> Result<u8, CommandError> {
    if args.detached {
        // Before anything is opened: of its caller it keeps nothing.
        boxlaunch::vmm::close_all_but(&[])?;
    }
    if args.emulated {
        let opened = boxlaunch::open(&args.directory)?;
        checked(args, &opened)?;
        return emulated::run(args, &opened);
    }
    if args.detach && !args.detached {
        return detach::run();
    }
    let signals = Rc::new(StopSignals::block()?);
    let screen = Screen::new(&signals)?;
    let done = boot(args, started, &signals, &screen);
    let code = done.unwrap_or_else(|error| screen.report(&error, args.json));
    Ok(screen.close(code))
}

/// Boots the box, does what the run is for, and returns the exit code.
fn boot(
    args: &RunArgs,
    started: Instant,
    signals: &StopSignals,
    screen: &Screen,
) -> Result<u8, CommandError> {
    let opened = boxlaunch::open(&args.directory)?;
    let component = checked(args, &opened)?;
    args.options.check()?;
    let state = paths::state()?;
    // Before the box is hashed, which can take long. What the first try takes is no part of the start.
    let tried = host::ensure_kvm(Path::new(SELF), &state).map_err(LaunchError::from)?;
    let runtime = RuntimeDir::create(&paths::runtime_base())?;
    let record = Record::new(&opened, args.size(opened.plan()), runtime.path());
    let agent_socket = args.agent_socket.as_deref().map(std::path::absolute).transpose();
    let agent_socket = agent_socket.map_err(LaunchError::system("find the current directory"))?;
    let record = Record { remove: args.rm, agent_socket, ..record };
    let mut entry = Boxes::new(&state).create(args.name.as_deref(), record)?;
    let mut agent_output = agent_route(args, screen);
    let receipts = Receipts::new(&state);
    let watch = Shown::new(screen, &opened.plan().name, args.json || is_quiet());
    let start = || -> Result<Started, RunFailure> {
        let started = Started::new(Setup {
            opened: &opened,
            size: entry.record.vm,
            program: Path::new(SELF),
            receipts: &receipts,
            trust: if args.verify { Trust::Nothing } else { Trust::Receipts },
            runtime,
            agent_socket: entry.record.agent_socket.clone(),
            console: args.console.as_deref().map(create_console).transpose()?,
            log: entry.log()?,
            agent_output: &mut agent_output,
            signals,
            started: started + tried,
            startup_timeout: Duration::from_secs(args.startup_timeout.into()),
            enforced_total: args.enforced_total(opened.plan()),
            watch: &watch,
        })?;
        entry.update(|record| record.start(&started.machine))?;
        Ok(started)
    };
    let started = match start() {
        Ok(started) => started,
        Err(failure) => {
            let status = match failure.error {
                LaunchError::AgentEnded { status, .. } => Some(status),
                _ => None,
            };
            // Where that fails, the next command finds that nobody holds the lock, and notes the end.
            drop(entry.end(status, Some(failure.to_string())));
            return Err(failure.into());
        }
    };
    let run = Run { args, opened: &opened, component, signals, screen };
    run.serve(started, entry, agent_output)
}

/// A box that has started, and what is to be done with it.
struct Run<'a> {
    args: &'a RunArgs,
    opened: &'a OpenBox,
    component: ComponentName,
    signals: &'a StopSignals,
    screen: &'a Screen,
}

impl Run<'_> {
    /// Does what the run is for, once the agent is ready, and stops the box; returns the exit code.
    fn serve(
        &self,
        started: Started,
        mut entry: Entry,
        mut agent_output: Route,
    ) -> Result<u8, CommandError> {
        let (args, mut facts) = (self.args, started.machine.facts);
        let over = self.over_budget(&facts);
        if over.is_some() {
            let why = over_budget_reason(facts.is_ready).to_owned();
            entry.update(|record| record.error = Some(why))?;
        }
        let record = entry.record.clone();
        let terms = Terms { ends_with_agent: args.command.is_empty(), grace: args.grace() };
        if args.detached && over.is_none() {
            if !args.json {
                self.screen.print(&format!("{}\n", record.name));
            }
            self.report(&record, &facts, &agent_output, Ending::Ready)?;
            return detach::keep_running(started, entry, terms, self.signals, self.screen);
        }
        let box_of = (record.name.as_str(), started.machine.protocol());
        let (stream, thread) = started.serve_beside(entry, terms)?;
        let mut client = Client::new(stream, box_of, Follow::Output, self.signals)?;
        let ending = match over {
            Some(problem) => Ok(Ending::OverBudget(problem)),
            None => self.work(&mut client, &record, &facts, &mut agent_output),
        };
        let ending = match ending {
            Err(LaunchError::Signal(signal)) => {
                client.let_go();
                Ok(Ending::Signal(signal))
            }
            ending => ending,
        };
        // With its agent the box ends by itself.
        if !matches!(ending, Ok(Ending::Agent(_))) {
            client.ask_to_stop(args.grace());
        }
        let stopped = ended(&mut client, thread, &mut agent_output);
        facts.agent_status = client.agent_status;
        let ending = match ending {
            // The supervisor knows why.
            Err(LaunchError::BoxEnded(_) | LaunchError::Refused { .. }) if stopped.is_err() => {
                return stopped.map(|()| exit::FAILED).map_err(CommandError::from);
            }
            ending => ending?,
        };
        let code = after_stop(ending.code(), stopped, self.screen)?;
        self.report(&record, &facts, &agent_output, ending)?;
        Ok(code)
    }

    /// Shows what the start took where that is asked for; returns the error of one over its budget.
    fn over_budget(&self, facts: &RunFacts) -> Option<Problem> {
        let budget = &self.opened.plan().budget;
        let over = !facts.is_ready || !budget.overruns(&facts.phases).is_empty();
        match self.args.budget {
            BudgetPolicy::Enforce if over => {
                self.screen.notice(&budget_table(budget, facts));
                let error = over_budget(facts.is_ready);
                self.screen.notice(&(painted(&error.text()) + "\n"));
                return Some(error);
            }
            BudgetPolicy::Report => self.screen.notice(&budget_table(budget, facts)),
            BudgetPolicy::Enforce | BudgetPolicy::Off => {}
        }
        None
    }

    /// Does what the run is for.
    fn work(
        &self,
        client: &mut Client<'_>,
        record: &Record,
        facts: &RunFacts,
        agent_output: &mut Route,
    ) -> Result<Ending, LaunchError> {
        let args = self.args;
        if args.command.is_empty() {
            self.announce(record, facts);
            notify::ready();
        }
        if args.until_ready {
            return Ok(Ending::Ready);
        }
        if args.command.is_empty() {
            return client.wait_for_agent(agent_output).map(Ending::Agent);
        }
        let mut output = if args.json { capture() } else { pass(self.screen) };
        let argv = args.command.clone();
        let exec = args.options.exec(self.component, argv.clone());
        let (input, tty) = (args.options.input()?, args.options.terminal()?);
        let started = Instant::now();
        let setup = CommandSetup { exec, input, tty, output: &mut output };
        let exit = client.exec(setup, agent_output)?;
        let taken = started.elapsed();
        Ok(Ending::Command(CommandReport::new(self.component, argv, exit, taken, &output)))
    }

    /// Prints the report where one is asked for.
    fn report(
        &self,
        record: &Record,
        facts: &RunFacts,
        agent_output: &Route,
        ending: Ending,
    ) -> Result<(), CommandError> {
        if !self.args.json {
            return Ok(());
        }
        let (digest, config) = (self.opened.digest, &self.opened.config);
        let socket = record.agent_socket.as_deref();
        let mut report = run_report(digest, config, facts, agent_output, socket);
        report["name"] = json!(record.name);
        match ending {
            Ending::OverBudget(error) => report["errors"] = json!([error]),
            Ending::Command(command) => report["command"] = json!(command),
            Ending::Ready | Ending::Agent(_) | Ending::Signal(_) => {}
        }
        self.screen.print(&json_line(&report)?);
        Ok(())
    }

    /// Says that the agent can be used, and where.
    fn announce(&self, record: &Record, facts: &RunFacts) {
        if self.args.json || is_quiet() {
            return;
        }
        let socket = record.agent_socket.as_ref();
        let socket = socket
            .map_or_else(String::new, |path| format!("; the agent's socket is {}", path.display()));
        let (name, total) = (&record.name, facts.phases.total);
        self.screen.notice(&format!("boxlaunch: {name} is ready after {total:.0} ms{socket}\n"));
    }
}

/// Waits until the supervisor has hung up; with a signal the box ends at once.
fn wait_for_end(client: &mut Client<'_>, agent_output: &mut Route) -> Result<(), LaunchError> {
    loop {
        match client.wait_for_end(agent_output) {
            Err(LaunchError::Signal(_)) => client.ask_to_stop(Duration::ZERO),
            waited => return waited,
        }
    }
}

/// Waits until the box has ended, and passes on what its agent still writes.
fn ended(
    client: &mut Client<'_>,
    supervisor: JoinHandle<Result<(), RunFailure>>,
    agent_output: &mut Route,
) -> Result<(), RunFailure> {
    let mut waited = wait_for_end(client, agent_output);
    if waited.is_err() {
        // Nobody reads any more, or the supervisor has said that it failed: it still has to end.
        waited = waited.and(wait_for_end(client, &mut Route::Nowhere));
    }
    let served = supervisor.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    served.map_err(|failure| failure.with_output(agent_output))?;
    Ok(waited?)
}

/// Checks that the box can do what the command line asks for, before anything is made on the host.
/// Returns the component that a command runs in.
fn checked(args: &RunArgs, opened: &OpenBox) -> Result<ComponentName, CommandError> {
    // The start does so, too.
    boxlaunch::check_enforced(opened)?;
    if args.agent_socket.is_some() && opened.plan().agent.port.is_none() {
        let help = "declare the agent's `port` in the Boxfile, and build the box again";
        let message = "--agent-socket leads nowhere: the agent of this box has no port";
        return Err(CommandError::new((ErrorCode::Usage, help), message));
    }
    let limits: u64 = opened.plan().components().map(|(_, it)| it.limits.memory_bytes).sum();
    if args.memory.is_some_and(|mib| u64::from(mib) << 20 <= limits) {
        let help = "the machine needs more memory than its components may take together";
        let message =
            format!("--memory is too little: the components' limits are {}", readable(limits));
        return Err(CommandError::new((ErrorCode::Usage, help), message));
    }
    let has = |name| opened.plan().component(name).is_some();
    Ok(component(args.component, has)?)
}

/// Returns the exit code of a run that was stopped. Output that was lost at the last moment does
/// not hide the status of a program that failed, as it does not in [`Screen::close`].
fn after_stop(
    code: u8,
    stopped: Result<(), RunFailure>,
    screen: &Screen,
) -> Result<u8, CommandError> {
    match stopped {
        Err(failure) if code != 0 && matches!(failure.error, LaunchError::Output(_)) => {
            screen.report(&failure.into(), false);
            Ok(code)
        }
        stopped => stopped.map(|()| code).map_err(CommandError::from),
    }
}

/// Returns the error of a start over its budget, whether its agent was ready too late or not yet.
fn over_budget(was_ready: bool) -> Problem {
    let message = over_budget_reason(was_ready);
    if was_ready {
        return Problem::new(ErrorCode::OverBudget, message);
    }
    let help = "`--budget report` waits for it, until --startup-timeout, and shows what each phase \
                takes, or what prevents the start; the Boxfile's `budget` sets the limit";
    Problem::new((ErrorCode::OverBudget, help), message)
}

const fn over_budget_reason(was_ready: bool) -> &'static str {
    if was_ready {
        "the start took longer than the box's budget allows"
    } else {
        "the box's budget was used up before the agent was ready"
    }
}

fn agent_route(args: &RunArgs, screen: &Screen) -> Route {
    match (args.json, args.command.is_empty()) {
        (true, _) => capture(),
        // Whoever waits for the start sees it only if that fails.
        _ if args.detached => capture(),
        // Its lines would lie across what the command shows.
        _ if args.options.tty => capture(),
        (false, true) => pass(screen),
        (false, false) => Route::Prefix(Prefixed::new("agent | ", screen.program_stderr())),
    }
}

pub(super) fn capture() -> Route {
    Route::Capture(Captured::default())
}

pub(super) fn pass(screen: &Screen) -> Route {
    Route::Pass { stdout: screen.program_stdout(), stderr: screen.program_stderr() }
}

fn create_console(path: &Path) -> Result<File, LaunchError> {
    let make = || -> io::Result<File> {
        // A pipe that nobody reads would be waited for, with signals blocked; nor is one waited for later whose reader
        // pauses.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(flags.bits());
        options.open(path)
    };
    make().map_err(|source| LaunchError::File {
        action: "write the console to",
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(code: u8, error: LaunchError) -> u8 {
        let signals = Rc::new(StopSignals::block().unwrap());
        let screen = Screen::new(&signals).unwrap();
        let failure = RunFailure { error, said: Vec::new() };
        after_stop(code, Err(failure), &screen).unwrap_or_else(|error| error.exit)
    }

    #[test]
    fn a_console_that_is_a_pipe_without_a_reader_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let LaunchError::File { source, .. } = create_console(&pipe).unwrap_err() else { panic!() };
        assert_eq!(source.raw_os_error(), Some(nix::errno::Errno::ENXIO as i32));
    }

    #[test]
    fn lost_output_does_not_hide_the_status_of_a_program_that_failed() {
        let lost = || LaunchError::Output(io::ErrorKind::BrokenPipe.into());
        assert_eq!(code(7, lost()), 7);
        assert_eq!(code(0, lost()), 141);
        assert_eq!(code(7, LaunchError::Signal(2)), 130);
    }
}
