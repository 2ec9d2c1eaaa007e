//! `boxlaunch run`: boots a box, holds its start to the budget, and runs what it is for.

mod modes;
mod network;
mod options;
mod serve;
mod volumes;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use box_contract::{ComponentName, ErrorCode};
use box_layout::OpenBox;
use boxlaunch::boxes::task::Task;
use boxlaunch::boxes::{self, Boxes, Entry, Record};
use boxlaunch::host::{self, kvm::DEVICE};
use boxlaunch::machine::MachineError;
use boxlaunch::machine::Setup;
use boxlaunch::machine::variables::GivenVariable;
use boxlaunch::mounts::scratch;
use boxlaunch::mounts::shares::Share;
use boxlaunch::network::Published;
use boxlaunch::opened::receipt::Receipts;
use boxlaunch::opened::verify::Trust;
use boxlaunch::streams::output::{Prefixed, Route};
use boxlaunch::supervisor::Started;
use egress_rules::Local;
use host_fs::OsError;
use host_fs::named::Place;
use rustix::fs::{Mode, OFlags, openat};
use safe_text::readable;
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;

use super::command::component;
use super::error::CommandError;
use super::lacks::Lack;
use super::launch_error::{FailedRun, LaunchError};
use super::paths::{self, SELF};
use super::progress::Shown;
use super::screen::Screen;
use super::terminal::{self, is_quiet};
use super::variables::{self, Assigned};
use super::{detach, emulated, given_file, kept, memory, pull, secrets, shares, task};
use serve::Run;

pub(crate) use options::RunArgs;
pub(super) use options::{NetworkChoice, component_name, seconds};

pub(crate) fn run(args: &RunArgs, started: Instant) -> Result<u8, CommandError> {
    modes::check(args)?;
    args.options.check()?;
    let handed_over = secrets::handed_over();
    if args.detached {
        // Before anything is opened: of its caller it keeps nothing else.
        vmm::close_all_but(handed_over.as_slice())?;
    }
    let fetching = Instant::now();
    // What started this process has fetched the box.
    let is_first = !args.detached && handed_over.is_none() && !args.nested;
    if is_first && let Some(code) = pull::before(args)? {
        return Ok(code);
    }
    args.load()?;
    let started = started + fetching.elapsed();
    if args.emulated {
        let (opened, _held) = args.open()?;
        emulated::refuse_secrets(opened.plan())?;
        emulated::refuse_shares(args, opened.plan())?;
        emulated::refuse_network(args, opened.plan())?;
        let checked = checked(args, &opened)?;
        return emulated::run(args, &opened, &checked.env);
    }
    if !args.secrets.is_empty() && handed_over.is_none() {
        let (opened, _) = args.open()?;
        checked(args, &opened)?;
        return Err(secrets::restart(&secrets::checked(args, opened.plan())?));
    }
    if args.detach && !args.detached {
        return detach::run();
    }
    let signals = Rc::new(StopSignals::block()?);
    let screen = Screen::new(&signals, args.raw || args.options.tty)?;
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
    // To the end of this process: of a box that is detached, too.
    let (opened, _held) = args.open()?;
    let Checked { component, env, given: variables } = checked(args, &opened)?;
    let task = task::given(args)?;
    let result = task::result_place(args, opened.plan())?;
    let console = console_place(args)?;
    let agent_socket = agent_socket(args)?;
    let secrets = secrets::take(&secrets::checked(args, opened.plan())?, opened.plan())?;
    let shares = shares::resolved(args, opened.plan())?;
    shares::look_for_large(&shares, terminal::notice);
    let given = network::given(args, opened.plan())?;
    let state = paths::state()?;
    boxes::check_owner(&state)?;
    args.check_scratch(opened.plan(), &state)?;
    let notices = shares::linked(args, &shares).chain(shares::movable(&shares));
    let larger = memory::larger_machine(opened.plan(), args.memory);
    let larger = larger.filter(|_| !args.json && !is_quiet());
    notices.chain(larger).for_each(|it| screen.notice(&it));
    kept::check(&shares, args, &opened.places.directory, &state)?;
    kept::notices(&shares, &state).for_each(|it| screen.notice(&it));
    if !args.json && !is_quiet() {
        shares::notices(&shares).for_each(|it| screen.notice(&it));
        let notice = network::notice(&given, &opened.plan().network, &args.subject.shell_words());
        notice.iter().for_each(|it| screen.notice(it));
    }
    // Before the box is hashed, which can take long. What the first try takes is no part of the start.
    let instead = emulated::instead(args, opened.plan());
    let tried = host::ensure_kvm(Path::new(SELF), &state)
        .map_err(|error| CommandError::of_kvm(&error, instead.as_deref()))?;
    let runtime = RuntimeDir::create(&paths::runtime_base())?;
    let mut record = record(args, &opened, &runtime, &shares, agent_socket)?;
    record.network = given.plan(&opened.plan().network);
    record.network_local = given.local.iter().map(Local::plan).collect();
    record.env = variables.iter().cloned().map(GivenVariable::masked).collect();
    record.task = task.as_ref().map(Task::new).or(record.task);
    let mut entry = Boxes::new(&state).create(args.name.as_deref(), record)?;
    // The file of a former run is not to pass for this one's.
    result.iter().try_for_each(|it| boxlaunch::boxes::task::write_result(it, &[]))?;
    let mut agent_output = agent_route(args, screen);
    let receipts = Receipts::new(&state);
    let watch = Shown::new(screen, &opened.plan().name, args.json || is_quiet());
    let start = || -> Result<Started, FailedRun> {
        let started = Started::new(Setup {
            opened: &opened,
            size: entry.record.vm,
            program: Path::new(SELF),
            programs: &paths::programs(),
            device: Path::new(DEVICE),
            receipts: &receipts,
            trust: if args.verify { Trust::Nothing } else { Trust::Receipts },
            runtime,
            disks: scratch::make(opened.plan(), &state)?,
            volumes: volumes::take(args, &state, &entry.record.name, &watch)?,
            variables,
            secrets,
            shares,
            network: &given,
            published: args.published.clone(),
            task,
            agent_socket: entry.record.agent_socket.clone(),
            console: console.as_ref().map(create_console).transpose()?,
            logs: entry.logs(opened.plan().logs)?,
            agent_output: &mut agent_output,
            signals,
            started: started + tried,
            startup_timeout: Duration::from_secs(args.startup_timeout.into()),
            enforced_total: args.enforced_total(opened.plan()),
            jail: args.jail(),
            watch: &watch,
        })?;
        entry.update(|record| record.start(&started.machine))?;
        Ok(started)
    };
    let started = match start() {
        Ok(started) => started,
        Err(failure) => {
            note_failure(entry, &failure);
            return Err(CommandError::of_run(failure, instead.as_deref()));
        }
    };
    let run = Run { args, opened: &opened, component, env, signals, screen, result };
    run.serve(started, entry, agent_output)
}

