//! Line continuations: drops those that join nothing.

use super::token::{Lexeme, Token};

/// Removes every `\` after which its statement ends, and every one that the layout has
/// no use for: in front of a brace, of a `=`, or of another `\`. Their comments stay.
pub(super) fn resolve(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    let mut resolved: Vec<Token<'_>> = Vec::with_capacity(tokens.len());
    // From the end: what a `\` joins depends on what is left of those after it.
    for token in tokens.into_iter().rev() {
        let next = resolved.last_mut();
        match token.kind {
            Lexeme::Join(comment) if !next.as_deref().is_some_and(continues) => {
                if let Some(next) = next {
                    // The line end that the `\` took in counts again.
                    next.newlines += 1;
                }
                if comment.is_empty() {
                    pass_on(&token, resolved.last_mut());
                } else {
                    resolved.push(Token { kind: Lexeme::LineComment(comment), ..token });
                }
            }
            Lexeme::Join("") if next.as_deref().is_some_and(needs_no_join) => {
                pass_on(&token, next);
            }
            _ => resolved.push(token),
        }
    }
    resolved.reverse();
    resolved
}

/// Returns whether a token continues a statement whose lines are joined in front of it.
fn continues(token: &Token<'_>) -> bool {
    let ends = matches!(token.kind, Lexeme::Close | Lexeme::LineComment(_));
    token.newlines == 0 && !token.ended && !ends
}

const fn needs_no_join(token: &Token<'_>) -> bool {
    matches!(token.kind, Lexeme::Open | Lexeme::Equals | Lexeme::Join(_))
}

/// Hands what separates a token from the one in front to the next.
fn pass_on(token: &Token<'_>, next: Option<&mut Token<'_>>) {
    if let Some(next) = next {
        next.newlines += token.newlines;
        next.ended |= token.ended;
    }
}
