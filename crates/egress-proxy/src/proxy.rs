//! The HTTP proxy of the host, through which the filter connects.
//!
//! The filter checks each target before it asks the proxy. The proxy resolves a name itself, because many proxies decide by
//! names, and because the host may not resolve the names of the internet. On such a host, nobody checks the addresses of names.

use std::collections::HashMap;
use std::fmt::{self, Debug, Display, Formatter};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_contract::rules::network;
use egress_rules::{Host, Peer, Target};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::percent::decoded;

/// The scheme of a proxy's URL.
const SCHEME: &str = "http://";
/// The port of a proxy whose URL has none.
const PORT: u16 = 80;
/// The maximum length of a proxy's answer to CONNECT, in bytes.
const MAX_ANSWER: usize = 16 << 10;
/// How many bytes of an answer are looked at at once.
const PEEKED: usize = 1 << 10;

/// How long a name that this host could not resolve is left to the proxy without another lookup.
const IN_VAIN: Duration = Duration::from_secs(60);

/// An HTTP proxy, and the hosts that are reached without it.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    address: Target,
    /// The value of the header `Proxy-Authorization`.
    authorization: Option<String>,
    direct: Vec<Direct>,
}

/// The hosts of an entry of `NO_PROXY`, and their port. `None` means all ports.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Direct {
    hosts: DirectHosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DirectHosts {
    All,
    /// A network and the length of its prefix.
    Network(IpAddr, u8),
    /// A name and the names below it.
    Name(String),
}

/// Why a text is not the URL of a proxy. The text is not repeated, because it may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The scheme is not `http`.
    #[error("write http://HOST:PORT: proxies of another kind are not supported")]
    Scheme,
    /// The host, the port or the user is malformed.
    #[error("write http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT")]
    Form,
}

/// Why there is no connection through the proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxyFailure {
    /// The proxy does not accept the connection.
    #[error("could not connect to the proxy of this host: {0}")]
    Unreachable(io::Error),
    /// The proxy wants a user and a password, or others than it got.
    #[error("the proxy of this host answered 407: it wants a user and a password in its URL")]
    Unauthorized,
    /// The proxy answered with another status than success.
    #[error("the proxy of this host refused it: it answered {0}")]
    Refused(u16),
    /// The proxy ended the connection before its answer was complete.
    #[error("the proxy of this host ended the connection")]
    Closed,
    /// The proxy's answer is not HTTP, or too long.
    #[error("the answer of the proxy of this host is not HTTP, or too long")]
    Answer,
}

impl Proxy {
    /// Parses the URL of a proxy: `http://HOST:PORT`, with a user and a password or without. The scheme can be missing, and
    /// the port is then 80 if it is missing, too.
    ///
    /// # Errors
    /// [`ProxyError`].
    ///
    /// # Examples
    /// ```
    /// use egress_proxy::Proxy;
    ///
    /// let proxy = Proxy::parse("http://user:secret@proxy.example:3128/")?;
    /// assert_eq!(proxy.to_string(), "http://proxy.example:3128");
    /// # Ok::<(), egress_proxy::ProxyError>(())
    /// ```
    pub fn parse(url: &str) -> Result<Self, ProxyError> {
        let is_http = url.get(..SCHEME.len()).is_some_and(|it| it.eq_ignore_ascii_case(SCHEME));
        let rest = if is_http { &url[SCHEME.len()..] } else { url };
        if rest.contains("://") {
            return Err(ProxyError::Scheme);
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, host) =
            rest.rsplit_once('@').map_or((None, rest), |(it, host)| (Some(it), host));
        let address = Target::parse(host).or_else(|_| Target::parse(&format!("{host}:{PORT}")));
        let address = address.map_err(|_| ProxyError::Form)?;
        let authorization = user.map(basic).transpose()?;
        Ok(Self { address, authorization, direct: Vec::new() })
    }

    /// Excludes the hosts of a list such as the variable `NO_PROXY`: names, which include the names below them, addresses,
    /// networks, each with a port or without, and `*` for all. Other entries are ignored.
    #[must_use]
    pub fn except(self, list: &str) -> Self {
        let entries = list.split([',', ' ']).map(str::trim).filter(|it| !it.is_empty());
        Self { direct: entries.filter_map(Direct::parse).collect(), ..self }
    }

    /// Returns whether the URL has a user or a password.
    pub const fn has_user(&self) -> bool {
        self.authorization.is_some()
    }

    /// Returns whether connections to a target go through this proxy.
    pub(crate) fn is_for(&self, target: &Target) -> bool {
        !self.direct.iter().any(|it| it.has(target))
    }

    /// Returns the proxy's own host and port.
    pub(crate) const fn address(&self) -> &Target {
        &self.address
    }

