//! A failed command: its errors, as text and as data, and its exit code. Every error ends here.

mod explain;
mod images;

use std::borrow::Cow;
use std::error::Error;
use std::process::ExitCode;
use std::rc::Rc;

use box_image::text::with_causes;
use box_image::{ErrorCode, exit};
use boxbuild::BuildError;
use boxbuild::project::LockFileError;
use boxfile_spec::{Diagnostic, Diagnostics, Label, Severity, Sources, Span, shown};
use serde_json::{Value, json};

use super::{conflicts, terminal};
pub(crate) use explain::Explain;

/// So many characters of a message are shown: an image can have a name of megabytes.
const MESSAGE_MAX: usize = 4096;
/// So many errors are shown to a person; as data, there are all of them.
const MOST_SHOWN: usize = 50;

/// A failed command.
#[derive(Debug, PartialEq)]
pub(crate) struct Failure {
    exit: u8,
    /// Empty where the command's result already says what is wrong.
    errors: Vec<Problem>,
}

/// One error of a failed command.
#[derive(Debug, PartialEq)]
struct Problem {
    code: ErrorCode,
    message: Message,
    /// Lines for people below the message.
    details: String,
    /// The same as data: further fields.
    data: Vec<(&'static str, Value)>,
}

/// The message of an error, and its help.
#[derive(Debug, PartialEq)]
enum Message {
    Plain {
        text: String,
        help: Option<Cow<'static, str>>,
    },
    /// With places in the text of a file.
    Placed(Diagnostic, Rc<Sources>),
}

/// The row of an error in the table: its code, and the help if there is one.
#[derive(Debug, PartialEq)]
pub(crate) struct Explanation {
    code: ErrorCode,
    help: Option<Cow<'static, str>>,
}

/// A code, and what to do; further lines of the help are indented when it is shown.
impl<T: Into<Cow<'static, str>>> From<(ErrorCode, T)> for Explanation {
    fn from((code, help): (ErrorCode, T)) -> Self {
        Self { code, help: Some(help.into()) }
    }
}

impl From<ErrorCode> for Explanation {
    fn from(code: ErrorCode) -> Self {
        Self { code, help: None }
    }
}

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.explain(), chain(&error))
    }
}

impl From<LockFileError> for Failure {
    fn from(error: LockFileError) -> Self {
        let explanation = explain::lock(&error);
        match error {
            LockFileError::Malformed { sources, diagnostics, .. } => {
                Self::diagnostics(explanation.code, diagnostics.as_slice(), &sources)
            }
            error => Self::new(explanation, chain(&error)),
        }
    }
}

impl Failure {
    /// Returns a failure with one error.
    pub(crate) fn new(
        explanation: impl Into<Explanation>,
        message: impl std::fmt::Display,
    ) -> Self {
        let Explanation { code, help } = explanation.into();
        Self::of(code, Message::Plain { text: message.to_string(), help })
    }

    fn of(code: ErrorCode, message: Message) -> Self {
        Self { exit: code.exit(), errors: vec![Problem::new(code, message)] }
    }

