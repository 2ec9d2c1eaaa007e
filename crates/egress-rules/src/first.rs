//! Reads which server a client asks for in its first bytes, at a port that is not only for TLS.
//!
//! A TLS client must name the server, and an HTTP/1 client names it in its first request ([RFC 9112, section
//! 3.2](https://www.rfc-editor.org/rfc/rfc9112#section-3.2)). Other protocols are not checked, and neither are HTTP/2
//! without TLS and later requests of the same connection.

use crate::hello::{self, HelloError};
use crate::{Host, Target};

/// The longest head of a request that is accepted, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// The methods by which HTTP requests are recognized. CONNECT is not one of them, because a client that may reach a
/// proxy may ask it for other servers.
const METHODS: [&[u8]; 8] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE "];

/// Checks that the first bytes of a client ask for no other server than `target`. Returns `true` if they pass the
/// check, and `false` if more bytes are needed.
///
/// # Errors
/// [`HelloError`].
pub fn read(bytes: &[u8], target: &Target) -> Result<bool, HelloError> {
    match bytes.first() {
        None => Ok(false),
        Some(&hello::HANDSHAKE) => match hello::read(bytes, target) {
            Err(HelloError::NotTls) => Ok(true),
            read => read,
        },
        Some(_) => request(bytes, target),
    }
}

