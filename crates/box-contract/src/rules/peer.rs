//! The rules for the hosts that a box may name in its network's rules.

use std::net::IpAddr;

use super::is_label;

/// The greatest length of a host's name, in bytes (RFC 1035, section 2.3.4, without the root's dot and the length bytes).
pub const MAX_DOMAIN: usize = 253;

/// Returns whether a text is a domain of at least two parts, `*.` and such a domain, an IP address or a network.
pub fn is_peer(text: &str) -> bool {
    network(text).is_some() || peer_name(text).is_some()
}

/// Returns an IP address with the number of its bits, or the first address of a network with the number of those that all of
/// it have: `10.0.0.0/8`.
pub fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if !text.contains('/') {
        return Some((address, most));
    }
    // `parse` alone takes a sign and zeros.
    let is_plain =
        bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    let bits = bits.parse().ok().filter(|it| *it <= most && is_plain)?;
    Some((address, bits))
}

/// Returns the domain of `example.org` and of `*.example.org`. It has two parts at least, and is not one that a program reads
/// as an address.
pub fn peer_name(text: &str) -> Option<&str> {
    let domain = text.strip_prefix("*.").unwrap_or(text);
    let is_domain = domain.len() <= MAX_DOMAIN
        && domain.contains('.')
        && domain.split('.').all(is_label)
        && !domain.rsplit('.').next().is_some_and(is_numeric_label);
    is_domain.then_some(domain)
}

/// Returns whether the last part of a name makes some programs read all of it as an address (WHATWG URL, "ends in a number").
pub fn is_numeric_label(part: &str) -> bool {
    let hexadecimal = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => part.bytes().all(|byte| byte.is_ascii_digit()),
    }
}
