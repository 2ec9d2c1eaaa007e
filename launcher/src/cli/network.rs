//! `boxlaunch network`: shows and changes the network rules of a box, and shows its denied and failed connections, its requests to services,
//! and its use of the SSH agent.

use std::collections::BTreeMap;
use std::net::IpAddr;

use box_contract::wire::{Follow, RuleChange};
use box_contract::{ErrorCode, NetworkLimits, NetworkMode, PeerPlan, exit};
use boxlaunch::boxes::{Boxes, Record, State};
use boxlaunch::client::{Client, ClientError};
use boxlaunch::network::given::Choice;
use clap::Subcommand;
use egress_proxy::{Channel, Decision, Verdict, target, to_allow};
use egress_rules::{Local, Peer};
use safe_text::{counted, readable, shown};
use serde::Serialize;
use serde_json::json;
use vmm::signals::StopSignals;

use super::environment::record_at;
use super::error::Failure;
use super::found;
use super::launch_error::LaunchError;
use super::logs::read_error;
use super::paths;
use super::terminal::{json_line, notice, print};
use cli_common::store::BoxArgument;

/// The maximum number of denied targets that the text shows, and of failed ones: the ones with the most recent attempts.
const MAX_SHOWN: usize = 20;

/// Shows the rules of a box's egress filter and the connections that were denied or failed, and changes the rules while it runs.
///
/// A change takes effect at once and lasts until the box ends. Connections that are not allowed any more are closed. The
/// built box does not change.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "boxlaunch network [OPTIONS] <NAME> [allow <PEER>...|deny <PEER>...|reload <BOX>]"
)]
#[command(after_help = "Examples:
  boxlaunch network assistant
  boxlaunch network assistant allow pypi.org files.pythonhosted.org db.example.com:5432
  boxlaunch network assistant deny api.example.com
  boxbuild build && boxlaunch network assistant reload assistant
  boxlaunch network assistant --json | jq '.denied'")]
pub(crate) struct NetworkArgs {
    /// The box's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// Print one JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Shows the rules, as without a command.
    #[command(hide = true)]
    Show,
    /// Allows hosts. A host that is also denied stays denied.
    Allow {
        /// Domains, all subdomains of one (`*.example.com`), addresses or networks. `:PORT` after it (`[2001:db8::1]:8080`
        /// for IPv6) allows that port; without it, 80 and 443 are allowed.
        #[arg(value_name = "PEER", required = true, value_parser = peer)]
        peers: Vec<PeerPlan>,
    },
    /// Denies hosts, even if they are allowed.
    Deny {
        /// Peers as for `allow`; without `:PORT`, all ports are denied.
        #[arg(value_name = "PEER", required = true, value_parser = peer)]
        peers: Vec<PeerPlan>,
    },
    /// Replaces the rules by the ones of a box, such as a new build of this box, and drops all changes by `allow` and `deny`.
    Reload {
        #[command(flatten)]
        subject: BoxArgument,
    },
}

pub(crate) fn network(args: &NetworkArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let record = record_at(&boxes, Some(&args.name))?;
    let rules = match &args.action {
        None | Some(Action::Show) => return show(&boxes, &record, args.json),
        Some(Action::Allow { peers }) => further(peers, &[]),
        Some(Action::Deny { peers }) => further(&[], peers),
        Some(Action::Reload { subject }) => {
            let network = &found::open_argument(subject)?.config.plan.network;
            check_filtered(&subject.reference.display().to_string(), network.mode)?;
            RuleChange { allow: network.allow.clone(), deny: network.deny.clone(), replace: true }
        }
    };
    if record.state == State::Ended {
        return Err(ClientError::NotRunning(record.name).into());
    }
    check_given(&record)?;
    check_filtered(&record.name, record.network.mode)?;
    let signals = StopSignals::block()?;
    Client::connect(&record, Follow::Nothing, &signals)?.set_rules(rules)?;
    let record = record_at(&boxes, Some(&args.name))?;
    if let Some(Action::Allow { peers }) = &args.action {
        still_denied(peers, &record.network.deny, &record.name).for_each(|it| notice(&it));
    }
    show(&boxes, &record, args.json)
}

/// Checks that a box was not started with `--network none`.
fn check_given(record: &Record) -> Result<(), Failure> {
    if record.network_given != Choice::None {
        return Ok(());
    }
    let message = format!("the box {} was started with `--network none`", shown(&record.name));
    let help = "start it again without that option";
    Err(Failure::new((ErrorCode::Usage, help), message))
}