/// Returns the record of a box that is about to start as the command line says.
fn record(
    args: &RunArgs,
    opened: &OpenBox,
    runtime: &RuntimeDir,
    shares: &[Share],
    agent_socket: Option<PathBuf>,
) -> Result<Record, LaunchError> {
    let shares = shares.iter().map(Share::shown).collect();
    let volumes = args.volumes.clone();
    let record = Record::new(opened, args.size(opened.plan()), runtime.path());
    let network_given = args.network.into();
    Ok(Record { remove: args.rm, agent_socket, shares, volumes, network_given, ..record })
}

/// Notes the end of a box that has not started.
fn note_failure(entry: Entry, failure: &FailedRun) {
    let status = match failure.error {
        LaunchError::Machine(MachineError::AgentEnded { status, .. }) => Some(status),
        _ => None,
    };
    // Where that fails, the next command finds that nobody holds the lock, and notes the end.
    drop(entry.end(status, Some(failure.error.to_string())));
}

/// The options of a command line about an opened box.
struct Checked {
    /// The component that a command runs in.
    component: ComponentName,
    /// The variables of the command line.
    env: Vec<Assigned>,
    /// Those of them that components get.
    given: Vec<GivenVariable>,
}

/// Checks that the box can do what the command line asks for, before anything is made on the host.
fn checked(args: &RunArgs, opened: &OpenBox) -> Result<Checked, CommandError> {
    // The start does so, too.
    boxlaunch::opened::check_enforced(opened)?;
    let plan = opened.plan();
    let secrets = secrets::checked(args, plan)?;
    shares::checked(args, plan)?;
    let network = network::lacking(args, plan)?;
    volumes::checked(args, plan)?;
    if args.agent_socket.is_some() && opened.plan().agent.port.is_none() {
        let help = "declare the agent's `port` in the Boxfile, and build the box again";
        let message = "--agent-socket leads nowhere: the agent of this box has no port";
        return Err(CommandError::new((ErrorCode::Usage, help), message));
    }
    let limits = opened.plan().memory_limits();
    if args.memory.is_some_and(|mib| u64::from(mib) << 20 <= limits) {
        let help = "the machine needs more memory than its components may take together";
        let message =
            format!("--memory is too little: the components' limits are {}", readable(limits));
        return Err(CommandError::new((ErrorCode::Usage, help), message));
    }
    let has = |name| opened.plan().component(name).is_some();
    check_published(&args.published, has)?;
    let env = variables::resolved(&args.env_files, &args.env)?;
    let given = variables::given(&env, &args.env, !args.command.is_empty(), plan)?;
    let lacks = secrets::lacking(&secrets, &plan.secrets).into_iter();
    let lacks = lacks.chain(shares::lacking(args, plan)).chain(network);
    let lacks: Vec<_> = lacks.chain(variables::lacking(&given, &args.env, plan)).collect();
    Lack::check(&lacks)?;
    Ok(Checked { component: component(args.component, has)?, env, given })
}

