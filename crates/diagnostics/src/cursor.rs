//! Positions in a text, for parsers by characters or by lines.

/// The byte order mark that some editors put before UTF-8 text
/// ([Unicode Standard](https://www.unicode.org/versions/latest/), 23.8). It is not part of a file's content.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A forward-moving position in a text.
#[derive(Debug, Clone)]
pub struct Cursor<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Cursor<'s> {
    /// Creates a cursor at the start of a text.
    pub const fn new(source: &'s str) -> Self {
        Self { source, at: 0 }
    }

    /// Returns the byte offset of the next character.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Returns the text from the next character on.
    pub fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    /// Returns the next character without moving.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Moves past the next character and returns it.
    pub fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Moves past `text` if it is next, and returns whether it was.
    pub fn eat(&mut self, text: &str) -> bool {
        let next = self.rest().starts_with(text);
        if next {
            self.at += text.len();
        }
        next
    }

    /// Moves past the next character if it is in a class, and returns whether it was.
    pub fn eat_class(&mut self, class: fn(char) -> bool) -> bool {
        self.peek().is_some_and(class) && self.bump().is_some()
    }

    /// Moves to the next character of a class, or to the end.
    pub fn skip_until(&mut self, class: fn(char) -> bool) {
        self.at += self.rest().find(class).unwrap_or(self.rest().len());
    }

    /// Moves to the end.
    pub const fn finish(&mut self) {
        self.at = self.source.len();
    }
}

/// Returns the lines of a text with their line ends, each with its byte offset.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}
