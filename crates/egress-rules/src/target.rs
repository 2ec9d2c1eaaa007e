//! The hosts and ports that clients ask for.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use box_contract::rules::{MAX_DOMAIN, is_label, is_numeric_label};

/// A host that a client names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name in lower case, without the root's dot.
    Name(String),
    /// An address instead of a name.
    Address(IpAddr),
}

/// A host and a port that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The TCP port.
    pub port: u16,
}

/// Why a text is not a valid target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The host is neither a name nor an address in its usual form.
    #[error("the host is neither a name nor an address in its usual form")]
    Host,
    /// The port is missing, or is not a number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535")]
    Port,
}

impl Host {
    /// Parses a name, an IPv4 address, or an IPv6 address in brackets. Other spellings that some programs accept for an
    /// address are rejected, because such a program could connect to another host than the one that was checked:
    /// `127.1`, `0177.0.0.1`, `0x7f.1`, `[fe80::1%eth0]`.
    ///
    /// # Errors
    /// [`TargetError::Host`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(TargetError::Host)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| TargetError::Host)?;
            return Ok(Self::Address(address.into()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_name = name.len() <= MAX_DOMAIN
            && name.split('.').all(is_label)
            && !name.rsplit('.').next().is_some_and(is_numeric_label);
        if is_name { Ok(Self::Name(name.to_ascii_lowercase())) } else { Err(TargetError::Host) }
    }
}

impl Target {
    /// Parses `HOST:PORT`, as in an HTTP CONNECT request (RFC 9110, section 9.3.6).
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let (host, port) = text.rsplit_once(':').ok_or(TargetError::Port)?;
        let is_plain = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
        let port = port.parse().ok().filter(|_| is_plain).ok_or(TargetError::Port)?;
        Ok(Self { host: Host::parse(host)?, port })
    }
}

impl Display for Host {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_spelling_is_read() {
        for (text, expected) in [
            ("example.com:443", "example.com:443"),
            ("Example.COM.:80", "example.com:80"),
            ("xn--bcher-kva.example:443", "xn--bcher-kva.example:443"),
            ("93.184.216.34:443", "93.184.216.34:443"),
            ("[2606:2800::1]:443", "[2606:2800::1]:443"),
            ("[::FFFF:127.0.0.1]:443", "[::ffff:127.0.0.1]:443"),
            ("localhost:65535", "localhost:65535"),
        ] {
            assert_eq!(Target::parse(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for host in [
            "",
            ".",
            "..",
            "a..b",
            ".example.com",
            "example.com..",
            // Addresses as inet_aton(3) and browsers read them.
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "127.0.0.01",
            "127.0.0.0x1",
            "127.0.0.1.",
            "1.2.3.4.5",
            "256.1.1.1",
            "0x",
            "00000000177.0.0.1",
            "127.0.0.1%00",
            // Spellings of IPv6 addresses.
            "::1",
            "[::1",
            "::1]",
            "[::1]]",
            "[[::1]]",
            "[fe80::1%eth0]",
            "[fe80::1%25eth0]",
            "[127.0.0.1]",
            "[::127.0.0.0x1]",
            "[1:2:3:4:5:6:7:8:9]",
            // Texts that are no host.
            "user@example.com",
            "user:password@example.com",
            "http://example.com",
            "example.com/",
            "example.com/path",
            "example.com?x",
            "example.com#x",
            "exa mple.com",
            "example.com\0.evil.org",
            "example.com\r\nHost: evil.org",
            "example.com\t",
            " example.com",
            "example.com\u{200b}",
            "ex\u{e4}mple.com",
            "\u{ff11}27.0.0.1",
            "127\u{3002}0\u{3002}0\u{3002}1",
            "%65xample.com",
            "_dmarc.example.com",
            "-a.example.com",
            "a-.example.com",
            "*.example.com",
        ] {
            assert_eq!(Host::parse(host), Err(TargetError::Host), "{host:?}");
        }
        let long = ["a"; 127].join(".");
        assert!(Host::parse(&long).is_ok());
        assert!(Host::parse(&format!("{long}.a")).is_err());
        assert!(Host::parse(&"a".repeat(64)).is_err());
        for port in [
            "", ":", ":0", ":00080", ":+80", ":-1", ":65536", ":80a", ": 80", ":8 0", ":0x50",
            ":80/",
        ] {
            let text = format!("example.com{port}");
            assert_eq!(Target::parse(&text), Err(TargetError::Port), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_read_as_itself_again(text in "[a-zA-Z0-9.:\\[\\]x-]{0,40}") {
            if let Ok(target) = Target::parse(&text) {
                prop_assert_eq!(Target::parse(&target.to_string()), Ok(target));
            }
        }
    }
}
