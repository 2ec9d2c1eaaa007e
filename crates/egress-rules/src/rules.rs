//! The rules of a box, and their verdicts.

use std::collections::BTreeSet;
use std::net::IpAddr;

use box_contract::network::USUAL_PORTS;
use box_contract::plan::{NetworkPlan, PeerPlan};

use crate::address::{PRIVATE, embedded, special};
use crate::local::OWN;
use crate::{Host, Local, Peer, Target};

/// Hosts and their ports, which a rule allows or denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The hosts.
    pub peer: Peer,
    /// The port. If it is `None`, a rule that allows is for the ports 80 and 443, and a rule that denies is for all
    /// ports.
    pub port: Option<u16>,
}

impl Denial {
    /// Returns whether the user gets a hint how to allow the connection. For a special address, there is a hint only if
    /// it is private.
    pub fn is_worth_a_hint(&self) -> bool {
        !matches!(self, Self::Special(_, purpose) if *purpose != PRIVATE)
    }
}

impl TryFrom<&PeerPlan> for Rule {
    type Error = PeerError;

    fn try_from(plan: &PeerPlan) -> Result<Self, PeerError> {
        let peer = Peer::parse(&plan.peer).ok_or_else(|| PeerError(plan.peer.clone()))?;
        Ok(Self { peer, port: plan.port })
    }
}

/// The malformed hosts of a rule in a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a domain nor an address")]
pub struct PeerError(pub String);

/// The rules of a box, which may connect to hosts that are allowed and not denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The hosts that are allowed.
    pub allow: Vec<Rule>,
    /// The hosts that are denied. `deny` takes precedence over `allow`.
    pub deny: Vec<Rule>,
    /// The special addresses and addresses of the host to which the box's user consents. The rules in `allow` are not
    /// sufficient for such addresses.
    pub local: Vec<Local>,
    /// Whether the box's user has disabled the network. Then all connections are denied, even if a rule allows them.
    pub is_closed: bool,
}

/// Why the box may not connect to a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The user has started the box without a network.
    #[error("the box was started without a network")]
    Closed,
    /// No rule allows the host.
    #[error("it is not allowed")]
    NotAllowed,
    /// A rule allows the host, but only at other ports.
    #[error("it is allowed, but not its port {0}")]
    Port(u16),
    /// A rule denies the host.
    #[error("the rules deny {0}")]
    Denied(Peer),
    /// The address is special, and no rule names it or the box's user has not consented to it.
    #[error(
        "{0} is not a host of the internet ({1}), and that address is not allowed at this port"
    )]
    Special(IpAddr, &'static str),
}

impl TryFrom<&NetworkPlan> for Rules {
    type Error = PeerError;

    fn try_from(plan: &NetworkPlan) -> Result<Self, PeerError> {
        let all = |peers: &[PeerPlan]| peers.iter().map(Rule::try_from).collect::<Result<_, _>>();
        let (allow, deny) = (all(&plan.allow)?, all(&plan.deny)?);
        Ok(Self { allow, deny, ..Self::default() })
    }
}

impl Rules {
    /// Returns the rules of a box without network.
    pub fn closed() -> Self {
        Self { is_closed: true, ..Self::default() }
    }

    /// Returns the allowed ports of a host with this name, sorted. Empty if the host is not allowed.
    pub fn ports(&self, name: &str) -> Vec<u16> {
        let own = self.allow.iter().filter(|rule| rule.peer.has_name(name));
        let ports = own.flat_map(Rule::ports);
        let host = Host::Name(name.to_owned());
        let is_allowed =
            |port: &u16| self.check(&Target { host: host.clone(), port: *port }).is_ok();
        let ports: BTreeSet<_> = ports.filter(is_allowed).collect();
        ports.into_iter().collect()
    }

