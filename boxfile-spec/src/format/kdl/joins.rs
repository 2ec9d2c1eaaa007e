//! Removes line continuations (`\`) that have no effect.

use super::token::{Lexeme, Token};

/// Removes every `\` after which its statement does not continue, and every `\` that the layout
/// does not need: in front of a `{`, a `=` or another `\`. Comments after a removed `\` are kept.
pub(super) fn resolve(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    let mut resolved: Vec<Token<'_>> = Vec::with_capacity(tokens.len());
    // Iterates backwards, because whether a `\` joins lines depends on which later tokens are kept.
    for token in tokens.into_iter().rev() {
        let next = resolved.last_mut();
        match token.kind {
            Lexeme::Join(comment) if !next.as_deref().is_some_and(continues) => {
                if let Some(next) = next {
                    // Without the `\`, the line end after it separates two statements.
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

/// Returns whether a token directly after a `\` continues the statement in front of the `\`.
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
