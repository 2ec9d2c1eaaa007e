//! The tokens of a KDL text.

use crate::syntax::kdl::lexeme::{self, is_blank, is_newline, is_space};
use diagnostics::cursor::{BYTE_ORDER_MARK, Cursor};

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lexeme<'s> {
    /// Names, values and annotations, as they are written. Several without white space between them
    /// are one word.
    Word(&'s str),
    Equals,
    /// `/-`.
    Dash,
    Open,
    Close,
    /// `/* … */`.
    BlockComment(&'s str),
    /// `// …`, without the white space at its end.
    LineComment(&'s str),
    /// A `\` that joins the next line to its line. The text is the line comment after the `\`, and
    /// may be empty.
    Join(&'s str),
}

/// A token, and the separators in front of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'s> {
    pub(super) kind: Lexeme<'s>,
    /// The number of line ends before it, without the line end after a [`Lexeme::Join`].
    pub(super) newlines: usize,
    /// Whether a `;` precedes it.
    pub(super) ended: bool,
}

/// Splits a text into tokens; returns `None` if one of them is malformed.
pub(super) fn tokens(source: &str) -> Option<Vec<Token<'_>>> {
    let cursor = Cursor::new(source);
    let mut lexer = Lexer { source, cursor, tokens: Vec::new(), newlines: 0, ended: false };
    lexer.cursor.eat(BYTE_ORDER_MARK);
    while let Some(next) = lexer.cursor.peek() {
        lexer.step(next)?;
    }
    Some(lexer.tokens)
}

struct Lexer<'s> {
    source: &'s str,
    cursor: Cursor<'s>,
    tokens: Vec<Token<'s>>,
    newlines: usize,
    ended: bool,
}

impl<'s> Lexer<'s> {
    fn step(&mut self, next: char) -> Option<()> {
        match next {
            _ if self.in_word(next) => return self.word(),
            '\\' => return self.join(),
            '/' => return self.slash(),
            '{' => self.mark(Lexeme::Open),
            '}' => self.mark(Lexeme::Close),
            '=' => self.mark(Lexeme::Equals),
            ';' => self.ended = self.cursor.bump().is_some(),
            _ if self.newline() => self.newlines += 1,
            _ => self.cursor.eat_class(is_space).then_some(())?,
        }
        Some(())
    }

    fn push(&mut self, kind: Lexeme<'s>) {
        self.tokens.push(Token { kind, newlines: self.newlines, ended: self.ended });
        (self.newlines, self.ended) = (0, false);
    }

    /// Reads a token of one character.
    fn mark(&mut self, kind: Lexeme<'s>) {
        self.cursor.bump();
        self.push(kind);
    }

    fn newline(&mut self) -> bool {
        self.cursor.eat("\r\n") || self.cursor.eat_class(is_newline)
    }

    fn word(&mut self) -> Option<()> {
        let start = self.cursor.at();
        while let Some(next) = self.cursor.peek().filter(|next| self.in_word(*next)) {
            lexeme::step(&mut self.cursor).ok()?;
            // Reads a row of backslashes at once: `in_word` would scan to the end of the row for
            // each of them.
            while next == '\\' && self.cursor.eat("\\") {}
        }
        let word = self.since(start);
        // At the start of the formatted text, this word would be read as a byte order mark.
        if word.starts_with(BYTE_ORDER_MARK) {
            return None;
        }
        self.push(Lexeme::Word(word));
        Some(())
    }

    /// Returns whether the next character is part of a word.
    ///
    /// KDL forbids slashes and backslashes in words, but a text that `/-` comments out may contain
    /// them.
    fn in_word(&self, next: char) -> bool {
        let rest = self.cursor.rest();
        match next {
            '/' => !["//", "/*", "/-"].iter().any(|mark| rest.starts_with(mark)),
            '\\' => {
                let after = rest.trim_start_matches('\\').chars().next();
                after.is_some_and(|after| !ends_word(after))
            }
            _ => !ends_word(next),
        }
    }

    /// Reads a comment or `/-`.
    fn slash(&mut self) -> Option<()> {
        let start = self.cursor.at();
        if lexeme::line_comment(&mut self.cursor) {
            self.push(Lexeme::LineComment(self.since(start).trim_end_matches(is_space)));
        } else if lexeme::block_comment(&mut self.cursor).ok()? {
            self.push(Lexeme::BlockComment(self.since(start)));
        } else {
            self.cursor.eat("/-").then(|| self.push(Lexeme::Dash))?;
        }
        Some(())
    }

    /// Reads a `\` that joins lines; returns `None` for any other backslash at the end of a word.
    ///
    /// Block comments after the `\` are moved in front of it.
    fn join(&mut self) -> Option<()> {
        self.cursor.bump();
        let mut start = self.cursor.at();
        loop {
            if lexeme::block_comment(&mut self.cursor).ok()? {
                self.push(Lexeme::BlockComment(self.since(start)));
            } else if !self.cursor.eat_class(is_space) {
                break;
            }
            start = self.cursor.at();
        }
        lexeme::line_comment(&mut self.cursor);
        let comment = self.since(start).trim_end_matches(is_space);
        let joins = self.newline() || self.cursor.peek().is_none();
        joins.then(|| self.push(Lexeme::Join(comment)))
    }

    fn since(&self, start: usize) -> &'s str {
        &self.source[start..self.cursor.at()]
    }
}

fn ends_word(c: char) -> bool {
    is_blank(c) || ";{}=/\\".contains(c)
}
