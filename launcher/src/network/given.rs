//! Decides which network a box gets: the network that it declares, if its user permits that.
//!
//! A box's rules come from the author of its Boxfile. The box gets access to the internet hosts in its rules by
//! default, because it was built to use them. Only the command line permits access to other addresses, or to the host's
//! whole network, as it permits access to directories. The command line cannot permit more than the box declares.

use std::net::IpAddr;
use std::path::PathBuf;

use box_contract::{NetworkMode, NetworkPlan, PeerPlan, RunPlan, ServicePlan};
use egress_proxy::Proxy;
use egress_rules::{Local, PeerError, Rule, Rules, Wanted};
use serde::{Deserialize, Serialize};

/// The command line's choice of a network for a box.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// No network.
    None,
    /// The internet hosts in the box's rules.
    #[default]
    Box,
    /// The host's network, if the box declares that.
    Shared,
}

/// The network that a box gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// The mode that the box declares, or [`NetworkMode::None`].
    pub mode: NetworkMode,
    /// The addresses outside the internet to which the user permits connections. The box's rules must allow them, too.
    pub local: Vec<Local>,
    /// The rules that the user has set while the box ran, which a restart keeps. `None` before the first change.
    pub changed: Option<NetworkPlan>,
    /// The proxy of the host through which the filter and the services connect.
    pub proxy: Option<Proxy>,
    /// Whether the services of the box are served: whether the command line permits a network.
    pub has_services: bool,
    /// The file with the root certificates that services trust, in place of the system's.
    pub certificates: Option<PathBuf>,
}

/// What a box declares about its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared<'a> {
    /// The network.
    pub network: &'a NetworkPlan,
    /// The hosts of the services.
    pub services: Vec<PeerPlan>,
}

impl<'a> From<&'a RunPlan> for Declared<'a> {
    fn from(plan: &'a RunPlan) -> Self {
        let services = plan.services.iter().filter_map(ServicePlan::peer).collect();
        Self { network: &plan.network, services }
    }
}

/// Why a box does not get the network that it declares, or that the command line chooses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkRefusal {
    /// The box declares that it shares the host's network, and the command line does not permit it.
    #[error(
        "the box wants to share the network of this host, and only the command line gives that"
    )]
    Shared,
    /// The command line chooses the host's network, and the box does not declare it.
    #[error("this host's network is more than the box declares: its network is {:?}", .0.name())]
    Undeclared(NetworkMode),
    /// The box's rules name addresses outside the internet that the command line does not permit.
    #[error("the box wants to reach addresses that are not on the internet")]
    Wanted {
        /// The addresses that the command line must permit.
        wanted: Vec<Wanted>,
        /// The addresses that the command line permits although no rule names them. The user may have mistyped one of
        /// `wanted`.
        unused: Vec<Local>,
    },
    /// The command line permits an address that no rule of the box names.
    #[error("{0} has no effect: no rule or service of the box needs that")]
    Unused(Local),
    /// The command line permits an address, and the box has no rules.
    #[error("{local} has no effect: the network of the box is {:?}", .mode.name())]
    NoRules {
        /// The address.
        local: Local,
        /// The network mode of the box.
        mode: NetworkMode,
    },
    /// The command line permits an address, and chooses no network.
    #[error("{0} has no effect for a box without a network")]
    Without(Local),
    /// A rule of the box is malformed.
    #[error(transparent)]
    Peer(#[from] PeerError),
}

impl Given {
    /// Returns the same network with the rules and addresses in the record of a box that is started again.
    #[must_use]
    pub fn with_changes(self, rules: &NetworkPlan, local: &[PeerPlan]) -> Self {
        let local = local.iter().filter_map(Local::of).collect();
        Self { local, changed: Some(rules.clone()), ..self }
    }