    /// Returns the failure of a wrong command line.
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self::new(ErrorCode::Usage, message)
    }

    /// Returns the failure of a command whose result already says what is wrong.
    pub(crate) const fn reported(exit: u8) -> Self {
        Self { exit, errors: Vec::new() }
    }

    /// Returns the failure of a text with these diagnostics.
    pub(crate) fn diagnostics(code: ErrorCode, found: &[Diagnostic], sources: &Sources) -> Self {
        let sources = Rc::new(sources.clone());
        let sorted = Diagnostics::new(found.to_vec()).into_iter().flatten();
        let problem = |it: Diagnostic| {
            let code = if it.is_too_large() { ErrorCode::TooLarge } else { code };
            Problem::new(code, Message::Placed(it, Rc::clone(&sources)))
        };
        Self { exit: code.exit(), errors: sorted.map(problem).collect() }
    }

    /// Returns the failure of a build. An error that the Boxfile is to blame for shows its place
    /// there.
    pub(crate) fn of_build(error: &BuildError, sources: &Sources) -> Self {
        if let BuildError::Rejected(report) = error {
            return Self::diagnostics(ErrorCode::FileInvalid, &report.found, &report.sources);
        }
        if let BuildError::Conflicts(conflicts) = error {
            return conflicts::failure(&error.to_string(), conflicts, sources);
        }
        let Explanation { code, help } = error.explain();
        let [span, other] = error.spans();
        let Some(span) = span else {
            return Self::of(code, Message::Plain { text: chain(error), help });
        };
        let mut diagnostic = Diagnostic::new(chain(error), span, "named here");
        if let Some(other) = other {
            diagnostic = diagnostic.with_label(other, "and named here");
        }
        if let Some(help) = help {
            diagnostic = diagnostic.with_help(help);
        }
        Self::diagnostics(code, &[diagnostic], sources)
    }

    /// Adds lines for people below the message, and the same as fields of the data.
    pub(crate) fn with_details(mut self, lines: &str, data: &[(&'static str, Value)]) -> Self {
        for problem in &mut self.errors {
            problem.details += lines;
            problem.data.extend_from_slice(data);
        }
        self
    }

    /// Returns the same failure with another exit code.
    pub(crate) const fn with_exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// Puts several failures into one.
    pub(crate) fn all(failures: Vec<Self>) -> Result<(), Self> {
        let errors: Vec<_> = failures.into_iter().flat_map(|it| it.errors).collect();
        if errors.is_empty() { Ok(()) } else { Err(Self { exit: exit::FAILED, errors }) }
    }

    /// Shows the failure, as text or as data, and returns the exit code.
    pub(crate) fn report(self, as_json: bool) -> ExitCode {
        // Whether a wrong command line asks for data is not known.
        if as_json && self.exit != exit::USAGE && !self.errors.is_empty() {
            terminal::json(&self.json().to_string());
        } else if !self.errors.is_empty() {
            terminal::note(self.text().trim_end());
        }
        ExitCode::from(self.exit)
    }

    fn text(&self) -> String {
        let shown = self.errors.iter().take(MOST_SHOWN).map(Problem::text);
        let rest = self.errors.len().saturating_sub(MOST_SHOWN);
        let rest = (rest > 0).then(|| format!("and {rest} more errors"));
        shown.chain(rest).collect::<Vec<_>>().join("\n\n")
    }

    fn json(&self) -> Value {
        json!({ "errors": self.errors.iter().map(Problem::json).collect::<Vec<_>>() })
    }
}

impl Problem {
    const fn new(code: ErrorCode, message: Message) -> Self {
        Self { code, message, details: String::new(), data: Vec::new() }
    }

    fn text(&self) -> String {
        let Self { message, details, .. } = self;
        match message {
            Message::Placed(diagnostic, sources) => diagnostic.render(sources) + details,
            Message::Plain { text, help: None } => format!("error: {text}{details}"),
            Message::Plain { text, help: Some(help) } => {
                format!("error: {text}{details}\n  = help: {}", help.replace('\n', "\n    "))
            }
        }
    }

    fn json(&self) -> Value {
        let mut json = match &self.message {
            Message::Placed(diagnostic, sources) => diagnostic_json(diagnostic, sources),
            Message::Plain { text, help } => {
                json!({ "severity": "error", "message": text, "help": help, "labels": [] })
            }
        };
        if json["severity"] == Severity::Error.to_string() {
            json["code"] = self.code.name().into();
        }
        self.data.iter().for_each(|(field, value)| json[*field] = value.clone());
        json
    }
}

/// Writes a diagnostic down: what a person reads, and for each place the file, lines and columns
/// from 1, and the bytes from 0.
pub(crate) fn diagnostic_json(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let labels = diagnostic.labels().iter().enumerate();
    json!({
        "severity": diagnostic.severity().to_string(),
        "message": diagnostic.message(),
        "help": diagnostic.help(),
        "labels": labels.map(|(index, it)| label_json(it, index == 0, sources)).collect::<Vec<_>>(),
    })
}

fn label_json(label: &Label, primary: bool, sources: &Sources) -> Value {
    let span = label.span;
    let end = Span { offset: span.end(), len: 0, ..span };
    let ((line, column), (end_line, end_column)) = (sources.location(span), sources.location(end));
    json!({
        "file": sources.of(span).name,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "offset": span.offset,
        "length": span.len,
        "text": label.text,
        "primary": primary,
    })
}

/// Shows what is wrong with a command line, or the help that it asked for.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    drop(error.print());
    if error.use_stderr() { ExitCode::from(exit::USAGE) } else { ExitCode::SUCCESS }
}

