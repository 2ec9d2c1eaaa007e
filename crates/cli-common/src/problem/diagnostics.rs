//! Errors with spans in a file that the user has written.

use box_contract::ErrorCode;
use diagnostics::annotation::{Annotation, Position};
use diagnostics::{Diagnostic, Diagnostics, Label, Severity, Sources, Span};
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

    /// Formats the problem as an annotation of GitHub Actions. `path` converts the name of a file into its path from the
    /// repository's root.
    pub fn annotation(&self, path: impl Fn(&str) -> String) -> String {
        annotation_of(&self.json, path)
    }
}

/// Formats an error or a warning in its JSON form as an annotation of GitHub Actions.
pub fn annotation_of(json: &Value, path: impl Fn(&str) -> String) -> String {
    let text = |name: &str| json[name].as_str().unwrap_or_default();
    let label = json["labels"].get(0).unwrap_or(&Value::Null);
    let at = |line: &str, column: &str| Some((label[line].as_u64()?, label[column].as_u64()?));
    let file = label["file"].as_str().map(path);
    let position = file.as_deref().and_then(|file| {
        Some(Position { file, start: at("line", "column")?, end: at("end_line", "end_column")? })
    });
    let help = json["help"].as_str().map(|it| format!("\nhelp: {it}")).unwrap_or_default();
    let is_warning = text("severity") == "warning";
    let annotation = Annotation {
        severity: if is_warning { Severity::Warning } else { Severity::Error },
        // Only errors have a code.
        title: json["code"].as_str().unwrap_or("boxbuild"),
        position,
        message: &format!("{}{help}", text("message")),
    };
    annotation.github()
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
