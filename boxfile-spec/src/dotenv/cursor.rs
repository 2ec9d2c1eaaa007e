//! A place in the text, and how it moves.

use crate::Span;

/// What is not read yet.
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns how many bytes are read.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// Returns the place from `start` to here.
    pub(super) const fn span_from(&self, start: usize) -> Span {
        Span::between(start, self.at)
    }

    /// Returns what is left.
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Returns what is left of the line, without its end.
    pub(super) fn rest_of_line(&self) -> &'t str {
        let rest = self.rest();
        let line = rest.split_once('\n').map_or(rest, |(line, _)| line);
        line.strip_suffix('\r').unwrap_or(line)
    }

    pub(super) fn at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub(super) fn at_line_end(&self) -> bool {
        let rest = self.rest();
        matches!(rest, "" | "\r") || rest.starts_with('\n') || rest.starts_with("\r\n")
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes the next character.
    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Goes on by so many bytes; they must be whole characters.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Goes over `text`, if it comes next.
    pub(super) fn skip(&mut self, text: &str) {
        if self.starts_with(text) {
            self.at += text.len();
        }
    }

    pub(super) fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    /// Goes to the start of the next line.
    pub(super) fn skip_line(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
    }
}