/// Joins an error and its causes. Names from outside can be in them, so that what would move the
/// cursor or begin a line is replaced.
pub(crate) fn chain(error: &dyn Error) -> String {
    let text = shown(&with_causes(error));
    match text.char_indices().nth(MESSAGE_MAX) {
        None => text,
        Some((end, _)) => format!("{}… ({} more bytes)", &text[..end], text.len() - end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_and_code_are_fields_of_their_own() {
        let explanation = (ErrorCode::ImageNotFound, "copy one:\nskopeo copy");
        let failure = Failure::new(explanation, "no image");
        assert_eq!(failure.text(), "error: no image\n  = help: copy one:\n    skopeo copy");
        let error = &failure.json()["errors"][0];
        assert_eq!(
            (&error["code"], &error["message"]),
            (&"image-not-found".into(), &"no image".into())
        );
        assert_eq!(error["help"], "copy one:\nskopeo copy");
        assert_eq!(Failure::usage("no").json()["errors"][0]["help"], Value::Null);
        assert_eq!(Failure::usage("no").exit, exit::USAGE);
    }

    #[test]
    fn details_are_above_the_help() {
        let explanation = (ErrorCode::LockOutOfDate, "look");
        let failure = Failure::new(explanation, "changed")
            .with_details("\n  a", &[("entries", json!(["a"]))]);
        assert_eq!(failure.text(), "error: changed\n  a\n  = help: look");
        assert_eq!(failure.json()["errors"][0]["entries"], json!(["a"]));
        assert_eq!(failure.exit, exit::LOCKED);
    }

    #[test]
    fn several_failures_are_one() {
        Failure::all(Vec::new()).unwrap();
        let failed = |text: &str| Failure::new(ErrorCode::Io, text);
        let both = Failure::all(vec![failed("one"), failed("two")]).unwrap_err();
        assert_eq!(both.text(), "error: one\n\nerror: two");
        assert_eq!((both.errors.len(), both.exit), (2, exit::FAILED));
        let many = Failure::all((0..52).map(|it| failed(&it.to_string())).collect()).unwrap_err();
        assert!(many.text().ends_with("error: 49\n\nand 2 more errors"), "{}", many.text());
        assert_eq!(many.json()["errors"].as_array().unwrap().len(), 52);
    }

    #[test]
    fn a_warning_among_errors_has_no_code() {
        let at = boxfile_spec::Span::default();
        let found = [Diagnostic::new("bad", at, ""), Diagnostic::warning("odd", at, "")];
        let sources = Sources::single(boxfile_spec::Source::new("Boxfile", "x"));
        let json = Failure::diagnostics(ErrorCode::BoxfileInvalid, &found, &sources).json();
        assert_eq!(json["errors"][0]["code"], "boxfile-invalid");
        assert_eq!(json["errors"][1]["code"], Value::Null);
    }

    #[test]
    fn a_message_is_cut_where_it_becomes_too_long() {
        let long = chain(&std::io::Error::other("é".repeat(5000)));
        assert!(long.ends_with("é… (1808 more bytes)"), "{}", &long[8000..]);
        assert_eq!(long.chars().filter(|it| *it == 'é').count(), MESSAGE_MAX);
    }

    #[test]
    fn causes_are_shown_once() {
        let cause = std::io::Error::other("the disk is full");
        let source = host_fs::FileError::of("read", "a")(std::io::Error::other(cause));
        let error = BuildError::from(source);
        assert_eq!(chain(&error), "cannot read a: the disk is full");
    }
}
