//! Consent to addresses that are not hosts of the internet.
//!
//! A box's rules come from the author of its Boxfile, who may allow hosts of the internet. Access to the host's
//! loopback device, its neighbours and the metadata service of its cloud needs the consent of the box's user, because
//! services there may trust every client.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use box_contract::plan::PeerPlan;

use crate::address::special_part;
use crate::peer::{has_prefix, overlap, with_port};
use crate::{Peer, Rule};

/// The purpose of an address of the host, such as its address on the internet.
pub(crate) const OWN: &str = "this host's own";

/// The consent of the box's user to special addresses or to addresses of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    address: IpAddr,
    /// The length of the network's prefix, in bits.
    bits: u8,
    /// The only port that is permitted. `None` for all ports of the box's rules.
    port: Option<u16>,
}

/// A rule that has no effect without the consent of the box's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The consent that the rule needs.
    pub needs: Local,
    /// The purpose of the address, or of the first special part of the network, such as `loopback`.
    pub purpose: &'static str,
}

impl Local {
    /// Parses an address or a network, with `:PORT` for one port only: `127.0.0.1:9999`, `10.0.0.0/8`, `[fd00::1]:443`.
    /// Names are rejected, because the owner of a name could change its address.
    pub fn parse(text: &str) -> Option<Self> {
        match Peer::parse_with_port(text)? {
            (Peer::Network(address, bits), port) => Some(Self { address, bits, port }),
            _ => None,
        }
    }

    /// Returns the consent for the addresses of a plan's rule. `None` if the rule is about names.
    pub fn of(plan: &PeerPlan) -> Option<Self> {
        match Peer::parse(&plan.peer)? {
            Peer::Network(address, bits) => Some(Self { address, bits, port: plan.port }),
            _ => None,
        }
    }

    /// Returns the rules that need consent and do not have it in `given`: rules for a special address, or for an
    /// address of the host, for which `is_own` returns `true`. For example, a rule for `10.0.0.0/8` needs consent.
    ///
    /// A network needs consent if it contains a special address. A network of the internet needs none, even if it
    /// contains an address of the host. That address stays denied without consent.
    pub fn wanted(rules: &[Rule], given: &[Self], is_own: impl Fn(IpAddr) -> bool) -> Vec<Wanted> {
        let wanted = rules.iter().filter_map(|rule| {
            let Peer::Network(address, bits) = rule.peer else { return None };
            let is_one = bits == if address.is_ipv4() { 32 } else { 128 };
            let purpose = special_part(address, bits);
            let purpose = purpose.or_else(|| (is_one && is_own(address)).then_some(OWN))?;
            let needs = Self { address, bits, port: rule.port };
            let is_given =
                rule.ports().iter().all(|port| given.iter().any(|it| it.covers(&needs, *port)));
            (!is_given).then_some(Wanted { needs, purpose })
        });
        wanted.collect()
    }

    /// Returns whether one of these rules is about an address and a port of this consent.
    pub fn is_of_use(&self, rules: &[Rule]) -> bool {
        rules.iter().any(|rule| match rule.peer {
            Peer::Network(address, bits) => {
                overlap((self.address, self.bits), (address, bits))
                    && rule.ports().iter().any(|port| self.has_port(*port))
            }
            Peer::Name(_) | Peer::Below(_) => false,
        })
    }

    /// Returns the addresses and the port as a rule of a plan.
    pub fn plan(&self) -> PeerPlan {
        PeerPlan { peer: Peer::Network(self.address, self.bits).to_string(), port: self.port }
    }

    /// Returns whether this is the consent to an address at a port.
    pub(crate) fn has(&self, address: IpAddr, port: u16) -> bool {
        has_prefix(address, self.address, self.bits) && self.has_port(port)
    }

    /// Returns whether this is the consent to all addresses of `other`, at a port.
    fn covers(&self, other: &Self, port: u16) -> bool {
        self.bits <= other.bits && self.has(other.address, port)
    }

    fn has_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

/// Formats the consent as [`Local::parse`] reads it.
impl Display for Local {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let peer = Peer::Network(self.address, self.bits);
        f.write_str(&with_port(&peer.to_string(), self.port))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::address::special;

    fn rule(text: &str) -> Rule {
        let (peer, port) = Peer::parse_with_port(text).unwrap();
        Rule { peer, port }
    }

    /// Returns the consent that a rule needs in addition to `given`, and the purpose of its addresses.
    fn wanted(rules: &str, given: &[&str]) -> Vec<String> {
        let given: Vec<_> = given.iter().map(|it| Local::parse(it).unwrap()).collect();
        let is_own = |address: IpAddr| address.to_string() == "93.184.216.34";
        let found = Local::wanted(&[rule(rules)], &given, is_own);
        found.iter().map(|it| format!("{} {}", it.needs, it.purpose)).collect()
    }

