//! Characters that no TOML text may have.

use crate::sink::Sink;
use crate::{Diagnostic, Span};

/// Reports control characters, and returns their offsets.
///
/// TOML 1.1: of them a tab alone may stand in a text or comment, and line ends are LF or CRLF.
pub(in crate::syntax::toml) fn report(text: &str, sink: &Sink) -> Vec<usize> {
    let bytes = text.as_bytes();
    let disallowed = |at: usize| match bytes[at] {
        b'\t' | b'\n' => false,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        byte => byte.is_ascii_control(),
    };
    let found: Vec<usize> = (0..bytes.len()).filter(|at| disallowed(*at)).collect();
    for (index, at) in found.iter().copied().enumerate() {
        // Of several in a row, the first stands for all.
        if index == 0 || found[index - 1] + 1 != at {
            sink.report(error(bytes[at], at));
        }
    }
    found
}

fn error(byte: u8, at: usize) -> Diagnostic {
    let span = Span::at(at, 1);
    if byte == b'\r' {
        return Diagnostic::new("a line ends with a carriage return alone", span, "no line feed")
            .with_help(
                "save the file with LF or CRLF line ends; in a text in quotes, write `\\r`",
            );
    }
    let message = format!("the invisible character U+{byte:04X} is not allowed");
    Diagnostic::new(message, span, "here")
        .with_help(format!("remove it; in a text in quotes it is written `\\u{byte:04X}`"))
}
