//! The rules for names and paths, as plain predicates on text.

/// The greatest length of a name: it must fit a DNS label and a directory name.
const LONGEST_NAME: usize = 63;

/// What [`is_name`] asks for.
pub(crate) const NAME_FORM: &str =
    "a name has lower-case letters, digits and inner hyphens, at most 63: \"my-agent\"";

/// Tells whether `text` may name a box or a skill: `[a-z0-9]([a-z0-9-]*[a-z0-9])?`, at most 63.
pub(crate) fn is_name(text: &str) -> bool {
    is_label(text) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Tells whether `text` is a host name's label (RFC 1123, section 2.1).
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty()
        && text.len() <= LONGEST_NAME
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Returns the name that a text was probably meant to be: `My Agent` → `my-agent`.
pub(crate) fn intended_name(text: &str) -> Option<String> {
    let mapped: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(LONGEST_NAME)
        .collect();
    let name = mapped.trim_matches('-').to_owned();
    is_name(&name).then_some(name)
}

/// Tells whether `text` may name an environment variable: `[A-Za-z_][A-Za-z0-9_]*` (POSIX.1-2017,
/// base definitions, 3.235).
pub(crate) fn is_variable(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty() && text.bytes().all(inner) && !text.as_bytes()[0].is_ascii_digit()
}

/// Tells whether `text` may be an image's tag (OCI distribution-spec, "Pulling manifests").
pub(crate) fn is_tag(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(inner) && !text.starts_with(['.', '-'])
}

/// Tells whether `text` may be the path of an HTTP request.
pub(crate) fn is_http_path(text: &str) -> bool {
    text.starts_with('/') && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// Tells whether a path has a `..` among its parts.
pub(crate) fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let longest = "x".repeat(63);
        for good in ["a", "0", "hello", "a-b", "a--b", "9lives", &longest] {
            assert!(is_name(good), "{good}");
        }
        let too_long = "x".repeat(64);
        for bad in ["", "-", "-a", "a-", "A", "a_b", "a.b", "a/b", "ä", "a b", "..", &too_long] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(is_label("Agent-1"));
    }

    #[test]
    fn intended_names_are_names() {
        assert_eq!(intended_name("My Agent_2!").as_deref(), Some("my-agent-2"));
        assert_eq!(intended_name("--"), None);
        assert!(intended_name(&format!("{}-{}", "x".repeat(62), "y")).is_some());
    }

    #[test]
    fn variables_tags_and_paths() {
        assert!(is_variable("_A1") && is_variable("path"));
        assert!(!is_variable("") && !is_variable("1A") && !is_variable("A-B"));
        assert!(is_tag("v1.0_b-2") && !is_tag("") && !is_tag(".v") && !is_tag("a/b"));
        assert!(!is_tag(&"x".repeat(129)));
        assert!(is_http_path("/health?x=1") && !is_http_path("health") && !is_http_path("/a b"));
        assert!(!is_http_path("/a\r\nHost: b"));
        assert!(climbs("..") && climbs("a/../b") && !climbs("a..b/..c"));
    }
}
