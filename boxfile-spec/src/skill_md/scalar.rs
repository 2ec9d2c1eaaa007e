//! What a value without quotes is: YAML 1.2.2, section 10.3.2, the core schema.

use super::yaml::Data;

/// Tells text from null, truth values and numbers.
pub(super) fn plain(text: &str) -> Data {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Bool(true),
        "false" | "False" | "FALSE" => Data::Bool(false),
        _ if is_number(text) => Data::Number(text.to_owned()),
        _ => Data::Text(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    if let Some(digits) = text.strip_prefix("0x") {
        return all(digits, |digit| digit.is_ascii_hexdigit());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return all(digits, |digit| (b'0'..=b'7').contains(&digit));
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let decimal = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    matches!(unsigned, ".inf" | ".Inf" | ".INF")
        || matches!(text, ".nan" | ".NaN" | ".NAN")
        || (unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && all(unsigned, decimal)
            && unsigned.parse::<f64>().is_ok())
}

fn all(digits: &str, is: impl Fn(u8) -> bool) -> bool {
    !digits.is_empty() && digits.bytes().all(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_what_only_looks_like_one() {
        for number in ["0", "-1", "+1", "1.", ".5", "1.5e-3", "0x1F", "0o17", "-.inf", ".nan"] {
            assert!(matches!(plain(number), Data::Number(_)), "{number}");
        }
        for text in ["1.0.0", "-", ".", "e5", "0x", "0o8", "1_000", "inf", "nan", "+-1", "yes"] {
            assert!(matches!(plain(text), Data::Text(_)), "{text}");
        }
    }
}
