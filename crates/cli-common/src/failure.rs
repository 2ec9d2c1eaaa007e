//! A failed command: its errors, as text and as data, and its exit code. Every error of both programs ends here.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Display;
use std::marker::PhantomData;

use box_contract::{ErrorCode, exit};
use diagnostics::{Diagnostic, MAX_KEPT, Sources};
use safe_text::shown_json;
use serde_json::{Value, json};

use crate::problem::{self, Explanation, Problem};

/// A program whose commands fail: what it does otherwise than the other one.
pub trait Program: Sized {
    /// Returns the exit code of a command that fails with an error of this code.
    fn exit(code: ErrorCode) -> u8 {
        code.exit()
    }

    /// Returns the text of errors as a person is shown it, with colours where there are any.
    fn painted(text: &str) -> Cow<'_, str> {
        text.into()
    }
}

/// A program with a row for an error of a library, so that `?` makes a [`Failure`] of it.
pub trait Table<E>: Program {
    /// Returns the failure of a command with this error.
    fn failure(error: E) -> Failure<Self>;
}

/// A failed command of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure<P> {
    /// The exit code.
    pub exit: u8,
    /// Empty where nothing is to be said, or the command's result already says what is wrong.
    problems: Vec<Problem>,
    /// Set where a text has more errors than are listed: how many are.
    truncated: Option<usize>,
    /// Lines for people above the errors, without colours.
    words: String,
    program: PhantomData<P>,
}

impl<P: Table<E>, E: Error> From<E> for Failure<P> {
    fn from(error: E) -> Self {
        P::failure(error)
    }
}

impl<P: Program> Failure<P> {
    /// Returns a failure with one error.
    pub fn new(explanation: impl Into<Explanation>, message: impl Display) -> Self {
        Self::of([Problem::new(explanation, message)])
    }

    /// Returns the failure of a wrong command line.
    pub fn usage(message: impl Display) -> Self {
        Self::new(ErrorCode::Usage, message)
    }

    /// Returns the failure of a command that has nothing to say: its result already says what is wrong.
    pub const fn reported(exit: u8) -> Self {
        Self {
            exit,
            problems: Vec::new(),
            truncated: None,
            words: String::new(),
            program: PhantomData,
        }
    }

    /// Returns the failure of a command with these errors, of which there is at least one. The first decides on the exit code.
    pub fn of(problems: impl IntoIterator<Item = Problem>) -> Self {
        let problems: Vec<_> = problems.into_iter().collect();
        let exit = problems.first().map_or(exit::FAILED, |it| P::exit(it.code));
        Self { problems, ..Self::reported(exit) }
    }

    /// Returns the failure of a text with these diagnostics.
    pub fn of_diagnostics(code: ErrorCode, found: &[Diagnostic], sources: &Sources) -> Self {
        let failure = Self::of(Problem::of_diagnostics(code, found, sources));
        let failure = failure.with_exit(P::exit(code));
        if found.len() < MAX_KEPT { failure } else { failure.cut() }
    }

    /// Adds lines for people below each message, and the same as fields of the data.
    #[must_use]
    pub fn with_details(self, lines: &str, data: &[(&str, Value)]) -> Self {
        let problems = self.problems.into_iter().map(|it| it.with_details(lines, data)).collect();
        Self { problems, ..self }
    }

    /// Returns the same failure with lines for people above the errors.
    #[must_use]
    pub fn with_words(self, words: String) -> Self {
        Self { words, ..self }
    }

    /// Returns the same failure with another exit code.
    #[must_use]
    pub const fn with_exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// Returns the same failure as one of a text with more errors than are listed.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { truncated: Some(MAX_KEPT), ..self }
    }

    /// Returns its errors, and the warnings among them.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns whether an error has this code.
    pub fn has(&self, code: ErrorCode) -> bool {
        self.problems.iter().any(|it| it.code == code)
    }

    /// Puts several failures into one. Its exit code is theirs, or that of a failure where they differ.
    ///
    /// # Errors
    /// That failure, unless there is no error.
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

    /// Returns what a person reads, with a final newline; nothing if there is no error.
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

    /// Returns the line of JSON that is printed with `--json`; nothing if there is no error.
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

    impl Program for Plain {}

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
