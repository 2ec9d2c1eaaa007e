//! The URL of a server of the Model Context Protocol.

use std::net::IpAddr;

use super::host_and_port;

/// The maximum length of a URL, in bytes.
const MAX_URL: usize = 1024;

/// The host and the port of an MCP server's URL: `https://HOST[:PORT][/PATH]`, or the same with `http://`.
///
/// # Examples
/// ```
/// use box_contract::rules::McpUrl;
///
/// let url = McpUrl::parse("https://mcp.example.com/v1").expect("well-formed");
/// assert_eq!((url.target.as_str(), url.is_tls), ("mcp.example.com:443", true));
/// assert_eq!(McpUrl::parse("https://user@mcp.example.com"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpUrl {
    /// `HOST:PORT` in lower case. An IPv6 address is in brackets.
    pub target: String,
    /// Whether the connection is encrypted: the scheme is `https`.
    pub is_tls: bool,
}

impl McpUrl {
    /// Parses a URL. It has no user, and only visible ASCII characters without backslashes.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_tls, rest) = match text.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("http://")?),
        };
        let is_plain = text.bytes().all(|it| it.is_ascii_graphic() && it != b'\\');
        if text.len() > MAX_URL || !is_plain {
            return None;
        }
        let authority = host_and_port(rest.split(['/', '?', '#']).next().unwrap_or_default())?;
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let usual = if is_tls { 443 } else { 80 };
        let target = if has_port { authority } else { format!("{authority}:{usual}") };
        Some(Self { target, is_tls })
    }

    /// Returns the host. An IPv6 address is without its brackets.
    pub fn host(&self) -> &str {
        let host = self.target.rsplit_once(':').map_or("", |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        let port = self.target.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        port.unwrap_or_default()
    }

    /// Returns whether the server is in the box: its host is `localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_a_port() {
        for (text, target, is_tls) in [
            ("https://Mcp.Example.com", "mcp.example.com:443", true),
            ("https://mcp.example.com:8443/v1?x=1", "mcp.example.com:8443", true),
            ("http://localhost/mcp", "localhost:80", false),
            ("http://[::1]:8931/mcp", "[::1]:8931", false),
            ("https://[2001:db8::1]/", "[2001:db8::1]:443", true),
            ("https://a.example#x", "a.example:443", true),
        ] {
            let expected = McpUrl { target: target.to_owned(), is_tls };
            assert_eq!(McpUrl::parse(text), Some(expected), "{text}");
        }
        let url = McpUrl::parse("https://[2001:db8::1]:8443/").unwrap();
        assert_eq!((url.host(), url.port()), ("2001:db8::1", 8443));
    }

    #[test]
    fn other_texts_are_no_urls() {
        for text in [
            "",
            "mcp.example.com",
            "ftp://a.example",
            "https://",
            "https:///v1",
            "https://user@a.example",
            "https://a.example:0",
            "https://a.example:x",
            "https://a example",
            "https://a.example/\\..",
            "https://a.example/\u{e9}",
            "https://a.example/\n",
            "https://0x7f.1/",
            &format!("https://a.example/{}", "x".repeat(MAX_URL)),
        ] {
            assert_eq!(McpUrl::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_loopback_is_the_box_itself() {
        let is_loopback =
            |host: &str| McpUrl::parse(&format!("http://{host}/")).unwrap().is_loopback();
        for host in ["localhost", "127.0.0.1:8931", "127.1.2.3", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example.com", "10.0.0.7", "[::2]", "a.example:80"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
