//! Drops the line continuations that join nothing.

use super::token::{Lexeme, Token};

/// Removes every `\` at which its statement ends, and every `\` that the layout does not need: in
/// front of a brace, of a `=`, or of another `\`. Their comments are kept.
pub(super) fn resolve(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    let mut resolved: Vec<Token<'_>> = Vec::with_capacity(tokens.len());
    // Backwards, because whether a `\` joins something depends on which later tokens are kept.
    for token in tokens.into_iter().rev() {
        let next = resolved.last_mut();
        match token.kind {
            Lexeme::Join(comment) if !next.as_deref().is_some_and(continues) => {
                if let Some(next) = next {
                    // The line end that belonged to the `\` counts again.
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

/// Returns whether a token continues the statement of a `\` in front of it.
fn continues(token: &Token<'_>) -> bool {
    let ends = matches!(token.kind, Lexeme::Close | Lexeme::LineComment(_));
    token.newlines == 0 && !token.ended && !ends
}

const fn needs_no_join(token: &Token<'_>) -> bool {
    matches!(token.kind, Lexeme::Open | Lexeme::Equals | Lexeme::Join(_))
}

/// Moves the separators in front of a removed token to the next token.
fn pass_on(token: &Token<'_>, next: Option<&mut Token<'_>>) {
    if let Some(next) = next {
        next.newlines += token.newlines;
        next.ended |= token.ended;
    }
}
