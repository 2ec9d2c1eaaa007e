//! URLs of files.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

/// The URL of a file: `http` or `https`, with a host, and without credentials. A fragment is removed.
///
/// It is parsed with the [URL standard](https://url.spec.whatwg.org/), but text that the standard
/// repairs is rejected: blanks, control characters, backslashes and missing slashes. For example,
/// `https://example.org/a` is accepted, and `https:example.org/a` is not.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteUrl(Box<Url>);

/// The reason why a text is not a [`RemoteUrl`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum UrlError {
    /// The text is not a URL.
    #[error("{text:?} is not a URL: {reason}")]
    Malformed { text: String, reason: String },
    /// The scheme is not `http` or `https`.
    #[error("a file is fetched over https or http, not over {0:?}")]
    Scheme(String),
    /// The URL has a user name or a password. The message does not repeat them, because messages
    /// may be logged.
    #[error("the URL of {host} has a user name or a password")]
    Credentials { host: String },
}

impl RemoteUrl {
    /// Returns the URL of a redirect from this URL to `location`.
    pub fn join(&self, location: &str) -> Result<Self, UrlError> {
        let joined = self.0.join(location);
        Self::checked(joined.map_err(|error| malformed(location, &error.to_string()))?)
    }

    /// Returns the scheme and the server of a redirect from this URL to `location`, for messages. The other parts of its URL may
    /// be secret.
    pub fn describe_server(&self, location: &str) -> String {
        match self.0.join(location) {
            Ok(url) => Self(Box::new(url)).describe(),
            Err(_) => "a malformed URL".to_owned(),
        }
    }

    /// Returns the scheme and the server, such as `https://example.org:8443`, for messages.
    pub(crate) fn describe(&self) -> String {
        format!("{}://{}", self.0.scheme(), host_of(&self.0))
    }

    /// Returns whether both URLs have the same host. The ports may differ.
    pub(crate) fn same_host(&self, other: &Self) -> bool {
        self.0.host() == other.0.host()
    }

    /// Returns whether the URL's host is a loopback address or the name `localhost`.
    pub(crate) fn is_this_machine(&self) -> bool {
        let is_localhost = matches!(self.0.host_str(), Some("localhost"));
        is_localhost || self.address().is_some_and(|it| it.is_loopback())
    }

    /// Returns the host if it is an address.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.0.host_str()?.trim_matches(['[', ']']).parse().ok()
    }

    /// Returns whether both URLs have the same scheme, host and port
    /// ([RFC 6454](https://www.rfc-editor.org/rfc/rfc6454)).
    pub fn same_origin(&self, other: &Self) -> bool {
        self.0.origin() == other.0.origin()
    }

    /// Returns this URL with `pairs` appended to its query.
    pub fn with_query(&self, pairs: &[(&str, &str)]) -> Self {
        let mut url = self.to_url();
        url.query_pairs_mut().extend_pairs(pairs);
        Self(Box::new(url))
    }

    /// Encodes pairs as the body of a form (`application/x-www-form-urlencoded`).
    pub fn form(pairs: &[(&str, &str)]) -> String {
        let url = Url::parse_with_params("form:", pairs);
        url.ok().and_then(|url| url.query().map(str::to_owned)).unwrap_or_default()
    }

    fn checked(mut url: Url) -> Result<Self, UrlError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::Credentials { host: url.host_str().unwrap_or("").to_owned() });
        }
        url.set_fragment(None);
        Ok(Self(Box::new(url)))
    }

    /// Returns the host, and the port if it is not the scheme's default, such as `example.org:8443`.
    pub fn host(&self) -> String {
        host_of(&self.0)
    }

    /// Returns whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns the URL without its query, for messages. The query may be a signature that gives
    /// access.
    pub fn without_query(&self) -> String {
        let mut url = self.to_url();
        url.set_query(None);
        url.into()
    }

    /// Returns the URL for a request, with its query.
    pub fn to_url(&self) -> Url {
        Url::clone(&self.0)
    }
}

impl FromStr for RemoteUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if text.chars().any(|it| it.is_whitespace() || it.is_control() || it == '\\') {
            let reason = "it has a space, a control character or a backslash";
            return Err(malformed(text, reason));
        }
        let url = Url::parse(text).map_err(|error| malformed(text, &error.to_string()))?;
        let url = Self::checked(url)?;
        match text.split_once("://") {
            Some((_, rest)) if !rest.starts_with(['/', '?', '#']) => Ok(url),
            _ => Err(malformed(text, "it has no host after \"://\"")),
        }
    }
}

pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or("");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn malformed(text: &str, reason: &str) -> UrlError {
    UrlError::Malformed { text: without_secrets(text), reason: reason.to_owned() }
}

