//! Says in the words of a Boxfile what is wrong in a TOML text.
//!
//! The `toml` crate says of a statement that it cannot be read, and where it stopped. What a user
//! meant is looked for here, in each part of the statement.

pub(super) mod characters;
pub(super) mod clash;
pub(super) mod header;
pub(super) mod pair;
mod value;
pub(super) mod word;

use std::ops::Range;

use super::lexeme::{Kind, Lexeme, Lexemes};
use crate::syntax::DEEPEST;
use crate::{Diagnostic, Span};

/// The error that brackets or names with dots nest too deep.
pub(super) fn too_deep(span: Span) -> Diagnostic {
    let message = format!("tables and lists lie more than {DEEPEST} deep in one another");
    Diagnostic::new(message, span, "one too many")
}

/// The error that a text over several lines has no end.
pub(super) fn unclosed_text(text: &str, open: Span) -> Diagnostic {
    let close = &text[open.offset..open.end()];
    Diagnostic::new("this text is never closed", open, "opened here")
        .with_help(format!("close it with `{close}`"))
}

/// The error that a list or an inline table has no end, in a statement.
pub(super) fn unclosed_bracket(
    text: &str,
    range: &Range<usize>,
    open: Span,
    sure: bool,
) -> Diagnostic {
    let mut inside = Lexemes::new(&text[..range.end], open.end());
    if let Some(error) = inside.find_map(|lexeme| keyword(text, &lexeme, 0)) {
        return error;
    }
    let (what, close) = if text[open.offset..].starts_with('[') {
        ("this list is never closed", "]")
    } else {
        ("this table is never closed", "}")
    };
    let lines = if sure { "" } else { ", or put a `,` at the end of each of its lines" };
    Diagnostic::new(what, open, "opened here").with_help(format!("close it with `{close}`{lines}"))
}

/// The error that a comment was meant as one of KDL's keywords.
fn keyword(text: &str, comment: &Lexeme, base: usize) -> Option<Diagnostic> {
    let written = comment.of(text).strip_prefix('#').filter(|_| comment.kind == Kind::Comment)?;
    let word = ["true", "false", "null"].into_iter().find(|word| {
        let rest = written.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    })?;
    let span = Span::at(base + comment.start, 1 + word.len());
    let help = if word == "null" {
        "remove the line: what is not given has no value".to_owned()
    } else {
        format!("write `{word}`, without `#`")
    };
    Some(Diagnostic::new("`#` begins a comment", span, "a keyword as in KDL").with_help(help))
}
