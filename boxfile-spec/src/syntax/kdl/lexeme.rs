//! Lexemes in which braces and line ends have no meaning: texts and comments.

use crate::errors::SYNTAX_ERRORS;
use diagnostics::cursor::Cursor;
use diagnostics::{Diagnostic, Span};

/// The effect of an unclosed lexeme on the text after it.
#[derive(Debug)]
pub(crate) enum Unclosed {
    /// The lexeme ends with its line.
    Line {
        error: Diagnostic,
        /// Whether it contains a brace or semicolon, which the user may have meant as the end of a
        /// block or statement.
        swallows_structure: bool,
    },
    /// The lexeme extends to the end of the file.
    File(Diagnostic),
}

/// Steps over a text in quotes, a run of `#` without one, or any other character.
pub(crate) fn step(cursor: &mut Cursor<'_>) -> Result<(), Unclosed> {
    if !text(cursor)? && cursor.bump() == Some('#') {
        // Steps over the whole run at once: otherwise, each `#` would look for a quote after all
        // other `#`.
        while cursor.eat("#") {}
    }
    Ok(())
}

/// Steps over a text in quotes, raw or not, if one is next.
pub(crate) fn text(cursor: &mut Cursor<'_>) -> Result<bool, Unclosed> {
    let start = cursor.clone();
    let hashes = cursor.rest().len() - cursor.rest().trim_start_matches('#').len();
    let fence = &cursor.rest()[..hashes];
    let mut ahead = cursor.clone();
    if !(ahead.eat(fence) && ahead.eat("\"")) {
        return Ok(false);
    }
    *cursor = ahead.clone();
    let long = ahead.eat("\"\"") && ahead.peek().is_some_and(is_newline);
    if long {
        *cursor = ahead;
    }
    let close = format!("{}{fence}", if long { "\"\"\"" } else { "\"" });
    while !cursor.eat(&close) {
        let ends = cursor.peek().is_none_or(|c| is_newline(c) && !long);
        if ends {
            return Err(unclosed_text(&start, cursor, &close, long));
        }
        if cursor.bump() == Some('\\') && hashes == 0 {
            skip_escaped(cursor);
        }
    }
    Ok(true)
}

/// Steps over the characters that a `\` escapes: one character, or all white space up to the next
/// other character.
fn skip_escaped(cursor: &mut Cursor<'_>) {
    if cursor.eat_class(is_blank) {
        while cursor.eat_class(is_blank) {}
    } else {
        cursor.bump();
    }
}

fn unclosed_text(from: &Cursor<'_>, to: &Cursor<'_>, close: &str, long: bool) -> Unclosed {
    let whole = &from.rest()[..to.at() - from.at()];
    let shown = if long { close.len() } else { whole.trim_end().len() };
    let span = Span::at(from.at(), shown);
    let error = SYNTAX_ERRORS.about(if long { "open-text" } else { "open-line" }, close, span);
    if long {
        return Unclosed::File(error);
    }
    Unclosed::Line { error, swallows_structure: whole.contains(['{', '}', ';']) }
}

/// Steps over a block comment, if one is next. It may contain further block comments.
pub(crate) fn block_comment(cursor: &mut Cursor<'_>) -> Result<bool, Unclosed> {
    let start = cursor.at();
    if !cursor.eat("/*") {
        return Ok(false);
    }
    let mut open = 1;
    while open > 0 {
        cursor.skip_until(|c| c == '*' || c == '/');
        if cursor.eat("/*") {
            open += 1;
        } else if cursor.eat("*/") {
            open -= 1;
        } else if cursor.bump().is_none() {
            return Err(Unclosed::File(SYNTAX_ERRORS.at("open-comment", Span::at(start, 2))));
        }
    }
    Ok(true)
}

/// Steps over a comment up to the end of its line, if one is next. Does not step over the line end.
pub(crate) fn line_comment(cursor: &mut Cursor<'_>) -> bool {
    let next = cursor.eat("//");
    if next {
        cursor.skip_until(is_newline);
    }
    next
}

/// Returns whether a character ends a line (KDL 2.0, section 3.18 "Newline"). CRLF counts as two
/// line ends, which makes no difference to the outline.
pub(crate) const fn is_newline(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{b}' | '\u{c}' | '\u{2028}' | '\u{2029}')
}

/// Returns whether a character is white space (KDL 2.0, section 3.17 "Whitespace").
pub(crate) const fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// Returns whether a character is white space or ends a line.
pub(crate) const fn is_blank(c: char) -> bool {
    is_space(c) || is_newline(c)
}
