//! The network of a starting box: the errors of rules that need an option, and the notice about its hosts.

use std::env;

use box_contract::{ErrorCode, NetworkMode, PeerPlan, RunPlan, ServicePlan};
use boxlaunch::network::given::NetworkRefusal;
use boxlaunch::network::{Given, NetworkError};
use cli_common::Problem;
use egress_rules::{Local, Wanted, with_port};
use host_fs::{named_path, own};
use safe_text::shown;

use super::RunArgs;
use crate::cli::error::{Failure, usage};
use crate::cli::lacks::Lack;

/// The maximum number of hosts that a notice names.
const MAX_NAMED: usize = 8;

/// Returns the network that the box gets: the network that it declares, limited by the command line.
pub(super) fn given(args: &RunArgs, plan: &RunPlan) -> Result<Given, Failure> {
    let certificates = named_path(env::var_os(own::CERTIFICATES));
    let given = Given { certificates, ..args.network(plan).map_err(|it| refused(it, plan))? };
    let Some(proxy) = &args.given.proxy else { return Ok(given) };
    if given.mode != NetworkMode::Filtered && (plan.services.is_empty() || !given.has_services) {
        let mode = given.mode.name();
        let message = format!("--proxy has no effect: the network of the box is {mode:?}");
        return Err(usage(
            &message,
            "leave it out: only the filter of `network \"filtered\"` and services use it",
        ));
    }
    Ok(Given { proxy: Some(proxy.find(|name| env::var(name).ok())?), ..given })
}

/// Returns the error of a network that the command line does not allow, or of an option that has no effect.
fn refused(reason: NetworkRefusal, plan: &RunPlan) -> Failure {
    let help = match &reason {
        NetworkRefusal::Wanted { wanted, unused } => return not_given(wanted, unused, plan),
        NetworkRefusal::Peer(error) => return NetworkError::Peer(error.clone()).into(),
        NetworkRefusal::Shared => SHARED,
        NetworkRefusal::Without(_) => "leave one of them out",
        NetworkRefusal::Undeclared(_) => {
            "leave it out: a box gets at most what it declares; or declare `network \"shared\"` in its Boxfile, and build it \
             again"
        }
        NetworkRefusal::Unused(_) => UNUSED,
        NetworkRefusal::NoRules { .. } => {
            "leave it out: only the rules of `network \"filtered\"` and services name addresses"
        }
    };
    usage(&message(&reason), help)
}

/// Describes the mistake of a command line in terms of its options.
fn message(reason: &NetworkRefusal) -> String {
    match reason {
        NetworkRefusal::Undeclared(mode) => format!(
            "`--network shared` is more than the box declares: its network is {:?}",
            mode.name()
        ),
        NetworkRefusal::Without(local) => {
            format!("`--network-local {local}` has no effect beside `--network none`")
        }
        NetworkRefusal::Unused(local) => {
            format!(
                "`--network-local {local}` has no effect: no rule or service of the box needs that"
            )
        }
        NetworkRefusal::NoRules { local, mode } => format!(
            "`--network-local {local}` has no effect: the network of the box is {:?}",
            mode.name()
        ),
        NetworkRefusal::Shared | NetworkRefusal::Wanted { .. } | NetworkRefusal::Peer(_) => {
            reason.to_string()
        }
    }
}

const SHARED: &str = "add `--network shared` if it may reach everything that this host reaches, except its loopback: \
                      also your local network and a cloud's metadata service; `--network none` starts it without a network";
const UNUSED: &str = "leave it out, or give it the address and the port of a rule; `boxlaunch network NAME allow` adds a rule \
                      to a box that runs";

/// Returns an error for each rule that needs `--network-local`, and for each value of `--network-local` that no rule needs.
fn not_given(wanted: &[Wanted], unused: &[Local], plan: &RunPlan) -> Failure {
    let lacks: Vec<_> = wanted.iter().map(|it| needs_consent(it, plan)).collect();
    let unused = unused
        .iter()
        .map(|it| Problem::new((ErrorCode::Usage, UNUSED), message(&NetworkRefusal::Unused(*it))));
    Failure::of(unused.chain(Lack::problems(&lacks)))
}

/// Returns the missing options for the network of a box. Anything else that is wrong with the network is an error.
pub(super) fn lacking(args: &RunArgs, plan: &RunPlan) -> Result<Vec<Lack>, Failure> {
    match args.network(plan) {
        Ok(_) => Ok(Vec::new()),
        Err(NetworkRefusal::Wanted { wanted, unused }) if unused.is_empty() => {
            Ok(wanted.iter().map(|it| needs_consent(it, plan)).collect())
        }
        Err(reason @ NetworkRefusal::Shared) => {
            let words = "--network shared".to_owned();
            Ok(vec![Lack { message: reason.to_string(), help: SHARED.to_owned(), words }])
        }
        Err(reason) => Err(refused(reason, plan)),
    }
}

