//! Recognizes the addresses of this host.

use std::io::Error;
use std::io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkUnreachable};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use egress_rules::{Denial, Rules, Target};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;

/// A UDP port. Any port except 0 would do; this one is the discard service (RFC 863).
const DISCARD: u16 = 9;
/// Addresses for documentation, which no host has (RFC 5737, RFC 3849). If a socket can be bound to one of them, the bind in
/// [`is_own`] proves nothing.
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

/// Returns whether an address is this host's: whether a socket can be bound to it. If that cannot be found out, for example
/// because this process has no free descriptors, the answer is `true`, so that the address needs consent.
pub fn is_own(address: IpAddr) -> bool {
    let (foreign, any) = match address {
        IpAddr::V4(_) => (IpAddr::from(FOREIGN_V4), IpAddr::from(Ipv4Addr::UNSPECIFIED)),
        IpAddr::V6(_) => (IpAddr::from(FOREIGN_V6), IpAddr::from(Ipv6Addr::UNSPECIFIED)),
    };
    let can_bind = |address: IpAddr| match UdpSocket::bind((address, 0)) {
        Err(reason) => reason.kind() != AddrNotAvailable && !is_without_family(&reason),
        Ok(_) => true,
    };
    if !can_bind(address) || !can_bind(foreign) {
        return can_bind(address);
    }
    // With `ip_nonlocal_bind`, sockets can be bound to any address. Connecting a UDP socket sends nothing, and shows
    // the local address from which it would send: that is `address` itself if this host has it.
    let Ok(socket) = UdpSocket::bind((any, 0)) else { return true };
    match socket.connect((address, DISCARD)).and_then(|()| socket.local_addr()) {
        Ok(from) => from.ip() == address || is_of_an_interface(address),
        Err(reason) => !matches!(reason.kind(), NetworkUnreachable | HostUnreachable),
    }
}

/// Returns whether an interface of this host has the address. The second address of an interface sends from the first one, so it
/// is recognized only here. Returns `true` if the interfaces cannot be listed.
fn is_of_an_interface(address: IpAddr) -> bool {
    let Ok(mut interfaces) = getifaddrs() else { return true };
    interfaces.any(|interface| {
        let found = interface.address.as_ref();
        let v4 = found.and_then(|it| it.as_sockaddr_in()).map(|it| IpAddr::from(it.ip()));
        let v6 = found.and_then(|it| it.as_sockaddr_in6()).map(|it| IpAddr::from(it.ip()));
        v4.or(v6) == Some(address)
    })
}

/// Returns whether this host has no addresses of the family, such as a host without IPv6.
fn is_without_family(reason: &Error) -> bool {
    reason.raw_os_error() == Some(Errno::EAFNOSUPPORT as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_all_interfaces_are_found() {
        assert!(is_of_an_interface(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_of_an_interface(FOREIGN_V4.into()) && !is_of_an_interface(FOREIGN_V6.into()));
    }
}
