//! Explains an error that the `kdl` crate found on a line, in terms of a Boxfile.

use std::ops::Range;

use kdl::{KdlEntry, KdlNode};

use super::lexeme::{self, is_blank};
use crate::errors::SYNTAX_ERRORS;
use crate::syntax::word::{as_text, begins_like_number, not_number, unquoted};
use diagnostics::cursor::Cursor;
use diagnostics::edited::hidden_character;
use diagnostics::{Diagnostic, Sink, Span, Syntax, escape};
use safe_text::quote;

/// The characters that a bare word cannot contain ([KDL 2.0](https://kdl.dev/spec/), section 3.9
/// "Identifier String").
const RESERVED: [char; 12] = ['\\', '/', '(', ')', '{', '}', '[', ']', ';', '"', '#', '='];

/// Returns the error of a word, if the rule recognizes its mistake.
type Rule = fn(&str, Span) -> Option<Diagnostic>;

/// The rules, in the order in which they are tried.
const RULES: [Rule; 8] = [
    invisible_character,
    missing_side,
    behind_text,
    malformed_text,
    bare_keyword,
    foreign_punctuation,
    not_a_number,
    needs_quotes,
];

/// Reports the errors in a header that the `kdl` crate refuses. `base` is the header's offset.
///
/// The crate's diagnostics often cover the whole line, and have only one of several errors. So each
/// word is tried separately.
pub(super) fn report(header: &str, base: usize, sink: &Sink) {
    let mut found = false;
    for range in Words::of(header) {
        let Some((word, error)) = explain(header, base, range) else { continue };
        sink.report(error);
        found = true;
        // The words after an opening bracket have errors only because of the bracket.
        if word.starts_with(['[', '(']) {
            break;
        }
    }
    if !found {
        sink.report(SYNTAX_ERRORS.at("kdl-line", Span::at(base, header.len())));
    }
}

/// Returns the part of a word that cannot be read, and the error.
fn explain(header: &str, base: usize, range: Range<usize>) -> Option<(&str, Diagnostic)> {
    let mut word = &header[range.clone()];
    let span = |word: &str| Span::at(base + range.end - word.len(), word.len());
    if range.start == 0 {
        return KdlNode::parse(word).is_err().then(|| (word, nameless(word, span(word))));
    }
    if KdlEntry::parse(word).is_ok() {
        return None;
    }
    if let Some((name, value)) = word.split_once('=')
        && !value.trim().is_empty()
        && KdlEntry::parse(name).is_ok()
    {
        word = value.trim_start();
    }
    let span = span(word);
    let error = RULES.iter().find_map(|rule| rule(word, span)).unwrap_or_else(|| {
        Diagnostic::new(format!("{} cannot be read", quote(word)), span, "here")
            .with_help(format!("write a string in quotes: `{}`", as_text(Syntax::Kdl, word)))
    });
    Some((word, error))
}

/// The words of a header: its name, its arguments, and its properties with their values.
pub(super) struct Words<'h> {
    header: &'h str,
    cursor: Cursor<'h>,
}

impl<'h> Words<'h> {
    pub(super) const fn of(header: &'h str) -> Self {
        Self { header, cursor: Cursor::new(header) }
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let cursor = &mut self.cursor;
        while cursor.eat_class(is_blank) || cursor.eat("/-") {}
        let start = cursor.at();
        while let Some(c) = cursor.peek() {
            if !is_blank(c) {
                // Never an error: the outline reports unclosed texts, and a header with one is not
                // explained.
                lexeme::step(cursor).ok();
                continue;
            }
            // Space around a `=` is part of the property, except in front of the first word.
            let joined = start > 0
                && (self.header[start..cursor.at()].ends_with('=')
                    || cursor.rest().trim_start_matches(is_blank).starts_with('='));
            if !joined {
                break;
            }
            while cursor.eat_class(is_blank) {}
        }
        (cursor.at() > start).then(|| start..cursor.at())
    }
}

fn nameless(word: &str, span: Span) -> Diagnostic {
    invisible_character(word, span)
        .unwrap_or_else(|| SYNTAX_ERRORS.about("kdl-name", &quote(word), span))
}

fn invisible_character(word: &str, span: Span) -> Option<Diagnostic> {
    // KDL 2.0, section 3.19 "Disallowed Literal Code Points": https://kdl.dev/spec/
    let disallowed = |c: &char| {
        matches!(c, '\u{0}'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{feff}'
            | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let (at, c) = word.char_indices().find(|(_, c)| disallowed(c))?;
    let place = Span::at(span.offset + at, c.len_utf8());
    Some(hidden_character(place, c, Some(escape(Syntax::Kdl))))
}

fn missing_side(word: &str, span: Span) -> Option<Diagnostic> {
    (word.starts_with('=') || word.ends_with('=')).then(|| SYNTAX_ERRORS.at("kdl-property", span))
}

fn behind_text(word: &str, span: Span) -> Option<Diagnostic> {
    let mut cursor = Cursor::new(word);
    let text = lexeme::text(&mut cursor).unwrap_or(false);
    // Three quotes open a text over several lines; any characters may follow them.
    let touches = text && !cursor.rest().is_empty() && !word.starts_with("\"\"\"");
    if touches && cursor.rest().starts_with(',') {
        return foreign_punctuation(",", span);
    }
    touches.then(|| SYNTAX_ERRORS.about("kdl-touching", &quote(cursor.rest()), span))
}

fn malformed_text(word: &str, span: Span) -> Option<Diagnostic> {
    let raw = word.trim_start_matches('#');
    let name = if raw.starts_with("\"\"\"") {
        "kdl-long"
    } else if word.starts_with('"') {
        "kdl-escape"
    } else if raw.starts_with('"') {
        "kdl-raw"
    } else {
        return None;
    };
    Some(SYNTAX_ERRORS.at(name, span))
}

fn bare_keyword(word: &str, span: Span) -> Option<Diagnostic> {
    match word {
        "true" | "false" => Some(SYNTAX_ERRORS.about("kdl-truth", word, span)),
        "null" | "inf" | "-inf" | "nan" => Some(SYNTAX_ERRORS.about("kdl-null", word, span)),
        _ => word.starts_with('#').then(|| SYNTAX_ERRORS.about("kdl-hash", &quote(word), span)),
    }
}

fn not_a_number(word: &str, span: Span) -> Option<Diagnostic> {
    let help = || format!("write a string in quotes: `{}`", as_text(Syntax::Kdl, word));
    begins_like_number(word).then(|| not_number(word, span, help))
}

fn foreign_punctuation(word: &str, span: Span) -> Option<Diagnostic> {
    let at_start = word.chars().next().filter(|c| "[](),\\".contains(*c));
    let at_end = word.chars().next_back().filter(|c| "]),".contains(*c));
    let sign = at_start.or(at_end)?;
    let name = if sign == ',' { "kdl-comma" } else { "kdl-sign" };
    Some(SYNTAX_ERRORS.about(name, &sign.to_string(), span))
}

fn needs_quotes(word: &str, span: Span) -> Option<Diagnostic> {
    word.contains(RESERVED)
        .then(|| unquoted(Syntax::Kdl, word, span, "a bare word cannot contain this"))
}
