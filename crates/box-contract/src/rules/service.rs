//! The syntax of the HTTP APIs that a box reaches through the host.

use super::{is_label, network, peer_name};

/// The scheme of an API's URL. Without TLS, everybody on the way could read the credential.
const SCHEME: &str = "https://";
/// The port of a URL that names none.
const HTTPS: u16 = 443;
/// The maximum length of an API's URL and of a rule about requests, in bytes.
const MAX_URL: usize = 1024;
/// The maximum length of a header's name, in bytes.
const MAX_HEADER: usize = 64;
/// The maximum length of the text before a credential, and of a word of it, in bytes.
const MAX_PREFIX: usize = 32;
const MAX_WORD: usize = 16;
/// The headers that belong to the message or the connection, and not to a credential.
const OF_MESSAGES: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The URL of an API: `https://HOST[:PORT][/PATH]`, without a user, a query and a slash at its end.
///
/// # Examples
/// ```
/// use box_contract::rules::ServiceUrl;
///
/// let url = ServiceUrl::parse("https://api.example.com/v1").expect("well-formed");
/// assert_eq!((url.host, url.port, url.path), ("api.example.com", 443, "/v1"));
/// assert_eq!(ServiceUrl::parse("http://api.example.com"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceUrl<'a> {
    /// A name in lower case, or an IP address, without brackets.
    pub host: &'a str,
    /// The TCP port.
    pub port: u16,
    /// The path before the paths of requests: empty, or one that begins with a slash and does not end with one.
    pub path: &'a str,
}

impl<'a> ServiceUrl<'a> {
    /// Parses a URL.
    pub fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix(SCHEME).filter(|_| text.len() <= MAX_URL)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let is_bracketed = authority.starts_with('[');
        let is_host = match network(host) {
            Some((address, _)) => !host.contains('/') && address.is_ipv6() == is_bracketed,
            None => !is_bracketed && is_domain(host),
        };
        let port = match port.strip_prefix(':') {
            Some(port) if port.bytes().all(|it| it.is_ascii_digit()) => port.parse().ok()?,
            Some(_) => return None,
            None if port.is_empty() => HTTPS,
            None => return None,
        };
        let is_path = path.is_empty() || !path.ends_with('/') && is_plain_path(path);
        (is_host && port != 0 && is_path).then_some(Self { host, port, path })
    }
}

/// Returns whether a text is a domain in lower case, which is no pattern.
fn is_domain(host: &str) -> bool {
    let is_lower = !host.bytes().any(|it| it.is_ascii_uppercase());
    is_lower && peer_name(host) == Some(host) && host.split('.').all(is_label)
}

/// Returns whether servers read a path of a request as it is written: it has no empty parts, no `.`, no `..`, no backslash, no `;`,
/// and none of them or a slash as `%XX`. Some servers cut each part at a `;`.
pub fn is_plain_path(path: &str) -> bool {
    let Some(parts) = path.strip_prefix('/') else { return false };
    let is_plain = |part: &str| part != "." && part != ".." && has_plain_escapes(part);
    let is_ascii = path.bytes().all(|it| it.is_ascii_graphic() && !b"\\;?#".contains(&it));
    is_ascii && parts.split('/').all(is_plain) && !path.contains("//")
}

/// Returns whether each `%` is followed by the digits of a byte that no server could read as a part of the path's structure.
fn has_plain_escapes(part: &str) -> bool {
    part.split('%').skip(1).all(|rest| {
        let is_hexadecimal = |it: &&str| it.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte = rest.get(..2).filter(is_hexadecimal);
        let byte = byte.and_then(|it| u8::from_str_radix(it, 16).ok());
        // UTF-8 has none of the last bytes, which some servers decode to ASCII nevertheless.
        let is_text = |it: u8| !it.is_ascii_control() && !matches!(it, 0xc0 | 0xc1 | 0xf5..);
        byte.is_some_and(|it| is_text(it) && !b"./\\%;?#".contains(&it))
    })
}

/// A rule about requests: `METHOD PATH`, in which `*` stands for anything, also for slashes. Queries are not compared.
///
/// # Examples
/// ```
/// use box_contract::rules::RequestRule;
///
/// let rule = RequestRule::parse("POST /messages*").expect("well-formed");
/// assert!(rule.allows("POST", "/messages/count_tokens") && !rule.allows("GET", "/messages"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRule<'a> {
    method: &'a str,
    path: &'a str,
}

impl<'a> RequestRule<'a> {
    /// Parses a rule.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (method, path) = text.split_once(' ').filter(|_| text.len() <= MAX_URL)?;
        let is_method = method == "*"
            || (!method.is_empty() && method.bytes().all(|it| it.is_ascii_uppercase()));
        let is_path = path == "*" || is_plain_path(path);
        (is_method && is_path).then_some(Self { method, path })
    }

    /// Returns whether the rule allows a request. `path` is below the API's URL, and has no query.
    pub fn allows(&self, method: &str, path: &str) -> bool {
        (self.method == "*" || self.method == method) && fits(self.path, path)
    }
}