/// Checks that a running or built box has network rules, which only a filtered network has.
fn check_filtered(name: &str, mode: NetworkMode) -> Result<(), Failure> {
    if mode == NetworkMode::Filtered {
        return Ok(());
    }
    let message = format!("the box {} has no rules: its network is {:?}", shown(name), mode.name());
    let help = "declare `network \"filtered\"` in its Boxfile, build it, and start it again";
    Err(Failure::new((ErrorCode::Usage, help), message))
}

/// Returns a notice for each host of `peers` that a rule in `deny` still denies. `name` is the box's name.
fn still_denied<'a>(
    peers: &'a [PeerPlan],
    deny: &'a [PeerPlan],
    name: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let denies = |peer: &PeerPlan| {
        let mut rules = deny.iter();
        rules.any(|rule| rule.peer == peer.peer && rule.port.is_none_or(|it| peer.port == Some(it)))
    };
    let line = move |peer: &PeerPlan| {
        let text = format!(
            "boxlaunch: {} stays denied: `deny` takes precedence over `allow`; `boxlaunch network {} reload BOX` takes all changes back",
            peer.peer, name
        );
        shown(&text) + "\n"
    };
    peers.iter().filter(move |it| denies(it)).map(line)
}

/// Returns a change that adds rules to the rules of a box.
fn further(allow: &[PeerPlan], deny: &[PeerPlan]) -> RuleChange {
    RuleChange { allow: allow.to_vec(), deny: deny.to_vec(), replace: false }
}

/// Parses a host and its optional port, for example `*.example.com:8080`.
fn peer(text: &str) -> Result<PeerPlan, String> {
    let found = Peer::parse_with_port(text);
    found.map(|(peer, port)| PeerPlan { peer: peer.to_string(), port }).ok_or_else(|| {
        domain_of_url(text).map_or_else(
            || "write a domain, an address or a network, such as example.com, *.example.com:8080 or 10.0.0.0/8".to_owned(),
            |domain| format!("write `{domain}`, without a scheme and a path"),
        )
    })
}

/// Returns the domain and the port of a URL, or of a domain with a path.
fn domain_of_url(text: &str) -> Option<&str> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let domain = rest.split('/').next()?;
    let is_address = domain.parse::<IpAddr>().is_ok();
    (!is_address && Peer::parse_with_port(domain).is_some()).then_some(domain)
}

/// A target to which connections were denied or failed, and the number of attempts.
#[derive(Debug, Serialize)]
struct Unconnected {
    host: Option<String>,
    port: Option<u16>,
    reason: String,
    /// The line to add to the Boxfile to allow a denied target. `None` if no line would allow it.
    allow: Option<String>,
    count: u64,
}

/// The targets to which connections of a box were denied, and those to which they failed. The target with the most recent attempt is
/// last.
#[derive(Debug, Default)]
struct Targets {
    denied: Vec<Unconnected>,
    failed: Vec<Unconnected>,
    services: Vec<Requests>,
    /// `None` if the box has asked the SSH agent for no signature.
    ssh_agent: Option<Signatures>,
}

/// The signatures for which a box has asked the SSH agent of the host.
#[derive(Debug, Default, Serialize)]
struct Signatures {
    /// How many signatures the agent has made.
    signatures: u64,
    failed: u64,
    /// The fingerprint of the key of the last signature. `None` if all have failed.
    last: Option<String>,
}

impl Signatures {
    /// Adds a signature, or the failure of one.
    fn count(&mut self, decision: &Decision) {
        match decision.verdict {
            Verdict::Allowed => {
                self.signatures += 1;
                self.last.clone_from(&decision.host);
            }
            Verdict::Denied { .. } | Verdict::Failed { .. } => self.failed += 1,
        }
    }

    /// Returns the signatures as a line of text.
    fn line(&self) -> String {
        let mut line = format!("ssh-agent: {}", number(self.signatures, "signature", "signatures"));
        if self.failed > 0 {
            line.push_str(&format!(", {} failed", self.failed));
        }
        let last = self.last.iter().map(|key| format!(", last with {key}"));
        line.extend(last);
        shown(&line) + "\n"
    }
}

/// Returns a number and what is counted: `1 request`, `2 requests`.
fn number(count: u64, one: &str, many: &str) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), one, many)
}

/// The requests of a box to a service.
#[derive(Debug, Default, Serialize)]
struct Requests {
    service: String,
    /// All requests, also those that were denied or failed.
    requests: u64,
    denied: u64,
    failed: u64,
    /// How many bytes were sent to the service, and received from it.
    sent: u64,
    received: u64,
}

