//! Splits the text of a configuration file into the tokens that KDL and TOML have in common. No input is an error. An
//! unclosed string ends at the end of its line, and an unclosed multi-line string at the end of the text.

use std::ops::Range;

/// Characters that are always a token on their own.
const SIGNS: &[u8] = b"=:,;(){}[]\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string in quotes.
    Quoted,
    /// Characters without quotes.
    Word,
    /// A separator, or the end of a line.
    Sign(u8),
}

/// A token. The span of a quoted token does not include its quotes.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) place: Range<usize>,
}

impl Token {
    pub(super) fn of<'t>(&self, text: &'t str) -> &'t str {
        &text[self.place.clone()]
    }

    /// Returns whether the token is one of `signs`.
    pub(super) fn is_sign(&self, signs: &[u8]) -> bool {
        matches!(self.kind, Kind::Sign(sign) if signs.contains(&sign))
    }

    /// Returns whether the token is a word or a quoted string.
    pub(super) fn is_text(&self) -> bool {
        !matches!(self.kind, Kind::Sign(_))
    }
}

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
            // In KDL, `/-` comments out a node. The name of this node is still a word.
            _ if rest.starts_with("\\\n") || rest.starts_with("/-") => (None, 2),
            _ if c.is_whitespace() => (None, c.len_utf8()),
            _ => (Some(Kind::Word), word_len(rest)),
        };
        tokens.extend(kind.map(|kind| Token { kind, place: at..at + len }));
        at += len;
    }
    tokens
}

/// Returns the length of the opening quotes of `text`, and the quotes that close them.
fn quotes(text: &str) -> Option<(usize, String)> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let sign = text[hashes..].chars().next().filter(|it| matches!(it, '"' | '\''))?;
    let triple = sign.to_string().repeat(3);
    let sign = if text[hashes..].starts_with(&triple) { triple } else { sign.to_string() };
    Some((hashes + sign.len(), sign + &text[..hashes]))
}

/// Returns the length of the text before the closing quotes. If they are missing, returns the length of
/// the line, or of all of `text` for a multi-line string.
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

/// Returns the length of a word. A `:` is a part of the word unless a blank or a quote follows.
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
