//! Command lines of shells: a parser for the language of POSIX shells, with the additions of bash that run commands.
//!
//! It accepts more than a shell does, because a line that a shell refuses runs no command. Compound commands such as `if` and `for`
//! are scripts of all their commands.

mod ansi;
mod braces;
mod compound;
mod parser;
mod variables;
mod word;

pub(crate) use parser::{parse, read};

/// The maximum number of bytes of a command line that is read.
pub(crate) const MAX_LENGTH: usize = 128 * 1024;

/// The maximum depth of commands inside commands.
pub(crate) const MAX_DEPTH: usize = 32;

/// Why a command line cannot be read, as a clause such as `a quote in it is not closed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable(pub(crate) &'static str);

/// Pipelines, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) pipelines: Vec<Pipeline>,
}

/// Commands whose output is the next one's input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pipeline {
    pub(crate) commands: Vec<Command>,
    /// Whether the shell does not wait for it (`&`).
    pub(crate) is_background: bool,
}

/// A command and its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) kind: Kind,
    pub(crate) redirects: Vec<Redirect>,
}

/// The kinds of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A program and its arguments, or assignments.
    Simple(Simple),
    /// `{ …; }` and the compound commands.
    Group(Script),
    /// `( … )`: its directory is not that of the commands after it.
    Subshell(Script),
    /// The definition of a function.
    Function(String, Script),
}

/// A program with its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    /// The names of the variables that are set.
    pub(crate) assigned: Vec<String>,
    /// Words that are no arguments: the values of variables, and the words of `for`, `case` and `[[`.
    pub(crate) values: Vec<Word>,
    /// The program and its arguments.
    pub(crate) words: Vec<Word>,
    /// Whether `$IFS` separates some of the words.
    pub(crate) has_ifs: bool,
}

/// A word after quotes are removed and known variables are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// The text. What is unknown is written like `$NAME` or `$()`.
    pub(crate) text: String,
    /// The text without what is unknown.
    pub(crate) known: String,
    /// Whether a part of it is known only when the command runs.
    pub(crate) is_unknown: bool,
    /// Whether it has an unquoted `*`, `?` or `[`.
    pub(crate) has_glob: bool,
    /// The commands whose output is a part of the word, or that read or write the file that it names.
    pub(crate) scripts: Vec<Script>,
}

impl Word {
    /// Creates a word that means itself.
    pub(crate) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), known: text.to_owned(), ..Self::default() }
    }
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) kind: RedirectKind,
    /// The file, or the text of [`RedirectKind::Text`].
    pub(crate) target: Word,
}

/// The kinds of redirections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    /// From a file.
    Read,
    /// To a file.
    Write,
    /// From a text: a here-document or a here-string.
    Text,
    /// To or from a file descriptor.
    Duplicate,
}

#[cfg(test)]
mod tests;
