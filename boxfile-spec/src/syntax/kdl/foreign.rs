//! Reports habits of other languages: comments with `#`, `name = value`, and texts in single or
//! typographic quotes. KDL refuses the first two, and reads the third as a word that contains
//! quotes.

use std::ops::Range;

use kdl::KdlNode;
use safe_text::secrets::config_secrets;

use super::explain::Words;
use super::lexeme::is_blank;
use crate::errors::SYNTAX_ERRORS;
use crate::syntax::word::{TYPOGRAPHIC, as_text, unquoted};
use diagnostics::{Diagnostic, Sink, Span, Syntax};

/// Reports the parts of a header that are written as in another language; returns whether there are
/// any. `base` is the header's offset.
pub(super) fn report(header: &str, base: usize, sink: &Sink) -> bool {
    if let Some(error) = comment(header, base).or_else(|| equals(header, base)) {
        sink.report(error);
        return true;
    }
    let quoted = misquoted(header);
    for range in &quoted {
        let span = Span::between(base + range.start, base + range.end);
        let text = &header[range.clone()];
        sink.report(if text.starts_with('\'') {
            SYNTAX_ERRORS.about("kdl-quotes", &as_text(Syntax::Kdl, text), span)
        } else {
            unquoted(Syntax::Kdl, text, span, "")
        });
    }
    !quoted.is_empty()
}

/// Returns the error of `# comment`.
fn comment(header: &str, base: usize) -> Option<Diagnostic> {
    // A `#` may open a name that is a raw text: `#"a"#`.
    let begins = |range: &Range<usize>| {
        let words = header[range.clone()].strip_prefix('#');
        let raw = |words: &str| words.trim_start_matches('#').starts_with('"');
        words.is_some_and(|words| words.is_empty() || (range.start == 0 && !raw(words)))
    };
    let start = Words::of(header).find(begins)?.start;
    Some(SYNTAX_ERRORS.at("kdl-comment", Span::between(base + start, base + header.len())))
}

/// Returns the error of `name = value`.
fn equals(header: &str, base: usize) -> Option<Diagnostic> {
    let (name, value) = header.split_once('=')?;
    let (at, name, value) = (name.len(), name.trim_end_matches(is_blank), value.trim());
    if value.is_empty() || name.contains(is_blank) || KdlNode::parse(name).is_err() {
        return None;
    }
    // The help does not repeat a value if the header contains a secret.
    let shown = Some(value).filter(|_| config_secrets(header).is_empty());
    let statement = shown.and_then(|value| intended(name, value));
    let statement = statement.unwrap_or_else(|| format!("{name} \"value\""));
    Some(SYNTAX_ERRORS.about("kdl-equals", &statement, Span::at(base + at, 1)))
}

/// Returns the declaration that was probably meant.
fn intended(name: &str, value: &str) -> Option<String> {
    let list = value.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
    let list = list.map(|list| list.split(',').map(str::trim).collect::<Vec<_>>().join(" "));
    let value = list.as_deref().unwrap_or(value);
    let truth = matches!(value, "true" | "false").then(|| format!("#{value}"));
    let word = (!value.contains(['"', '['])).then(|| as_text(Syntax::Kdl, value));
    let readings = [Some(value.to_owned()), truth, word];
    let statements = readings.into_iter().flatten().map(|value| format!("{name} {value}"));
    let fits = |it: &String| it.chars().count() <= 100 && KdlNode::parse(it).is_ok();
    statements.into_iter().find(fits)
}

/// Finds the texts in single or typographic quotes that are arguments or values of properties.
fn misquoted(header: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for word in Words::of(header) {
        let text = &header[word.clone()];
        let value = match text.split_once('=') {
            Some((name, value)) if !name.starts_with(['"', '#', '\'']) => value.trim_start(),
            _ => text,
        };
        let start = word.end - value.len();
        let Some(open) = value.chars().next() else { continue };
        let close = if open == '\'' { &['\''][..] } else { &TYPOGRAPHIC };
        if (open == '\'' || close.contains(&open)) && found.last().is_none_or(|it| it.end <= start)
        {
            let inside = start + open.len_utf8();
            let end = header[inside..].match_indices(close).next();
            let end = end.map_or(word.end, |(at, close)| inside + at + close.len());
            found.push(start..end);
        }
    }
    found
}
