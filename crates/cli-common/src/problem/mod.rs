//! The errors of a command, as text and as JSON.
//!
//! A program's table gives each error of a library its [`Explanation`]. A [`Problem`] is an explanation with the
//! message of the error.
mod archived;
mod diagnostics;
mod file;
mod found;
mod network;
mod opened;
#[cfg(feature = "virtual-host")]
mod virtual_host;

use std::borrow::Cow;
use std::fmt::Display;

use box_contract::ErrorCode;
use safe_text::shown;
use serde::Serialize;
use serde_json::{Value, json};

pub use diagnostics::{annotation_of, diagnostic_json};
pub use found::is_cut_digest;

/// The number of errors that the text output shows. JSON contains all of them.
const MAX_SHOWN: usize = 50;

/// The row of an error in a program's table: its code, and its help if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The stable code.
    pub code: ErrorCode,
    /// The advice. Lines after the first are indented in the text output.
    pub help: Option<Cow<'static, str>>,
}

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

/// One error of a failed command. `docs/errors.md` describes its JSON form.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Problem {
    /// The stable code.
    #[serde(skip)]
    pub code: ErrorCode,
    /// The message with its details.
    #[serde(skip)]
    text: String,
    /// The help below the message, in lines.
    #[serde(skip)]
    help: String,
    json: Value,
}

impl Problem {
    /// Returns an error without a span in a file.
    pub fn new(explanation: impl Into<Explanation>, message: impl Display) -> Self {
        let Explanation { code, help } = explanation.into();
        let text = message.to_string();
        let json = json!({ "severity": "error", "message": text, "help": help, "labels": [] });
        let help = help.map(|it| it.lines().map(shown).collect::<Vec<_>>().join("\n    "));
        let help = help.map(|it| format!("\n  = help: {it}"));
        let help = help.unwrap_or_default();
        Self { help, ..Self::placed(code, format!("error: {text}"), json) }
    }

    /// Returns an error or warning with spans in a file. `text` contains the source lines and the help. `json` has all
    /// fields except `code`, which is added to errors only.
    pub fn placed(code: ErrorCode, text: String, mut json: Value) -> Self {
        if json["severity"] == "error" {
            json["code"] = code.name().into();
        }
        Self { code, text, help: String::new(), json }
    }

    /// Returns the error of a program that panicked. The panic has already printed its message.
    pub fn panicked(program: &str) -> Self {
        let help = format!(
            "this is a bug in {program}; please report it, with the command that you ran and everything that it \
             printed"
        );
        Self::new((ErrorCode::Internal, help), format_args!("{program} panicked"))
    }

    /// Adds lines below the message, and the same details as JSON fields.
    #[must_use]
    pub fn with_details(mut self, lines: &str, data: &[(&str, Value)]) -> Self {
        self.text += lines;
        data.iter().for_each(|(field, value)| self.json[*field] = value.clone());
        self
    }

    /// Returns the message alone, without its code, help and source lines.
    pub fn message(&self) -> &str {
        self.json["message"].as_str().unwrap_or_default()
    }

    /// Returns the text of the error, without a final newline.
    pub fn text(&self) -> String {
        format!("{}{}", self.text, self.help)
    }
}

/// Returns the text of several errors, without a final newline.
pub fn text(problems: &[Problem]) -> String {
    first(problems.iter().map(Problem::text), "\n\n", "more errors")
}

/// Counts errors and the warnings among them, for example "3 errors, 1 warning". Returns `None` if there are
/// fewer than two.
pub fn tally(problems: &[Problem]) -> Option<String> {
    let errors = problems.iter().filter(|it| it.json["severity"] == "error").count();
    let counted = [(errors, "error"), (problems.len() - errors, "warning")];
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let shown = counted.into_iter().filter(|(count, _)| *count > 0);
    let shown = shown.map(|(count, word)| format!("{count} {word}{}", plural(count)));
    (problems.len() > 1).then(|| shown.collect::<Vec<_>>().join(", "))
}

