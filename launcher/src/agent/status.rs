//! The status at the end of an answer: whether the call succeeded.

use hyper::header::{HeaderMap, HeaderValue};
use safe_text::clipped;

/// The names of the fields with the number and with the message of the status.
const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";

/// The status at the end of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    Failed {
        code: u32,
        message: String,
    },
    /// The number is missing, repeated or malformed.
    Missing,
}

/// Reads the status from the last fields of an answer.
pub(super) fn verdict(fields: &HeaderMap) -> Verdict {
    let mut statuses = fields.get_all(STATUS).iter();
    match statuses.next().filter(|_| statuses.next().is_none()).and_then(number) {
        None => Verdict::Missing,
        Some(0) => Verdict::Done,
        Some(code) => {
            let message = fields.get(MESSAGE).map(HeaderValue::as_bytes).unwrap_or_default();
            Verdict::Failed { code, message: clipped(decoded(message)) }
        }
    }
}

/// Parses the number of a status, which must have its canonical form: `5`, but not `05`.
fn number(value: &HeaderValue) -> Option<u32> {
    let text = value.to_str().ok()?;
    text.parse().ok().filter(|code: &u32| code.to_string() == text)
}

/// Decodes the percent encoding of a gRPC message. Malformed escapes stay unchanged.
fn decoded(text: &[u8]) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&first, after)) = rest.split_first() {
        let byte = if first == b'%' { after.get(..2).and_then(hexadecimal) } else { None };
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digit = |it: u8| char::from(it).to_digit(16).and_then(|it| u8::try_from(it).ok());
    Some(digit(digits[0])? << 4 | digit(digits[1])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_decoded_and_what_is_malformed_stays() {
        for (text, expected) in [
            ("", ""),
            ("no%20such%2Fthing", "no such/thing"),
            ("%c3%A4", "ä"),
            ("100% %zz %4", "100% %zz %4"),
            ("%ff", "\u{fffd}"),
        ] {
            assert_eq!(decoded(text.as_bytes()), expected);
        }
    }

    #[test]
    fn only_a_status_of_zero_is_well() {
        let read = |status: &'static str| {
            verdict(&HeaderMap::from_iter([(
                STATUS.parse().unwrap(),
                HeaderValue::from_static(status),
            )]))
        };
        assert_eq!(read("0"), Verdict::Done);
        assert_eq!(read("5"), Verdict::Failed { code: 5, message: String::new() });
        for status in ["", "-1", "x", "+0", "00"] {
            assert_eq!(read(status), Verdict::Missing, "{status}");
        }
        let mut both = HeaderMap::new();
        both.append(STATUS, HeaderValue::from_static("0"));
        both.append(STATUS, HeaderValue::from_static("5"));
        assert_eq!(verdict(&both), Verdict::Missing, "one of two");
        assert_eq!(verdict(&HeaderMap::new()), Verdict::Missing);
    }
}
