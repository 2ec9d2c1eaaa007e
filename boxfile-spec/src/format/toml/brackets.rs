//! Which brackets belong together, and which of them are written over several lines.

use super::token::{Kind, Token};
use crate::syntax::tree::DEEPEST;

/// Tells of each token whether it is a bracket with a line end directly between it and the one
/// that closes it; nothing if brackets do not match.
///
/// A line end within further brackets, or within a text, is theirs alone.
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
        if open.len() > DEEPEST {
            return None;
        }
    }
    open.is_empty().then_some(broken)
}

/// Returns the bracket that a closing bracket closes.
const fn partner(closing: Kind) -> Kind {
    match closing {
        Kind::RightCurlyBracket => Kind::LeftCurlyBracket,
        _ => Kind::LeftSquareBracket,
    }
}
