//! `kernel "PATH" sha256="…"`: the kernel that the box boots.

use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::{Node, Value};
use crate::{Diagnostic, Kernel, Spanned, value};

const USAGE: &str =
    "`kernel \"vendor/libkrunfw.so.5\"`, `kernel sha256=\"…\"` with 64 hexadecimal digits, or both";

/// Reads the kernel's path and digest, of which one at least must be there.
pub(super) fn read(node: &Node, sink: &Sink) -> Option<Kernel> {
    let mut reader = Reader::new(node, USAGE, sink);
    let path = reader.optional_arg();
    let sha256 = reader.optional_prop("sha256");
    if path.is_none() && sha256.is_none() {
        reader.report_missing("a path or a `sha256`");
    }
    let path = reader.read(path, "kernel", |value, name| {
        let path = value::filled_text(value, name)?.to_owned();
        Ok(Spanned { value: path, span: value.span })
    });
    let sha256 = reader.read(sha256, "sha256", digest);
    reader.finish();
    Some(Kernel { path, sha256 })
}

fn digest(value: &Value, name: &str) -> Result<[u8; 32], Diagnostic> {
    let text = value::text(value, name)?;
    parse_hex(text).ok_or_else(|| {
        let intended = text.trim().trim_start_matches("sha256:").to_ascii_lowercase();
        let help = match parse_hex(&intended) {
            Some(_) => format!("write `{name}=\"{intended}\"`"),
            None => "the output of `sha256sum` begins with them".to_owned(),
        };
        let message = "a sha256 has 64 hexadecimal digits, in lower case";
        let label = format!("{} characters", text.chars().count());
        Diagnostic::new(message, value.span, label).with_help(help)
    })
}

fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_in_order_and_nothing_else_is() {
        let bytes = parse_hex(&format!("01ab{}", "f0".repeat(30))).unwrap();
        assert_eq!(bytes[..3], [0x01, 0xab, 0xf0]);
        for bad in ["", &"0".repeat(63), &"0".repeat(65), &"A".repeat(64), &"g".repeat(64)] {
            assert_eq!(parse_hex(bad), None);
        }
    }
}
