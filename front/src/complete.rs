//! Completions: a shell asks `box`, and `box` asks the program that has the command.

use std::env;
use std::ffi::{OsStr, OsString};

use crate::program::{AMBIGUOUS, Program};

/// The variable in which the script of `box completions` names the shell.
const SHELL: &str = "BOX_COMPLETE";
/// The variable with the index of the word to complete. fish has none: there, it is the last word.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
/// The variable with the separator of the answers. fish has none.
const SEPARATOR: &str = "_CLAP_IFS";

/// Returns whether a shell asks for completions.
pub(crate) fn is_asked() -> bool {
    env::var_os(SHELL).is_some()
}

/// Returns the script of boxlaunch for a shell, with the name of this program.
///
/// # Errors
/// boxlaunch cannot be started, or knows no such shell.
pub(crate) fn script(words: &[OsString]) -> Result<String, String> {
    let script = Program::Boxlaunch.output(words.iter().map(OsString::as_os_str), None)?;
    Ok(script.replace("BOXLAUNCH", "BOX").replace("boxlaunch", "box"))
}

/// Returns the completions of the words after `-- box`. A word that is still being typed gets no completion from a program that
/// cannot be started, if the other one can.
///
/// # Errors
/// The program that has the command cannot be started.
pub(crate) fn answer(words: &[OsString]) -> Result<String, String> {
    let words = words.get(2..).unwrap_or_default();
    let index = env::var(INDEX).ok().and_then(|it| it.parse().ok()).unwrap_or(words.len());
    if index > 1 {
        return Program::of(words).map_or_else(|_| Ok(String::new()), |it| ask(it, words));
    }
    let separator = env::var(SEPARATOR).unwrap_or_else(|_| "\n".to_owned());
    let mut offered: Vec<String> = Vec::new();
    for program in Program::ALL {
        let answer = ask(program, words).unwrap_or_default();
        for word in answer.trim_end_matches('\n').split(separator.as_str()) {
            let is_of_box = !word.starts_with(AMBIGUOUS);
            if !word.is_empty() && is_of_box && !offered.iter().any(|it| it == word) {
                offered.push(word.to_owned());
            }
        }
    }
    Ok(offered.join(&separator))
}

fn ask(program: Program, words: &[OsString]) -> Result<String, String> {
    let variable = format!("{}_COMPLETE", program.name().to_uppercase());
    let shell = env::var_os(SHELL).unwrap_or_default();
    let before = ["--", program.name()].map(OsStr::new);
    let words = before.into_iter().chain(words.iter().map(OsString::as_os_str));
    program.output(words, Some((&variable, &shell)))
}
