//! A diagnostic: a fault, its position, and a fix.

use std::fmt;

use crate::Sources;
use safe_text::{clipped, quote, shown, visible};
use serde::Serialize;

/// A position in a source, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The index in [`Sources`]. 0 is the main source.
    pub source: u32,
    /// The byte offset of the first byte.
    pub offset: usize,
    /// The length in bytes. 0 marks a point.
    pub len: usize,
}

impl Span {
    /// Creates a span of `len` bytes of the main source, beginning at `offset`.
    pub const fn at(offset: usize, len: usize) -> Self {
        Self { source: 0, offset, len }
    }

    /// Creates a span of the main source from `start` to `end`, without `end`.
    pub const fn between(start: usize, end: usize) -> Self {
        Self::at(start, end.saturating_sub(start))
    }

    /// Returns the offset directly after the span.
    pub const fn end(self) -> usize {
        self.offset.saturating_add(self.len)
    }
}

/// A value with its span in the source. Only the value is serialized.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The position of the value.
    #[serde(skip)]
    pub span: Span,
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The user must fix the fault, and the command fails.
    #[default]
    Error,
    /// The user should check the text.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// A span with a note.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    /// The span.
    pub span: Span,
    /// The note: a few words, or an empty text.
    pub text: String,
}

/// An error or a warning: a message, the spans that it concerns, and a fix.
///
/// All texts pass through [`shown`], so that they are safe to print; only the line ends of the help are kept. Lines are
/// cut after 4096 characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    severity: Severity,
    message: String,
    labels: Vec<Label>,
    help: Option<String>,
    too_large: bool,
    hidden: Option<Span>,
}

impl Diagnostic {
    /// Creates an error with the primary span `span`.
    pub fn new(message: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        let labels = vec![Label { span, text: printable(&label.into()) }];
        let (severity, message) = (Severity::Error, printable(&message.into()));
        Self { severity, message, labels, help: None, too_large: false, hidden: None }
    }

    /// Creates a warning with the primary span `span`.
    pub fn warning(message: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Self::new(message, span, label).into_warning()
    }

    /// Turns an error into a warning.
    pub fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    /// Creates the error for a duplicate. `what` is quoted in the message.
    pub fn twice(what: &str, first: Span, again: Span) -> Self {
        Self::new(format!("{} is given twice", quote(what)), again, "given again")
            .with_label(first, "given first")
            .with_help("remove one of them")
    }

    /// Checks that a file's text has at most `most` bytes. Otherwise returns an error with the help `help`.
    pub fn check_length(text: &str, most: usize, help: &str) -> Result<(), Self> {
        if text.len() <= most {
            return Ok(());
        }
        let message = format!("the file has more than {most} bytes");
        let error = Self::new(message, Span::default(), "not read").with_help(help);
        Err(Self { too_large: true, ..error })
    }

    /// Adds a span with a note.
    #[must_use]
    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: printable(&text.into()) });
        self
    }

    /// Adds a help: a fix, with the text to write if it is known. It may have several lines.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        let lines = help.into();
        self.help = Some(lines.split('\n').map(printable).collect::<Vec<_>>().join("\n"));
        self
    }

    /// Marks a span as a secret that must not be shown. See [`Sources::hide`].
    pub const fn hiding(mut self, secret: Span) -> Self {
        self.hidden = Some(secret);
        self
    }

    /// Returns the span that must not be shown.
    pub const fn hidden(&self) -> Option<Span> {
        self.hidden
    }

    /// Returns the severity.
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// Returns whether the error is that a file is too long.
    pub const fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// Returns the message, which is one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the spans with their notes. The first one, which always exists, is the primary one.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Returns the help.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns the primary span.
    pub fn span(&self) -> Span {
        self.labels[0].span
    }

    /// Returns a copy whose texts have `****` in place of every secret of the sources. [`Diagnostic::render`] does the
    /// same.
    #[must_use]
    pub fn redacted(&self, sources: &Sources) -> Self {
        let text = |text: &str| sources.redacted(text, &self.labels);
        let label = |it: &Label| Label { span: it.span, text: text(&it.text) };
        Self {
            message: text(&self.message),
            labels: self.labels.iter().map(label).collect(),
            help: self.help.as_deref().map(text),
            ..self.clone()
        }
    }

    /// Renders the diagnostic with its source lines and underlines, without colours and without a final newline.
    /// Secrets in lines and texts are replaced by asterisks: see
    /// [`config_secrets`](safe_text::secrets::config_secrets).
    ///
    /// The sources' names pass through [`shown`]. A span outside of its source is shown at the end of the source.
    pub fn render(&self, sources: &Sources) -> String {
        crate::render::render(&self.redacted(sources), sources)
    }

    /// Moves all spans to the source with the index `source`.
    pub fn in_source(mut self, source: u32) -> Self {
        let labels = self.labels.iter_mut().map(|label| &mut label.span);
        labels.chain(&mut self.hidden).for_each(|span| span.source = source);
        self
    }
}

