//! Diagnostics as annotations of GitHub Actions.
//!
//! A program that runs in a workflow annotates a line of a file if it prints a [workflow
//! command](https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands), on standard output or standard
//! error: `::error file=Boxfile,line=3,title=boxfile-invalid::unknown declaration`. The
//! [runner](https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs) searches every line for a command, so
//! each other line with foreign text has to pass through [`without_commands`].

use std::fmt::Write as _;

use crate::Severity;

/// An annotation. All texts may be foreign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation<'a> {
    /// Whether it is an error or a warning.
    pub severity: Severity,
    /// The title, for example the code of the error.
    pub title: &'a str,
    /// The position. `None` if the annotation is about no file.
    pub position: Option<Position<'a>>,
    /// The text, which can have several lines.
    pub message: &'a str,
}

/// A position in a file. Lines and columns are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position<'a> {
    /// The path from the repository's root.
    pub file: &'a str,
    /// The line and the column of the first character.
    pub start: (u64, u64),
    /// The line and the column after the last character.
    pub end: (u64, u64),
}

impl Annotation<'_> {
    /// Formats the annotation as a workflow command: one line without a line end.
    pub fn github(&self) -> String {
        let mut command = format!("::{} title={}", self.severity, property(self.title));
        if let Some(Position { file, start, end }) = self.position {
            // Writing to a String cannot fail.
            let _ = write!(command, ",file={},line={}", property(file), start.0);
            let _ = write!(command, ",endLine={}", end.0);
            // GitHub refuses columns in an annotation of several lines.
            if start.0 == end.0 {
                let _ = write!(command, ",col={},endColumn={}", start.1, end.1);
            }
        }
        format!("{command}::{}", data(self.message))
    }
}

/// Escapes the text of a command, as the library
/// [@actions/core](https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts) does.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property, which ends at `,` or `:`.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Changes a line that the runner would read as a command, so that it is none: `::NAME …::` at its start, or `##[NAME …]`, the
/// older form, anywhere. Other lines stay as they are.
///
/// # Examples
///
/// ```
/// # use diagnostics::annotation::without_commands;
/// assert_eq!(without_commands("  ::add-mask::x"), "  : :add-mask::x");
/// assert_eq!(without_commands("a ##[add-mask]x"), "a # #[add-mask]x");
/// ```
pub fn without_commands(line: &str) -> String {
    // A third colon would belong to the name of the command, and no command has such a name.
    let text = line.trim_start();
    let line = match text.strip_prefix("::") {
        Some(rest) if !rest.starts_with(':') => {
            format!("{}: :{rest}", &line[..line.len() - text.len()])
        }
        _ => line.to_owned(),
    };
    line.replace("##[", "# #[")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn annotation<'a>(file: &'a str, message: &'a str) -> Annotation<'a> {
        let position = Position { file, start: (3, 5), end: (3, 8) };
        Annotation {
            severity: Severity::Error,
            title: "boxfile-invalid",
            position: Some(position),
            message,
        }
    }

    #[test]
    fn an_annotation_is_one_command() {
        assert_eq!(
            annotation("a/Boxfile", "unknown `x`\n100%").github(),
            "::error title=boxfile-invalid,file=a/Boxfile,line=3,endLine=3,col=5,endColumn=8::unknown `x`%0A100%25"
        );
        let mut long = annotation("Boxfile", "m");
        long.severity = Severity::Warning;
        long.position.as_mut().unwrap().end = (4, 1);
        let expected = "::warning title=boxfile-invalid,file=Boxfile,line=3,endLine=4::m";
        assert_eq!(long.github(), expected);
        long.position = None;
        assert_eq!(long.github(), "::warning title=boxfile-invalid::m");
    }

    /// Reads a command as the runner does: its name, the value of `file`, and the text.
    fn read(line: &str) -> Option<(String, String, String)> {
        let (info, text) = line.trim_start().strip_prefix("::")?.split_once("::")?;
        let (name, properties) = info.split_once(' ').unwrap_or((info, ""));
        let pairs = properties.split(',').filter_map(|it| it.split_once('='));
        let file = pairs.filter(|(key, _)| *key == "file").map(|(_, value)| value).next_back();
        let unescaped = |text: &str| {
            let all = [("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")];
            all.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
        };
        Some((name.to_owned(), unescaped(file.unwrap_or_default()), unescaped(text)))
    }

    fn hostile() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "::", ":", "\n", "\r", "%", "%0A", "%253A", ",", "=", "##[", "#", "[", "]", " ",
            "error", "add-mask", "file=x", "\u{a0}", "é",
        ]);
        prop::collection::vec(pieces, 0..10).prop_map(|it| it.concat())
    }

    proptest! {
        #[test]
        fn no_text_ends_a_command_or_begins_another(file in hostile(), message in hostile()) {
            let line = annotation(&file, &message).github();
            prop_assert!(!line.contains(['\n', '\r']), "{}", line);
            prop_assert_eq!(read(&line), Some(("error".to_owned(), file, message)), "{}", line);
        }

        #[test]
        fn a_line_without_commands_has_none(line in hostile()) {
            let line = without_commands(&line.replace(['\n', '\r'], " "));
            prop_assert!(!line.contains("##["), "{}", line);
            // Names of commands begin with a letter.
            let name = read(&line).map(|(name, ..)| name);
            let is_name = |it: &String| it.starts_with(char::is_alphanumeric);
            prop_assert!(!name.as_ref().is_some_and(is_name), "{}", line);
            prop_assert_eq!(without_commands(&line), line);
        }
    }
}