/// Returns whether a text fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Returns whether a text is the name of a header, in lower case, in which a credential can be
/// ([RFC 9110, section 5.6.2](https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2)).
pub fn is_credential_header(name: &str) -> bool {
    let is_token =
        |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&it);
    (1..=MAX_HEADER).contains(&name.len())
        && name.bytes().all(is_token)
        && !OF_MESSAGES.contains(&name)
}

/// Returns whether a text can be before a credential in a header line: short words of ASCII, none of which could be a credential.
pub fn is_credential_prefix(text: &str) -> bool {
    let is_word = |it: &str| it.len() <= MAX_WORD && it.bytes().all(|it| it.is_ascii_graphic());
    text.len() <= MAX_PREFIX && text.split(' ').all(is_word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_https_urls_of_one_host_are_services() {
        for (text, expected) in [
            ("https://api.example.com", Some(("api.example.com", 443, ""))),
            ("https://api.example.com:8443/v1/x", Some(("api.example.com", 8443, "/v1/x"))),
            ("https://10.0.0.1:1", Some(("10.0.0.1", 1, ""))),
            ("https://[::1]:8443/v1", Some(("::1", 8443, "/v1"))),
            ("https://[::1]", Some(("::1", 443, ""))),
            ("http://api.example.com", None),
            ("https://api.example.com/", None),
            ("https://API.example.com", None),
            ("https://*.example.com", None),
            ("https://localhost", None),
            ("https://10.0.0.0/8", Some(("10.0.0.0", 443, "/8"))),
            ("https://user@api.example.com", None),
            ("https://api.example.com:0", None),
            ("https://api.example.com:+1", None),
            ("https://api.example.com:", None),
            ("https://api.example.com/v1?x", None),
            ("https://api.example.com/../v1", None),
            ("https://[api.example.com]", None),
            ("https://::1", None),
            ("https://0x7f.1", None),
            ("https://", None),
        ] {
            let found = ServiceUrl::parse(text).map(|it| (it.host, it.port, it.path));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_path_that_servers_could_read_in_two_ways_is_not_plain() {
        for path in ["/", "/v1/messages", "/a%20b/c", "/models/gpt-4:generate", "/a/"] {
            assert!(is_plain_path(path), "{path}");
        }
        for path in [
            "",
            "v1",
            "//",
            "/a//b",
            "/.",
            "/a/..",
            "/a/../b",
            "/a/./b",
            "/%2e%2E/b",
            "/a%2fb",
            "/a%5Cb",
            "/a\\b",
            "/a%",
            "/a%2",
            "/a%zz",
            "/a%+1",
            "/a b",
            "/ä",
            "/a%00",
            "/a?b",
            "/a#b",
            "/a%3fb",
            "/%252e",
            "/a/..;/b",
            "/;/a",
            "/a;b",
            "/%c0%ae",
            "/%ff",
        ] {
            assert!(!is_plain_path(path), "{path}");
        }
    }

    #[test]
    fn a_rule_allows_its_method_and_paths() {
        let allows = |rule: &str, method: &str, path: &str| {
            RequestRule::parse(rule).unwrap().allows(method, path)
        };
        assert!(allows("* *", "DELETE", "/any/thing"));
        assert!(allows("GET /models", "GET", "/models"));
        assert!(allows("GET /models/*/x", "GET", "/models/a/b/x"));
        assert!(allows("POST /a*b*", "POST", "/axxb/c"));
        for (rule, method, path) in [
            ("GET /models", "GET", "/models/x"),
            ("GET /models", "get", "/models"),
            ("GET /models*", "POST", "/models"),
            ("GET /models/*/x", "GET", "/models/x"),
            ("GET /a*a", "GET", "/a"),
        ] {
            assert!(!allows(rule, method, path), "{rule}: {method} {path}");
        }
        for bad in
            ["", "GET", "/models", "get /models", "GET models", "GET /a/../b", "GET  /a", "G3T /a"]
        {
            assert_eq!(RequestRule::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_credential_is_in_a_header_that_frames_nothing() {
        assert!(["x-api-key", "authorization", "api-key"].into_iter().all(is_credential_header));
        for bad in ["", "X-Api-Key", "host", "content-length", "a b", "a:b", "te"] {
            assert!(!is_credential_header(bad), "{bad}");
        }
        assert!(is_credential_prefix("Bearer ") && is_credential_prefix(""));
        for bad in ["a\r\nb", "ä", "Bearer sk-ant-api03-0123456789"] {
            assert!(!is_credential_prefix(bad), "{bad}");
        }
    }

    proptest! {
        /// A pattern of the text's own characters, in which parts are replaced by `*`, fits the text.
        #[test]
        fn a_pattern_made_of_a_text_fits_it(parts in prop::collection::vec("[a-c/]{0,4}", 1..6)) {
            let (text, pattern) = (parts.concat(), parts.join("*"));
            prop_assert!(fits(&pattern, &text));
        }
    }
}
