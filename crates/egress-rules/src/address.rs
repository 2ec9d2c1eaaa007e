//! Special addresses, which are not addresses of hosts of the internet: the host, its neighbours, and addresses that
//! stand for another address.
//!
//! The ranges follow the [IPv4](https://www.iana.org/assignments/iana-ipv4-special-registry/) and
//! [IPv6](https://www.iana.org/assignments/iana-ipv6-special-registry/) Special-Purpose Address Registries of IANA
//! ([RFC 6890](https://www.rfc-editor.org/rfc/rfc6890)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::peer::{has_prefix, overlap};

/// A range of addresses: the first address, the length of the prefix, and the purpose.
type Range<A> = (A, u8, &'static str);

const V4: [Range<Ipv4Addr>; 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this host"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, PRIVATE),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared by a provider's customers"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, LOOPBACK),
    (AZURE, 32, METADATA),
    // Includes the metadata services of most clouds, which return the VM's credentials.
    (Ipv4Addr::new(169, 254, 0, 0), 16, LINK_LOCAL),
    (Ipv4Addr::new(172, 16, 0, 0), 12, PRIVATE),
    (Ipv4Addr::new(192, 0, 0, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 0, 2, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(192, 88, 99, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 168, 0, 0), 16, PRIVATE),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for tests of networks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(203, 0, 113, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(224, 0, 0, 0), 4, MULTICAST),
    (Ipv4Addr::new(240, 0, 0, 0), 4, RESERVED),
];

/// The well-known prefix of IPv6 translators ([RFC 6052, section
/// 2.1](https://www.rfc-editor.org/rfc/rfc6052#section-2.1)): packets to an address with this prefix are sent to the
/// IPv4 address in the last 32 bits. With DNS64 ([RFC 6147](https://www.rfc-editor.org/rfc/rfc6147)), a host without
/// IPv4 resolves names of IPv4 hosts to such addresses.
const TRANSLATED: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// The prefix for the translators of a provider (RFC 8215).
const PROVIDERS: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48);

const V6: [Range<Ipv6Addr>; 12] = [
    (Ipv6Addr::LOCALHOST, 128, LOOPBACK),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, EMBEDDED),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 32, EMBEDDED),
    // Includes Teredo, which embeds IPv4 addresses.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, RESERVED),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, DOCUMENTATION),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, EMBEDDED),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, DOCUMENTATION),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, PRIVATE),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, LINK_LOCAL),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, PRIVATE),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, MULTICAST),
    (Ipv6Addr::UNSPECIFIED, 96, RESERVED),
];

/// The address of Azure's metadata service. It is listed here because IANA's registries do not contain it.
const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// The addresses of metadata services that are not link-local: Azure, Alibaba, Oracle.
const METADATA_V4: [Ipv4Addr; 3] =
    [AZURE, Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192)];

/// The IPv6 addresses of metadata services: Amazon's local services, Google, Oracle, Scaleway.
const METADATA_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
    (Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128),
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128),
];

/// The part of the IPv6 address space that is assigned to hosts of the internet.
const GLOBAL: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

pub(crate) const PRIVATE: &str = "private";
const LOOPBACK: &str = "loopback";
const LINK_LOCAL: &str = "link-local";
const MULTICAST: &str = "multicast";
const RESERVED: &str = "reserved";
const DOCUMENTATION: &str = "for documentation";
const METADATA: &str = "a cloud's metadata";
const EMBEDDED: &str = "another spelling of an IPv4 address";

/// Returns the purpose of a special address. `None` for a host of the internet.
pub fn special(address: IpAddr) -> Option<&'static str> {
    let has = |network: IpAddr, bits| has_prefix(address, network, bits);
    if has(TRANSLATED.0.into(), TRANSLATED.1) {
        return embedded(address).and_then(|inner| special(inner.into()));
    }
    match address {
        IpAddr::V4(_) => V4.iter().find(|it| has(it.0.into(), it.1)).map(|it| it.2),
        IpAddr::V6(_) => {
            let range = V6.iter().find(|it| has(it.0.into(), it.1)).map(|it| it.2);
            range.or_else(|| (!has(GLOBAL.0.into(), GLOBAL.1)).then_some(RESERVED))
        }
    }
}

/// Returns the purpose of the first special range that overlaps a network. `None` if all addresses of the network are
/// for hosts of the internet.
pub(crate) fn special_part(network: IpAddr, bits: u8) -> Option<&'static str> {
    let has = |part: IpAddr, length| overlap((network, bits), (part, length));
    match network {
        IpAddr::V4(_) => V4.iter().find(|it| has(it.0.into(), it.1)).map(|it| it.2),
        IpAddr::V6(_) => {
            let range = V6.iter().find(|it| has(it.0.into(), it.1)).map(|it| it.2);
            let is_global = bits >= GLOBAL.1 && has(GLOBAL.0.into(), GLOBAL.1);
            range.or_else(|| (!is_global).then_some(RESERVED))
        }
    }
}

/// Returns the purpose of a link-local address or a cloud's metadata address, in any spelling. A metadata service
/// returns the host's credentials. A user may write such an address, but a name must not resolve to it.
pub fn link_or_metadata(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => in_v4(address),
        IpAddr::V6(six) => {
            let has = |it: &(Ipv6Addr, u8)| has_prefix(address, it.0.into(), it.1);
            let own = six.is_unicast_link_local().then_some(LINK_LOCAL);
            own.or_else(|| METADATA_V6.iter().any(has).then_some(METADATA))
                .or_else(|| inner(six).into_iter().find_map(in_v4))
        }
    }
}

fn in_v4(address: Ipv4Addr) -> Option<&'static str> {
    let is_metadata = METADATA_V4.contains(&address);
    address.is_link_local().then_some(LINK_LOCAL).or(is_metadata.then_some(METADATA))
}

