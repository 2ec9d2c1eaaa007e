//! Checks names and paths by their text alone, without a file system.

pub(crate) use box_contract::plan::reserved_place;
pub(crate) use box_contract::rules::{
    VARIABLE_FORM, climbs, is_inside, is_name, is_variable, overlap, path_order,
};
pub(crate) use diagnostics::names::{check_variable, name_error, plain_secret};
use diagnostics::{Diagnostic, Span};
use safe_text::quote;

/// Returns the request path that was probably meant: `a b` becomes `/a%20b`. Adds a leading `/`, and percent-encodes
/// quotes, backslashes, spaces and non-ASCII characters ([RFC
/// 3986](https://www.rfc-editor.org/rfc/rfc3986#section-2.1), section 2.1). Returns `None` for an empty text and a text
/// with control characters.
pub(crate) fn intended_http_path(text: &str) -> Option<String> {
    let encode = |byte: u8| match byte {
        byte if byte.is_ascii_graphic() && !b"\"\\".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let path: String = text.trim_start_matches('/').bytes().map(encode).collect();
    (!text.is_empty() && !text.chars().any(char::is_control)).then(|| format!("/{path}"))
}

/// Returns whether a user, `USER` or `USER:GROUP`, is root by its name or number.
pub(crate) fn is_root(user: &str) -> bool {
    let name = user.split(':').next().unwrap_or_default();
    name == "root" || name.parse() == Ok(0_u32)
}

/// Refuses a path that the guest reserves, or that is above or below such a path. `refusal` is the error message up to
/// the path, such as `no file can be at`. `example` is a free path for the help.
pub(crate) fn check_place(
    refusal: &str,
    place: &str,
    span: Span,
    example: &str,
) -> Result<(), Diagnostic> {
    let Some(reserved) = reserved_place(place) else { return Ok(()) };
    let message = format!("{refusal} {}", quote(place));
    let error = Diagnostic::new(message, span, format!("the guest has its own `{reserved}`"));
    Err(error.with_help(format!("choose another path, for instance \"{example}\"")))
}

/// Returns the last part of a path: `b` for `/a/b/`, and an empty text for `/`.
pub(crate) fn last_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Returns whether `text` is a pattern of absolute paths: it begins with `/`, and contains neither a `..` part nor
/// `***`.
pub(crate) fn is_glob(text: &str) -> bool {
    text.starts_with('/') && !climbs(text) && !text.contains("***")
}

#[cfg(test)]
mod tests {
    use box_contract::rules::is_request_path;

    use super::*;

    #[test]
    fn names() {
        let longest = "x".repeat(64);
        for good in ["a", "0", "hello", "a-b", "a--b", "9lives", &longest] {
            assert!(is_name(good), "{good}");
        }
        let too_long = "x".repeat(65);
        for bad in ["", "-", "-a", "a-", "A", "a_b", "a.b", "a/b", "ä", "a b", "..", &too_long] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn climbing_paths() {
        assert!(climbs("..") && climbs("a/../b") && !climbs("a..b/..c"));
    }

    #[test]
    fn intended_paths_of_requests_are_ones() {
        for (text, path) in [
            ("/santé", "/sant%C3%A9"),
            ("a b?c=%20", "/a%20b?c=%20"),
            ("health", "/health"),
            ("/", "/"),
            ("é\"\\", "/%C3%A9%22%5C"),
        ] {
            assert_eq!(intended_http_path(text).as_deref(), Some(path));
            assert!(is_request_path(path));
        }
        assert_eq!(intended_http_path(""), None);
        assert_eq!(intended_http_path("/a\r\nHost: b"), None);
    }

    #[test]
    fn root_has_a_name_and_a_number() {
        assert!(is_root("root") && is_root("0") && is_root("0:1000") && is_root("root:app"));
        assert!(
            !is_root("app") && !is_root("1000:0") && !is_root("app:root") && !is_root("rooted")
        );
    }

    #[test]
    fn paths_lie_in_one_another_part_by_part() {
        assert!(is_inside("/cap", "/cap") && is_inside("/cap/x", "/cap"));
        assert!(!is_inside("/capx", "/cap") && !is_inside("/", "/cap"));
        let mut paths = ["/a.b", "/a/c", "/b", "/a"];
        paths.sort_by(|one, other| path_order(one, other));
        assert_eq!(paths, ["/a", "/a/c", "/a.b", "/b"]);
    }

    #[test]
    fn patterns() {
        assert!(is_glob("/a/**") && is_glob("/*") && is_glob("/") && !is_glob("a"));
        assert!(!is_glob("/a/../b") && !is_glob("/a/***"));
    }
}
