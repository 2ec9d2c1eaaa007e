//! Errors with spans in a file that the user has written.

use box_contract::ErrorCode;
use diagnostics::{Diagnostic, Diagnostics, Label, Sources, Span};
use serde_json::{Value, json};

use super::Problem;

impl Problem {
    /// Converts the diagnostics of a text, sorted by their spans.
    pub fn of_diagnostics(code: ErrorCode, found: &[Diagnostic], sources: &Sources) -> Vec<Self> {
        let placed = |it: &Diagnostic| {
            let code = if it.is_too_large() { ErrorCode::TooLarge } else { code };
            Self::placed(code, it.render(sources), diagnostic_json(it, sources))
        };
        let sorted = Diagnostics::new(found.to_vec());
        sorted.iter().flat_map(Diagnostics::as_slice).map(placed).collect()
    }
}

/// Returns the JSON form of a diagnostic: its message, and for each span the file, the lines and
/// columns (from 1), and the offset in bytes (from 0).
pub fn diagnostic_json(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let diagnostic = diagnostic.redacted(sources);
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
