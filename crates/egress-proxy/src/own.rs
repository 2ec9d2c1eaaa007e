//! Recognizes the addresses of this host.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use egress_rules::{Denial, Rules, Target};

/// A UDP port. Any port except 0 would do; this one is the discard service (RFC 863).
const DISCARD: u16 = 9;
/// Addresses for documentation, which no host has (RFC 5737, RFC 3849).
const FOREIGN_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FOREIGN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// Checks an address of a target. An address of this host needs consent.
///
/// # Errors
/// The reason why the box must not connect to the address.
pub(crate) fn check_address(rules: &Rules, target: &Target, address: IpAddr) -> Result<(), Denial> {
    rules.check_address(target, address)?;
    if is_own(address) { rules.check_own_address(target, address) } else { Ok(()) }
}

/// Returns whether an address is this host's: whether a socket can be bound to it. Any error except `EADDRNOTAVAIL` is
/// treated as a successful bind.
pub fn is_own(address: IpAddr) -> bool {
    let (foreign, any) = match address {
        IpAddr::V4(_) => (IpAddr::from(FOREIGN_V4), IpAddr::from(Ipv4Addr::UNSPECIFIED)),
        IpAddr::V6(_) => (IpAddr::from(FOREIGN_V6), IpAddr::from(Ipv6Addr::UNSPECIFIED)),
    };
    let can_bind = |address: IpAddr| match UdpSocket::bind((address, 0)) {
        Err(reason) => reason.kind() != ErrorKind::AddrNotAvailable,
        Ok(_) => true,
    };
    if !can_bind(address) || !can_bind(foreign) {
        return can_bind(address);
    }
    // With `ip_nonlocal_bind`, sockets can be bound to any address. Connecting a UDP socket sends nothing, and shows
    // the local address from which it would send: that is `address` itself if this host has it.
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, DISCARD))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}
