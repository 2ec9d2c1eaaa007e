//! The rules of a box, and their verdicts.

use std::net::IpAddr;

use crate::address::special;
use crate::{Host, Peer, Target};

/// The ports of a rule that names none: those of HTTP and HTTPS.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// Hosts, and their ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The hosts.
    pub peer: Peer,
    /// The ports. Where there are none, 80 and 443 are allowed, and all are denied.
    pub ports: Vec<u16>,
}

/// The rules of a box, which may connect to all that is allowed and not denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The hosts that are allowed.
    pub allow: Vec<Rule>,
    /// Those that are denied, whatever is allowed.
    pub deny: Vec<Rule>,
}

/// Why something may not be connected to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// No rule allows the host.
    #[error("it is not allowed")]
    NotAllowed,
    /// A rule allows the host, at other ports.
    #[error("it is allowed, but not its port {0}")]
    Port(u16),
    /// A rule denies it.
    #[error("{0} is denied")]
    Denied(Peer),
    /// The address is not that of a host of the internet, and no rule names it.
    #[error("{0} is not on the internet ({1}), and no rule allows the address")]
    Special(IpAddr, &'static str),
}

impl Rules {
    /// Checks what a client asks for, before a name is resolved.
    ///
    /// # Errors
    /// Why that is denied.
    pub fn check(&self, target: &Target) -> Result<(), Denial> {
        let has = |rule: &Rule| match &target.host {
            Host::Name(name) => rule.peer.has_name(name),
            Host::Address(address) => rule.peer.has_address(*address),
        };
        self.check_denied(target.port, has)?;
        let allowed: Vec<_> = self.allow.iter().filter(|rule| has(rule)).collect();
        if allowed.iter().any(|rule| rule.allows(target.port)) {
            // An address that is allowed is named by that.
            return Ok(());
        }
        match (&target.host, allowed.is_empty()) {
            (_, false) => Err(Denial::Port(target.port)),
            (Host::Address(address), true) => self.check_special(*address, target.port),
            (Host::Name(_), true) => Ok(()),
        }?;
        Err(Denial::NotAllowed)
    }

    /// Checks an address that the name of an allowed target has, before it is connected to. Each connection needs its own
    /// check, and no other address may be connected to.
    ///
    /// # Errors
    /// Why that is denied.
    pub fn check_address(&self, target: &Target, address: IpAddr) -> Result<(), Denial> {
        self.check_denied(target.port, |rule| rule.peer.has_address(address))?;
        self.check_special(address, target.port)
    }

    fn check_denied(&self, port: u16, has: impl Fn(&Rule) -> bool) -> Result<(), Denial> {
        let denied = self.deny.iter().find(|rule| has(rule) && rule.denies(port));
        denied.map_or(Ok(()), |rule| Err(Denial::Denied(rule.peer.clone())))
    }

    fn check_special(&self, address: IpAddr, port: u16) -> Result<(), Denial> {
        let is_named =
            || self.allow.iter().any(|rule| rule.peer.has_address(address) && rule.allows(port));
        match special(address) {
            Some(purpose) if !is_named() => Err(Denial::Special(address, purpose)),
            _ => Ok(()),
        }
    }
}

impl Rule {
    fn allows(&self, port: u16) -> bool {
        if self.ports.is_empty() { USUAL_PORTS.contains(&port) } else { self.ports.contains(&port) }
    }