/// Checks the head of an HTTP request. Other bytes pass.
fn request(bytes: &[u8], target: &Target) -> Result<bool, HelloError> {
    if !METHODS.iter().any(|method| bytes.starts_with(method)) {
        return Ok(!METHODS.iter().any(|method| method.starts_with(bytes)));
    }
    let mut lines = Lines(bytes);
    let Some(first) = lines.next() else { return more(bytes) };
    if !first.ends_with(b" HTTP/1.1") && !first.ends_with(b" HTTP/1.0") {
        return Ok(true);
    }
    let mut host = authority(first);
    let is_absolute = host.is_some();
    for line in &mut lines {
        match line.first() {
            None => return named(host, target).map(|()| true),
            // Refuse a continuation line, because some servers would read it as a Host line.
            Some(b' ' | b'\t') => return Err(HelloError::Malformed),
            Some(_) => {}
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        if name.trim_ascii().eq_ignore_ascii_case(b"host") {
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            // A server could use either of two Host lines, so two are refused. If the URI has a host, too, both are
            // checked.
            if (host.is_some() && !is_absolute) || named(Some(value), target).is_err() {
                return Err(HelloError::OtherName);
            }
            host = host.or(Some(value));
        }
    }
    more(bytes)
}

fn more(bytes: &[u8]) -> Result<bool, HelloError> {
    if bytes.len() < MAX_HEAD { Ok(false) } else { Err(HelloError::TooLong) }
}

/// Returns the host and port of the URI in a request line; `None` if the URI has no host.
fn authority(line: &[u8]) -> Option<&[u8]> {
    let uri = line.split(|byte| *byte == b' ').nth(1)?;
    if uri.starts_with(b"/") {
        return None;
    }
    let start = uri.windows(3).position(|it| it == b"://")? + 3;
    uri[start..].split(|byte| b"/?#".contains(byte)).next()
}

/// Checks that `text`, a host with an optional port, has the target's host. `None` passes. The port is not compared.
fn named(text: Option<&[u8]>, target: &Target) -> Result<(), HelloError> {
    let Some(text) = text else { return Ok(()) };
    let text = str::from_utf8(text).map_err(|_| HelloError::OtherName)?;
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = text.rsplit_once(':').filter(|it| is_port(it.1)).map_or(text, |it| it.0);
    let is_named = Host::parse(host).is_ok_and(|host| host == target.host);
    is_named.then_some(()).ok_or(HelloError::OtherName)
}

/// An iterator over the complete lines of a text, without their line ends.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello::tests::{hello, server};
    use proptest::prelude::*;

    const OTHER: Result<bool, HelloError> = Err(HelloError::OtherName);

    fn target() -> Target {
        Target::parse("good.example:8443").unwrap()
    }

    fn of(text: impl AsRef<[u8]>) -> Result<bool, HelloError> {
        read(text.as_ref(), &target())
    }

    #[test]
    fn a_request_names_the_target_or_nobody() {
        for (text, expected) in [
            ("GET / HTTP/1.1\r\nHost: good.example\r\n\r\n", Ok(true)),
            ("POST /x HTTP/1.1\r\nA: b\r\nhOST:\tGood.Example.:8443 \r\n\r\nbody", Ok(true)),
            ("GET / HTTP/1.0\n\n", Ok(true)),
            ("GET http://good.example/a HTTP/1.1\r\nHost: good.example\r\n\r\n", Ok(true)),
            ("GET /?q=http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", Ok(true)),
            ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", OTHER),
            ("GET / HTTP/1.1\r\nHost: evil.example\r\n", OTHER),
            ("GET / HTTP/1.1\r\nHost : evil.example\r\n\r\n", OTHER),
            ("GET / HTTP/1.1\r\nHost: good.example\r\nHost: evil.example\r\n\r\n", OTHER),
            ("GET / HTTP/1.1\r\nHost: good.example\r\nHost: good.example\r\n\r\n", OTHER),
            ("GET / HTTP/1.1\r\nHost: good.example.evil.example\r\n\r\n", OTHER),
            ("GET / HTTP/1.1\r\nHost: good.example@evil.example\r\n\r\n", OTHER),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", OTHER),
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", OTHER),
            ("GET http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", OTHER),
            ("GET http://good.example@evil.example/ HTTP/1.1\r\n\r\n", OTHER),
            ("GET / HTTP/1.1\r\nA: b\r\n Host: evil.example\r\n\r\n", Err(HelloError::Malformed)),
        ] {
            assert_eq!(of(text), expected, "{text:?}");
        }
        let endless = format!("GET / HTTP/1.1\r\nA: {}", "b".repeat(20_000));
        assert_eq!(of(endless), Err(HelloError::TooLong));
    }

    #[test]
    fn other_protocols_pass_with_their_first_bytes() {
        for text in [
            "SSH-2.0-OpenSSH_9.9\r\n",
            "HELO a\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET key\r\n",
            "get key\r\n",
            "CONNECT evil.example:443 HTTP/1.1\r\n\r\n",
            "\u{0}\u{0}\u{0}\u{8}",
            "x",
            "\u{16}\u{1}",
        ] {
            assert_eq!(of(text), Ok(true), "{text:?}");
        }
        for begun in [
            "",
            "G",
            "GE",
            "GET",
            "GET ",
            "GET / HTTP/1.1",
            "GET / HTTP/1.1\r\nHost: good.example\r\n",
        ] {
            assert_eq!(of(begun), Ok(false), "{begun:?}");
        }
    }

    #[test]
    fn tls_asks_for_the_target_at_any_port() {
        let hello = |name| hello(&[server(name)]);
        let good = hello("good.example");
        assert_eq!(of(&good), Ok(true));
        assert_eq!(of(&good[..good.len() - 1]), Ok(false));
        assert_eq!(of(hello("evil.example")), OTHER);
    }

    proptest! {
        #[test]
        fn more_bytes_never_change_what_was_decided(
            host in "(good|evil)\\.example", line in "[ -~\r\n]{0,30}", rest in any::<Vec<u8>>(), cut in 0usize..120,
        ) {
            let text = format!("GET / HTTP/1.1\r\n{line}\r\nHost: {host}\r\n\r\n");
            let bytes = [text.as_bytes(), &rest].concat();
            let begun = of(&bytes[..cut.min(bytes.len())]);
            prop_assert!(begun == Ok(false) || begun == of(&bytes), "{begun:?} {:?}", of(&bytes));
        }
    }
}
