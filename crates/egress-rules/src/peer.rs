//! The hosts of a rule.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use box_contract::rules::{network, peer_name};

/// The hosts of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// The host with this name, in lower case.
    Name(String),
    /// All hosts below this domain: for `example.com`, `a.example.com` and `a.b.example.com`, but not `example.com`.
    Below(String),
    /// The network with this address and this prefix length, in bits.
    Network(IpAddr, u8),
}

/// Formats the hosts of a rule and an optional port as [`Peer::parse_with_port`] reads them.
pub fn with_port(peer: &str, port: Option<u16>) -> String {
    match port {
        None => peer.to_owned(),
        Some(port) if peer.contains(':') => format!("[{peer}]:{port}"),
        Some(port) => format!("{peer}:{port}"),
    }
}

impl Peer {
    /// Parses a domain of at least two labels, `*.` and such a domain, an IP address or a network. Accepts
    /// `example.com`, `*.example.com` and `10.0.0.0/8`; rejects `localhost`, `https://example.com` and
    /// `example.com:80`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some((address, bits)) = network(text) {
            return Some(Self::Network(address, bits));
        }
        let domain = peer_name(text)?;
        let name = domain.to_ascii_lowercase();
        Some(if domain == text { Self::Name(name) } else { Self::Below(name) })
    }

    /// Parses hosts as [`Peer::parse`] does, with an optional `:PORT`. An IPv6 address with a port is in brackets, as in
    /// `[2001:db8::1]:8080`.
    pub fn parse_with_port(text: &str) -> Option<(Self, Option<u16>)> {
        if let Some(peer) = Self::parse(text) {
            return Some((peer, None));
        }
        let (host, port) = text.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().ok().filter(|it| *it > 0 && is_plain(port))?;
        Some((Self::parse(bare)?, Some(port)))
    }

    /// Returns whether the host with this name, in lower case, is one of these hosts.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Below(own) => name.strip_suffix(own.as_str()).is_some_and(|it| it.ends_with('.')),
            Self::Network(..) => false,
        }
    }

    /// Returns whether this is a network that contains an address. `false` for names.
    pub fn has_address(&self, address: IpAddr) -> bool {
        match self {
            Self::Name(_) | Self::Below(_) => false,
            Self::Network(own, bits) => has_prefix(address, *own, *bits),
        }
    }
}

impl Display for Peer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Network(IpAddr::V4(address), 32) => write!(f, "{address}"),
            Self::Network(IpAddr::V6(address), 128) => write!(f, "{address}"),
            Self::Network(address, bits) => write!(f, "{address}/{bits}"),
        }
    }
}

/// Returns whether two networks have an address in common.
pub(crate) fn overlap(one: (IpAddr, u8), other: (IpAddr, u8)) -> bool {
    has_prefix(one.0, other.0, one.1.min(other.1))
}

/// Returns whether the first `bits` bits of two addresses are the same. `false` for an IPv4 and an IPv6 address.
pub(crate) fn has_prefix(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let same = |one: u128, other: u128, width: u32| {
        (one ^ other).checked_shr(width.saturating_sub(bits.into())).unwrap_or(0) == 0
    };
    match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            same(one.to_bits().into(), other.to_bits().into(), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => same(one.to_bits(), other.to_bits(), 128),
        _ => false,
    }
}

/// Returns whether a number is in its shortest form. `parse` alone also accepts `+80` and `080`.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_domains_addresses_and_networks() {
        for peer in [
            "example.com",
            "*.example.com",
            "a.b.c.example",
            "xn--bcher-kva.example",
            "10.0.0.1",
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::1",
            "fd00::/8",
        ] {
            assert_eq!(Peer::parse(peer).map(|it| it.to_string()).as_deref(), Some(peer));
        }
        assert_eq!(Peer::parse("*.Example.COM"), Some(Peer::Below("example.com".to_owned())));
        for bad in [
            "",
            ".",
            "*",
            "com",
            "localhost",
            "*.com",
            "*.*.com",
            "a.*.com",
            "example.com.",
            ".example.com",
            "exa mple.com",
            "https://example.com",
            "example.com:443",
            "example.com/x",
            "user@example.com",
            "10.0.0.0/33",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "fd00::/129",
            "10.0.0",
            "010.0.0.1",
            "1.2.3.0x7f",
            "fe80::1%eth0",
            "[::1]",
        ] {
            assert_eq!(Peer::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_pattern_has_the_names_below_it_alone() {
        let has = |peer: &str, name: &str| Peer::parse(peer).unwrap().has_name(name);
        assert!(has("example.com", "example.com"));
        assert!(has("*.example.com", "a.example.com") && has("*.example.com", "a.b.example.com"));
        for name in
            ["example.com", "badexample.com", "example.com.evil.org", "a.example.co", ".example"]
        {
            assert!(!has("*.example.com", name), "{name}");
        }
        for name in ["a.example.com", "example.co", "example.com.evil.org", ""] {
            assert!(!has("example.com", name), "{name}");
        }
    }

    #[test]
    fn a_network_has_the_addresses_with_its_first_bits() {
        let has = |peer: &str, address: &str| {
            Peer::parse(peer).unwrap().has_address(address.parse().unwrap())
        };
        for (peer, address, expected) in [
            ("10.1.0.0/16", "10.1.255.255", true),
            ("10.1.0.9/16", "10.1.0.0", true),
            ("10.1.0.0/16", "10.2.0.0", false),
            ("10.1.0.7", "10.1.0.7", true),
            ("10.1.0.7", "10.1.0.6", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "fd00::1", true),
            ("fd00::/8", "fe00::", false),
            ("::ffff:10.0.0.0/104", "10.0.0.1", false),
        ] {
            assert_eq!(has(peer, address), expected, "{peer} {address}");
        }
    }
}