impl Requests {
    /// Adds a request to the one of its service among `all`.
    fn count(all: &mut BTreeMap<String, Self>, service: &str, decision: &Decision) {
        let counted = all
            .entry(service.to_owned())
            .or_insert_with(|| Self { service: service.to_owned(), ..Self::default() });
        counted.requests += 1;
        counted.denied += u64::from(matches!(decision.verdict, Verdict::Denied { .. }));
        counted.failed += u64::from(matches!(decision.verdict, Verdict::Failed { .. }));
        counted.sent = counted.sent.saturating_add(decision.sent);
        counted.received = counted.received.saturating_add(decision.received);
    }

    /// Returns the requests as a line of text.
    fn line(&self) -> String {
        let requests = number(self.requests, "request", "requests");
        let mut line = format!("service {}: {requests}", self.service);
        for (count, what) in [(self.denied, "denied"), (self.failed, "failed")] {
            if count > 0 {
                line.push_str(&format!(", {count} {what}"));
            }
        }
        shown(&line) + "\n"
    }
}

impl Targets {
    fn read(boxes: &Boxes, name: &str) -> Result<Self, LaunchError> {
        let mut log = boxes.network_log(name);
        let (mut denied, mut failed) = (Tally::default(), Tally::default());
        let (mut services, mut ssh_agent) = (BTreeMap::new(), None::<Signatures>);
        while let Some((_, decision)) = log.next_decision().map_err(read_error)? {
            if let Some(request) = &decision.request {
                Requests::count(&mut services, &request.service, &decision);
            }
            if decision.way == Channel::SshAgent {
                ssh_agent.get_or_insert_default().count(&decision);
            }
            let Decision { host, port, verdict, .. } = decision;
            match verdict {
                Verdict::Denied { reason, allow } => denied.add((host, port, reason), allow),
                Verdict::Failed { reason } => failed.add((host, port, reason), None),
                Verdict::Allowed => {}
            }
        }
        let services = services.into_values().collect();
        Ok(Self { denied: denied.targets(), failed: failed.targets(), services, ssh_agent })
    }
}

/// A host, a port, and the reason why there is no connection.
type Target = (Option<String>, Option<u16>, String);

/// The attempts at each target, with the number of the last one, how many there were, and the line that would allow it.
#[derive(Debug, Default)]
struct Tally {
    attempts: u64,
    found: BTreeMap<Target, (u64, u64, Option<String>)>,
}

impl Tally {
    /// Counts an attempt at a target.
    fn add(&mut self, target: Target, allow: Option<String>) {
        self.attempts += 1;
        let (last, count, _) = self.found.entry(target).or_insert((0, 0, allow));
        (*last, *count) = (self.attempts, *count + 1);
    }

    fn targets(self) -> Vec<Unconnected> {
        let mut found: Vec<_> = self.found.into_iter().collect();
        found.sort_by_key(|(_, (last, ..))| *last);
        let target = |((host, port, reason), (_, count, allow))| Unconnected {
            host,
            port,
            reason,
            allow,
            count,
        };
        found.into_iter().map(target).collect()
    }
}

impl Unconnected {
    /// Returns the target as a line of text.
    fn line(&self) -> String {
        let target = target(self.host.as_deref(), self.port);
        let times = if self.count > 1 { format!(", {} times", self.count) } else { String::new() };
        let line = format!("{target}: {}{times}{}", self.reason, to_allow(self.allow.as_deref()));
        shown(&line) + "\n"
    }
}

fn show(boxes: &Boxes, record: &Record, as_json: bool) -> Result<u8, Failure> {
    let targets = Targets::read(boxes, &record.name)?;
    print(&if as_json {
        json_line(&json!({
            "name": record.name,
            "network": record.network,
            "published": record.published,
            "denied": targets.denied,
            "failed": targets.failed,
            "services": targets.services,
            "ssh_agent": targets.ssh_agent,
        }))?
    } else {
        text(record, &targets)
    })?;
    Ok(exit::DONE)
}

