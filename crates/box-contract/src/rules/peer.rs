//! The syntax of hosts in a box's network rules.

use std::net::IpAddr;

use super::is_label;

/// The maximum length of a host's name, in bytes: the limit of [RFC 1035](https://www.rfc-editor.org/rfc/rfc1035),
/// section 2.3.4, without the root's dot and the length bytes.
pub const MAX_DOMAIN: usize = 253;

/// Returns whether a text is a domain of at least two labels, such a domain after `*.`, an IP address, or a network.
/// For example, `example.org`, `*.example.org` and `10.0.0.0/8` are accepted, and `localhost` is not.
pub fn is_peer(text: &str) -> bool {
    network(text).is_some() || peer_name(text).is_some()
}

/// Parses an IP address or a network. Returns the address as written and the prefix length: `10.0.0.0/8` is
/// `(10.0.0.0, 8)`, and `10.0.0.1` is `(10.0.0.1, 32)`.
pub fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if !text.contains('/') {
        return Some((address, most));
    }
    // `parse` alone accepts a sign and leading zeros.
    let is_plain =
        bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    let bits = bits.parse().ok().filter(|it| *it <= most && is_plain)?;
    Some((address, bits))
}

/// Returns the domain of `example.org` or `*.example.org`. The domain must have at least two labels, and no program may
/// read it as an address.
pub fn peer_name(text: &str) -> Option<&str> {
    let domain = text.strip_prefix("*.").unwrap_or(text);
    let is_domain = domain.len() <= MAX_DOMAIN
        && domain.contains('.')
        && domain.split('.').all(is_label)
        && !domain.rsplit('.').next().is_some_and(is_numeric_label);
    is_domain.then_some(domain)
}

/// Returns whether some programs read a name with this last label as an address
/// ([URL Standard](https://url.spec.whatwg.org/#ends-in-a-number-checker)).
pub fn is_numeric_label(part: &str) -> bool {
    let hexadecimal = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => part.bytes().all(|byte| byte.is_ascii_digit()),
    }
}