/// Returns the IPv4 addresses to which packets to this address may be sent: the one that [`embedded`] returns, those in
/// the layouts that a provider's translator may use ([RFC 6052, section
/// 2.2](https://www.rfc-editor.org/rfc/rfc6052#section-2.2), [RFC 8215](https://www.rfc-editor.org/rfc/rfc8215)), and the
/// one in an IPv4-compatible address, which starts with zeros ([RFC 4291, section
/// 2.5.5.1](https://www.rfc-editor.org/rfc/rfc4291#section-2.5.5.1)).
fn inner(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let it = address.octets();
    let of = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| it[place]));
    let mut found: Vec<_> = embedded(address.into()).into_iter().collect();
    if has_prefix(address.into(), PROVIDERS.0.into(), PROVIDERS.1) {
        found.extend([[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]].map(of));
    }
    if it[..12] == [0; 12] {
        found.push(of([12, 13, 14, 15]));
    }
    found
}

/// Returns the IPv4 address for which this IPv6 address is another spelling, or to which a translator sends its packets
/// ([RFC 4291, section 2.5.5.2](https://www.rfc-editor.org/rfc/rfc4291#section-2.5.5.2); RFC 6052, section 2.1; [RFC
/// 3056, section 2](https://www.rfc-editor.org/rfc/rfc3056#section-2)).
pub(crate) fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => Some(of(g, h)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_the_internet_are_not_special() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "64:ff9b::1.1.1.1",
            "64:ff9b::93.184.216.34",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00:1450:4001::1",
        ] {
            assert_eq!(special(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn addresses_of_the_link_and_of_metadata_are_known_in_any_spelling() {
        for (address, expected) in [
            ("169.254.169.254", LINK_LOCAL),
            ("fe80::1", LINK_LOCAL),
            ("::ffff:169.254.169.254", LINK_LOCAL),
            ("::169.254.169.254", LINK_LOCAL),
            ("64:ff9b::169.254.169.254", LINK_LOCAL),
            ("64:ff9b:1::169.254.169.254", LINK_LOCAL),
            ("64:ff9b:1:a9fe:a9:fe00::", LINK_LOCAL),
            ("64:ff9b:1:a9:fe:a9fe::", LINK_LOCAL),
            ("64:ff9b:1:0:a9:fea9:fe00:0", LINK_LOCAL),
            ("2002:a9fe:a9fe::1", LINK_LOCAL),
            ("168.63.129.16", METADATA),
            ("100.100.100.200", METADATA),
            ("192.0.0.192", METADATA),
            ("::ffff:100.100.100.200", METADATA),
            ("64:ff9b::168.63.129.16", METADATA),
            ("2002:a83f:8110::", METADATA),
            ("fd00:ec2::254", METADATA),
            ("fd00:ec2::23", METADATA),
            ("fd20:ce::254", METADATA),
            ("fd00:c1::a9fe:a9fe", METADATA),
            ("fd00:42::42", METADATA),
        ] {
            assert_eq!(link_or_metadata(address.parse().unwrap()), Some(expected), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.0.0.1",
            "192.168.1.1",
            "100.100.100.201",
            "93.184.216.34",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::93.184.216.34",
            "64:ff9b:1::93.184.216.34",
            "2002:5db8:d822::1",
            "fd00::1",
            "2606:4700::1111",
        ] {
            assert_eq!(link_or_metadata(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn all_others_are() {
        for (address, expected) in [
            ("0.0.0.0", "this host"),
            ("0.1.2.3", "this host"),
            ("10.0.0.1", PRIVATE),
            ("10.255.255.255", PRIVATE),
            ("100.64.0.1", "shared by a provider's customers"),
            ("100.100.100.200", "shared by a provider's customers"),
            ("127.0.0.1", LOOPBACK),
            ("127.255.255.254", LOOPBACK),
            ("168.63.129.16", "a cloud's metadata"),
            ("169.254.169.254", LINK_LOCAL),
            ("172.16.0.1", PRIVATE),
            ("172.31.255.255", PRIVATE),
            ("192.0.0.192", RESERVED),
            ("192.168.1.1", PRIVATE),
            ("198.18.0.1", "for tests of networks"),
            ("198.19.255.255", "for tests of networks"),
            ("224.0.0.1", MULTICAST),
            ("239.255.255.250", MULTICAST),
            ("255.255.255.255", RESERVED),
            ("::", RESERVED),
            ("::1", LOOPBACK),
            ("::7f00:1", RESERVED),
            ("::ffff:127.0.0.1", EMBEDDED),
            ("::ffff:93.184.216.34", EMBEDDED),
            ("64:ff9b::127.0.0.1", LOOPBACK),
            ("64:ff9b::10.0.0.1", PRIVATE),
            ("64:ff9b::169.254.169.254", LINK_LOCAL),
            ("64:ff9b::168.63.129.16", "a cloud's metadata"),
            ("64:ff9b::", "this host"),
            ("64:ff9b::1:0:0", EMBEDDED),
            ("64:ff9b:1::1", EMBEDDED),
            ("100::1", RESERVED),
            ("2001::1", RESERVED),
            ("2001:db8::1", DOCUMENTATION),
            ("2002:7f00:1::", EMBEDDED),
            ("3fff::1", DOCUMENTATION),
            ("4000::1", RESERVED),
            ("5f00::1", RESERVED),
            ("fc00::1", PRIVATE),
            ("fd00:ec2::254", PRIVATE),
            ("fe80::1", LINK_LOCAL),
            ("fec0::1", PRIVATE),
            ("ff02::1", MULTICAST),
        ] {
            assert_eq!(special(address.parse().unwrap()), Some(expected), "{address}");
        }
    }
}