/// The errors and warnings of one text, sorted by position. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Sorts `diagnostics` by position. Returns `None` if there are none.
    pub fn new(mut diagnostics: Vec<Diagnostic>) -> Option<Self> {
        diagnostics.sort_by_key(Diagnostic::span);
        (!diagnostics.is_empty()).then_some(Self(diagnostics))
    }

    /// Returns the errors and warnings, sorted by position.
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.0
    }

    /// Renders the errors and warnings, as [`Diagnostic::render`] does, separated by an empty line.
    pub fn render(&self, sources: &Sources) -> String {
        self.0.iter().map(|one| one.render(sources)).collect::<Vec<_>>().join("\n\n")
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Writes only the messages, one per line. [`Diagnostics::render`] adds the source lines.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<&str> = self.0.iter().map(Diagnostic::message).collect();
        f.write_str(&messages.join("\n"))
    }
}

impl std::error::Error for Diagnostics {}

/// Makes a text of a diagnostic safe to print.
fn printable(text: &str) -> String {
    clipped(shown(text))
}

/// Returns the first character of a text that [`shown`] replaces.
pub fn invisible(text: &str) -> Option<char> {
    text.chars().find(|c| visible(*c) != *c)
}

/// Formats an invisible character for a message.
pub fn named_invisible(c: char) -> String {
    format!("the invisible character U+{:04X}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sorted_by_position() {
        let at = |offset| Diagnostic::new(format!("at {offset}"), Span::at(offset, 1), "");
        let sorted = Diagnostics::new(vec![at(9), at(2), at(5)]).unwrap();
        assert_eq!(sorted.to_string(), "at 2\nat 5\nat 9");
        assert_eq!(Diagnostics::new(Vec::new()), None);
    }

    #[test]
    fn no_part_of_a_diagnostic_reaches_a_terminal_as_it_is() {
        let sources = Sources::single(crate::Source::new("x\u{1b}[2J\nerror: forged", "a\n"));
        let error = Diagnostic::new("m\u{1b}[2J\nforged", Span::at(0, 1), "l\nforged\u{202e}")
            .with_label(Span::at(0, 1), "\u{9b}2J")
            .with_help("one\u{1b}c\ntwo\r");
        let shown = error.render(&sources);
        assert_eq!(
            shown,
            "error: m\u{fffd}[2J\u{fffd}forged\n  --> x\u{fffd}[2J\u{fffd}error: forged:1:1\n   |\n \
             1 | a\n   | ^ l\u{fffd}forged\u{fffd}\n   | - \u{fffd}2J\n   |\n   \
             = help: one\u{fffd}c\n         two\u{fffd}"
        );
        assert_eq!(Diagnostics::from(error).to_string(), "m\u{fffd}[2J\u{fffd}forged");
    }

    #[test]
    fn no_part_of_a_diagnostic_is_longer_than_a_screen() {
        let long = "é".repeat(1 << 20);
        let error = Diagnostic::new(&*long, Span::at(0, 1), &*long)
            .with_label(Span::at(0, 1), &*long)
            .with_help(format!("{long}\n{long}"));
        let sources = Sources::single(crate::Source::new("x", "a\n"));
        let shown = error.render(&sources);
        assert!(shown.lines().all(|line| line.chars().count() < 4200));
        assert_eq!(shown.matches("é… (2088960 more bytes)").count(), 5);
    }

    #[test]
    fn quoted_text_can_neither_move_the_cursor_nor_flood_the_terminal() {
        assert_eq!(quote("a\u{1b}[2J\n\u{202e}b"), "`a\u{fffd}[2J\u{fffd}\u{fffd}b`");
        assert_eq!(quote(&"x".repeat(1000)).chars().count(), 63);
    }
}