/// Returns the network as text: the rules as a Boxfile declares them, the limits, the published ports, what was asked of services and of
/// the SSH agent, and the targets without a connection.
fn text(record: &Record, targets: &Targets) -> String {
    let network = &record.network;
    let mut text = match record.state {
        State::Ended => format!("{} has ended; it had\n", record.name),
        State::Starting | State::Running => String::new(),
    };
    text.push_str(&format!("network \"{}\"", network.mode.name()));
    if network.mode == NetworkMode::Filtered {
        text.push_str(" {\n");
        let lists = [("allow", &network.allow), ("deny", &network.deny)];
        for (name, peer) in
            lists.iter().flat_map(|(name, list)| list.iter().map(move |it| (name, it)))
        {
            text.push_str(&format!("    {name} {peer}\n"));
        }
        text.push('}');
    }
    text.push('\n');
    if network.mode == NetworkMode::Filtered {
        text.push_str(&limits(network.limits));
    }
    if !record.network_local.is_empty() {
        let local = record.network_local.iter().filter_map(Local::of);
        let local: Vec<_> = local.map(|it| it.to_string()).collect();
        text.push_str(&format!("allowed although not on the internet: {}\n", local.join(", ")));
    }
    for port in &record.published {
        text.push_str(&format!("published: {port}\n"));
    }
    targets.services.iter().for_each(|it| text.push_str(&it.line()));
    targets.ssh_agent.iter().for_each(|it| text.push_str(&it.line()));
    for (title, list) in [("denied", &targets.denied), ("failed", &targets.failed)] {
        if !list.is_empty() {
            text.push_str(&format!("{title} so far:\n"));
        }
        let latest = &list[list.len().saturating_sub(MAX_SHOWN)..];
        latest.iter().for_each(|it| text.push_str(&format!("    {}", it.line())));
    }
    text
}

fn limits(limits: NetworkLimits) -> String {
    let NetworkLimits { connections, bytes_per_second, names_per_minute } = limits;
    let rate = readable(bytes_per_second);
    format!(
        "at most {connections} connections at once, {rate} per second, {names_per_minute} names per minute\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_denied_is_said_on_a_line_of_its_own() {
        let peers = ["a.example.com", "b.example.com"].map(|it| peer(it).unwrap());
        let output: String = still_denied(&peers, &peers[1..], "hello").collect();
        insta::assert_snapshot!(output, @"boxlaunch: b.example.com stays denied: `deny` takes precedence over `allow`; `boxlaunch network hello reload BOX` takes all changes back");
        assert!(output.ends_with("back\n"));
    }

    #[test]
    fn attempts_at_a_target_are_counted_and_the_latest_target_is_last() {
        let target = |host: &str| (Some(host.to_owned()), Some(443), "why".to_owned());
        let mut tally = Tally::default();
        tally.add(target("a.example"), Some("allow \"a.example\"".to_owned()));
        tally.add((None, None, "it is malformed".to_owned()), None);
        tally.add(target("b.example"), None);
        tally.add(target("a.example"), None);
        let lines: String = tally.targets().iter().map(Unconnected::line).collect();
        insta::assert_snapshot!(lines, @r#"
        a request: it is malformed
        b.example:443: why
        a.example:443: why, 2 times; to allow it: allow "a.example"
        "#);
    }

    #[test]
    fn signatures_are_counted_with_the_key_of_the_last_one() {
        let decision = |host: &str, verdict: &str| -> Decision {
            let text = format!(
                r#"{{"component":"agent","way":"ssh-agent","host":"{host}",{verdict},"sent":1,"received":1,"milliseconds":1}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let (allowed, failed) = (r#""verdict":"allowed""#, r#""verdict":"failed","reason":"r""#);
        let mut all = Signatures::default();
        let mut lines = String::new();
        for (host, verdict) in [
            ("SHA256:a", failed),
            ("SHA256:a", allowed),
            ("SHA256:b", allowed),
            ("SHA256:c", failed),
        ] {
            all.count(&decision(host, verdict));
            lines += &all.line();
        }
        insta::assert_snapshot!(lines, @"
        ssh-agent: 0 signatures, 1 failed
        ssh-agent: 1 signature, 1 failed, last with SHA256:a
        ssh-agent: 2 signatures, 1 failed, last with SHA256:b
        ssh-agent: 2 signatures, 2 failed, last with SHA256:b
        ");
    }

    #[test]
    fn hosts_have_ports_or_not() {
        for (text, expected) in [
            ("example.org", r#""example.org""#),
            ("*.Example.org:8443", r#""*.example.org" port=8443"#),
            ("10.0.0.0/8:5432", r#""10.0.0.0/8" port=5432"#),
            ("::1", r#""::1""#),
            ("[2001:db8::1]:443", r#""2001:db8::1" port=443"#),
        ] {
            assert_eq!(peer(text).unwrap().to_string(), expected);
        }
        for text in [
            "",
            "localhost",
            "example.org:",
            "example.org:0",
            "example.org:70000",
            "10.0.0.0/99",
            "[::1",
        ] {
            assert!(peer(text).unwrap_err().contains("write a domain"), "{text}");
        }
        for url in ["https://example.org:8443/x?y", "example.org:8443/"] {
            assert!(peer(url).unwrap_err().contains("write `example.org:8443`"), "{url}");
        }
    }
}
