//! A position in the source, and the character classes of KDL.

/// A position that moves forward over a text.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Cursor<'s> {
    pub(super) const fn new(source: &'s str) -> Self {
        Self { source, at: 0 }
    }

    /// Returns the offset of the next character.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Steps over the next character.
    pub(super) fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Steps over `text` if it is next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let next = self.rest().starts_with(text);
        if next {
            self.at += text.len();
        }
        next
    }

    /// Steps over one character if it is of a class.
    pub(super) fn eat_class(&mut self, class: fn(char) -> bool) -> bool {
        self.peek().is_some_and(class) && self.bump().is_some()
    }

    /// Steps up to the next character of a class, or to the end.
    pub(super) fn skip_until(&mut self, class: fn(char) -> bool) {
        self.at += self.rest().find(class).unwrap_or(self.rest().len());
    }

    /// Steps to the end.
    pub(super) const fn finish(&mut self) {
        self.at = self.source.len();
    }
}

/// KDL 2.0, section 3.18 "Newline". CRLF counts as two, which makes no difference to the outline.
pub(super) const fn is_newline(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{b}' | '\u{c}' | '\u{2028}' | '\u{2029}')
}

/// KDL 2.0, section 3.17 "Whitespace".
pub(super) const fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}