/// Joins the first 50 texts. If there are more, appends how many of `what` are left out.
pub fn first(texts: impl ExactSizeIterator<Item = String>, separator: &str, what: &str) -> String {
    first_of(texts.len(), texts, separator, what)
}

/// Like [`first`], for `count` texts of which `texts` has only some: at least the first 50.
pub fn first_of(
    count: usize,
    texts: impl Iterator<Item = String>,
    separator: &str,
    what: &str,
) -> String {
    let rest = count.saturating_sub(MAX_SHOWN);
    let rest = (rest > 0).then(|| format!("and {rest} {what}"));
    texts.take(MAX_SHOWN).chain(rest).collect::<Vec<_>>().join(separator)
}

/// Returns the object that a failed command prints with `--json`.
pub fn json(problems: &[Problem]) -> String {
    json!({ "errors": problems }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(problem: &Problem) -> Value {
        serde_json::to_value(problem).unwrap()
    }

    #[test]
    fn no_terminal_obeys_a_help() {
        let problem = Problem::new((ErrorCode::Io, "remove a\u{1b}]0;x\u{7}\nor b"), "no");
        assert!(!problem.text().contains('\u{1b}'), "{}", problem.text());
        assert!(problem.text().ends_with("\n    or b"), "{}", problem.text());
    }

    #[test]
    fn help_and_code_are_fields_of_their_own() {
        let explanation = (ErrorCode::ImageNotFound, "copy one:\nskopeo copy");
        let problem = Problem::new(explanation, "no image");
        assert_eq!(problem.text(), "error: no image\n  = help: copy one:\n    skopeo copy");
        let expected = json!({
            "code": "image-not-found",
            "severity": "error",
            "message": "no image",
            "help": "copy one:\nskopeo copy",
            "labels": [],
        });
        assert_eq!(object(&problem), expected);
        assert_eq!(object(&Problem::new(ErrorCode::Io, "no"))["help"], Value::Null);
        assert_eq!(json(&[problem]), json!({ "errors": [expected] }).to_string());
    }

    #[test]
    fn a_person_is_shown_the_first_of_many_errors() {
        let failed = |text: &str| Problem::new(ErrorCode::Io, text);
        assert_eq!(text(&["one", "two"].map(failed)), "error: one\n\nerror: two");
        let many: Vec<_> = (0..52).map(|it| failed(&it.to_string())).collect();
        assert!(text(&many).ends_with("error: 49\n\nand 2 more errors"), "{}", text(&many));
        assert_eq!(json(&many).matches("\"message\"").count(), 52);
    }

    #[test]
    fn what_is_only_counted_is_told() {
        let kept = || (0..60).map(|it| it.to_string());
        let reported = first_of(400_000, kept(), ",", "more");
        assert!(reported.ends_with(",49,and 399950 more"), "{reported}");
        assert_eq!(first_of(2, kept().take(2), ",", "more"), "0,1");
    }

    #[test]
    fn several_problems_are_counted() {
        let error = Problem::new(ErrorCode::Io, "no");
        let warning = || {
            let json = json!({ "severity": "warning" });
            Problem::placed(ErrorCode::Io, "warning: odd".to_owned(), json)
        };
        assert_eq!(tally(&[]), None);
        assert_eq!(tally(std::slice::from_ref(&error)), None);
        let three = [error.clone(), warning(), error];
        assert_eq!(tally(&three).unwrap(), "2 errors, 1 warning");
        assert_eq!(tally(&[warning(), warning()]).unwrap(), "2 warnings");
    }

    #[test]
    fn details_are_above_the_help() {
        let problem = Problem::new((ErrorCode::LockOutOfDate, "look"), "changed")
            .with_details("\n  a", &[("entries", json!(["a"]))]);
        assert_eq!(problem.text(), "error: changed\n  a\n  = help: look");
        assert_eq!(object(&problem)["entries"], json!(["a"]));
    }
}
