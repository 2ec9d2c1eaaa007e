//! What people write who come from other languages: comments with `#`, `name = value`, and texts in
//! single quotes. KDL refuses the first two; the third it takes for a word with quotes in it.

use std::ops::Range;

use kdl::KdlNode;

use super::explain::in_quotes;
use super::lexeme::{self, is_blank};
use crate::cursor::Cursor;
use crate::sink::Sink;
use crate::{Diagnostic, Span};

/// Reports what in a header, which starts at `base`, is of another language; tells whether there
/// is such a thing.
pub(super) fn report(header: &str, base: usize, sink: &Sink) -> bool {
    if let Some(error) = comment(header, base).or_else(|| equals(header, base)) {
        sink.report(error);
        return true;
    }
    let quoted = single_quoted(header);
    for range in &quoted {
        let span = Span::between(base + range.start, base + range.end);
        let text = in_quotes(header[range.clone()].trim_matches('\''));
        let error = Diagnostic::new("a text stands in double quotes", span, "in single quotes");
        sink.report(error.with_help(format!("write {text}")));
    }
    !quoted.is_empty()
}

/// The error of `# comment`.
fn comment(header: &str, base: usize) -> Option<Diagnostic> {
    let words = header.strip_prefix('#')?;
    // A raw text may be a name.
    if words.trim_start_matches('#').starts_with('"') {
        return None;
    }
    let span = Span::at(base, header.len());
    let error = Diagnostic::new("this is not a comment", span, "not in KDL");
    Some(error.with_help("a comment begins with `//`"))
}

/// The error of `name = value`.
fn equals(header: &str, base: usize) -> Option<Diagnostic> {
    let (name, value) = header.split_once('=')?;
    let (at, name, value) = (name.len(), name.trim_end_matches(is_blank), value.trim());
    if value.is_empty() || name.contains(is_blank) || KdlNode::parse(name).is_err() {
        return None;
    }
    let message = "the value of a declaration stands behind its name without `=`";
    let error = Diagnostic::new(message, Span::at(base + at, 1), "not in KDL");
    let statement = intended(name, value).unwrap_or_else(|| format!("{name} \"value\""));
    Some(error.with_help(format!("write `{statement}`")))
}

/// Returns the declaration that was probably meant.
fn intended(name: &str, value: &str) -> Option<String> {
    let list = value.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
    let list = list.map(|list| list.split(',').map(str::trim).collect::<Vec<_>>().join(" "));
    let value = list.as_deref().unwrap_or(value).trim();
    let word = !value.contains(|c: char| is_blank(c) || "\"'".contains(c));
    let readings = [
        Some(value.to_owned()),
        Some(format!("#{value}")).filter(|_| matches!(value, "true" | "false")),
        Some(in_quotes(value).trim_matches('`').to_owned()).filter(|_| word),
    ];
    let statements = readings.into_iter().flatten().map(|value| format!("{name} {value}"));
    let fits = |it: &String| it.chars().count() <= 100 && KdlNode::parse(it).is_ok();
    statements.into_iter().find(fits)
}

/// Finds the texts in single quotes.
fn single_quoted(header: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut cursor = Cursor::new(header);
    let mut begins = true;
    while let Some(c) = cursor.peek() {
        if c == '\'' && begins {
            let start = cursor.at();
            let rest = &header[start + 1..];
            let close = rest.find('\'').map(|close| close + 1);
            let end = start + 1 + close.or_else(|| rest.find(is_blank)).unwrap_or(rest.len());
            while cursor.at() < end {
                cursor.bump();
            }
            found.push(start..end);
        } else {
            // What is not closed, the outline has reported: such a header does not get here.
            lexeme::step(&mut cursor).ok();
        }
        begins = is_blank(c) || c == '=';
    }
    found
}
