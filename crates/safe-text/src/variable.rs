//! The names of environment variables.

/// The rule of [`is_variable`] in words.
pub const VARIABLE_FORM: &str = "has letters, digits and `_`, and does not begin with a digit";

/// Returns whether `text` is a valid name for an environment variable: `[A-Za-z_][A-Za-z0-9_]*`
/// (POSIX.1-2017, base definitions, 3.235).
///
/// # Examples
///
/// ```
/// assert!(safe_text::is_variable("API_KEY"));
/// assert!(!safe_text::is_variable("API-KEY"));
/// ```
pub fn is_variable(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty() && text.bytes().all(inner) && !text.as_bytes()[0].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_letters_digits_and_underscores() {
        assert!(is_variable("_A1") && is_variable("path"));
        assert!(!is_variable("") && !is_variable("1A") && !is_variable("A-B"));
    }
}