    /// Checks the target of a client before its name is resolved.
    ///
    /// # Errors
    /// The reason of the denial.
    pub fn check(&self, target: &Target) -> Result<(), Denial> {
        let has = |rule: &Rule| match &target.host {
            Host::Name(name) => rule.peer.has_name(name),
            Host::Address(address) => rule.peer.has_address(*address),
        };
        if self.is_closed {
            return Err(Denial::Closed);
        }
        self.check_denied(target.port, has)?;
        let allowed: Vec<_> = self.allow.iter().filter(|rule| has(rule)).collect();
        if allowed.iter().any(|rule| rule.allows(target.port)) {
            return match &target.host {
                Host::Name(_) => Ok(()),
                Host::Address(address) => self.check_special(*address, target.port),
            };
        }
        match (&target.host, allowed.is_empty()) {
            (_, false) => Err(Denial::Port(target.port)),
            (Host::Address(address), true) => self.check_special(*address, target.port),
            (Host::Name(_), true) => Ok(()),
        }?;
        Err(Denial::NotAllowed)
    }

    /// Checks an address to which the name of an allowed target resolves. Each connection needs a new check, and must
    /// be made to the checked address.
    ///
    /// # Errors
    /// The reason of the denial.
    pub fn check_address(&self, target: &Target, address: IpAddr) -> Result<(), Denial> {
        // Check both spellings of an IPv6 address that embeds an IPv4 address, because packets may be sent to either.
        let spellings = [Some(address), embedded(address).map(IpAddr::V4)];
        spellings.into_iter().flatten().try_for_each(|address| {
            self.check_denied(target.port, |rule| rule.peer.has_address(address))?;
            self.check_special(address, target.port)
        })
    }

    /// Checks an address that belongs to this host, such as its address on the internet.
    ///
    /// # Errors
    /// The reason of the denial.
    pub fn check_own_address(&self, target: &Target, address: IpAddr) -> Result<(), Denial> {
        let is_named = self.names_address(address, target.port);
        if is_named { Ok(()) } else { Err(Denial::Special(address, OWN)) }
    }

    /// Returns whether the box's user has consented to an address, which a rule allows.
    pub fn is_consented(&self, address: IpAddr, port: u16) -> bool {
        self.names_address(address, port)
    }

    fn check_denied(&self, port: u16, has: impl Fn(&Rule) -> bool) -> Result<(), Denial> {
        let denied = self.deny.iter().find(|rule| has(rule) && rule.denies(port));
        denied.map_or(Ok(()), |rule| Err(Denial::Denied(rule.peer.clone())))
    }

