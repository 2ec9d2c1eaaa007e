//! Positions in a text, for readers of characters and of lines.

/// The mark that some editors put in front of a text in UTF-8 (Unicode Standard, 23.8). Every file
/// that this crate reads may begin with one, which is not part of its content.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A position that moves forward over a text.
#[derive(Debug, Clone)]
pub struct Cursor<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Cursor<'s> {
    /// Begins at the start of a text.
    pub const fn new(source: &'s str) -> Self {
        Self { source, at: 0 }
    }

    /// Returns the offset of the next character.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Returns what was not read yet.
    pub fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    /// Returns the next character, if there is one.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Steps over the next character.
    pub fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Steps over `text` if it is next.
    pub fn eat(&mut self, text: &str) -> bool {
        let next = self.rest().starts_with(text);
        if next {
            self.at += text.len();
        }
        next
    }

    /// Steps over one character if it is of a class.
    pub fn eat_class(&mut self, class: fn(char) -> bool) -> bool {
        self.peek().is_some_and(class) && self.bump().is_some()
    }

    /// Steps up to the next character of a class, or to the end.
    pub fn skip_until(&mut self, class: fn(char) -> bool) {
        self.at += self.rest().find(class).unwrap_or(self.rest().len());
    }

    /// Steps to the end.
    pub const fn finish(&mut self) {
        self.at = self.source.len();
    }
}

/// Returns the lines of a text with their ends, each with the offset at which it begins.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}