    fn denies(&self, port: u16) -> bool {
        self.ports.is_empty() || self.ports.contains(&port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[(&str, &[u16])], deny: &[(&str, &[u16])]) -> Rules {
        let all = |rules: &[(&str, &[u16])]| {
            let rule = |(peer, ports): &(&str, &[u16])| Rule {
                peer: Peer::parse(peer).unwrap(),
                ports: ports.to_vec(),
            };
            rules.iter().map(rule).collect()
        };
        Rules { allow: all(allow), deny: all(deny) }
    }

    fn check(rules: &Rules, target: &str) -> Result<(), String> {
        rules.check(&Target::parse(target).unwrap()).map_err(|denial| denial.to_string())
    }

    #[test]
    fn nothing_is_allowed_by_itself() {
        for target in ["example.com:443", "1.1.1.1:443", "localhost:80", "[2606:4700::1111]:443"] {
            assert_eq!(check(&Rules::default(), target), Err("it is not allowed".to_owned()));
        }
    }

    #[test]
    fn names_are_allowed_at_the_usual_ports_or_at_those_named() {
        let rules = rules(&[("example.com", &[]), ("*.example.org", &[8443])], &[]);
        for target in
            ["example.com:443", "example.com:80", "EXAMPLE.com.:80", "a.b.example.org:8443"]
        {
            assert_eq!(check(&rules, target), Ok(()), "{target}");
        }
        for (target, why) in [
            ("example.com:22", "it is allowed, but not its port 22"),
            ("a.example.org:443", "it is allowed, but not its port 443"),
            ("example.org:8443", "it is not allowed"),
            ("a.example.com:443", "it is not allowed"),
            ("example.com.evil.org:443", "it is not allowed"),
            ("93.184.216.34:443", "it is not allowed"),
        ] {
            assert_eq!(check(&rules, target), Err(why.to_owned()), "{target}");
        }
    }

    #[test]
    fn what_is_denied_is_not_allowed() {
        let rules = rules(
            &[("*.example.com", &[]), ("10.0.0.0/8", &[5432])],
            &[("bad.example.com", &[]), ("half.example.com", &[80]), ("10.9.0.0/16", &[])],
        );
        for (target, expected) in [
            ("good.example.com:443", Ok(())),
            ("half.example.com:443", Ok(())),
            ("half.example.com:80", Err("half.example.com is denied")),
            ("bad.example.com:443", Err("bad.example.com is denied")),
            ("BAD.example.com.:443", Err("bad.example.com is denied")),
            ("below.bad.example.com:443", Ok(())),
            ("10.1.0.1:5432", Ok(())),
            ("10.9.0.1:5432", Err("10.9.0.0/16 is denied")),
            ("10.1.0.1:443", Err("it is allowed, but not its port 443")),
        ] {
            assert_eq!(check(&rules, target), expected.map_err(str::to_owned), "{target}");
        }
    }

    #[test]
    fn an_address_of_the_host_or_its_network_has_to_be_named() {
        let rules =
            rules(&[("example.com", &[]), ("10.1.0.7", &[443])], &[("93.184.216.0/24", &[])]);
        let target = Target::parse("example.com:443").unwrap();
        let of = |address: &str| {
            let checked = rules.check_address(&target, address.parse().unwrap());
            checked.map_err(|denial| denial.to_string())
        };
        for address in ["1.1.1.1", "2606:4700::1111", "10.1.0.7"] {
            assert_eq!(of(address), Ok(()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.0.8",
            "169.254.169.254",
            "192.168.0.1",
            "::1",
            "::ffff:127.0.0.1",
            // The spelling of an address that is allowed is another one.
            "::ffff:10.1.0.7",
            "64:ff9b::7f00:1",
            "fd00:ec2::254",
            "fe80::1",
        ] {
            assert!(of(address).unwrap_err().contains("is not on the internet"), "{address}");
        }
        assert_eq!(of("93.184.216.34"), Err("93.184.216.0/24 is denied".to_owned()));
        // The address is named for another port.
        let other = Target::parse("example.com:80").unwrap();
        assert!(rules.check_address(&other, "10.1.0.7".parse().unwrap()).is_err());
    }

    #[test]
    fn an_address_in_the_place_of_a_name_is_said_to_be_special() {
        let rules = rules(&[("example.com", &[])], &[]);
        let why = "127.0.0.1 is not on the internet (loopback), and no rule allows the address";
        assert_eq!(check(&rules, "127.0.0.1:80"), Err(why.to_owned()));
        let why = "::ffff:127.0.0.1 is not on the internet (another spelling of an IPv4 address), and no rule allows the address";
        assert_eq!(check(&rules, "[::ffff:127.0.0.1]:80"), Err(why.to_owned()));
    }
}
