//! The smallest pieces of a TOML text: texts in quotes, comments, marks, words.

/// What a lexeme is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Spaces and tabs.
    Blank,
    /// LF, CRLF, or a CR by itself, which is an error reported elsewhere.
    Newline,
    /// `#` and all up to the line end, which is not part of it.
    Comment,
    /// A text in quotes.
    Text {
        /// Whether it may span lines: it has three quotes on each side.
        long: bool,
        /// Whether its closing quotes are there.
        closed: bool,
    },
    /// One of `[ ] { } , = .`.
    Mark(u8),
    /// Anything else up to the next blank, line end, comment or mark. Quotes do not end it.
    Word,
}

/// A lexeme and where it is, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lexeme {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Lexeme {
    /// Returns what is written.
    pub(super) fn of<'s>(&self, text: &'s str) -> &'s str {
        &text[self.start..self.end]
    }

    /// Whether it means nothing by itself: a blank, a line end or a comment.
    pub(super) const fn is_space(&self) -> bool {
        matches!(self.kind, Kind::Blank | Kind::Newline | Kind::Comment)
    }
}

/// Iterates over the lexemes of a text from an offset on, in linear time.
#[derive(Debug, Clone)]
pub(super) struct Lexemes<'s> {
    text: &'s str,
    at: usize,
}

impl<'s> Lexemes<'s> {
    pub(super) const fn new(text: &'s str, at: usize) -> Self {
        Self { text, at }
    }
}

impl Iterator for Lexemes<'_> {
    type Item = Lexeme;

    fn next(&mut self) -> Option<Lexeme> {
        let start = self.at;
        let rest = &self.text[start..];
        let (kind, length) = lexeme(rest)?;
        self.at += length;
        Some(Lexeme { kind, start, end: self.at })
    }
}

/// Returns the first lexeme of a text, and its length.
fn lexeme(rest: &str) -> Option<(Kind, usize)> {
    let until = |ends: fn(char) -> bool| rest.find(ends).unwrap_or(rest.len());
    Some(match *rest.as_bytes().first()? {
        b' ' | b'\t' => (Kind::Blank, until(|c| !matches!(c, ' ' | '\t'))),
        b'\r' if rest.starts_with("\r\n") => (Kind::Newline, 2),
        b'\n' | b'\r' => (Kind::Newline, 1),
        b'#' => (Kind::Comment, until(|c| matches!(c, '\n' | '\r'))),
        quote @ (b'"' | b'\'') => text(rest, quote),
        mark if is_mark(char::from(mark)) => (Kind::Mark(mark), 1),
        _ => (Kind::Word, until(|c| is_mark(c) || matches!(c, ' ' | '\t' | '\r' | '\n' | '#'))),
    })
}

const fn is_mark(c: char) -> bool {
    matches!(c, '[' | ']' | '{' | '}' | ',' | '=' | '.')
}

/// Reads a text in quotes: one that is not closed ends with its line, or, if it is a long one, with
/// the file.
fn text(rest: &str, quote: u8) -> (Kind, usize) {
    let bytes = rest.as_bytes();
    let long = bytes.len() >= 3 && bytes[1] == quote && bytes[2] == quote;
    let mut at = if long { 3 } else { 1 };
    while let Some(&byte) = bytes.get(at) {
        let escaped = bytes.get(at + 1).is_some_and(|next| long || *next != b'\n');
        match byte {
            b'\\' if quote == b'"' && escaped => at += 2,
            b'\n' if !long => break,
            _ if byte != quote => at += 1,
            _ if !long => return (Kind::Text { long, closed: true }, at + 1),
            _ => {
                // Up to two quotes may stand in front of the closing three.
                let quotes = bytes[at..].iter().take(5).take_while(|it| **it == quote).count();
                at += quotes;
                if quotes >= 3 {
                    return (Kind::Text { long, closed: true }, at);
                }
            }
        }
    }
    // A CR belongs to the line end, and an escape may have stepped over a part of a character.
    let end = at.min(bytes.len());
    let end = if end > 1 && !long && bytes[end - 1] == b'\r' { end - 1 } else { end };
    (Kind::Text { long, closed: false }, rest.floor_char_boundary(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(&str, Kind)> {
        Lexemes::new(text, 0).map(|lexeme| (lexeme.of(text), lexeme.kind)).collect()
    }

    #[test]
    fn texts_end_with_their_quotes_or_their_line() {
        let text = |long, closed| Kind::Text { long, closed };
        for (source, first, kind) in [
            ("\"a\" b", "\"a\"", text(false, true)),
            ("\"a\\\"b\"", "\"a\\\"b\"", text(false, true)),
            ("'a\\'b", "'a\\'", text(false, true)),
            ("\"\" ", "\"\"", text(false, true)),
            ("\"a # b\r\nc\"", "\"a # b", text(false, false)),
            ("\"a\\\nb", "\"a\\", text(false, false)),
            ("'", "'", text(false, false)),
            ("\"\"\"a\n\\\"\"\"\"\"\"x", "\"\"\"a\n\\\"\"\"\"\"\"", text(true, true)),
            ("'''a''' b", "'''a'''", text(true, true)),
            ("'''a''b", "'''a''b", text(true, false)),
            ("\"\"\"é\\é", "\"\"\"é\\é", text(true, false)),
            ("it's", "it's", Kind::Word),
        ] {
            assert_eq!(kinds(source)[0], (first, kind), "{source:?}");
        }
    }

    #[test]
    fn all_bytes_belong_to_a_lexeme() {
        let source = " a.b = [1, {c='é'}] # \"x\n\"\\é\"\r\n\r\t\\é";
        assert_eq!(Lexemes::new(source, 0).map(|it| it.of(source)).collect::<String>(), source);
    }
}