    /// Decides which network a box with these declarations gets. `is_own` returns whether an address is the host's own.
    ///
    /// # Errors
    /// [`NetworkRefusal`].
    pub fn decide(
        Declared { network: plan, services }: Declared<'_>,
        choice: Choice,
        local: Vec<Local>,
        is_own: impl Fn(IpAddr) -> bool,
    ) -> Result<Self, NetworkRefusal> {
        let mode = match (choice, plan.mode) {
            (Choice::None, _) => NetworkMode::None,
            (Choice::Box, NetworkMode::Shared) => return Err(NetworkRefusal::Shared),
            (Choice::Shared, mode) if mode != NetworkMode::Shared => {
                return Err(NetworkRefusal::Undeclared(mode));
            }
            (Choice::Box | Choice::Shared, mode) => mode,
        };
        let has_services = choice != Choice::None;
        let of_filter = if mode == NetworkMode::Filtered { &plan.allow[..] } else { &[] };
        match local.first() {
            Some(first) if !has_services => return Err(NetworkRefusal::Without(*first)),
            Some(first) if mode != NetworkMode::Filtered && services.is_empty() => {
                return Err(NetworkRefusal::NoRules { local: *first, mode });
            }
            _ if !has_services => {}
            _ => {
                // Only a lookup shows the address of a service that has a name.
                let has_names = services.iter().any(|it| it.peer.parse::<IpAddr>().is_err());
                match check_rules(&[of_filter, &services].concat(), &local, is_own) {
                    Err(NetworkRefusal::Unused(_)) if has_names => {}
                    checked => checked?,
                }
            }
        }
        Ok(Self { mode, local, has_services, ..Self::default() })
    }

    /// Returns the network plan that applies to a box that declares `declared`.
    pub fn plan(&self, declared: &NetworkPlan) -> NetworkPlan {
        match self.mode {
            NetworkMode::None => NetworkPlan::default(),
            _ => self.changed.as_ref().unwrap_or(declared).clone(),
        }
    }

    /// Returns the rules for the connections of a service: its host alone, or nothing if the command line permits no network. The
    /// host's name may lead to each address that the command line permits. `deny` are the hosts that the box must not reach.
    ///
    /// # Errors
    /// [`PeerError`] if a host is malformed.
    pub(crate) fn rules_of(
        &self,
        service: &ServicePlan,
        deny: &[PeerPlan],
    ) -> Result<Rules, PeerError> {
        let Some(peer) = service.peer().filter(|_| self.has_services) else {
            return Ok(Rules::closed());
        };
        let addresses = self.local.iter().map(Local::plan);
        let allow = [peer].into_iter().chain(addresses).map(|it| Rule::try_from(&it));
        let deny = deny.iter().map(Rule::try_from);
        Ok(Rules {
            allow: allow.collect::<Result<_, _>>()?,
            deny: deny.collect::<Result<_, _>>()?,
            local: self.local.clone(),
            is_closed: false,
        })
    }

    /// Returns the rules for the filter of a box that declares `declared`.
    ///
    /// # Errors
    /// [`PeerError`] if a rule is malformed.
    pub(crate) fn rules(&self, declared: &NetworkPlan) -> Result<Rules, PeerError> {
        match self.mode {
            NetworkMode::None => Ok(Rules::closed()),
            _ => Ok(Rules { local: self.local.clone(), ..Rules::try_from(&self.plan(declared))? }),
        }
    }
}

/// Checks that `given` has exactly the addresses outside the internet that the rules in `allow` name.
///
/// # Errors
/// [`NetworkRefusal`].
pub fn check_rules(
    allow: &[PeerPlan],
    given: &[Local],
    is_own: impl Fn(IpAddr) -> bool,
) -> Result<(), NetworkRefusal> {
    let rules = allow.iter().map(Rule::try_from).collect::<Result<Vec<_>, _>>()?;
    let wanted = Local::wanted(&rules, given, is_own);
    let unused: Vec<_> = given.iter().filter(|it| !it.is_of_use(&rules)).copied().collect();
    if !wanted.is_empty() {
        return Err(NetworkRefusal::Wanted { wanted, unused });
    }
    unused.first().map_or(Ok(()), |it| Err(NetworkRefusal::Unused(*it)))
}

