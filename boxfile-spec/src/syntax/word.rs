//! Reports errors in single words of both syntaxes, and quotes words.

use crate::errors::SYNTAX_ERRORS;
use diagnostics::{Diagnostic, Span, Syntax, in_quotes};
use safe_text::quote;

/// Quotes of word processors.
pub(crate) const TYPOGRAPHIC: [char; 5] = ['“', '”', '„', '‘', '’'];

/// Writes a word as a text in quotes, for the user to copy.
pub(super) fn as_text(syntax: Syntax, word: &str) -> String {
    let word = word.trim_matches(['"', '\'']).trim_matches(TYPOGRAPHIC);
    if word.chars().count() > 100 {
        return "\"…\"".to_owned();
    }
    in_quotes(syntax, word)
}

/// Returns the error of a text without quotes, or with typographic ones.
pub(super) fn unquoted(syntax: Syntax, word: &str, span: Span, label: &str) -> Diagnostic {
    let text = as_text(syntax, word);
    if word.contains(TYPOGRAPHIC) {
        return SYNTAX_ERRORS.about("typographic", &text, span);
    }
    // Web pages and word processors replace typed spaces by such characters.
    if let Some((at, c)) = word.char_indices().find(|(_, c)| c.is_whitespace() && !c.is_ascii()) {
        let place = Span::at(span.offset + at, c.len_utf8());
        return SYNTAX_ERRORS.about("odd-space", &format!("U+{:04X}", u32::from(c)), place);
    }
    Diagnostic::new(format!("{} must be in quotes", quote(word)), span, label)
        .with_help(format!("write `{text}`"))
}

/// Returns whether a word that cannot be read was probably meant as a number.
pub(crate) fn begins_like_number(word: &str) -> bool {
    word.trim_start_matches(['+', '-', '.']).starts_with(|c: char| c.is_ascii_digit())
}

/// Returns the error of a word that only begins like a number, or of a number that is too large.
pub(super) fn not_number(word: &str, span: Span, help: impl FnOnce() -> String) -> Diagnostic {
    let digits = word.trim_start_matches(['+', '-']);
    if digits.len() > 30 && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return SYNTAX_ERRORS.at("large", span);
    }
    Diagnostic::new(format!("{} is not a number", quote(word)), span, "begins like a number")
        .with_help(help())
}
