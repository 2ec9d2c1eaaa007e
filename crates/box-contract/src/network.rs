//! The addresses and ports of the filter and of the shared network inside a box.
//!
//! Each component has separate loopback addresses, so that the filter can identify the component of a connection, and
//! 127.0.0.1 stays free for the component's servers. The addresses are in 198.18.0.0/15, which is reserved for
//! benchmarks ([RFC 2544](https://www.rfc-editor.org/rfc/rfc2544)) and not used on the internet. At the first
//! address of each component, init serves its proxies and its DNS resolver. Each host name that the component looks up gets
//! another address of this block, which represents the host.

use std::net::Ipv4Addr;

use crate::ComponentName;

/// The vsock port at which the host listens for init's connections to the filter.
pub const NETWORK_PORT: u32 = 1025;
/// The default ports of an `allow` rule without a port: HTTP and HTTPS.
pub const USUAL_PORTS: [u16; 2] = [80, 443];
/// The TCP port of the proxy for HTTP and CONNECT.
pub const HTTP_PORT: u16 = 3128;
/// The TCP port of the SOCKS5 proxy ([RFC 1928](https://www.rfc-editor.org/rfc/rfc1928)).
pub const SOCKS_PORT: u16 = 1080;
/// The UDP port of the DNS resolver.
pub const DNS_PORT: u16 = 53;
/// The TCP port of the first HTTP API that the box reaches through the host
/// ([`RunPlan::services`](crate::RunPlan::services)). The others have the ports after it.
pub const SERVICE_PORT: u16 = 8101;
/// The prefix length of a component's addresses, in bits.
pub const PREFIX: u8 = 16;

/// The first three bytes of the addresses in a shared network. They are in 198.18.0.0/15, too, so that the shared
/// network hides no address that the box may want to reach.
const SHARED: [u8; 3] = [198, 19, 255];
/// The prefix length of the addresses in a shared network, in bits.
pub const SHARED_PREFIX: u8 = 24;
/// The box's address in a shared network.
pub const SHARED_GUEST: Ipv4Addr = shared(2);
/// The gateway's address in a shared network. No server listens there.
pub const SHARED_GATEWAY: Ipv4Addr = shared(1);
/// The resolver's address in a shared network. Queries are forwarded to the host's resolver.
pub const SHARED_RESOLVER: Ipv4Addr = shared(53);
/// The guest's network device in a shared network.
pub const SHARED_DEVICE: &str = "eth0";

const fn shared(last: u8) -> Ipv4Addr {
    let [first, second, third] = SHARED;
    Ipv4Addr::new(first, second, third, last)
}

/// Returns whether an address belongs to the shared network itself.
pub fn is_in_shared(address: Ipv4Addr) -> bool {
    address.octets()[..3] == SHARED
}

/// Returns the address of a component's proxies and resolver.
pub const fn own_address(component: ComponentName) -> Ipv4Addr {
    match component {
        ComponentName::Agent => Ipv4Addr::new(198, 18, 0, 1),
        ComponentName::Business => Ipv4Addr::new(198, 19, 0, 1),
    }
}

/// Returns the port of an HTTP API.
pub const fn service_port(number: u16) -> u16 {
    SERVICE_PORT.saturating_add(number)
}

/// Returns the URL at which a component reaches an HTTP API, without a slash at its end.
pub fn service_url(component: ComponentName, number: u16) -> String {
    format!("http://{}:{}", own_address(component), service_port(number))
}

/// Returns the environment variables of a component that has an HTTP API, with those of its proxy in `proxy`: its requests to the
/// API do not go through the proxy.
pub fn past_proxy(
    component: ComponentName,
    proxy: Vec<(&'static str, String)>,
) -> Vec<(&'static str, String)> {
    let own = own_address(component);
    let past = |(name, value): (&'static str, String)| match name.eq_ignore_ascii_case("NO_PROXY") {
        true => (name, format!("{value},{own}")),
        false => (name, value),
    };
    proxy.into_iter().map(past).collect()
}

/// Returns the environment variables that configure a component's proxy, sorted by name. Programs reach the component itself, by its
/// host name, without the proxy.
///
/// `ALL_PROXY` names the HTTP proxy, too. Python's httpx, which many model clients use, fails to start if `ALL_PROXY`
/// is a SOCKS proxy and the package for SOCKS is missing.
pub fn variables(component: ComponentName, hostname: &str) -> Vec<(&'static str, String)> {
    let proxy = format!("http://{}:{HTTP_PORT}", own_address(component));
    let names = ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];
    let lower = ["all_proxy", "http_proxy", "https_proxy", "no_proxy"];
    let value = |name: &str| {
        let is_exception = name.eq_ignore_ascii_case("NO_PROXY");
        if is_exception { format!("{NO_PROXY},{hostname}") } else { proxy.clone() }
    };
    names.into_iter().chain(lower).map(|name| (name, value(name))).collect()
}

/// The hosts inside the box, which programs reach without the proxy.
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
        let of = |component| variables(component, "web");
        assert!(of(ComponentName::Agent).is_sorted());
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
            let has = |component, proxy: &str| of(component).contains(&(name, proxy.to_owned()));
            assert!(has(ComponentName::Agent, "http://198.18.0.1:3128"), "{name}");
            assert!(has(ComponentName::Business, "http://198.19.0.1:3128"), "{name}");
        }
        for name in ["NO_PROXY", "no_proxy"] {
            let expected = (name, "localhost,127.0.0.1,::1,agent,business,web".to_owned());
            assert!(of(ComponentName::Agent).contains(&expected));
        }
    }
}
