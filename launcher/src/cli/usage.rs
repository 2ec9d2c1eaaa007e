//! Parses the command line, and explains the errors of an invalid one.

use std::env;
use std::io::{self, Write};

use box_contract::exit;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use cli_common::color::color_of;
use diagnostics::suggest::nearest;
use safe_text::secrets::{MASK, mask_words};
use safe_text::shell_word;

use super::error::Failure;
use super::run::RunArgs;
use super::terminal::{self, GlobalOptions};
use super::{Cli, Command};

/// Commands of boxbuild that a user may try here.
const BUILDERS: [&str; 10] =
    ["build", "cat", "check", "diff", "export", "fetch", "init", "ls", "plan", "push"];

/// The command line of a start alone. Building the parsers of all other commands takes as long as a hundredth of a start.
#[derive(Debug, Parser)]
#[command(name = "boxlaunch", disable_help_flag = true, disable_help_subcommand = true)]
struct Start {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    command: StartCommand,
}

#[derive(Debug, Subcommand)]
enum StartCommand {
    Run(RunArgs),
}

/// Commands of docker and boxbuild that boxlaunch lacks, and the alternatives.
const OTHERS: [(&str, &str); 7] = [
    ("login", "`docker login HOST` or `podman login HOST`: their credentials are used here, too"),
    (
        "tag",
        "`boxbuild push BOX HOST/NAME:TAG` gives a box a name in a registry, and `boxbuild build --name NAME` one in the store",
    ),
    ("gc", "`boxlaunch prune` removes the least recently used boxes and files of the store"),
    ("pause", "a box cannot be paused: `boxlaunch stop NAME` ends it"),
    ("restart", STARTED_AGAIN),
    ("start", STARTED_AGAIN),
    ("top", "`boxlaunch stats NAME`, or `boxlaunch exec NAME ps`"),
];
const STARTED_AGAIN: &str = "a box that has ended is not started again; start a new one under its name: `boxlaunch rm NAME`, \
                             then `boxlaunch run --detach --name NAME BOX`";

/// Options of docker that boxlaunch lacks, and the alternatives.
const OTHER_OPTIONS: [(&str, &str); 7] = [
    ("--entrypoint", "a command to run in the box comes after `--`: `-- CMD`"),
    ("--gpus", "a box has no device of this host"),
    ("--hostname", "the Boxfile of a box gives its components their names: `hostname`"),
    ("--mount", SHARED),
    (
        "--privileged",
        "a box gets what its Boxfile declares and this command line gives, and nothing more",
    ),
    (
        "--restart",
        "a box that has ended is not started again; `restart` in its Boxfile is for a component of it",
    ),
    ("--tmpfs", "the Boxfile of a box declares disks that are empty at each start: `scratch`"),
];
const SHARED: &str =
    "`-v HOST:GUEST` shows a directory of this host, and `--volume NAME:/PATH` a volume";

/// Parses the command line.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    // The full parser handles errors and all other commands.
    if let Ok(Start { global, command: StartCommand::Run(run) }) = Start::try_parse() {
        return Ok(Cli { global, command: Command::Run(Box::new(run)) });
    }
    let args = env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    let command = Cli::command().color(color_of(args));
    Cli::from_arg_matches(&command.try_get_matches()?)
}

/// Prints clap's message. Help and versions go to standard output, with exit code 0.
///
/// # Errors
/// Help or a version cannot be written to standard output.
pub(crate) fn report(error: clap::Error) -> Result<u8, Failure> {
    let error = mended(error);
    let printed = error.print();
    if error.use_stderr() {
        // A failed write to standard error cannot be reported.
        return Ok(exit::USAGE);
    }
    terminal::printed(printed.and_then(|()| io::stdout().flush())).map(|()| 0)
}

/// Removes secrets and misleading suggestions from an error of clap, and adds a tip.
fn mended(mut error: clap::Error) -> clap::Error {
    hide_values(&mut error);
    if suggests_a_value(&error) {
        error.remove(ContextKind::Suggested);
    }
    if !suggests_what_is_near(&error) {
        error.remove(ContextKind::SuggestedArg);
    }
    if let Some(tip) = tip(&error) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Masks values that clap would repeat: each value of `--env`, and values of other options that look like secrets.
fn hide_values(error: &mut clap::Error) {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (option, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let is_variable = option.as_ref().is_some_and(|it| it.starts_with("--env "));
    let masked = |text| {
        let mut words = [text];
        mask_words(&mut words);
        words.concat()
    };
    // Only an unknown option can contain a secret: clap shows a known one as in its help, for example `--secret <NAME=SOURCE>`.
    if let Some(option) = option.filter(|_| error.kind() == ErrorKind::UnknownArgument) {
        error.insert(ContextKind::InvalidArg, ContextValue::String(masked(option)));
    }
    // clap reports an empty value as missing, so there is nothing to mask.
    if let Some(value) = value.filter(|it| !it.is_empty()) {
        let value = if is_variable { MASK.to_owned() } else { masked(value) };
        error.insert(ContextKind::InvalidValue, ContextValue::String(value));
    }
}

/// Returns whether clap suggests to pass an unknown option as a value after `--`. That is misleading, because boxlaunch expects a
/// box or a command there.
fn suggests_a_value(error: &clap::Error) -> bool {
    match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => {
            tips.iter().any(|tip| tip.to_string().contains("as a value"))
        }
        _ => false,
    }
}

/// Returns whether the option that clap suggests is only a typing error away, because clap also suggests less similar options.
fn suggests_what_is_near(error: &clap::Error) -> bool {
    let name = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => {
            text.split(['=', ' ']).next().map(|it| it.trim_start_matches('-'))
        }
        _ => None,
    };
    let (typed, proposed) = (name(ContextKind::InvalidArg), name(ContextKind::SuggestedArg));
    let is_other = OTHER_OPTIONS.iter().any(|(option, _)| typed == option.strip_prefix("--"));
    let is_near = |typed: &str, proposed| nearest(typed, &[proposed]).is_some();
    typed.zip(proposed).is_none_or(|(typed, proposed)| !is_other && is_near(typed, proposed))
}

