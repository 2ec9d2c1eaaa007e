//! `box --help`: the commands of both programs.

use std::ffi::{OsStr, OsString};

use crate::program::{AMBIGUOUS, Program};

/// The heading of boxbuild's commands. boxlaunch's have headings of their own.
const BUILDING: &str = "Build boxes:";
const HEAD: &str = "\
Builds, ships and runs boxes: microVM images for AI agents

Usage: box COMMAND [ARGUMENTS]

Starts boxbuild or boxlaunch with these arguments. `box COMMAND --help` shows the options of a command.

";

/// Returns the help: the lists of commands in the helps of both programs, each command once. A host may lack one of the programs.
///
/// # Errors
/// No program can be started.
pub(crate) fn text() -> Result<String, String> {
    let helps = Program::ALL.map(|it| (it, it.output([OsStr::new("--help")], None)));
    if let [(_, Err(reason)), (_, Err(_))] = helps {
        return Err(reason);
    }
    let mut text = HEAD.to_owned();
    for (program, help) in helps {
        for line in list(&help.unwrap_or_default()).map(|it| it.replace("Commands:", BUILDING)) {
            let command = line.strip_prefix("  ").and_then(|it| it.split_whitespace().next());
            let is_own =
                |it: &str| it != AMBIGUOUS && Program::of(&[OsString::from(it)]) == Ok(program);
            if command.is_none_or(is_own) {
                text += &(line + "\n");
            }
        }
    }
    text += &format!(
        "\nBoth programs have `{AMBIGUOUS}`: write `boxbuild {AMBIGUOUS}` or `boxlaunch {AMBIGUOUS}`.\n"
    );
    Ok(text)
}

/// Returns the lines of a help between the usage and the options.
fn list(help: &str) -> impl Iterator<Item = &str> {
    let after_usage = help.lines().skip_while(|it| !it.starts_with("Usage:")).skip(2);
    after_usage.take_while(|it| *it != "Options:").collect::<Vec<_>>().into_iter()
}
