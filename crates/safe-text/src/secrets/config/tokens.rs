//! Splits the text of a configuration file into tokens that KDL and TOML have in common. No input is an
//! error: an unclosed string ends with its line, an unclosed multi-line string with the text.

use std::ops::Range;

/// The characters that are tokens of their own.
const SIGNS: &[u8] = b"=:,;(){}[]\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string in quotes.
    Quoted,
    /// Characters without quotes.
    Word,
    /// A character that separates others, or the end of a line.
    Sign(u8),
}

/// A token. The place of a quoted one is what is between the quotes.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) place: Range<usize>,
}

impl Token {
    pub(super) fn of<'t>(&self, text: &'t str) -> &'t str {
        &text[self.place.clone()]
    }

    /// Returns whether it is one of these signs.
    pub(super) fn is_sign(&self, signs: &[u8]) -> bool {
        matches!(self.kind, Kind::Sign(sign) if signs.contains(&sign))
    }

    /// Returns whether it is a word or quoted.
    pub(super) fn is_text(&self) -> bool {
        !matches!(self.kind, Kind::Sign(_))
    }
}

/// Splits a text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some((open, close)) = quotes(rest) {
            let inner = inner_len(&rest[open..], &close);
            let place = at + open..at + open + inner;
            at = (place.end + close.len()).min(text.len());
            at = if text[place.end..].starts_with(&close) { at } else { place.end };
            tokens.push(Token { kind: Kind::Quoted, place });
            continue;
        }
        let (kind, len) = match u8::try_from(c) {
            Ok(sign) if SIGNS.contains(&sign) => (Some(Kind::Sign(sign)), 1),
            // The name of what KDL leaves out is a word as others are.
            _ if rest.starts_with("\\\n") || rest.starts_with("/-") => (None, 2),
            _ if c.is_whitespace() => (None, c.len_utf8()),
            _ => (Some(Kind::Word), word_len(rest)),
        };
        tokens.extend(kind.map(|kind| Token { kind, place: at..at + len }));
        at += len;
    }
    tokens
}

/// Returns the length of the quotes that a text begins with, and those that close it.
fn quotes(text: &str) -> Option<(usize, String)> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let sign = text[hashes..].chars().next().filter(|it| matches!(it, '"' | '\''))?;
    let triple = sign.to_string().repeat(3);
    let sign = if text[hashes..].starts_with(&triple) { triple } else { sign.to_string() };
    Some((hashes + sign.len(), sign + &text[..hashes]))
}

/// Returns the length of what is before the closing quotes, or else of the line; of text that may have
/// several lines, all.
fn inner_len(text: &str, close: &str) -> usize {
    let several = close.len() >= 3 && close.as_bytes()[2] == close.as_bytes()[0];
    let is_escaped = close.starts_with('"') && !close.ends_with('#');
    let mut escape = false;
    for (at, c) in text.char_indices() {
        if escape {
            escape = false;
        } else if text[at..].starts_with(close) || (c == '\n' && !several) {
            return at;
        } else {
            escape = is_escaped && c == '\\';
        }
    }
    text.len()
}

/// Returns the length of a word. A `:` is a part of it unless a blank or a quote follows.
fn word_len(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            ':' => next.is_none_or(|it| it.is_whitespace() || it == '"'),
            '\'' => false,
            c => c.is_whitespace() || c == '"' || SIGNS.iter().any(|it| char::from(*it) == c),
        };
        if ends && at > 0 {
            return at;
        }
    }
    text.len()
}
