//! Parses the command line, and explains the errors of an invalid one.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};

use box_contract::exit;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use cli_common::color::color_of;
use cli_common::usage::{command_of, context, correct};
use diagnostics::suggest::nearest;
use safe_text::secrets::{MASK, mask_words};
use safe_text::shell_word;

use super::error::Failure;
use super::exec::ExecArgs;
use super::groups::grouped;
use super::run::RunArgs;
use super::terminal::{self, GlobalOptions};
use super::{Cli, Command};

/// Commands of boxbuild that a user may try here.
const BUILDERS: [&str; 19] = [
    "attest", "budget", "build", "cat", "check", "diff", "export", "fetch", "fmt", "init",
    "keygen", "lock", "plan", "push", "report", "schema", "setup", "sign", "why",
];

/// A command line of one command alone. Building the parsers of all other commands takes as long as a hundredth of a start.
#[derive(Debug, Parser)]
#[command(name = "boxlaunch", disable_help_flag = true, disable_help_subcommand = true)]
struct Alone<C: Subcommand> {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    command: C,
}

#[derive(Debug, Subcommand)]
enum RunAlone {
    Run(RunArgs),
}

#[derive(Debug, Subcommand)]
enum ExecAlone {
    Exec(ExecArgs),
}

/// Parses a command line of one of the commands that are called most often. `None` if it is another one, or has an error.
fn parse_alone(words: &[OsString]) -> Option<Cli> {
    let has = |command: &str| words.iter().any(|it| it == command);
    let (global, command) = if has("run")
        && let Ok(Alone { global, command: RunAlone::Run(run) }) = Alone::try_parse_from(words)
    {
        (global, Command::Run(Box::new(run)))
    } else if has("exec")
        && let Ok(Alone { global, command: ExecAlone::Exec(exec) }) = Alone::try_parse_from(words)
    {
        (global, Command::Exec(exec))
    } else {
        return None;
    };
    Some(Cli { global, command })
}

/// Commands of docker and boxbuild that boxlaunch lacks, and the alternatives.
const OTHERS: [(&str, &str); 13] = [
    (
        "commit",
        "`boxlaunch snapshot create NAME` copies what programs have written to the root of a stopped box, and `boxbuild build` makes a box",
    ),
    ("container", "`boxlaunch ps` lists the started boxes"),
    ("create", "`boxlaunch run --detach BOX` creates and starts a box"),
    ("gc", "`boxlaunch prune` removes the least recently used boxes and files of the store"),
    (
        "image",
        "`boxlaunch images` lists the boxes of the store, and `boxlaunch rmi BOX` removes one",
    ),
    ("list", "`boxlaunch ps` lists the started boxes, and `boxlaunch images` those of the store"),
    ("login", "`docker login HOST` or `podman login HOST`: their credentials are used here, too"),
    ("pause", "a box cannot be paused: `boxlaunch stop NAME` ends it"),
    (
        "system",
        "`boxlaunch prune` removes boxes and files of the store, and `boxlaunch doctor` examines this host",
    ),
    (
        "tag",
        "`boxbuild push BOX HOST/NAME:TAG` gives a box a name in a registry, and `boxbuild build --name NAME` one in the store",
    ),
    ("top", "`boxlaunch stats NAME`, or `boxlaunch exec NAME ps`"),
    ("unpause", "a box cannot be paused: `boxlaunch stop NAME` ends it"),
    ("version", "`boxlaunch --version`"),
];
/// An option of docker that boxlaunch lacks.
struct OtherOption {
    /// The command that lacks the option. `None` for all commands.
    command: Option<&'static str>,
    option: &'static str,
    tip: &'static str,
}

const fn anywhere(option: &'static str, tip: &'static str) -> OtherOption {
    OtherOption { command: None, option, tip }
}

const fn of(command: &'static str, option: &'static str, tip: &'static str) -> OtherOption {
    OtherOption { command: Some(command), option, tip }
}

/// Options of docker that boxlaunch lacks, and the alternatives.
const OTHER_OPTIONS: [OtherOption; 19] = [
    anywhere("--device", NO_DEVICE),
    anywhere("--entrypoint", "a command to run in the box comes after `--`: `-- CMD`"),
    anywhere("--expose", "`-p HOST:GUEST` publishes a port"),
    anywhere("--format", "`--json` prints JSON"),
    anywhere("--gpus", NO_DEVICE),
    anywhere(
        "--hostname",
        "the Boxfile sets it: `namespaces hostname=\"NAME\"` in `agent` or `business`",
    ),
    anywhere("--mount", SHARED),
    anywhere(
        "--privileged",
        "a box gets what its Boxfile declares and this command line gives, and nothing more",
    ),
    anywhere(
        "--tmpfs",
        "the Boxfile of a box declares disks that are empty at each start: `scratch`",
    ),
    of("inspect", "--sbom", "`boxbuild inspect BOX --sbom` lists the packages of a box"),
    of("kill", "-1", SIGNAL),
    of("kill", "-2", SIGNAL),
    of("kill", "-3", SIGNAL),
    of("kill", "-6", SIGNAL),
    of("load", "-i", LOADED),
    of("load", "--input", LOADED),
    of("prune", "-a", PRUNED),
    of("prune", "--all", PRUNED),
    of("run", "--net", "`--network none` starts the box without a network"),
];
/// Commands that lack an argument, and the tips.
const LACKING: [(&str, &str); 3] = [
    (
        "exec",
        "name the box, too: `boxlaunch exec NAME CMD`; `.` is the environment of the current directory",
    ),
    ("load", LOADED),
    ("run", "a command comes after `--`, for example a shell: `boxlaunch run -it BOX -- sh`"),
];
const LOADED: &str = "`boxlaunch load FILE`, or `boxlaunch load -` for standard input";
const NO_DEVICE: &str = "a box has no device of this host";
const PRUNED: &str = "`--max-size 0` removes everything that need not be kept";
const SHARED: &str =
    "`-v HOST:GUEST` shows a directory of this host, and `--volume NAME:/PATH` a volume";
