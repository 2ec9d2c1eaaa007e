//! Corrects the errors of clap, some of whose suggestions lead into the next error.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use diagnostics::suggest::nearest;

/// Removes misleading suggestions from an error of `program`: to pass an unknown option as a value, and an option or a command that is
/// not similar. `tip` is the program's suggestion, which replaces all of clap's.
pub fn correct(error: &mut Error, program: &Command, tip: Option<String>) {
    let has_tip = tip.is_some();
    if has_tip || suggests_a_value(error) {
        error.remove(ContextKind::Suggested);
    }
    if has_tip || !suggests_a_near_command(error) {
        error.remove(ContextKind::SuggestedSubcommand);
    }
    if has_tip || !suggests_what_is_near(error) || suggests_what_is_hidden(error, program) {
        error.remove(ContextKind::SuggestedArg);
    }
    // clap's usage contains the option that it suggests.
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    if is_unknown && error.get(ContextKind::SuggestedArg).is_none() {
        let usage = command_of(error, program).render_usage();
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Returns a text of an error's context.
pub fn context(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns whether clap suggests to pass an unknown option as a value after `--`, or suggests nothing. After `--`, a program expects
/// a box, a path or a command.
fn suggests_a_value(error: &Error) -> bool {
    match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => {
            // An empty list is printed as an empty line.
            tips.is_empty() || tips.iter().any(|tip| tip.to_string().contains("as a value"))
        }
        _ => false,
    }
}

/// Returns whether the option that clap suggests is only a typing error away, because clap also suggests less similar options.
fn suggests_what_is_near(error: &Error) -> bool {
    let name =
        |kind| context(error, kind)?.split(['=', ' ']).next().map(|it| it.trim_start_matches('-'));
    let (typed, proposed) = (name(ContextKind::InvalidArg), name(ContextKind::SuggestedArg));
    typed.zip(proposed).is_none_or(|(typed, proposed)| nearest(typed, &[proposed]).is_some())
}

/// Returns whether the option that clap suggests is hidden from users.
fn suggests_what_is_hidden(error: &Error, program: &Command) -> bool {
    let proposed = context(error, ContextKind::SuggestedArg).and_then(|it| it.strip_prefix("--"));
    let command = command_of(error, program);
    let is_proposed = |it: &&Arg| it.get_long().is_some() && it.get_long() == proposed;
    command.get_arguments().find(is_proposed).is_some_and(Arg::is_hide_set)
}

/// Returns whether a command that clap suggests is only a typing error away.
fn suggests_a_near_command(error: &Error) -> bool {
    let typed = context(error, ContextKind::InvalidSubcommand);
    let proposed = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names.iter().map(String::as_str).collect::<Vec<_>>(),
        _ => return true,
    };
    typed.is_none_or(|typed| nearest(typed, &proposed).is_some())
}

/// Returns the command that an error is about: `program`, or one of its commands. The usage in the error names it.
pub fn command_of(error: &Error, program: &Command) -> Command {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let mut command = program.clone();
    command.build();
    let is_before = |word: &&str| *word != program.get_name();
    for word in usage.split_whitespace().skip_while(is_before).skip(1) {
        let Some(next) = command.find_subcommand(word).cloned() else { break };
        command = next;
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the message for a command line of a program with the command `run`.
    fn message(words: &[&str], tip: Option<&str>) -> String {
        let run = Command::new("run").args([
            Arg::new("detach").long("detach").num_args(0),
            Arg::new("store").long("store"),
            Arg::new("nested").long("nested").num_args(0).hide(true),
            Arg::new("box"),
        ]);
        let command = Command::new("program").subcommands([run, Command::new("push")]);
        let words = ["program"].iter().chain(words);
        let mut error = command.clone().try_get_matches_from(words).unwrap_err();
        correct(&mut error, &command, tip.map(str::to_owned));
        error.to_string()
    }

    #[test]
    fn an_option_that_is_not_similar_is_in_no_tip_and_in_no_usage() {
        insta::assert_snapshot!(message(&["run", "--force"], None), @"
        error: unexpected argument '--force' found

        Usage: program run [OPTIONS] [box]

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(message(&["run", "--detatch"], None), @"
        error: unexpected argument '--detatch' found

          tip: a similar argument exists: '--detach'

        Usage: program run --detach [box]

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(message(&["run", "--detatch"], Some("detach it")), @"
        error: unexpected argument '--detatch' found

          tip: detach it

        Usage: program run [OPTIONS] [box]

        For more information, try '--help'.
        ");
    }

    #[test]
    fn a_hidden_option_is_in_no_tip() {
        insta::assert_snapshot!(message(&["run", "--nest"], None), @"
        error: unexpected argument '--nest' found

        Usage: program run [OPTIONS] [box]

        For more information, try '--help'.
        ");
    }

    #[test]
    fn no_option_is_to_be_passed_as_a_value() {
        insta::assert_snapshot!(message(&["run", "-a"], None), @"
        error: unexpected argument '-a' found

        Usage: program run [OPTIONS] [box]

        For more information, try '--help'.
        ");
    }

    #[test]
    fn a_tip_of_the_program_replaces_a_similar_command() {
        insta::assert_snapshot!(message(&["rum"], None), @"
        error: unrecognized subcommand 'rum'

          tip: a similar subcommand exists: 'run'

        Usage: program [COMMAND]

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(message(&["ps"], None), @"
        error: unrecognized subcommand 'ps'

        Usage: program [COMMAND]

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(message(&["rum"], Some("run it")), @"
        error: unrecognized subcommand 'rum'

          tip: run it

        Usage: program [COMMAND]

        For more information, try '--help'.
        ");
    }
}