    #[test]
    fn a_rule_about_a_special_address_needs_consent() {
        for (rule, needs) in [
            ("127.0.0.1:9999", "127.0.0.1:9999 loopback"),
            ("127.0.0.0/8", "127.0.0.0/8 loopback"),
            ("0.0.0.0", "0.0.0.0 this host"),
            ("10.0.0.0/8", "10.0.0.0/8 private"),
            ("10.1.2.3/31", "10.1.2.3/31 private"),
            ("172.16.0.0/12:22", "172.16.0.0/12:22 private"),
            ("192.168.1.1", "192.168.1.1 private"),
            ("169.254.169.254:80", "169.254.169.254:80 link-local"),
            ("168.63.129.16", "168.63.129.16 a cloud's metadata"),
            ("100.100.100.200", "100.100.100.200 shared by a provider's customers"),
            ("224.0.0.1", "224.0.0.1 multicast"),
            // Networks with a special part.
            ("0.0.0.0/0", "0.0.0.0/0 this host"),
            ("8.0.0.0/6", "8.0.0.0/6 private"),
            ("168.0.0.0/6", "168.0.0.0/6 a cloud's metadata"),
            ("::/0", "::/0 loopback"),
            ("2000::/2", "2000::/2 loopback"),
            ("2000::/3", "2000::/3 reserved"),
            ("::1", "::1 loopback"),
            ("[fd00:ec2::254]:80", "[fd00:ec2::254]:80 private"),
            ("fe80::/10", "fe80::/10 link-local"),
            // Other spellings of IPv4 addresses.
            ("::ffff:127.0.0.1", "::ffff:127.0.0.1 another spelling of an IPv4 address"),
            ("64:ff9b::7f00:1", "64:ff9b::7f00:1 another spelling of an IPv4 address"),
            ("2002:7f00:1::/48", "2002:7f00:1::/48 another spelling of an IPv4 address"),
            // An address on the internet that belongs to this host.
            ("93.184.216.34:443", "93.184.216.34:443 this host's own"),
        ] {
            assert_eq!(wanted(rule, &[]), [needs], "{rule}");
            let (option, _) = needs.split_once(' ').unwrap();
            assert_eq!(wanted(rule, &[option]), [""; 0], "{rule}");
        }
        for rule in [
            "1.1.1.1",
            "8.8.8.0/24:53",
            "128.0.0.0/3",
            "2606:4700::/32",
            // The host's address in this network is checked when the box connects to it.
            "93.184.216.0/24",
            // The addresses of a name, too, are checked when the box connects to them.
            "a.localhost",
            "metadata.google.internal",
            "*.nip.io",
        ] {
            assert_eq!(wanted(rule, &[]), [""; 0], "{rule}");
        }
    }

    #[test]
    fn consent_covers_whole_rules_alone() {
        for (rule, given, is_given) in [
            ("127.0.0.1:9999", "127.0.0.1", true),
            ("127.0.0.1:9999", "127.0.0.0/8", true),
            ("127.0.0.1:9999", "0.0.0.0/0:9999", true),
            ("127.0.0.1:9999", "127.0.0.1:9998", false),
            ("127.0.0.1:9999", "127.0.0.2:9999", false),
            ("127.0.0.1:9999", "127.0.0.2/32", false),
            ("127.0.0.1:9999", "[::ffff:127.0.0.1]:9999", false),
            ("::ffff:127.0.0.1", "127.0.0.1", false),
            // A rule without a port is about two ports.
            ("127.0.0.1", "127.0.0.1:80", false),
            ("127.0.0.1", "127.0.0.1:9999", false),
            ("10.0.0.0/8", "10.1.0.0/16", false),
            ("0.0.0.0/0", "10.0.0.0/8", false),
            ("10.0.0.0/8", "10.0.0.0/7", true),
        ] {
            assert_eq!(wanted(rule, &[given]).is_empty(), is_given, "{rule} {given}");
        }
        assert!(wanted("127.0.0.1", &["127.0.0.1:80", "127.0.0.1:443"]).is_empty());
    }

    #[test]
    fn consent_that_no_rule_asks_for_is_found() {
        let is_of_use =
            |given: &str, rules: &str| Local::parse(given).unwrap().is_of_use(&[rule(rules)]);
        for (given, rules, expected) in [
            ("127.0.0.1:9999", "127.0.0.1:9999", true),
            ("127.0.0.1", "127.0.0.0/8:22", true),
            ("10.0.0.0/8", "10.1.0.7:5432", true),
            ("127.0.0.1:80", "127.0.0.1", true),
            ("127.0.0.1:22", "127.0.0.1", false),
            ("127.0.0.1", "127.0.0.2", false),
            ("127.0.0.1", "db.example.com", false),
            ("::1", "127.0.0.1", false),
        ] {
            assert_eq!(is_of_use(given, rules), expected, "{given} {rules}");
        }
    }

    #[test]
    fn only_addresses_are_given() {
        for text in
            ["127.0.0.1", "127.0.0.1:1", "10.0.0.0/8:5432", "::1", "[::1]:80", "[fd00::/8]:22"]
        {
            let local = Local::parse(text).unwrap();
            assert_eq!(local.to_string(), text);
            assert_eq!(Local::of(&local.plan()), Some(local), "{text}");
        }
        for text in [
            "",
            "localhost",
            "db.example.com:5432",
            "*.example.com",
            "127.0.0.1:0",
            "127.0.0.1:+80",
            "127.1:80",
        ] {
            assert_eq!(Local::parse(text), None, "{text}");
        }
    }

    proptest! {
        /// Fails if a box could reach a special address without the consent that its start requires.
        #[test]
        fn a_network_without_a_special_part_has_no_special_address(
            address: u32, bits in 0_u8..=32, host: u32,
        ) {
            let network = IpAddr::from(address.to_be_bytes());
            let mask = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
            let inner = IpAddr::from((address & !mask | host & mask).to_be_bytes());
            if special_part(network, bits).is_none() {
                prop_assert_eq!(special(inner), None);
            }
        }

        #[test]
        fn nor_has_one_of_ipv6(address: u128, bits in 0_u8..=128, host: u128) {
            let network = IpAddr::from(address.to_be_bytes());
            let mask = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
            let inner = IpAddr::from((address & !mask | host & mask).to_be_bytes());
            if special_part(network, bits).is_none() {
                prop_assert_eq!(special(inner), None);
            }
        }
    }
}
