//! Refuses nesting that could overflow the stack, before anything is nested.
//!
//! A TOML tree is dropped by recursion, and `a.b.c = 1` is three levels deep. What nests are
//! brackets, braces and dots; a part of a lock needs six of them. It is enough to count them, and
//! that count is sound whatever a reader makes of brackets that do not match.
//!
//! What texts and comments hold does not count, so their ends must be found where the `toml` crate
//! finds them (`toml_parser::lexer`): a comment ends before CR or LF, a text on one line at its
//! quote or before LF, and one on several lines takes up to two quotes behind its three.

/// The greatest number of brackets, braces and dots in a part of a lock.
pub(super) const MOST: usize = 64;

/// Returns the offset of the first bracket, brace or dot that is too much.
pub(super) fn excess(text: &str) -> Option<usize> {
    let text = text.as_bytes();
    let mut count = 0;
    // A byte order mark is no part of the first name.
    let mut offset = if text.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
    while offset < text.len() {
        if matches!(text[offset], b'[' | b'{' | b'.') {
            count += 1;
            if count > MOST {
                return Some(offset);
            }
        }
        offset += token(&text[offset..]);
    }
    None
}

/// Returns the length of the first token of a text that is not empty.
fn token(text: &[u8]) -> usize {
    let until =
        |end: &dyn Fn(u8) -> bool| text.iter().position(|byte| end(*byte)).unwrap_or(text.len());
    match text[0] {
        b'#' => until(&|byte| matches!(byte, b'\r' | b'\n')),
        quote @ (b'"' | b'\'') if text.starts_with(&[quote; 3]) => several_lines(text, quote),
        quote @ (b'"' | b'\'') => one_line(text, quote),
        byte if separates(byte) => 1,
        _ => until(&|byte| separates(byte) || byte == b'#'),
    }
}

/// Tells whether a byte ends a bare name or number; quotes do not.
const fn separates(byte: u8) -> bool {
    matches!(byte, b'.' | b'=' | b',' | b'[' | b']' | b'{' | b'}' | b' ' | b'\t' | b'\r' | b'\n')
}

/// Returns the length of a text that has to end on its line.
fn one_line(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\n' => return at,
            byte if byte == quote => return at + 1,
            _ => at += character(&text[at..], quote),
        }
    }
    text.len()
}

/// Returns the length of a text between three quotes, which may have several lines.
fn several_lines(text: &[u8], quote: u8) -> usize {
    let mut at = 3;
    while at < text.len() {
        if text[at..].starts_with(&[quote; 3]) {
            let more = text[at + 3..].iter().take(2).take_while(|byte| **byte == quote);
            return at + 3 + more.count();
        }
        at += character(&text[at..], quote);
    }
    text.len()
}

/// Returns the length of what cannot end a text: a byte, or an escaped quote or backslash.
fn character(text: &[u8], quote: u8) -> usize {
    let escaped = quote == b'"' && matches!(text, [b'\\', b'"' | b'\\', ..]);
    if escaped { 2 } else { 1 }
}
