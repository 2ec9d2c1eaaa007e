//! `boxlaunch stop`, `kill`, `wait`, `rm` and `attach`: control boxes by their names.

use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use box_contract::wire::Follow;
use box_contract::{ComponentName, exit, signals};
use boxlaunch::boxes::{Boxes, Record, RecordError, State};
use boxlaunch::client::{Client, ClientError};
use boxlaunch::streams::output::Route;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use vmm::signals::{StopSignals, Stopped};

use super::environment::{Environment, check_kept, names_of, record_at, remove_data};
use super::error::{Failure, signal_code};
use super::launch_error::LaunchError;
use super::memory::out_of_memory;
use super::paths;
use super::run::seconds;
use super::screen::Screen;
use super::terminal::{is_quiet, json_line, notice, print};

/// How long a box may take to end, in addition to its grace period.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long `attach` and `kill` wait for the end of a box after the end of its agent.
const MOMENT: Duration = Duration::from_secs(1);
/// The interval between two looks at the record.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// Stops boxes: terminates their programs, and powers the VMs off.
///
/// `boxlaunch start` starts a box again that was started with `run --detach`, with what its programs have written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  boxlaunch stop hello\n  boxlaunch stop --all -t 30")]
pub(crate) struct StopArgs {
    /// The boxes' names [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Stop all boxes that have not ended.
    #[arg(short, long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    grace: GraceOption,
    /// Print one JSON object with the names of the boxes that were stopped.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long programs of a box may take when the box is stopped.
#[derive(Debug, clap::Args)]
pub(super) struct GraceOption {
    /// How many seconds programs may take to end before they are killed.
    #[arg(short = 't', long, visible_aliases = ["time", "timeout"], value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = seconds(0), allow_negative_numbers = true)]
    grace: u32,
}

impl GraceOption {
    /// Returns the time.
    pub(super) fn time(&self) -> Duration {
        Duration::from_secs(self.grace.into())
    }
}

/// Sends a signal to the agents of boxes. When its agent ends, a box ends, unless it was started for a command.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  boxlaunch kill hello\n  boxlaunch kill --signal HUP hello\n  boxlaunch kill -9 hello"
)]
pub(crate) struct KillArgs {
    /// The boxes' names [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The signal, by name or number.
    #[arg(short, long, value_name = "SIGNAL", default_value = "KILL", value_parser = signal)]
    signal: i32,
    /// Send SIGKILL, as without an option.
    #[arg(short = '9', conflicts_with = "signal")]
    nine: bool,
    /// Print one JSON object with the names of the boxes that got the signal.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Waits until boxes have ended, and prints the exit status of each box's agent.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch wait hello")]
pub(crate) struct WaitArgs {
    /// The boxes' names [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print one JSON object with the boxes' records instead.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Removes boxes that have ended: their records, logs and disks.
///
/// The environment of a project is only removed with --all-data, because the box is where its user works.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  boxlaunch rm hello\n  boxlaunch rm --all")]
pub(crate) struct RmArgs {
    /// The boxes' names [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Remove all boxes that have ended, with --force also those that run.
    #[arg(short, long, conflicts_with = "names")]
    all: bool,
    /// Kill boxes that still run, then remove them.
    #[arg(short, long)]
    force: bool,
    /// Also remove the environments of projects among them, with their volumes. The projects' directories stay.
    #[arg(long)]
    all_data: bool,
    /// Print one JSON object with the names of the boxes that were removed.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows what the agent of a box writes from now on, until the agent ends.
///
/// boxlaunch then exits with the agent's status. A signal, such as SIGINT for Ctrl-C, ends only this command: the box keeps
/// running. If nothing reads this command's output, the agent has to wait.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch attach hello")]
pub(crate) struct AttachArgs {
    /// The box's name [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the agent's output unchanged, also to a terminal. By default, a terminal gets text and colours, but no other
    /// control sequences.
    #[arg(long)]
    raw: bool,
}

pub(crate) fn stop(args: &StopArgs) -> Result<u8, Failure> {
    let state = paths::state()?;
    let boxes = Boxes::new(&state);
    let names = named_or(&args.names, args.all, &boxes, |it| it.state != State::Ended)?;
    each(&names, args.json, |name| {
        let record = boxes.find(name)?;
        end(&boxes, &record, args.grace.time())?;
        Environment::of(&state, &record).map_or(Ok(()), |it| it.stopped(&record))
    })
}

pub(crate) fn kill(args: &KillArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let signals = StopSignals::block()?;
    let names = names_of(&boxes, &args.names)?;
    each(&names, args.json, |name| {
        let record = boxes.find(name)?;
        if record.state == State::Starting {
            // The agent may not have started yet.
            check_ends(&record.name, args.signal)?;
            end(&boxes, &record, Duration::ZERO)?;
        } else {
            let mut client = Client::connect(&record, Follow::Nothing, &signals)?;
            client.ask_to_signal(true, args.signal);
            client.finish()?;
            if args.signal == Signal::SIGKILL as i32 {
                wait_a_moment(&boxes, &record)?;
            }
        }
        Ok(())
    })
}

/// Checks that a signal can have an effect on a starting box. The box may not have a program yet that could receive the signal.
/// So only `SIGKILL` works: it ends the box.
fn check_ends(name: &str, signal: i32) -> Result<(), LaunchError> {
    if signal == Signal::SIGKILL as i32 {
        return Ok(());
    }
    Err(LaunchError::StillStarting(name.to_owned()))
}

pub(crate) fn wait(args: &WaitArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let signals = StopSignals::block()?;
    let mut records = Vec::new();
    let mut one = |name: &str| {
        let mut record = boxes.find(name)?;
        if record.state != State::Ended {
            let status = wait_for(&record, &signals)?;
            // A box that was started with `--rm` has no record any more. Its status comes from the supervisor's answer.
            record = boxes.find(name).unwrap_or(Record { state: State::Ended, status, ..record });
        }
        if !args.json {
            let status = record.status.map_or_else(|| "-".to_owned(), |it| it.to_string());
            print(&format!("{status}\n"))?;
        }
        records.push(record);
        Ok(())
    };
    let names = names_of(&boxes, &args.names)?;
    if !args.json {
        return try_each(&names, one);
    }
    // Prints one object: the records or the error.
    names.iter().try_for_each(|name| one(name))?;
    print(&json_line(&serde_json::json!({ "boxes": records }))?)?;
    Ok(exit::DONE)
}

/// Waits for the end of a box whose agent has ended. Gives up after [`MOMENT`], because a box that runs for a command outlives
/// its agent.
fn wait_a_moment(boxes: &Boxes, record: &Record) -> Result<(), RecordError> {
    let deadline = Instant::now() + MOMENT;
    while !has_ended(boxes, record)? && Instant::now() < deadline {
        sleep(LOOK);
    }
    Ok(())
}

/// Waits until a box has ended. Returns its agent's status if the supervisor has sent it.
fn wait_for(record: &Record, signals: &StopSignals) -> Result<Option<u8>, ClientError> {
    let mut client = match Client::connect(record, Follow::End, signals) {
        // The box has just ended.
        Err(ClientError::NotRunning(_)) => return Ok(None),
        client => client?,
    };
    match client.wait_for_end(&mut Route::Nowhere) {
        Ok(()) | Err(ClientError::BoxEnded(_)) => Ok(client.agent_status),
        Err(error) => Err(error),
    }
}

pub(crate) fn rm(args: &RmArgs) -> Result<u8, Failure> {
    let state = paths::state()?;
    let boxes = Boxes::new(&state);
    let fits = |it: &Record| {
        (args.force || it.state == State::Ended) && (args.all_data || it.project.is_none())
    };
    let names = named_or(&args.names, args.all, &boxes, fits)?;
    each(&names, args.json, |name| {
        check_kept(&state, name, args.all_data)?;
        let record = boxes.find(name).ok();
        // A box whose record cannot be read is removed, too.
        match args.force && record.is_some() {
            true => remove(&boxes, name, Duration::ZERO)?,
            false => boxes.remove(name)?,
        }
        let environment = record.filter(|it| it.project.is_some());
        environment.map_or(Ok(()), |it| remove_data(&state, &it))
    })
}

/// Removes a box, if there is one with this name. If it runs, it is stopped first.
pub(super) fn remove(boxes: &Boxes, name: &str, grace: Duration) -> Result<(), LaunchError> {
    let record = match boxes.find(name) {
        Err(RecordError::NoBox(_)) => return Ok(()),
        found => found?,
    };
    if record.state != State::Ended {
        end(boxes, &record, grace)?;
    }
    match boxes.remove(name) {
        // The supervisor has removed the record, because the box was started with `--rm`.
        Err(RecordError::NoBox(_)) => Ok(()),
        removed => Ok(removed?),
    }
}

pub(crate) fn attach(args: &AttachArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let record = record_at(&boxes, args.name.as_deref())?;
    let signals = Rc::new(StopSignals::block()?);
    let screen = Screen::new(&signals, args.raw)?;
    let attached = Client::connect(&record, Follow::Output, &signals).and_then(|mut client| {
        let status = client.wait_for_agent(&mut screen.route())?;
        if client.agent_lacked_memory {
            let limit = record.memory_limits.get(&ComponentName::Agent).copied();
            screen.notice(&out_of_memory(ComponentName::Agent, limit));
        }
        // The box ends with its agent, unless it runs for a command.
        drop(wait_a_moment(&boxes, &record));
        Ok(status)
    });
    let code = match attached {
        Ok(status) => status,
        Err(ClientError::Stopped(Stopped(signal))) => {
            if !is_quiet() {
                screen.notice(&format!("boxlaunch: {} keeps running\n", record.name));
            }
            signal_code(signal)
        }
        Err(error) => screen.report(&error.into(), false),
    };
    Ok(screen.close(code))
}

/// Stops a box, and waits until it has ended.
pub(super) fn end(boxes: &Boxes, record: &Record, grace: Duration) -> Result<(), LaunchError> {
    if record.state == State::Ended {
        return Err(ClientError::NotRunning(record.name.clone()).into());
    }
    match ask_to_end(record, grace) {
        Err(error @ ClientError::Stopped(_)) => return Err(error.into()),
        Ok(()) if record.state == State::Running => {}
        // The box is still starting, its sockets are gone, or its supervisor speaks another protocol.
        _ => signal_supervisor(record, grace),
    }
    let deadline = Instant::now() + grace + PATIENCE;
    let mut was_signalled = record.state == State::Starting;
    while !has_ended(boxes, record)? {
        // It had ended by itself before it heard the request, and waits for its restart.
        if !was_signalled && is_starting(boxes, record) {
            was_signalled = true;
            signal_supervisor(record, grace);
        }
        if Instant::now() > deadline {
            return Err(RecordError::StillRunning(record.name.clone()).into());
        }
        sleep(LOOK);
    }
    Ok(())
}

/// Asks a supervisor to end its box, and waits until it closes the connection.
fn ask_to_end(record: &Record, grace: Duration) -> Result<(), ClientError> {
    if record.state == State::Starting {
        return Ok(());
    }
    let signals = StopSignals::block()?;
    let mut client = Client::connect(record, Follow::End, &signals)?;
    client.ask_to_stop(grace);
    if grace.is_zero() {
        // The second request kills the VM.
        client.ask_to_stop(grace);
    }
    match client.wait_for_end(&mut Route::Nowhere) {
        // This end was requested, and the record has the details.
        Err(ClientError::BoxEnded(_)) => Ok(()),
        ended => ended,
    }
}

/// Ends a supervisor with SIGTERM, or with SIGKILL if there is no grace period. The process id is still the supervisor's, because
/// the supervisor holds the lock of the record.
fn signal_supervisor(record: &Record, grace: Duration) {
    let signal = if grace.is_zero() { Signal::SIGKILL } else { Signal::SIGTERM };
    // An error is ignored: a supervisor that has just ended needs no signal.
    let _ = i32::try_from(record.supervisor)
        .map(|pid| nix::sys::signal::kill(Pid::from_raw(pid), signal));
}

/// Returns whether a run has ended by itself, and its supervisor is about to start it again.
fn is_starting(boxes: &Boxes, record: &Record) -> bool {
    let now = boxes.find(&record.name);
    now.is_ok_and(|it| it.state == State::Starting && it.created_ms == record.created_ms)
}

/// Returns whether a run has ended, or its record is gone.
pub(super) fn has_ended(boxes: &Boxes, record: &Record) -> Result<bool, RecordError> {
    match boxes.find(&record.name) {
        Err(RecordError::NoBox(_)) => Ok(true),
        // A new box may have the name by now.
        found => found.map(|it| it.state == State::Ended || it.created_ms != record.created_ms),
    }
}

/// Returns the names on the command line, or with `--all` the names of the boxes that fit. Without either, the environment of the
/// current directory.
fn named_or(
    names: &[String],
    all: bool,
    boxes: &Boxes,
    fits: impl Fn(&Record) -> bool,
) -> Result<Vec<String>, Failure> {
    if !all {
        return names_of(boxes, names);
    }
    Ok(boxes.all()?.into_iter().filter(|it| fits(it)).map(|it| it.name).collect())
}

/// Calls `act` for each name, and prints the name. With `as_json`, prints one object with the names and the errors instead. Continues
/// after errors, and returns the exit code of the first error.
pub(super) fn each(
    names: &[String],
    as_json: bool,
    mut act: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<u8, Failure> {
    if !as_json {
        return try_each(names, |name| {
            act(name)?;
            print(&format!("{name}\n"))
        });
    }
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for name in names {
        match act(name) {
            Ok(()) => done.push(name),
            Err(error) => failed.push(error),
        }
    }
    let mut report = serde_json::json!({ "names": done });
    let code = failed.first().map_or(exit::DONE, |it| it.exit);
    if let Err(failure) = Failure::all(failed) {
        report["errors"] = serde_json::json!(failure.problems());
    }
    print(&json_line(&report)?)?;
    Ok(code)
}

/// Calls `act` for each name. Continues after errors, and returns the exit code of the first error.
fn try_each(
    names: &[String],
    mut act: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<u8, Failure> {
    let mut code = exit::DONE;
    for name in names {
        if let Err(error) = act(name) {
            notice(&error.text());
            code = if code == exit::DONE { error.exit } else { code };
        }
    }
    Ok(code)
}

/// Parses a signal: `KILL`, `SIGKILL` or `9`.
fn signal(text: &str) -> Result<i32, &'static str> {
    signals::number(text).map(i32::from).ok_or("write a signal's name, such as TERM, or its number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_that_starts_gets_no_signal_but_the_one_that_ends_it() {
        assert!(check_ends("hello", Signal::SIGKILL as i32).is_ok());
        for other in [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGUSR1] {
            let refused = check_ends("hello", other as i32);
            assert!(matches!(refused, Err(LaunchError::StillStarting(name)) if name == "hello"));
        }
    }
}
