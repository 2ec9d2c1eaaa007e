//! `boxlaunch exec` and `boxlaunch shell`: run commands in a running box.

use std::env::current_dir;
use std::ffi::OsString;
use std::io::{IsTerminal as _, stdin};
use std::path::PathBuf;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use box_contract::wire::{Exec, Exited, Follow, Question};
use box_contract::{ComponentName, exit};
use boxlaunch::boxes::{Boxes, DeniedAccess, Record, State};
use boxlaunch::client::{Client, ClientError, CommandSetup};
use boxlaunch::machine::report::CommandReport;
use boxlaunch::streams::output::Route;
use cli_common::store::StoreOption;
use host_fs::OsError;
use safe_text::{shell_word, shown};
use vmm::signals::{StopSignals, Stopped};

use super::asker::Asker;
use super::command::{CommandOptions, bytes, component};
use super::environment::{Environment, record_at, record_or_tip};
use super::error::{Failure, usage};
use super::memory::{disk_full, out_of_memory};
use super::screen::Screen;
use super::start::StartArgs;
use super::terminal::json_line;
use super::variables::{self, Assigned, EnvOption};
use super::{detach, paths};

/// Starts `bash` if the box has it, else `sh`.
const SHELL: [&str; 3] =
    ["/bin/sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi"];

/// Runs a command in a running box, or in the environment of a project, which is started if it has ended.
///
/// boxlaunch exits with the command's status. It passes a first signal (SIGINT, SIGTERM, SIGHUP) on to the command. A second
/// signal kills the command, and so does the end of boxlaunch. With --detach, the command runs until it or the box ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch exec hello ls -l /
  boxlaunch exec -it hello -- sh
  boxlaunch exec --json hello -- uname -a
  boxlaunch exec --detach hello -- sh -c 'make >/tmp/log 2>&1'")]
pub(crate) struct ExecArgs {
    /// The box's name, or . for the environment of the current directory.
    #[arg(value_name = "NAME")]
    name: String,
    /// Print one JSON object at the end, which contains the command's output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the output of CMD unchanged, also to a terminal. By default, a terminal gets text and colours, but no other
    /// control sequences.
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Leave CMD running, and discard its output. Exits with 0, or with the status of CMD if it ends at once.
    #[arg(short, long, conflicts_with_all = ["json", "raw", "interactive", "tty"])]
    detach: bool,
    /// Be the process that waits for the detached command.
    #[arg(long, hide = true, requires = "detach")]
    as_detached: bool,
    /// The component to run CMD in [default: business if the box has one, else agent].
    #[arg(long, visible_alias = "in", value_parser = cli_common::component_name(), value_name = "COMPONENT")]
    component: Option<ComponentName>,
    /// The command to run, and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
    /// Set a variable in CMD's environment. A NAME alone takes the value that it has here, if it has one.
    #[arg(short, long = "env", value_name = "NAME=VALUE", help_heading = "Options of CMD")]
    #[arg(value_parser = bytes(EnvOption::parse_of_command))]
    env: Vec<EnvOption>,
    /// Set the variables of a file, or with `-` of standard input, one NAME=VALUE on each line. A variable of -e takes precedence.
    #[arg(long = "env-file", value_name = "FILE", help_heading = "Options of CMD")]
    env_files: Vec<PathBuf>,
    #[command(flatten)]
    options: CommandOptions,
}

/// Opens a shell in a running box, or in the environment of a project, which is started if it has ended.
///
/// The shell is bash if the component has it, else sh.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch shell hello")]
pub(crate) struct ShellArgs {
    /// The box's name [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The component to open the shell in [default: business if the box has one, else agent].
    #[arg(long, visible_alias = "in", value_parser = cli_common::component_name(), value_name = "COMPONENT")]
    component: Option<ComponentName>,
    /// The user and group of the shell: names of the component, or numbers [default: the component's].
    #[arg(short, long, value_name = "USER[:GROUP]", value_parser = super::command::user)]
    user: Option<String>,
}

