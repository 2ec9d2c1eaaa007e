//! Completions of words on a command line, which the shell asks the program for: names change, so no script can contain them.

use std::ffi::{OsStr, OsString};

use box_cache::StoredBoxes;
use clap::{Arg, Command};
use clap_complete::Shell;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use clap_complete::env::Shells;

use crate::store::{Program, StoreOption};

/// What a completion offers for a word.
pub type Candidate = CompletionCandidate;

/// The end of zsh's script. zsh runs a script of its `fpath` as the function that completes the first word, and the script of
/// clap only registers another function.
const FIRST_WORD: &str =
    "\nif [ \"$funcstack[1]\" = \"_NAME\" ]; then\n    _clap_dynamic_completer_NAME \"$@\"\nfi\n";

/// Returns the script that tells a shell to ask `program` for completions. `program` is found in the shell's `PATH`.
pub(crate) fn script(shell: Shell, program: &str) -> String {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&shell.to_string()) {
        // Writing to memory cannot fail.
        let variable = variable(program);
        drop(shell.write_registration(&variable, program, program, program, &mut script));
    }
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Zsh => script + &FIRST_WORD.replace("NAME", program),
        _ => script,
    }
}

/// Returns the environment variable with which the script of a program names the shell that asks.
pub fn variable(program: &str) -> String {
    format!("{}_COMPLETE", program.to_uppercase())
}

/// Returns the answer to a shell that asks `command` for completions, in the shell's format and without a line feed at the end.
/// `shell` is the value of [`variable`], and `words` are the arguments of the program. Returns `None` if no shell asks: the script puts
/// `--` before the words. The answer is empty after an error, because it has no place on a line that is still being typed.
pub fn answer(
    shell: &OsStr,
    mut words: impl Iterator<Item = OsString>,
    command: impl FnOnce() -> Command,
) -> Option<String> {
    let shells = Shells::builtins();
    let shell = shells.completer(shell.to_str()?)?;
    words.next().filter(|it| it == "--")?;
    let mut answer = Vec::new();
    drop(shell.write_complete(&mut command(), words.collect(), None, &mut answer));
    Some(String::from_utf8_lossy(&answer).trim_end_matches('\n').to_owned())
}

/// Adds completions to an argument: `offered` returns everything that the argument may be, of which those that begin with the word are
/// offered, and with `paths` also files and directories.
#[must_use]
pub fn offering(
    arg: Arg,
    paths: bool,
    offered: impl Fn() -> Vec<Candidate> + Send + Sync + 'static,
) -> Arg {
    arg.add(ArgValueCompleter::new(move |word: &OsStr| {
        let begins =
            |it: &Candidate| it.get_value().as_encoded_bytes().starts_with(word.as_encoded_bytes());
        let mut all = offered();
        all.retain(begins);
        if paths {
            all.extend(PathCompleter::any().complete(word));
        }
        all
    }))
}

/// Returns whether [`offering`] has added completions to an argument.
pub fn is_offering(arg: &Arg) -> bool {
    arg.get::<ArgValueCompleter>().is_some()
}

/// Returns the value name of an argument that has no option, such as `BOX`.
pub fn place(arg: &Arg) -> Option<&str> {
    let name = arg.get_value_names()?.first()?;
    arg.is_positional().then_some(name.as_str())
}

/// Returns the names of the boxes of a program's store, and the references by which boxes were pulled. Returns nothing if there is no
/// usable store, because a completion has no place for an error.
pub fn boxes(program: &Program) -> Vec<Candidate> {
    let quiet = Program { note: |_| (), ..*program };
    let store = StoreOption::default();
    let all = store.root(&quiet).ok().and_then(|root| {
        let base = store.stores(&quiet).base().ok()?;
        StoredBoxes::open(&root).ok()?.with_base(base).all().ok()
    });
    let labels = all.unwrap_or_default().into_iter().filter_map(|it| it.label);
    labels.map(|it| Candidate::new(it.text())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let offered = || vec![Candidate::new("one"), Candidate::new("two")];
        let arg = Arg::new("box").value_name("BOX");
        let run = Command::new("run").arg(offering(arg, false, offered));
        Command::new("program").subcommand(run)
    }

    fn fish(words: &[&str]) -> Option<String> {
        let words = words.iter().map(OsString::from);
        answer(OsStr::new("fish"), words, command)
    }

    #[test]
    fn a_word_is_completed_and_a_command_line_is_not() {
        assert_eq!(fish(&["--", "program", "run", "t"]).unwrap(), "two");
        let all = fish(&["--", "program", "run", ""]).unwrap();
        assert!(all.starts_with("one\ntwo\n"), "{all}");
        assert_eq!(fish(&["--", "program", "r"]).unwrap(), "run");
        assert_eq!(fish(&["run", "--"]), None, "the program was called by a person");
        let other = answer(OsStr::new("sheesh"), [OsString::from("--")].into_iter(), command);
        assert!(other.is_none());
    }

    #[test]
    fn a_script_calls_the_program_of_the_path() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = script(shell, "program");
            assert!(script.contains("PROGRAM_COMPLETE"), "{shell}: {script}");
            assert!(!script.contains('/') || shell != Shell::Fish, "{shell}: {script}");
        }
        let zsh = script(Shell::Zsh, "program");
        assert!(zsh.starts_with("#compdef program\n"), "{zsh}");
        assert!(zsh.contains("\"$funcstack[1]\" = \"_program\""), "{zsh}");
    }
}
