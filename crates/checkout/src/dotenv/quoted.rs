//! Quoted values.

use crate::dotenv::ERRORS;
use diagnostics::cursor::Cursor;
use diagnostics::{Diagnostic, Span};

/// Parses `'…'`.
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
            None => return Err(unclosed(start, "'")),
        }
    }
}

/// Parses `"…"`.
///
/// The first unknown escape is reported at the end of the value, so that the rest of the line can be parsed.
pub(super) fn double(cursor: &mut Cursor<'_>) -> Result<String, Diagnostic> {
    let start = cursor.at();
    let mut value = String::new();
    let mut unknown = None;
    cursor.eat("\"");
    loop {
        let at = cursor.at();
        match cursor.bump() {
            None => return Err(unclosed(start, "\"")),
            Some('"') => return unknown.map_or(Ok(value), Err),
            Some('\\') => match cursor.bump() {
                None => return Err(unclosed(start, "\"")),
                Some(escaped) => match meaning(escaped) {
                    Some(meant) => value.push(meant),
                    None => {
                        unknown.get_or_insert_with(|| {
                            let place = Span::between(at, cursor.at());
                            ERRORS.at("escape", place)
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

fn unclosed(start: usize, sign: &str) -> Diagnostic {
    ERRORS.about("open", sign, Span::at(start, 1))
}
