//! Splits a TOML text into tokens, and matches its brackets.

use crate::syntax::tree::MAX_DEPTH;
use diagnostics::cursor::BYTE_ORDER_MARK;
use toml_parser::Source;
use toml_parser::decoder::ScalarKind;
pub(super) use toml_parser::lexer::TokenKind;

/// A token, and the number of line ends in front of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'s> {
    /// Never white space or a line end.
    pub(super) kind: TokenKind,
    pub(super) text: &'s str,
    /// The number of line ends before it.
    pub(super) newlines: usize,
}

impl Token<'_> {
    /// Returns whether an array, a table or its name begins here.
    pub(super) const fn opens(&self) -> bool {
        matches!(self.kind, TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket)
    }

    /// Returns whether an array, a table or its name ends here.
    pub(super) const fn closes(&self) -> bool {
        matches!(self.kind, TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket)
    }
}

/// Splits a text into tokens; returns `None` if one of them is malformed.
pub(super) fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let source = Source::new(text);
    let mut tokens = Vec::new();
    let mut newlines = 0;
    for lexed in source.lex() {
        let raw = source.get(lexed)?;
        let mut error = None;
        match lexed.kind() {
            TokenKind::Eof => break,
            TokenKind::Whitespace => {}
            TokenKind::Newline => {
                raw.decode_newline(&mut error);
                newlines += 1;
            }
            // At the start of the formatted text, this token would be read as a byte order mark.
            TokenKind::Atom if raw.as_str().starts_with(BYTE_ORDER_MARK) => return None,
            kind => {
                if kind == TokenKind::Comment {
                    raw.decode_comment(&mut error);
                } else if kind.encoding().is_some() {
                    let _: ScalarKind = raw.decode_scalar(&mut (), &mut error);
                }
                tokens.push(Token { kind, text: raw.as_str(), newlines });
                newlines = 0;
            }
        }
        if error.is_some() {
            return None;
        }
    }
    Some(tokens)
}

/// Returns for each token whether it is an opening bracket that is written over several lines.
/// Returns `None` if brackets do not match or are nested more than [`MAX_DEPTH`] deep.
///
/// A line end inside an inner bracket or a text is not included: in `[[`, line end, `1]]`, only the
/// inner bracket is written over several lines.
pub(super) fn broken(tokens: &[Token<'_>]) -> Option<Vec<bool>> {
    let mut broken = vec![false; tokens.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if let Some(&inner) = open.last() {
            broken[inner] |= token.newlines > 0;
        }
        if token.opens() {
            open.push(at);
        } else if token.closes() && tokens[open.pop()?].kind != partner(token.kind) {
            return None;
        }
        if open.len() > MAX_DEPTH {
            return None;
        }
    }
    open.is_empty().then_some(broken)
}

/// Returns the opening bracket that matches a closing bracket.
const fn partner(closing: TokenKind) -> TokenKind {
    match closing {
        TokenKind::RightCurlyBracket => TokenKind::LeftCurlyBracket,
        _ => TokenKind::LeftSquareBracket,
    }
}
