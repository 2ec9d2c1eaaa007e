//! Completions of the names that a command line contains: started boxes, boxes of the store, volumes and snapshots.

use std::env;

use boxlaunch::boxes::{Boxes, Record, Snapshots, State};
use boxlaunch::mounts::volumes::Volumes;
use clap::{Arg, Command, CommandFactory as _};
use cli_common::complete::{self, Candidate, offering, place};

use super::error::Failure;
use super::stored::PROGRAM;
use super::terminal::print;
use super::{Cli, paths};

/// Commands that a box can be named for after its end.
const OF_ENDED: [&str; 10] =
    ["events", "inspect", "logs", "reset", "restart", "rm", "snapshot", "start", "task", "wait"];
/// The command of `volume` and `snapshot` whose last name is a new one.
const CREATE: &str = "create";

/// If a shell asks for completions, prints them. Returns `None` if no shell asks.
pub(crate) fn asked() -> Option<Result<u8, Failure>> {
    let shell = env::var_os(complete::variable("boxlaunch"))?;
    let answer = complete::answer(&shell, env::args_os().skip(1), command)?;
    Some(print(&(answer + "\n")).map(|()| 0))
}

/// Returns the command line with the completions of names.
fn command() -> Command {
    Cli::command().mut_subcommands(|command| {
        let of = command.get_name().to_owned();
        named(command, &of)
    })
}

/// Adds completions to the arguments of a command and of its subcommands that are names. `of` is the command of boxlaunch that has all
/// of them.
fn named(command: Command, of: &str) -> Command {
    let is_new = command.get_name() == CREATE;
    let offered = |arg| match place(&arg) {
        Some("NAME") if of == "volume" && is_new => arg,
        Some("NAME") if of == "volume" => offering(arg, false, || volumes("")),
        Some("SNAP") if is_new => arg,
        Some("SNAP") => offering(arg, false, snapshots),
        Some("NAME") => {
            let ended = OF_ENDED.contains(&of);
            offering(arg, false, move || started(ended, ""))
        }
        Some("SOURCE" | "DESTINATION" | "NAME[:PATH]") => {
            offering(arg, true, || started(false, ":"))
        }
        Some("BOX") if of == "inspect" => offering(arg, true, || {
            started(true, "").into_iter().chain(complete::boxes(&PROGRAM)).collect()
        }),
        Some("BOX") => offering(arg, true, || complete::boxes(&PROGRAM)),
        _ if has_name(&arg, "volume") => offering(arg, false, || volumes(":/")),
        _ if has_name(&arg, "from") => offering(arg, false, snapshots),
        _ => arg,
    };
    command.mut_args(offered).mut_subcommands(|command| named(command, of))
}

fn has_name(arg: &Arg, option: &str) -> bool {
    arg.get_long() == Some(option)
}

/// Returns the names of the boxes that run, with `ended` also of those that have ended, each with `after` behind it.
fn started(ended: bool, after: &str) -> Vec<Candidate> {
    let all = paths::state().ok().and_then(|state| Boxes::new(&state).all().ok());
    let fits = |it: &Record| ended || it.state != State::Ended;
    let names = all.unwrap_or_default().into_iter().filter(fits);
    names.map(|it| candidate(it.name + after, it.state)).collect()
}

fn candidate(name: String, state: State) -> Candidate {
    let help = match state {
        State::Starting => "starting",
        State::Running => "running",
        State::Ended => "ended",
    };
    Candidate::new(name).help(Some(help.into()))
}

/// Returns the names of volumes, each with `after` behind it.
fn volumes(after: &str) -> Vec<Candidate> {
    let all = paths::state().ok().and_then(|state| Volumes::new(&state).all().ok());
    let names = all.map(|(all, _)| all).unwrap_or_default().into_iter();
    names.map(|it| Candidate::new(it.name + after)).collect()
}

/// Returns the names of snapshots.
fn snapshots() -> Vec<Candidate> {
    let all = paths::state().ok().and_then(|state| Snapshots::new(&state).all().ok());
    let all = all.map(|(all, _)| all).unwrap_or_default().into_iter();
    all.map(|it| Candidate::new(it.name).help(Some(it.of.into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every argument of every command that is called like a name has completions.
    #[test]
    fn every_name_completes() {
        let mut without = Vec::new();
        let mut commands = vec![command()];
        while let Some(command) = commands.pop() {
            let is_named = |it: &&Arg| matches!(place(it), Some("NAME" | "BOX" | "SNAP"));
            let names = command.get_arguments().filter(is_named);
            let bare = names.filter(|it| !complete::is_offering(it));
            without.extend(bare.map(|it| format!("{} {}", command.get_name(), it.get_id())));
            commands.extend(command.get_subcommands().cloned());
        }
        without.sort();
        let expected = ["create name", "create snapshot"];
        assert_eq!(without, expected, "a new volume and a new snapshot have new names");
    }
}
