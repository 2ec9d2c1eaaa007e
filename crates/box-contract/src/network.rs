//! Where components find the filter of their box, or the network that it shares with the host.
//!
//! Each has addresses of its own on the guest's loopback, so that the filter knows whose connection it is, and so that
//! nothing is in the way of what listens at 127.0.0.1. They are of 198.18.0.0/15, which no host of the internet has
//! (RFC 2544): init answers there as a proxy and as a resolver, and gives addresses of them to names.

use std::net::Ipv4Addr;

use crate::ComponentName;

/// The vsock port of the host on which init reaches the filter; the host listens.
pub const NETWORK_PORT: u32 = 1025;
/// The ports of a rule that allows hosts and names none: those of HTTP and HTTPS.
pub const USUAL_PORTS: [u16; 2] = [80, 443];
/// The port of the proxy for HTTP and CONNECT.
pub const HTTP_PORT: u16 = 3128;
/// The port of the proxy for SOCKS5.
pub const SOCKS_PORT: u16 = 1080;
/// The port of the resolver, of UDP.
pub const DNS_PORT: u16 = 53;
/// How many of the first bits of a component's addresses are the same.
pub const PREFIX: u8 = 16;

/// The first three bytes of the addresses in a shared network: they are of 198.18.0.0/15, too, so that none that the host
/// reaches is hidden.
const SHARED: [u8; 3] = [198, 19, 255];
/// How many of the first bits of the addresses in a shared network are the same.
pub const SHARED_PREFIX: u8 = 24;
/// The address of a box in a shared network.
pub const SHARED_GUEST: Ipv4Addr = shared(2);
/// That of its gateway, at which nothing answers.
pub const SHARED_GATEWAY: Ipv4Addr = shared(1);
/// That of its resolver: questions to it are put to the host's.
pub const SHARED_RESOLVER: Ipv4Addr = shared(53);
/// The device of a shared network in the guest.
pub const SHARED_DEVICE: &str = "eth0";

const fn shared(last: u8) -> Ipv4Addr {
    let [first, second, third] = SHARED;
    Ipv4Addr::new(first, second, third, last)
}

/// Returns whether an address is one of a shared network itself, and no host's beyond it.
pub fn is_in_shared(address: Ipv4Addr) -> bool {
    address.octets()[..3] == SHARED
}

/// Returns the address of a component's proxies and of its resolver.
pub const fn own_address(component: ComponentName) -> Ipv4Addr {
    match component {
        ComponentName::Agent => Ipv4Addr::new(198, 18, 0, 1),
        ComponentName::Business => Ipv4Addr::new(198, 19, 0, 1),
    }
}

/// Returns the variables by which programs of a component find its proxy, sorted by name.
///
/// `ALL_PROXY` names the proxy of HTTP, too: Python's httpx, which clients of models are made with, does not start where
/// that is a proxy of SOCKS and a package for it is missing.
pub fn variables(component: ComponentName) -> Vec<(&'static str, String)> {
    let proxy = format!("http://{}:{HTTP_PORT}", own_address(component));
    let names = ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];
    let lower = ["all_proxy", "http_proxy", "https_proxy", "no_proxy"];
    let value = |name: &str| {
        let is_exception = name.eq_ignore_ascii_case("NO_PROXY");
        if is_exception { NO_PROXY.to_owned() } else { proxy.clone() }
    };
    names.into_iter().chain(lower).map(|name| (name, value(name))).collect()
}

/// The hosts that programs connect to by themselves: those in the box.
const NO_PROXY: &str = "localhost,127.0.0.1,::1,agent,business";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_a_shared_network_are_in_it() {
        assert_eq!(usize::from(SHARED_PREFIX), 8 * SHARED.len());
        for address in [SHARED_GUEST, SHARED_GATEWAY, SHARED_RESOLVER] {
            assert!(is_in_shared(address), "{address}");
        }
        assert!(!is_in_shared(Ipv4Addr::new(198, 19, 254, 2)));
    }

    #[test]
    fn each_component_has_its_own_proxy_in_both_spellings() {
        let of = |component| variables(component);
        assert!(of(ComponentName::Agent).is_sorted());
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
            let has = |component, proxy: &str| of(component).contains(&(name, proxy.to_owned()));
            assert!(has(ComponentName::Agent, "http://198.18.0.1:3128"), "{name}");
            assert!(has(ComponentName::Business, "http://198.19.0.1:3128"), "{name}");
        }
    }
}