    fn check_special(&self, address: IpAddr, port: u16) -> Result<(), Denial> {
        match special(address) {
            Some(purpose) if !self.names_address(address, port) => {
                Err(Denial::Special(address, purpose))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a rule allows this address itself, and the box's user has consented to it.
    fn names_address(&self, address: IpAddr, port: u16) -> bool {
        self.allow.iter().any(|rule| rule.peer.has_address(address) && rule.allows(port))
            && self.local.iter().any(|local| local.has(address, port))
    }
}

impl Rule {
    /// Returns the ports that this rule allows.
    pub fn ports(&self) -> Vec<u16> {
        self.port.map_or_else(|| USUAL_PORTS.to_vec(), |port| vec![port])
    }

    fn allows(&self, port: u16) -> bool {
        self.port.map_or_else(|| USUAL_PORTS.contains(&port), |own| own == port)
    }

    fn denies(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[(&str, u16)], deny: &[(&str, u16)]) -> Rules {
        let all = |rules: &[(&str, u16)]| {
            let rule = |(peer, port): &(&str, u16)| Rule {
                peer: Peer::parse(peer).unwrap(),
                port: (*port > 0).then_some(*port),
            };
            rules.iter().map(rule).collect()
        };
        Rules { allow: all(allow), deny: all(deny), ..Rules::default() }
    }

    /// Returns the rules with the user's consent to `given`.
    fn with(rules: Rules, given: &[&str]) -> Rules {
        Rules { local: given.iter().map(|it| Local::parse(it).unwrap()).collect(), ..rules }
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
        let rules = rules(&[("example.com", 0), ("*.example.org", 8443)], &[]);
        for target in
            ["example.com:443", "example.com:80", "EXAMPLE.com.:80", "a.b.example.org:8443"]
        {
            assert_eq!(check(&rules, target), Ok(()), "{target}");
        }
        for (target, reason) in [
            ("example.com:22", "it is allowed, but not its port 22"),
            ("a.example.org:443", "it is allowed, but not its port 443"),
            ("example.org:8443", "it is not allowed"),
            ("a.example.com:443", "it is not allowed"),
            ("example.com.evil.org:443", "it is not allowed"),
            ("93.184.216.34:443", "it is not allowed"),
        ] {
            assert_eq!(check(&rules, target), Err(reason.to_owned()), "{target}");
        }
    }

    #[test]
    fn the_ports_of_a_name_are_those_that_are_allowed_and_not_denied() {
        let rules = rules(
            &[("example.com", 0), ("*.example.com", 8443), ("a.example.com", 22)],
            &[("example.com", 80)],
        );
        assert_eq!(rules.ports("example.com"), [443]);
        assert_eq!(rules.ports("a.example.com"), [22, 8443]);
        assert_eq!(rules.ports("b.example.com"), [8443]);
        assert!(rules.ports("example.org").is_empty());
    }

    #[test]
    fn what_is_denied_is_not_allowed() {
        let rules = rules(
            &[("*.example.com", 0), ("10.0.0.0/8", 5432)],
            &[("bad.example.com", 0), ("half.example.com", 80), ("10.9.0.0/16", 0)],
        );
        let rules = with(rules, &["10.0.0.0/8"]);
        for (target, expected) in [
            ("good.example.com:443", Ok(())),
            ("half.example.com:443", Ok(())),
            ("half.example.com:80", Err("the rules deny half.example.com")),
            ("bad.example.com:443", Err("the rules deny bad.example.com")),
            ("BAD.example.com.:443", Err("the rules deny bad.example.com")),
            ("below.bad.example.com:443", Ok(())),
            ("10.1.0.1:5432", Ok(())),
            ("10.9.0.1:5432", Err("the rules deny 10.9.0.0/16")),
            ("10.1.0.1:443", Err("it is allowed, but not its port 443")),
        ] {
            assert_eq!(check(&rules, target), expected.map_err(str::to_owned), "{target}");
        }
    }

    #[test]
    fn an_address_of_the_host_or_its_network_has_to_be_named() {
        let rules = rules(&[("example.com", 0), ("10.1.0.7", 443)], &[("93.184.216.0/24", 0)]);
        let rules = with(rules, &["10.1.0.7"]);
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
            // Another spelling of an allowed address is not allowed.
            "::ffff:10.1.0.7",
            "64:ff9b::7f00:1",
            "fd00:ec2::254",
            "fe80::1",
        ] {
            assert!(
                of(address).unwrap_err().contains("is not a host of the internet"),
                "{address}"
            );
        }
        assert_eq!(of("93.184.216.34"), Err("the rules deny 93.184.216.0/24".to_owned()));
        // A rule allows this address at another port.
        let other = Target::parse("example.com:80").unwrap();
        assert!(rules.check_address(&other, "10.1.0.7".parse().unwrap()).is_err());
    }

    #[test]
    fn an_address_is_denied_in_each_of_its_spellings() {
        let all = [("0.0.0.0/0", 0), ("::/0", 0)];
        let rules = rules(&all, &[("10.0.0.0/8", 0), ("127.0.0.0/8", 0)]);
        let rules = with(rules, &["0.0.0.0/0", "::/0"]);
        let target = Target::parse("example.com:443").unwrap();
        let of = |address: &str| rules.check_address(&target, address.parse().unwrap());
        for denied in ["10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::1"] {
            assert!(matches!(of(denied), Err(Denial::Denied(_))), "{denied}");
        }
        assert_eq!(of("64:ff9b::93.184.216.34"), Ok(()), "a translator's, which is named");
    }

    #[test]
    fn an_address_of_this_host_has_to_be_named_even_on_the_internet() {
        let rules = rules(&[("example.com", 0), ("93.184.216.34", 443)], &[]);
        let target = Target::parse("example.com:443").unwrap();
        assert!(rules.check_own_address(&target, "93.184.216.34".parse().unwrap()).is_err());
        let rules = with(rules, &["93.184.216.34"]);
        let own = |target: &str, address: &str| {
            let target = Target::parse(target).unwrap();
            rules.check_own_address(&target, address.parse().unwrap()).is_ok()
        };
        assert!(own("example.com:443", "93.184.216.34"));
        assert!(!own("example.com:80", "93.184.216.34"));
        assert!(!own("example.com:443", "2606:2800::1"));
    }

    #[test]
    fn rules_alone_lead_to_no_special_address() {
        let allow =
            [("127.0.0.1", 9999), ("169.254.169.254", 80), ("10.0.0.0/8", 0), ("a.example.com", 0)];
        let rules =
            rules(&[&allow[..], &[("::ffff:127.0.0.1", 80), ("0.0.0.0/0", 8080)]].concat(), &[]);
        let direct = |rules: &Rules, target: &str| {
            let target = Target::parse(target).unwrap();
            let Host::Address(address) = target.host else { panic!() };
            rules.check(&target).and_then(|()| rules.check_address(&target, address)).is_ok()
        };
        let targets = [
            "127.0.0.1:9999",
            "169.254.169.254:80",
            "10.1.2.3:443",
            "[::ffff:127.0.0.1]:80",
            "192.168.0.1:8080",
        ];
        assert_eq!(targets.map(|it| direct(&rules, it)), [false; 5]);
        // Other addresses in a network of the internet need no consent.
        assert!(direct(&rules, "93.184.216.34:8080"));
        let name = Target::parse("a.example.com:443").unwrap();
        let resolved =
            |rules: &Rules| rules.check_address(&name, "10.1.2.3".parse().unwrap()).is_ok();
        assert!(!resolved(&rules));
        let given = with(rules.clone(), &["127.0.0.1:9999", "10.0.0.0/8:443"]);
        assert_eq!(targets.map(|it| direct(&given, it)), [true, false, true, false, false]);
        assert!(resolved(&given));
        // Another spelling of an address needs consent to both spellings.
        assert!(!direct(&with(rules.clone(), &["::ffff:127.0.0.1"]), "[::ffff:127.0.0.1]:80"));
        // Consent alone allows nothing.
        let undeclared = with(Rules { allow: Vec::new(), ..rules }, &["0.0.0.0/0"]);
        assert_eq!(targets.map(|it| direct(&undeclared, it)), [false; 5]);
    }

    #[test]
    fn a_box_without_a_network_reaches_nothing() {
        for target in ["example.com:443", "1.1.1.1:443", "127.0.0.1:80"] {
            let reason = "the box was started without a network";
            assert_eq!(check(&Rules::closed(), target), Err(reason.to_owned()));
        }
        assert!(Rules::closed().ports("example.com").is_empty());
    }

    #[test]
    fn an_address_in_the_place_of_a_name_is_said_to_be_special() {
        let rules = rules(&[("example.com", 0)], &[]);
        let reason = "127.0.0.1 is not a host of the internet (loopback), and that address is not allowed at this port";
        assert_eq!(check(&rules, "127.0.0.1:80"), Err(reason.to_owned()));
        let reason = "::ffff:127.0.0.1 is not a host of the internet (another spelling of an IPv4 address), and that address is not allowed at this port";
        assert_eq!(check(&rules, "[::ffff:127.0.0.1]:80"), Err(reason.to_owned()));
    }
}