/// Returns a tip for a command, an option or an argument that clap does not know.
fn tip(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let other = text(ContextKind::InvalidSubcommand);
    if let Some((_, tip)) = OTHERS.iter().find(|(name, _)| other == Some(*name)) {
        return Some((*tip).to_owned());
    }
    if let Some(name) = text(ContextKind::InvalidSubcommand).filter(|it| BUILDERS.contains(it)) {
        return Some(format!("boxbuild builds and inspects boxes: `boxbuild {name}`"));
    }
    let word = text(ContextKind::InvalidArg)?;
    if word.starts_with('-') {
        let name = word.split('=').next();
        let other = OTHER_OPTIONS.iter().find(|(option, _)| name == Some(*option));
        return other
            .filter(|_| error.kind() == ErrorKind::UnknownArgument)
            .map(|(_, tip)| (*tip).to_owned());
    }
    let usage = error.get(ContextKind::Usage)?.to_string();
    usage
        .contains("[-- <CMD>")
        .then(|| format!("a command to run in the box comes after `--`: `-- {}`", shell_word(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tip_for(line: &str) -> Option<String> {
        tip(&Cli::command().try_get_matches_from(line.split(' ')).unwrap_err())
    }

    #[test]
    fn both_parsers_read_a_start_alike() {
        for line in [
            "boxlaunch run x.box",
            "boxlaunch -q run --detach --name n x.box --cpus 2",
            "boxlaunch run --json -e A=1 x.box -- ls -l --color never",
        ] {
            let Start { global, command } = Start::try_parse_from(line.split(' ')).unwrap();
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(
                format!("{global:?} {command:?}"),
                format!("{:?} {:?}", cli.global, cli.command)
            );
        }
        for other in ["boxlaunch ps", "boxlaunch run --help", "boxlaunch --version", "boxlaunch"] {
            assert!(Start::try_parse_from(other.split(' ')).is_err(), "{other}");
        }
    }

    #[test]
    fn a_wrong_command_line_has_a_tip() {
        let command = tip_for("boxlaunch run x.box ls -l").unwrap();
        assert_eq!(command, "a command to run in the box comes after `--`: `-- ls`");
        let other = tip_for("boxlaunch build").unwrap();
        assert_eq!(other, "boxbuild builds and inspects boxes: `boxbuild build`");
        assert_eq!(tip_for("boxlaunch top x").unwrap(), OTHERS[6].1);
        for without in ["boxlaunch run x.box --ls", "boxlaunch verify x y", "boxlaunch rn x"] {
            assert_eq!(tip_for(without), None, "{without}");
        }
    }

    fn output(words: &[&str]) -> String {
        let words = ["boxlaunch"].iter().chain(words);
        let error = mended(Cli::command().try_get_matches_from(words).unwrap_err()).to_string();
        error.split("\n\nUsage").next().unwrap().to_owned()
    }

    #[test]
    fn a_placeholder_is_shown_and_no_value_is() {
        insta::assert_snapshot!(output(&["run", "x.box", "-e"]), @"
        error: a value is required for '--env <[COMPONENT/]NAME=VALUE>' but none was supplied

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(output(&["exec", "x", "-e"]), @"
        error: a value is required for '--env <NAME=VALUE>' but none was supplied

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(output(&["run", "x.box", "--secret"]), @"
        error: a value is required for '--secret <NAME=SOURCE>' but none was supplied

        For more information, try '--help'.
        ");
        for words in [
            &["run", "x.box", "-e", "=canary"][..],
            &["run", "x.box", "--cpus", "ghp_0123456789canary"],
        ] {
            let text = output(words);
            assert!(text.contains("****") && !text.contains("canary"), "{text}");
        }
    }

    #[test]
    fn only_what_is_near_is_proposed() {
        insta::assert_snapshot!(output(&["run", "x.box", "--restart", "always"]), @"
        error: unexpected argument '--restart' found

          tip: a box that has ended is not started again; `restart` in its Boxfile is for a component of it
        ");
        insta::assert_snapshot!(output(&["run", "x.box", "--gpus=all"]), @"
        error: unexpected argument '--gpus' found

          tip: a box has no device of this host
        ");
        insta::assert_snapshot!(output(&["run", "x.box", "--mount"]), @"
        error: unexpected argument '--mount' found

          tip: `-v HOST:GUEST` shows a directory of this host, and `--volume NAME:/PATH` a volume
        ");
        insta::assert_snapshot!(output(&["run", "x.box", "--detatch"]), @"
        error: unexpected argument '--detatch' found

          tip: a similar argument exists: '--detach'
        ");
        for option in ["--hostname", "--tmpfs", "--cap-add", "--read-only", "--label"] {
            let text = output(&["run", "x.box", option]);
            assert!(!text.contains("similar"), "{text}");
        }
    }

    #[test]
    fn a_size_of_memory_is_asked_for() {
        for option in ["--memory", "--max-memory"] {
            for value in ["1g", "0", "99999999999"] {
                let text = output(&["run", "x.box", option, value]);
                assert!(text.contains("write a number of MiB from "), "{text}");
            }
        }
    }
}
