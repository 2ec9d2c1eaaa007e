//! Errors in single words of both syntaxes, and how words are quoted.

use crate::diagnostic::quote;
use crate::{Diagnostic, Span, Syntax, in_quotes};

/// The help for an unknown escape.
pub(super) const BACKSLASH: &str =
    "a backslash begins an escape such as `\\n`; write `\\\\` for a backslash";

/// Quotes as a word processor writes them.
pub(super) const TYPOGRAPHIC: [char; 5] = ['“', '”', '„', '‘', '’'];

/// Writes a word as a text in quotes, for the user to copy.
pub(super) fn as_text(syntax: Syntax, word: &str) -> String {
    let word = word.trim_matches(['"', '\'']).trim_matches(TYPOGRAPHIC);
    if word.chars().count() > 100 {
        return "\"…\"".to_owned();
    }
    in_quotes(syntax, word)
}

/// Returns the error of a word that is a text without quotes, or with those of a word processor.
pub(super) fn unquoted(syntax: Syntax, word: &str, span: Span, label: &str) -> Diagnostic {
    let error = if word.contains(TYPOGRAPHIC) {
        Diagnostic::new("typographic quotes are not quotes", span, "not straight quotes")
    } else {
        Diagnostic::new(format!("{} must be in quotes", quote(word)), span, label)
    };
    error.with_help(format!("write `{}`", as_text(syntax, word)))
}

/// Returns whether a word that cannot be read was meant as a number.
pub(super) fn begins_like_number(word: &str) -> bool {
    word.trim_start_matches(['+', '-', '.']).starts_with(|c: char| c.is_ascii_digit())
}

/// Returns the error of a word that only begins like a number, or of a number that is too large.
pub(super) fn not_number(word: &str, span: Span, help: impl FnOnce() -> String) -> Diagnostic {
    let digits = word.trim_start_matches(['+', '-']);
    if digits.len() > 30 && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return Diagnostic::new("this number is too large", span, "too large")
            .with_help("no number in a Boxfile is greater than 4194304; write a text in quotes");
    }
    Diagnostic::new(format!("{} is not a number", quote(word)), span, "begins like a number")
        .with_help(help())
}
