//! Parses the command line, and explains the errors of an invalid one.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::ExitCode;

use box_contract::exit;
use clap::builder::Resettable;
use clap::error::{ContextKind, ErrorKind};
use clap::{Command, CommandFactory as _, FromArgMatches as _};
use cli_common::color::color_of;
use cli_common::usage::{command_of, context, correct};

use super::global::is_workflow;
use super::{Cli, terminal};

/// The exit codes of boxbuild with their meanings.
pub(crate) const EXIT_CODES: [(u8, &str); 7] = [
    (exit::DONE, "done"),
    (exit::FAILED, "the input is wrong, or the command failed"),
    (exit::USAGE, "the command line is wrong"),
    (
        exit::LOCKED,
        "the lock is missing, out of date or malformed (`--locked`, `lock --check`, `attest`, `verify --rebuild`), or of another format epoch",
    ),
    (exit::OVER_BUDGET, "the startup budget is exceeded (`budget`)"),
    (
        exit::DIFFERENT,
        "a difference was found (`diff`, `verify --rebuild`, `update --exit-code`), or the box is damaged or has no trusted signature (`verify`)",
    ),
    (exit::BUG, "a bug in the program"),
];

/// Options that other programs have, with the command that lacks them here and the alternative.
const OTHER_OPTIONS: [(&str, &[&str], &str); 5] = [
    (
        "build",
        &["-t", "--tag"],
        "`--name NAME` names the box in the store, and `--push HOST/NAME:TAG` in a registry",
    ),
    (
        "build",
        &["--iidfile", "--metadata-file"],
        "`boxbuild build -q` prints the digest alone, and `--json` a report: `boxbuild build --json | jq -r .box`",
    ),
    ("inspect", &["--format"], "`--json` prints JSON: `boxbuild inspect BOX --json | jq .images`"),
    ("ls", &["-a", "-R"], "all files are listed, at all depths"),
    ("push", &["-t", "--tag"], "the name comes after the box: `boxbuild push BOX HOST/NAME:TAG`"),
];

/// Commands that take the Boxfile with `-f`.
const TAKE_FILE: [&str; 6] = ["build", "check", "fetch", "lock", "plan", "why"];

/// Parses the command line. An empty variable of the environment is ignored.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let command = command();
    let is_empty = |name: &OsStr| env::var_os(name).is_some_and(|value| value.is_empty());
    let matches = without_variables(command.clone(), is_empty).try_get_matches();
    matches.and_then(|it| Cli::from_arg_matches(&it)).map_err(|error| {
        // clap adds the options of variables to the usage of an error, although the user did not write them.
        let of_words = || without_variables(command, |_| true).try_get_matches().err();
        if error.use_stderr() { of_words().unwrap_or(error) } else { error }
    })
}

fn command() -> Command {
    let args = env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    Cli::command().color(color_of(args))
}

/// Removes the variables of the environment from the options for which `is_removed` returns `true`.
fn without_variables(command: Command, is_removed: impl Fn(&OsStr) -> bool) -> Command {
    command.mut_subcommands(|command| {
        command.mut_args(|arg| match arg.get_env() {
            Some(name) if is_removed(name) => arg.env(Resettable::Reset),
            _ => arg,
        })
    })
}

/// Prints the error of a command line, or the requested help.
pub(crate) fn report(error: clap::Error) -> ExitCode {
    let error = mended(error);
    if error.use_stderr() && is_workflow() {
        // The error repeats words of the command line, which a workflow could read as its commands.
        terminal::configure_workflow(None);
        terminal::error(error.render().to_string().trim_end());
        return ExitCode::from(exit::USAGE);
    }
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        return ExitCode::from(exit::USAGE);
    }
    terminal::check(printed);
    if terminal::lost() { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS }
}

/// Removes misleading suggestions from an error of clap, and adds a tip.
fn mended(mut error: clap::Error) -> clap::Error {
    let program = command();
    let tip = tip(&error, &program);
    correct(&mut error, &program, tip);
    error
}

/// Returns a tip for a command, an option or an argument that clap does not know.
fn tip(error: &clap::Error, program: &Command) -> Option<String> {
    if let Some(name) = context(error, ContextKind::InvalidSubcommand) {
        return of_boxlaunch(name);
    }
    let argument = context(error, ContextKind::InvalidArg)?;
    let command = command_of(error, program);
    let command = command.get_name();
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    if !argument.starts_with('-') {
        let tip = "boxbuild finds the Boxfile in this directory or the nearest one above; `-f PATH` names another";
        return TAKE_FILE.contains(&command).then(|| tip.to_owned());
    }
    let option = argument.split('=').next()?;
    let is_of = |of: &(&str, &[&str], &str)| of.0 == command && of.1.contains(&option);
    OTHER_OPTIONS.iter().find(|it| is_of(it)).map(|(_, _, tip)| (*tip).to_owned())
}

/// Returns a tip for a command that boxlaunch has.
fn of_boxlaunch(name: &str) -> Option<String> {
    match name {
        "run" => Some("boxlaunch runs boxes: `boxlaunch run BOX`".to_owned()),
        "prune" => Some(
            "`boxbuild gc` removes the least recently used boxes and files of the store".to_owned(),
        ),
        "images" | "rmi" => Some(format!("boxlaunch lists and removes boxes: `boxlaunch {name}`")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the message for a wrong command line.
    fn message(line: &str) -> String {
        let words = ["boxbuild"].into_iter().chain(line.split(' '));
        mended(Cli::command().try_get_matches_from(words).unwrap_err()).to_string()
    }

    #[test]
    fn an_option_that_is_not_similar_is_not_proposed() {
        insta::assert_snapshot!(message("build --force"), @"
        error: unexpected argument '--force' found

        Usage: boxbuild build [OPTIONS]

        For more information, try '--help'.
        ");
        for line in ["check --fix", "update --check", "budget hello --write -5%"] {
            let message = message(line);
            assert!(!message.contains("tip: "), "{message}");
        }
        let near = message("build --platfrom x");
        assert!(near.contains("a similar argument exists: '--platform'"), "{near}");
    }

    #[test]
    fn an_option_of_another_program_has_a_tip() {
        insta::assert_snapshot!(message("ls -la hello"), @"
        error: unexpected argument '-a' found

          tip: all files are listed, at all depths

        Usage: boxbuild ls [OPTIONS] <BOX> [PATH]

        For more information, try '--help'.
        ");
        for (line, tip) in [
            ("ls hello -R", ("ls", "-R")),
            ("inspect hello --format=x", ("inspect", "--format")),
            ("push hello -t localhost:1/a:v1", ("push", "-t")),
        ] {
            let is_it = |it: &&(&str, &[&str], &str)| it.0 == tip.0 && it.1.contains(&tip.1);
            let tip = OTHER_OPTIONS.iter().find(is_it).unwrap().2;
            let message = message(line);
            assert_eq!(message.matches("tip: ").count(), 1, "{message}");
            assert!(message.contains(tip), "{message}");
        }
    }

    #[test]
    fn every_exit_code_of_boxbuild_is_in_its_help() {
        let codes = EXIT_CODES.map(|(code, _)| code);
        // Only `boxlaunch update` has the code of a box that was kept.
        let all = exit::ALL.iter().map(|(code, _)| *code).filter(|code| *code != exit::KEPT);
        assert_eq!(codes.as_slice(), all.collect::<Vec<_>>());
        assert!(!exit::help(&EXIT_CODES).contains("boxlaunch"));
    }
}
