//! Values in quotes.

use super::cursor::Cursor;
use crate::diagnostic::quote;
use crate::{Diagnostic, Span};

/// Reads `'…'`.
pub(super) fn single(cursor: &mut Cursor<'_>) -> Result<String, Diagnostic> {
    let start = cursor.position();
    let mut value = String::new();
    cursor.skip("'");
    loop {
        if cursor.starts_with("\\'") {
            cursor.skip("\\");
        } else if cursor.starts_with("'") {
            cursor.skip("'");
            return Ok(value);
        }
        match cursor.next() {
            Some(next) => value.push(next),
            None => return Err(unclosed(start, '\'')),
        }
    }
}

/// Reads `"…"`.
///
/// The first unknown escape is reported when the value is read, so that what follows it is read
/// in its own right.
pub(super) fn double(cursor: &mut Cursor<'_>) -> Result<String, Diagnostic> {
    let start = cursor.position();
    let mut value = String::new();
    let mut unknown = None;
    cursor.skip("\"");
    loop {
        let at = cursor.position();
        match cursor.next() {
            None => return Err(unclosed(start, '"')),
            Some('"') => return unknown.map_or(Ok(value), Err),
            Some('\\') => match cursor.next() {
                None => return Err(unclosed(start, '"')),
                Some(escaped) => match meaning(escaped) {
                    Some(meant) => value.push(meant),
                    None => {
                        unknown.get_or_insert_with(|| no_escape(escaped, cursor.span_from(at)));
                    }
                },
            },
            Some(next) => value.push(next),
        }
    }
}

const fn meaning(escaped: char) -> Option<char> {
    match escaped {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '\\' | '"' | '$' => Some(escaped),
        _ => None,
    }
}

fn no_escape(escaped: char, span: Span) -> Diagnostic {
    let message = format!("{} is no escape", quote(&format!("\\{escaped}")));
    Diagnostic::new(message, span, "unknown")
        .with_help("write `\\\\` for a backslash; the escapes are `\\n`, `\\r`, `\\t`, `\\\\`, `\\\"` and `\\$`")
}

fn unclosed(start: usize, sign: char) -> Diagnostic {
    let error =
        Diagnostic::new("a quote is not closed", Span::between(start, start + 1), "opened here");
    error.with_help(match sign {
        '\'' => "write `'` behind the value; `\\'` is a quote that belongs to it",
        _ => "write `\"` behind the value; `\\\"` is a quote that belongs to it",
    })
}
