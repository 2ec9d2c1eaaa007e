//! Values in quotes.

use crate::cursor::Cursor;
use crate::diagnostic::quote;
use crate::{Diagnostic, Span};

/// Reads `'…'`.
pub(super) fn single(cursor: &mut Cursor<'_>) -> Result<String, Diagnostic> {
    let start = cursor.at();
    let mut value = String::new();
    cursor.eat("'");
    loop {
        if cursor.rest().starts_with("\\'") {
            cursor.eat("\\");
        } else if cursor.eat("'") {
            return Ok(value);
        }
        match cursor.bump() {
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
    let start = cursor.at();
    let mut value = String::new();
    let mut unknown = None;
    cursor.eat("\"");
    loop {
        let at = cursor.at();
        match cursor.bump() {
            None => return Err(unclosed(start, '"')),
            Some('"') => return unknown.map_or(Ok(value), Err),
            Some('\\') => match cursor.bump() {
                None => return Err(unclosed(start, '"')),
                Some(escaped) => match meaning(escaped) {
                    Some(meant) => value.push(meant),
                    None => {
                        unknown.get_or_insert_with(|| {
                            no_escape(escaped, Span::between(at, cursor.at()))
                        });
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
    error.with_help(format!(
        "write `{sign}` after the value; `\\{sign}` is a quote that belongs to it"
    ))
}