/// Returns the missing `--network-local` of a rule or a service.
fn needs_consent(Wanted { needs, purpose }: &Wanted, plan: &RunPlan) -> Lack {
    let words = format!("--network-local {needs}");
    let wanted = needs.plan();
    let mut services = plan.services.iter().filter(|it| it.peer().as_ref() == Some(&wanted));
    let declared = services.next().filter(|_| !plan.network.allow.contains(&wanted));
    let declared = declared.map_or_else(
        || format!("allow {wanted}"),
        |it| format!("service {:?} to={:?}", it.name, it.to),
    );
    Lack {
        message: format!(
            "the box wants to reach what is not on the internet ({purpose}): {declared}"
        ),
        help: format!(
            "add `{words}` if it may reach that; `--network none` starts it without a network"
        ),
        words,
    }
}

/// Returns the notices about the hosts that the box can reach, and about its services. `called` is the box as the command line
/// names it, quoted for a shell.
pub(super) fn notice(given: &Given, plan: &RunPlan, called: &str) -> Option<String> {
    let reached = match given.mode {
        NetworkMode::None | NetworkMode::CapOnly => None,
        NetworkMode::Shared => Some(
            "everything that this host reaches by IPv4, except its loopback: it shares the network of this host".to_owned(),
        ),
        NetworkMode::Filtered => Some(hosts(&plan.network.allow, called)),
    };
    let services = plan.services.iter().filter(|_| given.has_services).map(service);
    let all: Vec<_> = reached.into_iter().chain(services).collect();
    let line = |it: &String| shown(&format!("boxlaunch: the box reaches {it}")) + "\n";
    (!all.is_empty()).then(|| all.iter().map(line).collect())
}

/// Describes a service, and the secrets that it gets.
fn service(ServicePlan { to, headers, .. }: &ServicePlan) -> String {
    let secrets: Vec<_> = headers.iter().map(|it| it.secret.as_str()).collect();
    let with = match secrets.as_slice() {
        [] => String::new(),
        secrets => format!(" with the secret {}", secrets.join(" and ")),
    };
    format!("{to}{with}")
}