/// Checks that each port that is published is one of a component, and no port of the host leads to two.
fn check_published(
    published: &[Published],
    has: impl Fn(ComponentName) -> bool,
) -> Result<(), CommandError> {
    if let Some(absent) = published.iter().find(|it| !has(it.component)) {
        return Err(LaunchError::NoSuchPort { published: *absent }.into());
    }
    let hosts = || published.iter().map(|it| it.host).filter(|it| it.port() != 0);
    let twice =
        hosts().enumerate().find(|(number, host)| hosts().take(*number).any(|it| it == *host));
    let Some((_, host)) = twice else { return Ok(()) };
    let help = "a port of the host leads to one port of one component";
    Err(CommandError::new((ErrorCode::Usage, help), format!("--publish has {host} twice")))
}

fn agent_route(args: &RunArgs, screen: &Screen) -> Route {
    match (args.json, args.command.is_empty()) {
        (true, _) => Route::capture(),
        // Whoever waits for the start sees it only if that fails.
        _ if args.detached => Route::capture(),
        // Its lines would lie across what the command shows.
        _ if args.options.tty => Route::capture(),
        (false, true) => screen.route(),
        (false, false) => {
            Route::Prefix(Prefixed::new("agent | ", screen.program_stderr(), args.raw))
        }
    }
}

/// Returns where the agent's socket is to be made, by a path without links.
fn agent_socket(args: &RunArgs) -> Result<Option<PathBuf>, CommandError> {
    let place = |path| given_file::place(path, "make the agent's socket");
    let place = args.agent_socket.as_deref().map(place).transpose()?;
    Ok(place.map(|it| it.path().to_owned()))
}

/// The action of an error of the console's file.
const WRITE_CONSOLE: &str = "write the console to";

/// Returns where the console is to be written.
fn console_place(args: &RunArgs) -> Result<Option<Place>, CommandError> {
    args.console.as_deref().map(|it| given_file::place(it, WRITE_CONSOLE)).transpose()
}

fn create_console(place: &Place) -> Result<File, OsError> {
    // A pipe that nobody reads would be waited for, with signals blocked; nor is one waited for later whose reader
    // pauses.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // An earlier box may have made a link of it, in a directory that it could write to. `/dev/stdout` is the kernel's.
    if !place.is_kernels() {
        flags |= OFlags::NOFOLLOW;
    }
    flags |= OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let opened = openat(place.directory(), place.name(), flags, Mode::RUSR | Mode::WUSR);
    let failed = OsError::file(WRITE_CONSOLE, place.path());
    opened.map(File::from).map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;

    use super::*;

    fn console(path: &Path) -> Result<File, OsError> {
        create_console(&given_file::place(path, WRITE_CONSOLE).unwrap())
    }

    #[test]
    fn a_console_that_is_a_pipe_without_a_reader_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let OsError::File { source, .. } = console(&pipe).unwrap_err() else { panic!() };
        assert_eq!(source.raw_os_error(), Some(nix::errno::Errno::ENXIO as i32));
    }

    #[test]
    fn no_link_leads_the_console_to_another_file() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        for path in ["share/out", "keys"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at("keys/file"), "key").unwrap();
        symlink("../keys/file", at("share/link")).unwrap();
        console(&at("share/link")).unwrap_err();
        let place = given_file::place(&at("share/out/file"), WRITE_CONSOLE).unwrap();
        fs::rename(at("share/out"), at("share/moved")).unwrap();
        symlink("../keys", at("share/out")).unwrap();
        create_console(&place).unwrap();
        assert!(at("share/moved/file").exists());
        let error = given_file::place(&at("share/out/file"), WRITE_CONSOLE).unwrap_err().text();
        assert!(error.contains("share/out is a link: the path leads to "), "{error}");
        assert_eq!(fs::read_to_string(at("keys/file")).unwrap(), "key");
        // `/dev/stdout` is such a link.
        let open = File::create(at("keys/other")).unwrap();
        let link = format!("/proc/self/fd/{}", open.as_raw_fd());
        console(Path::new(&link)).unwrap().write_all(b"console").unwrap();
        assert_eq!(fs::read_to_string(at("keys/other")).unwrap(), "console");
    }
}