/// A command and the box that it runs in.
struct Request<'a> {
    /// The name of the box. `None` for the environment of the current directory.
    name: Option<&'a str>,
    component: Option<ComponentName>,
    command: Vec<OsString>,
    options: &'a CommandOptions,
    env: Vec<Assigned>,
    json: bool,
    raw: bool,
    detached: bool,
}

/// How long a detached command is watched, so that a program that is missing or fails at once is reported.
const FIRST: Duration = Duration::from_millis(200);
/// The pause between two looks at a box that is starting.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn exec(args: &ExecArgs) -> Result<u8, Failure> {
    let has_variables = args.env_files.iter().any(|it| it.as_os_str() == variables::STDIN);
    if has_variables && (args.detach || args.options.interactive) {
        let message = "`--env-file -` reads standard input, which --detach closes and -i passes on";
        return Err(usage(message, "write the variables to a file"));
    }
    if args.detach && !args.as_detached {
        args.options.check()?;
        return detach::exec();
    }
    let ExecArgs { component, options, json, raw, .. } = args;
    let name = Some(args.name.as_str());
    let command = args.command.clone();
    let env = variables::resolved_of_command(&args.env_files, &args.env)?;
    let (json, raw) = (*json, *raw || options.tty);
    let detached = args.as_detached;
    run(&Request { name, component: *component, command, options, env, json, raw, detached })
}

pub(crate) fn shell(args: &ShellArgs) -> Result<u8, Failure> {
    if !stdin().is_terminal() {
        let name = shell_word(args.name.as_deref().unwrap_or("."));
        let help = format!("`boxlaunch exec -i {name} -- sh` runs what standard input has");
        return Err(usage("a shell needs a terminal, and standard input is not one", &help));
    }
    let options = CommandOptions::of_shell(args.user.clone());
    let command = SHELL.map(OsString::from).to_vec();
    let (name, component) = (args.name.as_deref(), &args.component);
    let env = Vec::new();
    let (json, raw, detached) = (false, true, false);
    let options = &options;
    let request =
        Request { name, component: *component, command, options, env, json, raw, detached };
    let code = run(&request)?;
    let state = paths::state()?;
    // The box may have ended and been removed meanwhile.
    if let Ok(record) = record_at(&Boxes::new(&state), name)
        && let Some(environment) = Environment::of(&state, &record)
    {
        environment.tell();
    }
    Ok(code)
}

fn run(request: &Request<'_>) -> Result<u8, Failure> {
    request.options.check()?;
    let boxes = Boxes::new(&paths::state()?);
    let record = awake(
        &boxes,
        record_or_tip(&boxes, request.name, |word| format!("boxlaunch exec . {word}"))?,
    )?;
    let signals = Rc::new(StopSignals::block()?);
    let screen = Screen::new(&signals, request.raw)?;
    let done = run_in(&record, request, &signals, &screen);
    let code = done.unwrap_or_else(|error| screen.report(&error, request.json));
    Ok(screen.close(code))
}

/// Starts the environment of a project if it has ended, and returns its new record. Another box is returned as it is.
fn awake(boxes: &Boxes, record: Record) -> Result<Record, Failure> {
    if record.state != State::Ended || record.project.is_none() {
        return Ok(record);
    }
    let signals = StopSignals::block()?;
    let _alone = boxes.updating(&record.name)?;
    StartArgs::of(&StoreOption::default()).start(boxes, &record.name, &signals)?;
    Ok(boxes.find(&record.name)?)
}

/// Returns the directory in which commands of an environment start: the current one if it is in the project, else the project's.
pub(super) fn in_project(record: &Record) -> Option<OsString> {
    let project = record.project.as_deref()?;
    let here = current_dir().ok().filter(|it| it.starts_with(project));
    Some(here.unwrap_or_else(|| project.to_owned()).into_os_string())
}