/// Names up to [`MAX_NAMED`] hosts of the rules, and counts the others.
fn hosts(allow: &[PeerPlan], called: &str) -> String {
    let name = |it: &PeerPlan| with_port(&it.peer, it.port);
    let named: Vec<_> = allow.iter().take(MAX_NAMED).map(name).collect();
    let more = match allow.len() - named.len() {
        0 => String::new(),
        more => {
            let hosts = if more == 1 { "host" } else { "hosts" };
            format!(" and {more} more {hosts}, which `boxlaunch inspect {called}` names")
        }
    };
    format!("{}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(mode: NetworkMode, allow: &[(&str, u16)]) -> RunPlan {
        let peer = |(peer, port): &(&str, u16)| PeerPlan {
            peer: (*peer).to_owned(),
            port: (*port > 0).then_some(*port),
        };
        let mut plan = testkit::test_box::config().plan;
        plan.network.mode = mode;
        plan.network.allow = allow.iter().map(peer).collect();
        plan
    }

    fn output(plan: &RunPlan, options: &[&str]) -> String {
        let args = RunArgs::of_words(["x.box"].iter().chain(options)).unwrap();
        match given(&args, plan) {
            Ok(given) => notice(&given, plan, "'my box'").unwrap_or_default(),
            Err(error) => {
                assert_eq!(error.exit, 2);
                error.text()
            }
        }
    }

    #[test]
    fn each_rule_that_needs_consent_is_named_with_the_option_to_add() {
        let local = [
            ("10.0.0.0/8", 0),
            ("127.0.0.1", 9999),
            ("169.254.169.254", 80),
            ("api.example.com", 0),
        ];
        let plan = plan(NetworkMode::Filtered, &local);
        insta::assert_snapshot!(output(&plan, &[]), @r#"
        error: the box wants to reach what is not on the internet (private): allow "10.0.0.0/8"
          = help: add `--network-local 10.0.0.0/8` if it may reach that; `--network none` starts it without a network

        error: the box wants to reach what is not on the internet (loopback): allow "127.0.0.1" port=9999
          = help: add `--network-local 127.0.0.1:9999` if it may reach that; `--network none` starts it without a network

        error: the box wants to reach what is not on the internet (link-local): allow "169.254.169.254" port=80
          = help: add `--network-local 169.254.169.254:80` if it may reach that; `--network none` starts it without a network
            all that is missing: `--network-local 10.0.0.0/8 --network-local 127.0.0.1:9999 --network-local 169.254.169.254:80`; `boxlaunch inspect BOX` lists all that the box wants
        "#);
        insta::assert_snapshot!(output(&plan, &["--network-local", "localhost:9999", "--network-local", "10.0.0.0/8"]), @r#"
        error: the box wants to reach what is not on the internet (link-local): allow "169.254.169.254" port=80
          = help: add `--network-local 169.254.169.254:80` if it may reach that; `--network none` starts it without a network
        "#);
        let all = [
            "--network-local",
            "127.0.0.0/8",
            "--network-local",
            "169.254.169.254:80",
            "--network-local",
            "10.0.0.0/8",
        ];
        insta::assert_snapshot!(output(&plan, &all), @"boxlaunch: the box reaches 10.0.0.0/8, 127.0.0.1:9999, 169.254.169.254:80, api.example.com");
        assert_eq!(output(&plan, &["--network", "none"]), "");
    }

    #[test]
    fn a_proxy_is_for_the_filter_alone() {
        let filtered = plan(NetworkMode::Filtered, &[("api.example.com", 0)]);
        let args = RunArgs::of_words(["x.box", "--proxy", "http://proxy:3128"]).unwrap();
        let proxy = given(&args, &filtered).unwrap().proxy.unwrap();
        assert_eq!(proxy.to_string(), "http://proxy:3128");
        insta::assert_snapshot!(output(&plan(NetworkMode::None, &[]), &["--proxy", "http://proxy:3128"]), @r#"
        error: --proxy has no effect: the network of the box is "none"
          = help: leave it out: only the filter of `network "filtered"` and services use it
        "#);
        let closed = output(&filtered, &["--network", "none", "--proxy", "http://proxy:3128"]);
        assert!(closed.contains("--proxy has no effect"), "{closed}");
    }

    #[test]
    fn what_is_given_in_place_of_a_rule_is_named_beside_it() {
        let plan = plan(NetworkMode::Filtered, &[("10.0.0.7", 5432)]);
        insta::assert_snapshot!(output(&plan, &["--network-local", "10.0.0.8:5432"]), @r#"
        error: `--network-local 10.0.0.8:5432` has no effect: no rule or service of the box needs that
          = help: leave it out, or give it the address and the port of a rule; `boxlaunch network NAME allow` adds a rule to a box that runs

        error: the box wants to reach what is not on the internet (private): allow "10.0.0.7" port=5432
          = help: add `--network-local 10.0.0.7:5432` if it may reach that; `--network none` starts it without a network
        "#);
    }

    #[test]
    fn a_shared_network_is_given_by_the_command_line_alone() {
        let shared = plan(NetworkMode::Shared, &[]);
        insta::assert_snapshot!(output(&shared, &[]), @"
        error: the box wants to share the network of this host, and only the command line gives that
          = help: add `--network shared` if it may reach everything that this host reaches, except its loopback: also your local network and a cloud's metadata service; `--network none` starts it without a network
        ");
        insta::assert_snapshot!(output(&shared, &["--network", "shared"]), @"boxlaunch: the box reaches everything that this host reaches by IPv4, except its loopback: it shares the network of this host");
        assert_eq!(output(&shared, &["--network=none"]), "");
        let filtered = plan(NetworkMode::Filtered, &[("api.example.com", 0)]);
        insta::assert_snapshot!(output(&filtered, &["--network", "shared"]), @r#"
        error: `--network shared` is more than the box declares: its network is "filtered"
          = help: leave it out: a box gets at most what it declares; or declare `network "shared"` in its Boxfile, and build it again
        "#);
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        let filtered = plan(NetworkMode::Filtered, &[("api.example.com", 0)]);
        let text = output(&filtered, &["--network-local", "10.0.0.1"])
            + &output(&filtered, &["--network-local", "10.0.0.1", "--network=none"])
            + &output(&plan(NetworkMode::None, &[]), &["--network", "shared"]);
        insta::assert_snapshot!(text, @r#"
        error: `--network-local 10.0.0.1` has no effect: no rule or service of the box needs that
          = help: leave it out, or give it the address and the port of a rule; `boxlaunch network NAME allow` adds a rule to a box that runs
        error: `--network-local 10.0.0.1` has no effect beside `--network none`
          = help: leave one of them out
        error: `--network shared` is more than the box declares: its network is "none"
          = help: leave it out: a box gets at most what it declares; or declare `network "shared"` in its Boxfile, and build it again
        "#);
        let words = ["x.box", "--network-local", "db.example.com:5432"];
        let error = RunArgs::of_words(words).unwrap_err().to_string();
        assert!(error.contains("names are not allowed"), "{error}");
    }

    #[test]
    fn a_notice_names_what_is_reached_and_stays_short() {
        let few = [
            ("*.example.net", 0),
            ("api.example.com", 0),
            ("2606:2800::1", 22),
            ("db.example.com", 5432),
        ];
        insta::assert_snapshot!(output(&plan(NetworkMode::Filtered, &few), &[]), @"boxlaunch: the box reaches *.example.net, api.example.com, [2606:2800::1]:22, db.example.com:5432");
        let many: Vec<_> = (0..20).map(|_| ("a.example.com", 0)).collect();
        let notice = output(&plan(NetworkMode::Filtered, &many), &[]);
        let more = "a.example.com and 12 more hosts, which `boxlaunch inspect 'my box'` names\n";
        assert!(notice.ends_with(more), "{notice}");
        assert_eq!(output(&plan(NetworkMode::None, &[]), &[]), "");
    }
}