#[cfg(test)]
mod tests {
    use egress_rules::Target;

    use super::*;

    fn plan(mode: NetworkMode, allow: &[&str]) -> NetworkPlan {
        let rule = |text: &&str| {
            let (peer, port) = egress_rules::Peer::parse_with_port(text).unwrap();
            PeerPlan { peer: peer.to_string(), port }
        };
        NetworkPlan { mode, allow: allow.iter().map(rule).collect(), ..NetworkPlan::default() }
    }

    fn decide(plan: &NetworkPlan, choice: Choice, local: &[&str]) -> Result<Given, String> {
        let local = local.iter().map(|it| Local::parse(it).unwrap()).collect();
        Given::decide(of(plan), choice, local, |_| false).map_err(|it| it.to_string())
    }

    fn of(network: &NetworkPlan) -> Declared<'_> {
        Declared { network, services: Vec::new() }
    }

    /// The hosts of rules that need the user's permission, because their addresses are outside the internet.
    const LOCAL: [&str; 3] = ["127.0.0.1:9999", "169.254.169.254:80", "10.0.0.0/8"];

    #[test]
    fn a_box_gets_what_it_declares_and_the_command_line_gives() {
        use Choice::{Box, None as Nothing, Shared};
        use NetworkMode as Mode;
        let public = ["api.example.com", "1.1.1.1"];
        for (declared, allow, choice, local, expected) in [
            (Mode::None, &[][..], Nothing, &[][..], Ok(Mode::None)),
            (Mode::None, &[], Box, &[], Ok(Mode::None)),
            (Mode::None, &[], Shared, &[], Err("its network is \"none\"")),
            (Mode::None, &[], Box, &["10.0.0.1"], Err("the network of the box is \"none\"")),
            (Mode::Filtered, &public, Nothing, &[], Ok(Mode::None)),
            (Mode::Filtered, &public, Box, &[], Ok(Mode::Filtered)),
            (Mode::Filtered, &public, Shared, &[], Err("its network is \"filtered\"")),
            (
                Mode::Filtered,
                &public,
                Box,
                &["10.0.0.1"],
                Err("no rule or service of the box needs that"),
            ),
            (Mode::Filtered, &LOCAL, Nothing, &[], Ok(Mode::None)),
            (Mode::Filtered, &LOCAL, Box, &[], Err("not on the internet")),
            (Mode::Filtered, &LOCAL, Box, &LOCAL[..2], Err("not on the internet")),
            (Mode::Filtered, &LOCAL, Box, &LOCAL, Ok(Mode::Filtered)),
            (Mode::Filtered, &LOCAL, Nothing, &LOCAL, Err("for a box without a network")),
            (Mode::Filtered, &LOCAL, Shared, &LOCAL, Err("its network is \"filtered\"")),
            (Mode::Shared, &[], Nothing, &[], Ok(Mode::None)),
            (Mode::Shared, &[], Box, &[], Err("wants to share the network of this host")),
            (Mode::Shared, &[], Shared, &[], Ok(Mode::Shared)),
            (
                Mode::Shared,
                &[],
                Shared,
                &["127.0.0.1"],
                Err("the network of the box is \"shared\""),
            ),
        ] {
            let found = decide(&plan(declared, allow), choice, local).map(|it| it.mode);
            match (found, expected) {
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => {
                    assert_eq!(found, expected.map_err(str::to_owned), "{declared:?} {choice:?}");
                }
            }
        }
    }

    #[test]
    fn each_rule_that_needs_consent_is_named() {
        let refused =
            Given::decide(of(&plan(NetworkMode::Filtered, &LOCAL)), Choice::Box, vec![], |_| false);
        let Err(NetworkRefusal::Wanted { wanted, .. }) = refused else { panic!("{refused:?}") };
        let needs: Vec<_> = wanted.iter().map(|it| it.needs.to_string()).collect();
        assert_eq!(needs, LOCAL);
    }

    #[test]
    fn an_address_that_the_host_has_is_not_on_the_internet_for_it() {
        let plan = plan(NetworkMode::Filtered, &["93.184.216.34:443"]);
        let own: IpAddr = "93.184.216.34".parse().unwrap();
        let decide =
            |is_own: bool| Given::decide(of(&plan), Choice::Box, vec![], |it| is_own && it == own);
        assert!(decide(false).is_ok());
        assert!(matches!(decide(true), Err(NetworkRefusal::Wanted { .. })));
    }

    #[test]
    fn a_service_is_reached_without_a_network_unless_the_command_line_permits_none() {
        let service = |to: &str| -> ServicePlan {
            let text = format!(r#"{{"name":"a","to":"{to}","component":"agent","timeout-ms":1}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let (public, local) = (service("https://a.example"), service("https://10.0.0.7:8443/v1"));
        let none = NetworkPlan::default();
        let decide = |service: &ServicePlan, choice, local: &[&str]| {
            let declared =
                Declared { network: &none, services: service.peer().into_iter().collect() };
            let local = local.iter().map(|it| Local::parse(it).unwrap()).collect();
            Given::decide(declared, choice, local, |_| false).map_err(|it| it.to_string())
        };
        let given = decide(&public, Choice::Box, &[]).unwrap();
        let rules = given.rules_of(&public, &[]).unwrap();
        assert_eq!((rules.allow.len(), given.mode), (1, NetworkMode::None));
        assert!(given.rules(&none).unwrap().is_closed);
        assert!(decide(&local, Choice::Box, &[]).unwrap_err().contains("not on the internet"));
        let given = decide(&local, Choice::Box, &["10.0.0.7:8443"]).unwrap();
        assert_eq!(given.rules_of(&local, &[]).unwrap().local.len(), 1);
        // The name of a service can lead to an address of the local network.
        let given = decide(&public, Choice::Box, &["10.0.0.8"]).unwrap();
        let target = Target::parse("a.example:443").unwrap();
        let address = "10.0.0.8".parse().unwrap();
        let rules = |deny: &[PeerPlan]| given.rules_of(&public, deny).unwrap();
        assert_eq!(rules(&[]).check_address(&target, address), Ok(()));
        assert!(rules(&[]).check_address(&target, "10.0.0.9".parse().unwrap()).is_err());
        let own = [PeerPlan { peer: "a.example".to_owned(), port: None }];
        assert!(rules(&own).check(&target).is_err());
        assert!(decide(&local, Choice::Box, &["10.0.0.8"]).is_err());
        let cut = decide(&public, Choice::None, &[]).unwrap();
        assert!(cut.rules_of(&public, &[]).unwrap().is_closed);
    }

    #[test]
    fn a_box_without_its_network_has_no_rules_that_could_be_changed() {
        let declared = plan(NetworkMode::Filtered, &["api.example.com"]);
        let none = decide(&declared, Choice::None, &[]).unwrap();
        assert_eq!(none.plan(&declared), NetworkPlan::default());
        assert!(none.rules(&declared).unwrap().is_closed);
        let all = decide(&declared, Choice::Box, &[]).unwrap();
        assert_eq!(all.plan(&declared), declared);
        assert!(!all.rules(&declared).unwrap().is_closed);
    }

    #[test]
    fn a_restart_keeps_what_the_user_has_denied_and_given() {
        let declared = plan(NetworkMode::Filtered, &["api.example.com", "10.0.0.1:80"]);
        let given = decide(&declared, Choice::Box, &["10.0.0.1:80"]).unwrap();
        let now = plan(NetworkMode::Filtered, &["api.example.com"]);
        let again = given.with_changes(&now, &[]);
        assert_eq!((again.plan(&declared), again.local.len()), (now.clone(), 0));
        assert_eq!(again.rules(&declared).unwrap().allow, Rules::try_from(&now).unwrap().allow);
        let none = decide(&declared, Choice::None, &[]).unwrap().with_changes(&now, &[]);
        assert!(none.rules(&declared).unwrap().is_closed, "no change gives a network");
    }
}
