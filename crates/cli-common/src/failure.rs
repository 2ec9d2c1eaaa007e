//! A failed command: its errors, as text and as JSON, and its exit code. Every error of both programs becomes a
//! [`Failure`].

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Display;
use std::marker::PhantomData;

use box_contract::{ErrorCode, exit};
use diagnostics::{Diagnostic, MAX_KEPT, Sources};
use safe_text::shown_json;
use serde_json::{Value, json};

use crate::problem::{self, Explanation, Problem};

/// How a program reports a failed command: its exit codes and its colours.
pub trait Reporter: Sized {
    /// Returns the exit code of a command that fails with `code`.
    fn exit(code: ErrorCode) -> u8 {
        code.exit()
    }

    /// Adds colours to the text of errors, if the program uses colours.
    fn painted(text: &str) -> Cow<'_, str> {
        text.into()
    }
}

/// A program that has an [`Explanation`] for the error `E` of a library, so that `?` converts it into a [`Failure`].
pub trait Table<E>: Reporter {
    /// Converts an error into the failure of a command.
    fn failure(error: E) -> Failure<Self>;
}

/// A failed command of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure<P> {
    /// The exit code.
    pub exit: u8,
    /// The errors that are printed. Empty if the result of the command already describes its errors.
    problems: Vec<Problem>,
    /// The number of listed errors of a file, if the file may have more.
    truncated: Option<usize>,
    /// Lines above the errors in the text output, without colours.
    words: String,
    program: PhantomData<P>,
}

impl<P: Table<E>, E: Error> From<E> for Failure<P> {
    fn from(error: E) -> Self {
        P::failure(error)
    }
}

impl<P: Reporter> Failure<P> {
    /// Returns a failure with one error.
    pub fn new(explanation: impl Into<Explanation>, message: impl Display) -> Self {
        Self::of([Problem::new(explanation, message)])
    }

    /// Returns the failure of an invalid command line.
    pub fn usage(message: impl Display) -> Self {
        Self::new(ErrorCode::Usage, message)
    }

    /// Returns a failure without errors, for a command whose result already describes the errors.
    pub const fn reported(exit: u8) -> Self {
        Self {
            exit,
            problems: Vec::new(),
            truncated: None,
            words: String::new(),
            program: PhantomData,
        }
    }

    /// Returns a failure with `problems`, at least one. The first one decides the exit code.
    pub fn of(problems: impl IntoIterator<Item = Problem>) -> Self {
        let problems: Vec<_> = problems.into_iter().collect();
        let exit = problems.first().map_or(exit::FAILED, |it| P::exit(it.code));
        Self { problems, ..Self::reported(exit) }
    }

    /// Returns a failure with the diagnostics of a text.
    pub fn of_diagnostics(code: ErrorCode, found: &[Diagnostic], sources: &Sources) -> Self {
        let failure = Self::of(Problem::of_diagnostics(code, found, sources));
        let failure = failure.with_exit(P::exit(code));
        if found.len() < MAX_KEPT { failure } else { failure.cut() }
    }

    /// Returns the messages of the errors, without hints.
    pub fn message(&self) -> String {
        let messages: Vec<_> = self.problems.iter().map(Problem::message).collect();
        messages.join("; ")
    }

    /// Adds lines below the text of each error, and the same details as JSON fields.
    #[must_use]
    pub fn with_details(self, lines: &str, data: &[(&str, Value)]) -> Self {
        let problems = self.problems.into_iter().map(|it| it.with_details(lines, data)).collect();
        Self { problems, ..self }
    }

    /// Sets the lines above the errors in the text output.
    #[must_use]
    pub fn with_words(self, words: String) -> Self {
        Self { words, ..self }
    }

