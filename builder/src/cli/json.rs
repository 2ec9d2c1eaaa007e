//! Diagnostics as data.

use boxfile_spec::{Diagnostic, Label, Sources, Span};
use serde_json::{Value, json};

/// Writes a diagnostic down: what a person reads, and for each place the file, lines and columns
/// from 1, and the bytes from 0.
pub(crate) fn diagnostic(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let labels = diagnostic.labels().iter().enumerate();
    json!({
        "severity": diagnostic.severity().to_string(),
        "message": diagnostic.message(),
        "help": diagnostic.help(),
        "labels": labels.map(|(index, it)| label(it, index == 0, sources)).collect::<Vec<_>>(),
    })
}

fn label(label: &Label, primary: bool, sources: &Sources) -> Value {
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