const SIGNAL: &str = "`--signal 9` or `--signal KILL` names the signal";

/// Parses the command line.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let words: Vec<_> = env::args_os().collect();
    // The full parser handles errors and all other commands.
    if let Some(cli) = parse_alone(&words) {
        return Ok(cli);
    }
    let args: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // Only the help needs the groups, which take milliseconds.
    let is_help = |arg: &String| ["-h", "--help", "help"].contains(&arg.as_str());
    let has_help = args.len() < 2 || args.iter().any(is_help);
    let command = if has_help { grouped(Cli::command()) } else { Cli::command() };
    let command = command.color(color_of(args));
    Cli::from_arg_matches(&command.try_get_matches_from(words)?)
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
    let program = Cli::command();
    let tip = tip(&error, &program);
    correct(&mut error, &program, tip);
    error
}

/// Masks values that clap would repeat: each value of `--env`, and values of other options that look like secrets.
fn hide_values(error: &mut clap::Error) {
    let text = |kind| context(error, kind).map(str::to_owned);
    let (option, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let is_variable = option.as_ref().is_some_and(|it| it.starts_with("--env "));
    let masked = |text| {
        let mut words = [text];
        mask_words(&mut words);
        words.concat()
    };
    // Only an unknown option can contain a secret: clap shows a known one as in its help, for example `--secret <NAME[=SOURCE]>`.
    if let Some(option) = option.filter(|_| error.kind() == ErrorKind::UnknownArgument) {
        error.insert(ContextKind::InvalidArg, ContextValue::String(masked(option)));
    }
    // clap reports an empty value as missing, so there is nothing to mask.
    if let Some(value) = value.filter(|it| !it.is_empty()) {
        let value = if is_variable { MASK.to_owned() } else { masked(value) };
        error.insert(ContextKind::InvalidValue, ContextValue::String(value));
    }
}

/// Returns a tip for a command, an option or an argument that clap does not know.
fn tip(error: &clap::Error, program: &clap::Command) -> Option<String> {
    let text = |kind| context(error, kind);
    let other = text(ContextKind::InvalidSubcommand);
    if let Some((_, tip)) = OTHERS.iter().find(|(name, _)| other == Some(*name)) {
        return Some((*tip).to_owned());
    }
    if let Some(name) = other {
        return of_boxbuild(name, program);
    }
    let command = command_of(error, program);
    if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some((_, tip)) = LACKING.iter().find(|(name, _)| *name == command.get_name())
    {
        return Some((*tip).to_owned());
    }
    let word = text(ContextKind::InvalidArg)?;
    if word.starts_with('-') {
        let name = word.split('=').next();
        let is_of = |it: &OtherOption| it.command.is_none_or(|of| of == command.get_name());
        let other = OTHER_OPTIONS.iter().find(|it| name == Some(it.option) && is_of(it));
        return other
            .filter(|_| error.kind() == ErrorKind::UnknownArgument)
            .map(|it| it.tip.to_owned());
    }
    let usage = error.get(ContextKind::Usage)?.to_string();
    usage
        .contains("[-- <CMD>")
        .then(|| format!("a command to run in the box comes after `--`: `-- {}`", shell_word(word)))
}

/// Returns a tip for a command that boxbuild has, or to which a command of boxbuild is nearer than every command of `program`.
fn of_boxbuild(name: &str, program: &clap::Command) -> Option<String> {
    if BUILDERS.contains(&name) {
        return Some(format!("boxbuild builds and inspects boxes: `boxbuild {name}`"));
    }
    let own = program.get_subcommands().map(clap::Command::get_name);
    let meant = nearest(name, &own.chain(BUILDERS).collect::<Vec<_>>())?;
    BUILDERS.contains(&meant).then(|| format!("did you mean `boxbuild {meant}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tip_for(line: &str) -> Option<String> {
        tip(&Cli::command().try_get_matches_from(line.split(' ')).unwrap_err(), &Cli::command())
    }

    #[test]
    fn both_parsers_read_a_command_alike() {
        let alone =
            |line: &str| parse_alone(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in [
            "boxlaunch run x.box",
            "boxlaunch -q run --detach --name n x.box --cpus 2",
            "boxlaunch run --json -e A=1 x.box -- ls -l --color never",
            "boxlaunch exec -q hello -- run --help",
            "boxlaunch exec --component agent -it -e A=1 hello sh",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(format!("{:?}", alone(line).unwrap()), format!("{cli:?}"));
        }
        for other in [
            "boxlaunch ps",
            "boxlaunch run --help",
            "boxlaunch exec",
            "boxlaunch --version",
            "boxlaunch",
        ] {
            assert!(alone(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_wrong_command_line_has_a_tip() {
        let command = tip_for("boxlaunch run x.box ls -l").unwrap();
        assert_eq!(command, "a command to run in the box comes after `--`: `-- ls`");
        let other = tip_for("boxlaunch build").unwrap();
        assert_eq!(other, "boxbuild builds and inspects boxes: `boxbuild build`");
        for (typed, meant) in [("biuld", "build"), ("puhs", "push"), ("Fetch", "fetch")] {
            let tip = tip_for(&format!("boxlaunch {typed}")).unwrap();
            assert_eq!(tip, format!("did you mean `boxbuild {meant}`?"));
        }
        assert!(tip_for("boxlaunch top x").unwrap().contains("boxlaunch stats"));
        assert!(tip_for("boxlaunch exec ls").unwrap().contains("exec NAME CMD"));
        assert!(tip_for("boxlaunch run -it x.box").unwrap().contains("-it BOX -- sh"));
        for without in [
            "boxlaunch run x.box --ls",
            "boxlaunch verify x y",
            "boxlaunch rn x",
            "boxlaunch imags",
        ] {
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
        error: a value is required for '--secret <NAME[=SOURCE]>' but none was supplied

        For more information, try '--help'.
        ");
        for words in [
            &["run", "x.box", "-e", "=canary"][..],
            &["run", "x.box", "--cpus", "ghp_0123456789canary"],
            &["run", "x.box", "--proxy", "http://user:canary@proxy"],
        ] {
            let text = output(words);
            assert!(text.contains("****") && !text.contains("canary"), "{text}");
        }
    }

    #[test]
    fn only_what_is_near_is_proposed() {
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

    fn whole(line: &str) -> String {
        let error = Cli::command().try_get_matches_from(line.split(' ')).unwrap_err();
        mended(error).to_string()
    }

    #[test]
    fn the_usage_names_no_option_that_was_only_similar() {
        insta::assert_snapshot!(whole("boxlaunch run hello --link x"), @"
        error: unexpected argument '--link' found

        Usage: boxlaunch run [OPTIONS] <BOX> [-- <CMD>...]
               boxlaunch run [OPTIONS] --image <IMAGE> -- <CMD>...

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(whole("boxlaunch volume rm w --gpus all"), @"
        error: unexpected argument '--gpus' found

          tip: a box has no device of this host

        Usage: boxlaunch volume rm [OPTIONS] <NAME>...

        For more information, try '--help'.
        ");
    }

    #[test]
    fn the_option_for_internal_use_is_not_the_typing_error() {
        let text = whole("boxlaunch run --detached hello");
        assert!(text.contains("a similar argument exists: '--detach'"), "{text}");
    }

    #[test]
    fn a_command_of_docker_gets_one_tip() {
        for command in ["push hello", "login", "pause x", "create", "commit x", "version", "top"] {
            let text = whole(&format!("boxlaunch {command}"));
            assert!(text.contains("tip: ") && !text.contains("similar"), "{text}");
        }
        let near = whole("boxlaunch imags");
        assert!(near.contains("a similar subcommand exists: 'images'"), "{near}");
    }

    #[test]
    fn an_option_of_docker_gets_the_alternative() {
        for (line, tip) in [
            ("inspect --sbom hello", "boxbuild inspect BOX --sbom"),
            ("load -i x.tar", "boxlaunch load FILE"),
            ("load", "boxlaunch load -"),
            ("run --net none x", "--network none"),
            ("prune -a", "--max-size 0"),
            ("ps --format json", "--json"),
        ] {
            let text = whole(&format!("boxlaunch {line}"));
            assert!(text.contains(tip) && !text.contains("similar"), "{text}");
        }
        assert_eq!(tip_for("boxlaunch run -n 10 x"), None);
    }

    #[test]
    fn volumes_are_listed_as_skills_are() {
        for line in ["boxlaunch volume list", "boxlaunch skills x list"] {
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
    }

    #[test]
    fn a_number_of_cpus_is_asked_for() {
        for value in ["1.5", "0", "17", "-1", "x"] {
            let text = output(&["run", "x.box", "--cpus", value]);
            assert!(text.contains("write a whole number from 1 to 16"), "{text}");
        }
        let text = output(&["exec", "x", "--json", "--max-output", "1G", "--", "ls"]);
        assert!(text.contains("write a size from 0B to 256MiB, such as 64MiB"), "{text}");
    }

    #[test]
    fn a_size_of_memory_is_asked_for() {
        for option in ["--memory", "--max-memory"] {
            for value in ["1.5g", "0", "99999999999"] {
                let text = output(&["run", "x.box", option, value]);
                assert!(text.contains("write a size from "), "{text}");
            }
        }
    }
}