/// Runs the command of `request` in the box of `record`, and returns the exit code.
fn run_in(
    record: &Record,
    request: &Request<'_>,
    signals: &StopSignals,
    screen: &Screen,
) -> Result<u8, Failure> {
    let component = component(request.component, |name| record.components.contains(&name))?;
    let argv = request.command.clone();
    let mut exec = request.options.exec(component, argv.clone(), &request.env);
    exec.workdir = exec.workdir.or_else(|| in_project(record));
    // The supervisor reads requests only then. Without its answer, a detached command could not be known to run, and a long one
    // does not fit into the buffer of the socket.
    if record.state == State::Starting && (request.detached || !exec.is_short()) {
        until_ready(record, signals)?;
    }
    let silent = request.json;
    let limit = record.policy.get(&component).map(|it| it.max_output_bytes);
    let asker = Asker::new((screen, signals), &record.name, request.options.tty, silent);
    let ask = |question: &Question| asker.ask(question);
    let client = Client::connect(record, Follow::Nothing, signals)?;
    let mut client = client.on_question(asker.own(), &ask)?;
    let mut output = if request.json { request.options.capture(limit) } else { screen.route() };
    let (input, tty) = (request.options.input()?, request.options.terminal()?);
    let started = Instant::now();
    if request.detached {
        return detached(&mut client, exec, screen);
    }
    let exit =
        client.exec(CommandSetup { exec, input, tty, output: &mut output }, &mut Route::Nowhere);
    let exit = after_signal(&mut client, exit, &mut output, signals)?;
    let report = CommandReport::new(component, argv, exit, started.elapsed(), &output);
    let boxes = Boxes::new(&paths::state()?);
    let report = report.refused(client.take_refusal()).under(&boxes, record);
    if !request.json {
        report.denied_connections().for_each(|it| screen.notice(&denied(it)));
    }
    if request.json {
        screen.print(&json_line(&report)?);
    } else if report.lacked_memory() {
        let limit = record.memory_limits.get(&component).copied();
        screen.notice(&out_of_memory(component, limit));
    } else if report.found_disk_full() {
        screen.notice(&disk_full(component, record.disk_bytes));
    }
    Ok(report.code())
}

/// Returns the notice about a connection that the filter has denied to a command.
fn denied(access: &DeniedAccess) -> String {
    let DeniedAccess { subject, reason, .. } = access;
    format!("the filter denied a connection to {}: {}", shown(subject), shown(reason))
}

/// Waits until a box that is starting runs, or has ended, which is an error.
fn until_ready(record: &Record, signals: &StopSignals) -> Result<(), Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let mut state = record.state;
    while state == State::Starting {
        if let Some(signal) = signals.next()? {
            return Err(ClientError::Stopped(Stopped(signal)).into());
        }
        sleep(PAUSE);
        state = boxes.find(&record.name)?.state;
    }
    match state {
        State::Ended => Err(ClientError::NotRunning(record.name.clone()).into()),
        State::Running | State::Starting => Ok(()),
    }
}

/// Runs a command, and leaves the caller when the command has not ended at once. Its first output is for the error if it has failed.
fn detached(client: &mut Client<'_>, exec: Exec, screen: &Screen) -> Result<u8, Failure> {
    let mut output = Route::capture();
    client.give_up_after(FIRST);
    let setup = CommandSetup { exec, input: None, tty: None, output: &mut output };
    match client.exec(setup, &mut Route::Nowhere) {
        Err(ClientError::NoAnswer) => {}
        ended => {
            let code = ended?.code();
            if code != exit::DONE {
                // Untrusted text, of which a terminal gets only what it gets of any program.
                let text = output.captured().stderr();
                let written = screen.program_stderr().write_all(text.as_bytes());
                written.map_err(OsError::system("write the command's output"))?;
            }
            return Ok(code);
        }
    }
    client.be_patient();
    detach::leave(screen)?;
    Ok(client.wait_for_command(&mut Route::Nowhere, &mut Route::Nowhere)?.code())
}

/// If a signal interrupted the command's run, forwards the signal to the command, and waits for the command's end.
fn after_signal(
    client: &mut Client<'_>,
    exit: Result<Exited, ClientError>,
    output: &mut Route,
    signals: &StopSignals,
) -> Result<Exited, ClientError> {
    match exit {
        Err(ClientError::Stopped(Stopped(signal))) => {
            signals.forget();
            client.ask_to_signal(false, signal);
            client.wait_for_command(output, &mut Route::Nowhere)
        }
        exit => exit,
    }
}
