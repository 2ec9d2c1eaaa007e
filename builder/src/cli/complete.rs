//! Completions of the boxes that a command line names.

use std::env;

use clap::{Arg, Command, CommandFactory as _};
use cli_common::complete::{self, offering, place};

use super::stored::PROGRAM;
use super::{Cli, terminal};

/// The names of arguments that are boxes.
const BOXES: [&str; 4] = ["BOX", "A", "B", "OLD"];

/// If a shell asks for completions, prints them, and returns true.
pub(crate) fn asked() -> bool {
    let answer = env::var_os(complete::variable("boxbuild"))
        .and_then(|shell| complete::answer(&shell, env::args_os().skip(1), command));
    answer.inspect(|it| terminal::result(it)).is_some()
}

/// Returns the command line with the completions of boxes.
fn command() -> Command {
    Cli::command().mut_subcommands(|command| command.mut_args(named))
}

fn named(arg: Arg) -> Arg {
    match place(&arg) {
        Some(name) if BOXES.contains(&name) => offering(arg, true, || complete::boxes(&PROGRAM)),
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boxes_of_each_command_complete() {
        let all = Cli::command();
        let count = |name: &str| {
            let takes = |it: &&Command| it.get_arguments().any(|arg| place(arg) == Some(name));
            all.get_subcommands().filter(takes).count()
        };
        assert!(BOXES.iter().all(|name| count(name) > 0), "a name is not used any more");
        assert!(count("BOX") > 9, "the argument is called differently");
    }
}
