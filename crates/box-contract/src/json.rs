//! Describes errors in untrusted JSON without any of its values.
//!
//! serde's messages quote the unexpected value. A reference in a document can make a program read any JSON file of the
//! host, whose values may be secret. The expected type and its position are enough to correct a document.

use serde_json::error::Category;

/// The prefixes of serde's messages that quote only the names of this program's fields.
const OWN: [&str; 2] = ["missing field `", "duplicate field `"];

/// Describes an error in a JSON text and its position. `own` lists prefixes of messages from the caller's deserializer
/// that quote no part of the text.
pub fn fault(error: &serde_json::Error, own: &[&str]) -> String {
    let text = error.to_string();
    let place = match error.line() {
        0 => String::new(),
        line => format!(" at line {line} column {}", error.column()),
    };
    let message = text.strip_suffix(&place).unwrap_or(&text);
    let is_own = OWN.iter().chain(own).any(|it| message.starts_with(it));
    if is_own || error.classify() != Category::Data {
        return text;
    }
    let lists =
        !message.ends_with("there are no fields") && !message.ends_with("there are no variants");
    // The unexpected value can contain `, expected `, too. serde writes the expected type last.
    match message.rsplit_once(", expected ").filter(|_| lists) {
        Some((_, expected)) => format!("expected {expected}{place}"),
        None => format!("a value of another form than expected{place}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::Deserialize;
    use serde::de::{DeserializeOwned, Error};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its errors count")]
    struct Known {
        number: u8,
        kind: Kind,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
        Two,
    }

    #[derive(Debug)]
    struct Picky;

    impl<'de> Deserialize<'de> for Picky {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            Err(D::Error::custom(format!("own: {}", String::deserialize(from)?)))
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    fn output<T: DeserializeOwned + Debug>(text: &str) -> String {
        fault(&serde_json::from_str::<T>(text).unwrap_err(), &[])
    }

    #[test]
    fn what_is_expected_is_said_and_no_value() {
        for (found, expected) in [
            (output::<Known>(r#"{"number": "hunter2"}"#), "expected u8 at line 1 column 20"),
            (
                output::<Known>(r#"{"number": "hunter2, expected hunter2"}"#),
                "expected u8 at line 1 column 38",
            ),
            (output::<Known>(r#"{"number": 77777}"#), "expected u8 at line 1 column 16"),
            (
                output::<Known>(r#"{"kind": "hunter2"}"#),
                "expected `one` or `two` at line 1 column 18",
            ),
            (
                output::<Known>(r#"{"hunter2": 1}"#),
                "expected `number` or `kind` at line 1 column 10",
            ),
            (output::<Known>("{}"), "missing field `number` at line 1 column 2"),
            (output::<Known>("hunter2"), "expected value at line 1 column 1"),
            (output::<Picky>("\"hunter2\""), "a value of another form than expected"),
            (
                output::<Nothing>(r#"{"a, expected hunter2": 1}"#),
                "a value of another form than expected at line 1 column 23",
            ),
        ] {
            assert_eq!(found.split(" at line").next(), expected.split(" at line").next());
            assert!(!found.contains("hunter2") && !found.contains("77777"), "{found}");
        }
        let error = serde_json::from_str::<Picky>("\"so\"").unwrap_err();
        assert!(fault(&error, &["own: "]).starts_with("own: so"));
        assert!(output::<Known>(r#"{"number": ""}"#).ends_with(" at line 1 column 13"));
    }
}