/// Returns a malformed URL for messages: without the text before an `@`, which may contain a password, and without the query, which
/// may be a signature. For example, `https://user:secret@[host` becomes `…@[host`.
fn without_secrets(url: &str) -> String {
    let is_end = |c| c == '?' || c == '#';
    match url.rsplit_once('@') {
        // The `@` may be in a password or in the query, so all of the text may be secret.
        Some((before, _)) if before.contains(is_end) => "…".to_owned(),
        Some((_, rest)) => format!("…@{}", rest.split(is_end).next().unwrap_or_default()),
        None => url.split(is_end).next().unwrap_or_default().to_owned(),
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl fmt::Debug for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, UrlError> {
        text.parse::<RemoteUrl>().map(|url| url.to_string())
    }

    #[test]
    fn ordinary_urls_are_taken() {
        for (text, expected) in [
            ("https://example.com/agent", "https://example.com/agent"),
            ("HTTP://Example.COM:80/a?b=c#d", "http://example.com/a?b=c"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/"),
            ("https://[::1]:4430/x", "https://[::1]:4430/x"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_is_repaired_elsewhere_is_refused() {
        for text in [
            "",
            "agent",
            "/bin/agent",
            "https:example.com",
            "https:/example.com",
            "https:///example.com/agent",
            "https://",
            "https://?x",
            " https://example.com",
            "https://example.com/a\tb",
            "https://example.com/a\n",
            "https:\\\\example.com",
            "https://exa mple.com",
            "https://example.com:99999/",
            "https://[::1/",
        ] {
            assert!(matches!(parse(text), Err(UrlError::Malformed { .. })), "{text:?}");
        }
    }

    #[test]
    fn other_schemes_and_credentials_are_refused() {
        for text in ["file:///etc/passwd", "ftp://example.com/", "data:,x", "mailto:a@b"] {
            assert!(matches!(parse(text), Err(UrlError::Scheme(_))), "{text:?}");
        }
        for text in ["https://u:secret@example.com/", "https://u@example.com", "http://:secret@h/"]
        {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, UrlError::Credentials { .. }), "{text:?}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_address_is_read_in_any_spelling() {
        let url = |host: &str| format!("http://{host}:81/").parse::<RemoteUrl>().unwrap();
        let address = |host: &str| url(host).address().map(|it| it.to_string());
        for (host, expected) in [
            ("169.254.169.254", "169.254.169.254"),
            ("2852039166", "169.254.169.254"),
            ("0xa9.0xfea9fe", "169.254.169.254"),
            ("[fe80::1]", "fe80::1"),
        ] {
            assert_eq!(address(host).as_deref(), Some(expected), "{host}");
        }
        assert_eq!(address("example.com"), None);
        assert!(url("2852039166").same_host(&url("169.254.169.254")));
        assert!(!url("169.254.169.253").same_host(&url("169.254.169.254")));
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let url = |text: &str| text.parse::<RemoteUrl>().unwrap();
        let own = url("https://a.example.org/x");
        for same in ["https://a.example.org", "https://A.example.org:443/y?z"] {
            assert!(own.same_origin(&url(same)), "{same}");
        }
        for other in [
            "http://a.example.org/x",
            "https://a.example.org:444/x",
            "https://b.example.org/x",
            "https://a.example.org.example.net/x",
            "https://a.example.org./x",
        ] {
            assert!(!own.same_origin(&url(other)), "{other}");
        }
    }

    #[test]
    fn errors_of_a_redirect_name_only_the_server() {
        let at = "https://a.example.org/x".parse::<RemoteUrl>().unwrap();
        for (location, reported) in [
            ("/secret", "https://a.example.org"),
            ("http://me:secret@b.example.org:81/secret?secret#secret", "http://b.example.org:81"),
            ("data:secret", "data://"),
            ("https://[secret", "a malformed URL"),
        ] {
            assert_eq!(at.describe_server(location), reported);
        }
    }

    #[test]
    fn an_error_of_a_malformed_url_has_no_password_and_no_signature() {
        let at = "https://a.example.org/x".parse::<RemoteUrl>().unwrap();
        for (location, shown) in [
            ("https://me:secret@[b?secret", "…@[b"),
            ("https://me:se?cret@[b", "…"),
            ("https://[b/x?mail=a@b.example&token=secret", "…"),
            ("https://[b/x?secret", "https://[b/x"),
            ("https://[b", "https://[b"),
        ] {
            for error in [at.join(location).unwrap_err(), parse(location).unwrap_err()] {
                assert!(
                    matches!(&error, UrlError::Malformed { text, .. } if text == shown),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn pairs_are_encoded() {
        let pairs = [("a", "b c"), ("d", "e&f=+%")];
        let encoded = "a=b+c&d=e%26f%3D%2B%25";
        assert_eq!(RemoteUrl::form(&pairs), encoded);
        let url = "https://a.example.org/t?x=y".parse::<RemoteUrl>().unwrap();
        let with = format!("https://a.example.org/t?x=y&{encoded}");
        assert_eq!(url.with_query(&pairs).to_string(), with);
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics_and_what_is_taken_reads_back(text in "(https?://)?\\PC{0,40}") {
            if let Ok(url) = text.parse::<RemoteUrl>() {
                assert_eq!(url.to_string().parse::<RemoteUrl>(), Ok(url));
            }
        }
    }
}