    /// Opens a connection to a target through the proxy, which has these addresses.
    pub(crate) async fn connect(
        &self,
        addresses: &[SocketAddr],
        target: &Target,
    ) -> Result<TcpStream, ProxyFailure> {
        let opened = TcpStream::connect(addresses).await;
        let mut stream = opened.map_err(ProxyFailure::Unreachable)?;
        let authorization = self.authorization.as_ref();
        let authorization =
            authorization.map_or_else(String::new, |it| format!("Proxy-Authorization: {it}\r\n"));
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n");
        let sent = stream.write_all(request.as_bytes()).await;
        sent.map_err(|_| ProxyFailure::Closed)?;
        match status(&head(&mut stream).await?) {
            Some(200..=299) => Ok(stream),
            Some(407) => Err(ProxyFailure::Unauthorized),
            Some(status) => Err(ProxyFailure::Refused(status)),
            None => Err(ProxyFailure::Answer),
        }
    }
}

/// Reads the head of a proxy's answer, and no byte of the server that may follow it.
async fn head(stream: &mut TcpStream) -> Result<Vec<u8>, ProxyFailure> {
    let (mut head, mut peeked) = (Vec::new(), [0; PEEKED]);
    while head.len() < MAX_ANSWER {
        let count = stream.peek(&mut peeked).await.map_err(|_| ProxyFailure::Closed)?;
        if count == 0 {
            return Err(ProxyFailure::Closed);
        }
        let before = head.len();
        let end = peeked[..count].iter().position(|byte| {
            head.push(*byte);
            head.ends_with(b"\r\n\r\n")
        });
        let read = stream.read_exact(&mut peeked[..head.len() - before]).await;
        read.map_err(|_| ProxyFailure::Closed)?;
        if end.is_some() {
            return Ok(head);
        }
    }
    Err(ProxyFailure::Answer)
}

/// Returns the status in the head of an answer, such as 200 in `HTTP/1.1 200 OK`.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = str::from_utf8(line).ok()?.split(' ');
    words.next().filter(|it| it.starts_with("HTTP/1."))?;
    words.next().filter(|it| it.len() == 3)?.parse().ok()
}

/// Returns the value of `Proxy-Authorization` for `USER:PASSWORD`, in which `%3A` stands for a colon
/// ([RFC 7617](https://www.rfc-editor.org/rfc/rfc7617)).
fn basic(user: &str) -> Result<String, ProxyError> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let decoded = |text| decoded(text).ok_or(ProxyError::Form);
    let user = [decoded(name)?, b":".to_vec(), decoded(password)?].concat();
    Ok(format!("Basic {}", BASE64_STANDARD.encode(user)))
}

impl Direct {
    fn parse(entry: &str) -> Option<Self> {
        if entry == "*" {
            return Some(Self { hosts: DirectHosts::All, port: None });
        }
        if let Some((address, bits)) = network(entry) {
            return Some(Self { hosts: DirectHosts::Network(address, bits), port: None });
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (entry, None),
        };
        let host = host.strip_prefix('*').unwrap_or(host);
        let hosts = match Host::parse(host.strip_prefix('.').unwrap_or(host)).ok()? {
            Host::Name(name) => DirectHosts::Name(name),
            Host::Address(address) => {
                DirectHosts::Network(address, if address.is_ipv4() { 32 } else { 128 })
            }
        };
        Some(Self { hosts, port })
    }

    fn has(&self, target: &Target) -> bool {
        let has_host = match (&self.hosts, &target.host) {
            (DirectHosts::All, _) => true,
            (DirectHosts::Network(network, bits), Host::Address(address)) => {
                Peer::Network(*network, *bits).has_address(*address)
            }
            (DirectHosts::Name(own), Host::Name(name)) => {
                name.strip_suffix(own.as_str()).is_some_and(|it| it.is_empty() || it.ends_with('.'))
            }
            (DirectHosts::Network(..), Host::Name(_))
            | (DirectHosts::Name(_), Host::Address(_)) => false,
        };
        has_host && self.port.is_none_or(|it| it == target.port)
    }
}

/// What is known about the names of connections through the proxy.
#[derive(Debug, Default)]
pub(crate) struct ProxiedLookups {
    /// Whether this host has resolved one.
    resolves: AtomicBool,
    /// The names that it could not resolve within the last minute. A host without name servers takes seconds for each.
    failed: Mutex<HashMap<String, Instant>>,
}

