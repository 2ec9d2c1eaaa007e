//! The network that a box gets: what it declares, as far as its user gives it.
//!
//! A box's rules are whoever's wrote its Boxfile. What they name on the internet the box gets by itself, since that is what it
//! was built to talk to. What is not on the internet, or is the network of the host as a whole, is given by the command line
//! alone, as directories are. It gives at most what the box declares.

use std::net::IpAddr;

use box_contract::{NetworkMode, NetworkPlan, PeerPlan};
use egress_rules::{Local, PeerError, Rule, Rules, Wanted};
use serde::{Deserialize, Serialize};

/// The network that the command line gives a box.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// No network.
    None,
    /// The hosts of the internet that the box names.
    #[default]
    Box,
    /// The network of the host, where the box declares that.
    Shared,
}

/// The network that a box gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Its mode: that of the box, or none.
    pub mode: NetworkMode,
    /// The addresses that are not on the internet and that the box may reach, where its rules name them.
    pub local: Vec<Local>,
}

/// Why a box does not get the network that it declares, or that the command line names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotGiven {
    /// It declares that it shares the network of its host.
    #[error(
        "the box wants to share the network of this host, and only the command line gives that"
    )]
    Shared,
    /// It does not declare that, but the command line names it.
    #[error("this host's network is more than the box declares: its network is {:?}", .0.name())]
    Undeclared(NetworkMode),
    /// Its rules name addresses that are not on the internet.
    #[error("the box wants to reach addresses that are not on the internet")]
    Wanted {
        /// What they need.
        wanted: Vec<Wanted>,
        /// The addresses that the command line gives although no rule names them: one of them may be meant.
        unused: Vec<Local>,
    },
    /// The command line gives an address that no rule of the box names.
    #[error("{0} has no effect: no rule of the box allows that")]
    Unused(Local),
    /// The command line gives an address to a box without rules.
    #[error("{local} has no effect: the network of the box is {:?}", .mode.name())]
    NoRules {
        /// The address.
        local: Local,
        /// The network that the box has.
        mode: NetworkMode,
    },
    /// The command line gives an address, and no network.
    #[error("{0} has no effect for a box without a network")]
    Without(Local),
    /// A rule of the box is malformed.
    #[error(transparent)]
    Peer(#[from] PeerError),
}

impl Given {
    /// Decides what a box with this plan gets. `is_own` says which addresses the host has itself.
    ///
    /// # Errors
    /// [`NotGiven`].
    pub fn decide(
        plan: &NetworkPlan,
        choice: Choice,
        local: Vec<Local>,
        is_own: impl Fn(IpAddr) -> bool,
    ) -> Result<Self, NotGiven> {
        let mode = match (choice, plan.mode) {
            (Choice::None, _) => NetworkMode::None,
            (Choice::Box, NetworkMode::Shared) => return Err(NotGiven::Shared),
            (Choice::Shared, mode) if mode != NetworkMode::Shared => {
                return Err(NotGiven::Undeclared(mode));
            }
            (Choice::Box | Choice::Shared, mode) => mode,
        };
        match (mode, local.first()) {
            (NetworkMode::Filtered, _) => check_rules(&plan.allow, &local, is_own)?,
            (_, Some(first)) if choice == Choice::None => return Err(NotGiven::Without(*first)),
            (_, Some(first)) => return Err(NotGiven::NoRules { local: *first, mode }),
            (_, None) => {}
        }
        Ok(Self { mode, local })
    }

    /// Returns what a box with this plan has of it.
    pub fn plan(&self, declared: &NetworkPlan) -> NetworkPlan {
        match self.mode {
            NetworkMode::None => NetworkPlan::default(),
            _ => declared.clone(),
        }
    }

    /// Returns the rules of the filter of a box with this plan.
    ///
    /// # Errors
    /// [`PeerError`] for a malformed one.
    pub(crate) fn rules(&self, declared: &NetworkPlan) -> Result<Rules, PeerError> {
        match self.mode {
            NetworkMode::None => Ok(Rules::closed()),
            _ => Ok(Rules { local: self.local.clone(), ..Rules::try_from(declared)? }),
        }
    }
}

/// Checks that each rule about an address that is not on the internet is given, and nothing besides.
///
/// # Errors
/// [`NotGiven`].
pub fn check_rules(
    allow: &[PeerPlan],
    given: &[Local],
    is_own: impl Fn(IpAddr) -> bool,
) -> Result<(), NotGiven> {
    let rules = allow.iter().map(Rule::try_from).collect::<Result<Vec<_>, _>>()?;
    let wanted = Local::wanted(&rules, given, is_own);
    let unused: Vec<_> = given.iter().filter(|it| !it.is_of_use(&rules)).copied().collect();
    if !wanted.is_empty() {
        return Err(NotGiven::Wanted { wanted, unused });
    }
    unused.first().map_or(Ok(()), |it| Err(NotGiven::Unused(*it)))
}

#[cfg(test)]
mod tests {
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
        Given::decide(plan, choice, local, |_| false).map_err(|it| it.to_string())
    }

    /// Rules about addresses that are not on the internet.
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
            (Mode::Filtered, &public, Box, &["10.0.0.1"], Err("no rule of the box allows that")),
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
            Given::decide(&plan(NetworkMode::Filtered, &LOCAL), Choice::Box, vec![], |_| false);
        let Err(NotGiven::Wanted { wanted, .. }) = refused else { panic!("{refused:?}") };
        let needs: Vec<_> = wanted.iter().map(|it| it.needs.to_string()).collect();
        assert_eq!(needs, LOCAL);
    }

    #[test]
    fn an_address_that_the_host_has_is_not_on_the_internet_for_it() {
        let plan = plan(NetworkMode::Filtered, &["93.184.216.34:443"]);
        let own: IpAddr = "93.184.216.34".parse().unwrap();
        let decide =
            |is_own: bool| Given::decide(&plan, Choice::Box, vec![], |it| is_own && it == own);
        assert!(decide(false).is_ok());
        assert!(matches!(decide(true), Err(NotGiven::Wanted { .. })));
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
}
