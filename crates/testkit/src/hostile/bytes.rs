//! Parses the notation for bytes in the corpus.

/// Parses a word: `\0`, `\n`, `\s` (a space), `\\`, `\xHH`, and `{TEXT*N}` for a repetition. For example, `a\s{b*3}` is `a bbb`.
///
/// # Panics
/// On an unknown escape.
pub(super) fn unescape(word: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            '\\' => rest = escape(rest, &mut bytes),
            '{' => {
                let (inner, after) = rest.split_once('}').expect("a repetition ends with }");
                let (text, times) = inner.rsplit_once('*').expect("a repetition has a *");
                let times = times.parse().expect("a repetition has a number");
                bytes.extend(unescape(text).repeat(times));
                rest = after;
            }
            other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Parses the rest of an escape, after its backslash, and returns the text after it.
fn escape<'a>(rest: &'a str, bytes: &mut Vec<u8>) -> &'a str {
    let (kind, after) = rest.split_at(1);
    let byte = match kind {
        "0" => 0,
        "n" => b'\n',
        "s" => b' ',
        "\\" => b'\\',
        "x" => {
            let (digits, after) = after.split_at(2);
            bytes.push(u8::from_str_radix(digits, 16).expect("\\x has two hexadecimal digits"));
            return after;
        }
        _ => panic!("\\{kind} is no escape"),
    };
    bytes.push(byte);
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bytes() {
        assert_eq!(unescape(r"a\sb\0\n\\\xff"), b"a b\0\n\\\xff");
        assert_eq!(unescape("x{ab*3}y{/*2}"), b"xabababy//");
        assert_eq!(unescape(r"{\0*2}"), b"\0\0");
    }
}
