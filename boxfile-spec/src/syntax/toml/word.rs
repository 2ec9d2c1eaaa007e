//! Reads single names and values, and explains the malformed ones.

use std::borrow::Cow;

use toml::value::Datetime;
use toml_parser::Raw;
use toml_parser::decoder::ScalarKind;

use crate::errors::SYNTAX_ERRORS;
use crate::syntax::tree::Data;
use crate::syntax::word::{as_text, begins_like_number, not_number, unquoted};
use diagnostics::edited::hidden_character;
use diagnostics::{Diagnostic, Span, Syntax, escape};

/// Returns the error of a token with a control character; `start` is the token's offset.
///
/// [TOML 1.1](https://toml.io): the only control character in a text or comment is the tab, and
/// line ends are LF or CRLF.
pub(super) fn control_character(token: &str, start: usize) -> Option<Diagnostic> {
    // The lexer leaves the CR of a CRLF in an unclosed text.
    let token = if token.len() > 1 { token.trim_end_matches('\r') } else { token };
    let bytes = token.as_bytes();
    let disallowed = |at: &usize| match bytes[*at] {
        b'\t' | b'\n' => false,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        byte => byte.is_ascii_control(),
    };
    let at = (0..bytes.len()).find(disallowed)?;
    let span = Span::at(start + at, 1);
    Some(hidden_character(span, char::from(bytes[at]), Some(escape(Syntax::Toml))))
}

/// Reads a name.
pub(super) fn name(raw: Raw<'_>, span: Span) -> Result<String, Diagnostic> {
    let mut name = Cow::Borrowed("");
    let mut error = None;
    raw.decode_key(&mut name, &mut error);
    let written = raw.as_str();
    if let Some(error) = error.as_ref().and_then(|_| control_character(written, span.offset)) {
        return Err(error);
    }
    match error {
        None => Ok(name.into_owned()),
        Some(_) if written.starts_with("\"\"\"") || written.starts_with("'''") => {
            Err(SYNTAX_ERRORS.at("long-name", span))
        }
        Some(_) if written.starts_with(['"', '\'']) => Err(malformed(written, span)),
        Some(_) => Err(match written.split_once(':') {
            Some((name, "")) if is_bare(name) => {
                colon(span).with_help(format!("write `{name} = …`"))
            }
            _ => unquoted(Syntax::Toml, written, span, "a bare name cannot contain this"),
        }),
    }
}

/// Returns the error of a colon after a name, without help.
pub(super) fn colon(name: Span) -> Diagnostic {
    let span = Span::at(name.end() - 1, 1);
    Diagnostic::new("a value is given with `=`, not with `:`", span, "not in TOML")
}

/// Returns `true` for an unclosed text over several lines, which contains the rest of the file.
pub(super) fn is_endless(raw: Raw<'_>) -> bool {
    let is = |quotes| raw.as_str().strip_prefix(quotes).is_some_and(|it| !it.ends_with(quotes));
    is("\"\"\"") || is("'''")
}

/// Reads a text, number, truth value or date.
pub(super) fn scalar(raw: Raw<'_>, span: Span) -> Result<Data, Diagnostic> {
    let mut decoded = Cow::Borrowed("");
    let mut error = None;
    let kind = raw.decode_scalar(&mut decoded, &mut error);
    let written = raw.as_str();
    if error.is_some() {
        return Err(unreadable(written, span));
    }
    Ok(match kind {
        ScalarKind::String => Data::Text(decoded.into_owned()),
        ScalarKind::Boolean(truth) => Data::Truth(truth),
        ScalarKind::Float => Data::Float(written.to_owned()),
        ScalarKind::Integer(radix) => i128::from_str_radix(&decoded, radix.value())
            .map(Data::Integer)
            .map_err(|_| number(written, span))?,
        ScalarKind::DateTime => {
            let time: Datetime = decoded.parse().map_err(|_| number(written, span))?;
            Data::Other(if time.date.is_some() { "a date" } else { "a time of day" })
        }
    })
}

/// Returns the span of the words after the first one, if the first one alone is a value.
pub(super) fn second(words: &str, span: Span) -> Option<Span> {
    let (first, rest) =
        words.split_once([' ', '\t']).filter(|_| !words.starts_with(['"', '\'']))?;
    let raw = Raw::new_unchecked(first, None, toml_parser::Span::default());
    let rest = rest.trim_start();
    scalar(raw, span).is_ok().then(|| Span::at(span.end() - rest.len(), rest.len()))
}

/// Returns the error of a value that cannot be read.
fn unreadable(word: &str, span: Span) -> Diagnostic {
    if let Some(error) = control_character(word, span.offset) {
        error
    } else if word.starts_with(['"', '\'']) {
        malformed(word, span)
    } else if begins_like_number(word) {
        number(word, span)
    } else {
        keyword(word, span).unwrap_or_else(|| unquoted(Syntax::Toml, word, span, "a bare word"))
    }
}

/// Returns the error of a text in quotes that is not closed on its line, or has a malformed escape.
fn malformed(word: &str, span: Span) -> Diagnostic {
    let quote = &word[..1];
    if word.len() < 2 || !word.trim_end().ends_with(quote) {
        let span = Span::at(span.offset, word.trim_end().len());
        return SYNTAX_ERRORS.about("open-line", quote, span);
    }
    SYNTAX_ERRORS.at("toml-escape", span)
}

/// Returns the error of a word that is a keyword in another language.
fn keyword(word: &str, span: Span) -> Option<Diagnostic> {
    let name = match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => "toml-true",
        "false" | "no" | "off" => "toml-false",
        "null" | "nil" | "none" => "toml-null",
        _ => return None,
    };
    Some(SYNTAX_ERRORS.about(name, word, span))
}

fn number(word: &str, span: Span) -> Diagnostic {
    not_number(word, span, || {
        let plain: String = word.chars().filter(|c| *c != '_').take(100).collect();
        let readable = toml::de::DeValue::parse(&plain).is_ok();
        format!("write `{}`", if readable { plain } else { as_text(Syntax::Toml, word) })
    })
}

/// Returns `true` if a name needs no quotes.
pub(super) fn is_bare(name: &str) -> bool {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.bytes().all(bare)
}

/// Writes the names of a header.
pub(super) fn header<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let written =
        |name: &str| if is_bare(name) { name.to_owned() } else { as_text(Syntax::Toml, name) };
    format!("[{}]", names.map(written).collect::<Vec<_>>().join("."))
}