impl ProxiedLookups {
    fn failed_names(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        // Use even a poisoned lock, because no code panics while it has the lock.
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a name is left to the proxy without another lookup.
    pub(crate) fn is_in_vain(&self, name: &str, now: Instant) -> bool {
        let is_recent = |at: &Instant| now.duration_since(*at) < IN_VAIN;
        !self.resolves.load(Ordering::Relaxed)
            && self.failed_names().get(name).is_some_and(is_recent)
    }

    /// Records that this host has resolved a name.
    pub(crate) fn succeeded(&self) {
        self.resolves.store(true, Ordering::Relaxed);
    }

    /// Records that this host could not resolve a name. Returns whether it never has resolved one. The limit of names per minute
    /// bounds the number of the names.
    pub(crate) fn failed(&self, name: &str, now: Instant) -> bool {
        if self.resolves.load(Ordering::Relaxed) {
            return false;
        }
        let mut failed = self.failed_names();
        failed.retain(|_, at| now.duration_since(*at) < IN_VAIN);
        failed.insert(name.to_owned(), now);
        true
    }
}

/// Shows the URL without the user and the password.
impl Display for Proxy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.address)
    }
}

impl Debug for Proxy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_and_its_password_never_shown() {
        for (url, shown, authorization) in [
            ("http://proxy.example:3128", "http://proxy.example:3128", None),
            ("proxy.example:3128", "http://proxy.example:3128", None),
            ("HTTP://Proxy.example/", "http://proxy.example:80", None),
            ("http://[fd00::1]:8080/", "http://[fd00::1]:8080", None),
            // "user:secret" and "a@b:c:d" in base64.
            ("http://user:secret@10.0.0.1:1", "http://10.0.0.1:1", Some("dXNlcjpzZWNyZXQ=")),
            ("http://a%40b:c%3ad@proxy", "http://proxy:80", Some("YUBiOmM6ZA==")),
            ("http://user@proxy:80", "http://proxy:80", Some("dXNlcjo=")),
        ] {
            let proxy = Proxy::parse(url).unwrap();
            assert_eq!((proxy.to_string(), format!("{proxy:?}")), (shown.into(), shown.into()));
            let expected = authorization.map(|it| format!("Basic {it}"));
            assert_eq!((proxy.has_user(), proxy.authorization), (expected.is_some(), expected));
        }
        for url in ["https://proxy:1", "socks5://proxy:1", "socks5h://u:p@proxy"] {
            assert_eq!(Proxy::parse(url), Err(ProxyError::Scheme), "{url}");
        }
        for url in
            ["", "http://", "http://proxy:0", "http://pro xy", "http://a%zz@proxy", "a/b", "x\r\ny"]
        {
            assert_eq!(Proxy::parse(url), Err(ProxyError::Form), "{url}");
        }
    }

    #[test]
    fn hosts_of_the_list_are_reached_without_the_proxy() {
        let list =
            "localhost, .corp.example,*.dev.example,10.0.0.0/8,[fd00::1]:80,api.example:8443,??";
        let proxy = Proxy::parse("proxy").unwrap().except(list);
        for (target, is_proxied) in [
            ("localhost:443", false),
            ("corp.example:443", false),
            ("a.b.corp.example:443", false),
            ("notcorp.example:443", true),
            ("x.dev.example:80", false),
            ("10.1.2.3:443", false),
            ("11.1.2.3:443", true),
            ("[fd00::1]:80", false),
            ("[fd00::1]:443", true),
            ("api.example:8443", false),
            ("api.example:443", true),
        ] {
            assert_eq!(proxy.is_for(&Target::parse(target).unwrap()), is_proxied, "{target}");
        }
        let all = Proxy::parse("proxy").unwrap().except("*");
        assert!(!all.is_for(&Target::parse("api.example:443").unwrap()));
    }

    #[test]
    fn a_name_that_failed_is_looked_up_again_after_a_minute() {
        let (lookups, start) = (ProxiedLookups::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(!lookups.is_in_vain("a", start));
        assert!(lookups.failed("a", start));
        assert!(lookups.is_in_vain("a", after(59)) && !lookups.is_in_vain("b", after(59)));
        assert!(!lookups.is_in_vain("a", after(60)));
        assert!(lookups.failed("b", after(60)) && lookups.is_in_vain("b", after(119)));
        assert_eq!(lookups.failed_names().len(), 1);
        lookups.succeeded();
        assert!(!lookups.is_in_vain("b", after(61)) && !lookups.failed("b", after(61)));
    }

    #[test]
    fn the_status_of_an_answer_is_read() {
        for (head, expected) in [
            (&b"HTTP/1.1 200 OK\r\n\r\n"[..], Some(200)),
            (b"HTTP/1.0 407 Proxy Authentication Required\r\nA: b\r\n\r\n", Some(407)),
            (b"HTTP/1.1 200\r\n\r\n", Some(200)),
            (b"HTTP/2 200\r\n\r\n", None),
            (b"SSH-2.0-x\r\n\r\n", None),
            (b"HTTP/1.1 20 OK\r\n\r\n", None),
            (b"\r\n\r\n", None),
        ] {
            assert_eq!(status(head), expected);
        }
    }
}