    /// Sets the exit code.
    #[must_use]
    pub const fn with_exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// Marks the list of errors as incomplete.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { truncated: Some(MAX_KEPT), ..self }
    }

    /// Returns the errors and warnings, in the order in which they are printed.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns whether an error has the code `code`.
    pub fn has(&self, code: ErrorCode) -> bool {
        self.problems.iter().any(|it| it.code == code)
    }

    /// Merges several failures. The exit code is the exit code of all of them, or 1 if their exit codes differ.
    ///
    /// # Errors
    /// The merged failure, if it has at least one error.
    pub fn all(failures: Vec<Self>) -> Result<(), Self> {
        let truncated = failures.iter().find_map(|it| it.truncated);
        let same = failures.windows(2).all(|pair| pair[0].exit == pair[1].exit);
        let exit = failures.first().filter(|_| same).map_or(exit::FAILED, |it| it.exit);
        let problems: Vec<_> = failures.into_iter().flat_map(|it| it.problems).collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(Self { problems, truncated, ..Self::reported(exit) })
    }

    /// Returns the text output with a final newline, or an empty text if there is no error.
    pub fn text(&self) -> String {
        if self.problems.is_empty() {
            return String::new();
        }
        let mut text = problem::text(&self.problems).trim_end().to_owned();
        if let Some(most) = self.truncated {
            text += &format!(
                "\n\nthere may be more errors: only the first {most} of a file are listed"
            );
        }
        format!("{}{}\n", self.words, P::painted(&text))
    }

    /// Returns the line that `--json` prints, or an empty text if there is no error.
    pub fn json(&self) -> String {
        let json = match self.truncated {
            _ if self.problems.is_empty() => return String::new(),
            None => problem::json(&self.problems),
            Some(most) => json!({ "errors": self.problems, "truncated": most }).to_string(),
        };
        shown_json(&json) + "\n"
    }
}

#[cfg(test)]
mod tests {
    use diagnostics::{Source, Span};

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Plain;

    impl Reporter for Plain {}

    type Failure = super::Failure<Plain>;

    #[test]
    fn several_failures_are_one() {
        Failure::all(Vec::new()).unwrap();
        let both = ["one", "two"].map(|it| Failure::new(ErrorCode::LockOutOfDate, it));
        assert_eq!(both[0].exit, exit::LOCKED);
        let mut three = Vec::from(both);
        let both = Failure::all(three.clone()).unwrap_err();
        assert_eq!((both.problems.len(), both.exit), (2, exit::LOCKED));
        three.push(Failure::new(ErrorCode::Io, "three"));
        assert_eq!(Failure::all(three).unwrap_err().exit, exit::FAILED);
    }

    #[test]
    fn a_list_that_is_cut_says_so() {
        let sources = Sources::single(Source::new("Boxfile", "x"));
        let found = vec![Diagnostic::new("bad", Span::default(), ""); MAX_KEPT];
        let failure = |found| Failure::of_diagnostics(ErrorCode::BoxfileInvalid, found, &sources);
        let cut = failure(&found);
        let end = "and 950 more errors\n\nthere may be more errors: only the first 1000 of a file are \
                   listed\n";
        assert!(cut.text().ends_with(end), "{}", cut.text());
        assert!(cut.json().ends_with(",\"truncated\":1000}\n"));
        let listed = (0..2).map(|it| Failure::new(ErrorCode::Io, it).cut()).collect();
        let several = Failure::all(listed).unwrap_err();
        assert!(several.text().ends_with("first 1000 of a file are listed\n"));
        let whole = failure(&found[..2]);
        assert!(!whole.text().contains("may be more") && !whole.json().contains("truncated"));
    }

    #[test]
    fn a_warning_among_errors_has_no_code() {
        let at = Span::default();
        let found = [Diagnostic::new("bad", at, ""), Diagnostic::warning("odd", at, "")];
        let sources = Sources::single(Source::new("Boxfile", "x"));
        let failure = Failure::of_diagnostics(ErrorCode::BoxfileInvalid, &found, &sources);
        let json = json!(failure.problems);
        assert_eq!(json[0]["code"], "boxfile-invalid");
        assert_eq!(json[1]["code"], Value::Null);
    }
}
