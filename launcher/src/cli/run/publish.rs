//! The published ports of a run: those of the command line, and those that the box declares.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use box_contract::{ComponentName, ErrorCode, PublishPlan, RunPlan};
use boxlaunch::network::{NetworkError, Published};

use super::options::RunArgs;
use crate::cli::error::Failure;
use crate::cli::launch_error::{FailedRun, LaunchError};

/// A value of `--publish`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum PublishOption {
    /// None of the ports that the box declares is published.
    Undeclare,
    /// This port is published.
    Port(Published),
    /// This port was published in the run that is repeated, because the box declares it.
    Declared(Published),
}

/// The word for [`PublishOption::Undeclare`].
const NONE: &str = "none";
/// The mark of [`PublishOption::Declared`], for boxlaunch itself.
const DECLARED: &str = "declared:";

impl FromStr for PublishOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(DECLARED) {
            _ if text == NONE => Ok(Self::Undeclare),
            Some(port) => Ok(Self::Declared(Published { declared: true, ..port.parse()? })),
            None => text.parse().map(Self::Port),
        }
    }
}

impl Display for PublishOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undeclare => f.write_str(NONE),
            Self::Port(published) => published.fmt(f),
            Self::Declared(published) => write!(f, "{DECLARED}{published}"),
        }
    }
}

impl PublishOption {
    /// Returns the option that publishes a port of a run in the next run, if that one's box still declares a declared port.
    pub(super) const fn again(port: Published) -> Self {
        if port.declared { Self::Declared(port) } else { Self::Port(port) }
    }
}

/// Returns the published ports of a run. A port of the command line replaces the declaration of the same port.
pub(in crate::cli) fn of_run(args: &RunArgs, plan: &RunPlan) -> Vec<Published> {
    given(args).chain(declared(args, plan)).collect()
}

fn given(args: &RunArgs) -> impl Iterator<Item = Published> {
    args.given.published.iter().filter_map(|it| match it {
        PublishOption::Undeclare | PublishOption::Declared(_) => None,
        PublishOption::Port(published) => Some(*published),
    })
}

/// Returns the ports that the box declares and the command line leaves. A port that the kernel has chosen stays when the run is
/// repeated.
fn declared(args: &RunArgs, plan: &RunPlan) -> impl Iterator<Item = Published> {
    let is_given = |it: &PublishPlan| {
        given(args).any(|port| (port.component, port.guest) == (it.component, it.guest))
    };
    let all =
        if args.given.published.contains(&PublishOption::Undeclare) { &[] } else { &*plan.publish };
    all.iter().filter(move |it| !is_given(it)).map(|it| {
        let host = if it.host == 0 { chosen(args, it).unwrap_or(0) } else { it.host };
        let host = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), host);
        Published { host, guest: it.guest, component: it.component, declared: true }
    })
}

/// Returns the port of the host at which the run that is repeated has published a port.
fn chosen(args: &RunArgs, of: &PublishPlan) -> Option<u16> {
    args.given.published.iter().find_map(|it| match it {
        PublishOption::Declared(it) if (it.component, it.guest) == (of.component, of.guest) => {
            Some(it.host.port())
        }
        _ => None,
    })
}

/// Returns a notice for each port that the box declares, because no option of the command line names it. A run that is repeated
/// has only those of the ports that are new.
pub(super) fn notices(args: &RunArgs, plan: &RunPlan) -> impl Iterator<Item = String> {
    let is_new = |it: &Published| !args.given.published.contains(&PublishOption::Declared(*it));
    declared(args, plan).filter(is_new).map(|Published { host, guest, component, declared: _ }| {
        let host = match host.port() {
            0 => "a free port of this host".to_owned(),
            _ => host.to_string(),
        };
        let whose = match component {
            ComponentName::Agent => "the agent",
            ComponentName::Business => "the business component",
        };
        format!("boxlaunch: {host} leads to port {guest} of {whose}\n")
    })
}

/// Returns the failure of a start that could not publish a port that the box declares: it names the declaration.
pub(super) fn refused(failure: &FailedRun, args: &RunArgs, plan: &RunPlan) -> Option<Failure> {
    let LaunchError::Network(error @ NetworkError::Port { at, .. }) = &failure.error else {
        return None;
    };
    let port = declared(args, plan).find(|it| it.host == *at)?;
    let Published { guest, component, .. } = port;
    let declaration = match component {
        ComponentName::Agent => format!("publish {guest}"),
        ComponentName::Business => format!("publish {guest} component=\"business\""),
    };
    let component = component.name();
    let help = format!(
        "the box declares it with `{declaration}`; if another program uses it, add `-p HOST:{guest}/{component}` with another \
         port, or 0 for any free one; `-p {NONE}` publishes none that the box declares"
    );
    Some(Failure::new((ErrorCode::Io, help), error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn plan() -> RunPlan {
        let mut plan = testkit::test_box::config().plan;
        let port = |component, guest, host| PublishPlan { component, guest, host };
        plan.publish = vec![
            port(ComponentName::Agent, 3000, 3000),
            port(ComponentName::Agent, 4000, 0),
            port(ComponentName::Business, 3000, 8080),
        ];
        plan
    }

    fn ports(options: &[&str]) -> Vec<String> {
        let args = RunArgs::of_words(["x.box"].iter().chain(options)).unwrap();
        of_run(&args, &plan()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_port_of_the_command_line_replaces_the_declared_one() {
        let [agent, free, business] =
            ["127.0.0.1:3000:3000/agent", "127.0.0.1:0:4000/agent", "127.0.0.1:8080:3000/business"];
        assert_eq!(ports(&[]), [agent, free, business]);
        assert_eq!(ports(&["-p", "none"]), [""; 0]);
        let own = "0.0.0.0:9000:3000/agent";
        assert_eq!(ports(&["-p", own]), [own, free, business]);
        assert_eq!(ports(&["-p", "none", "-p", own]), [own]);
        let other = "127.0.0.1:9:5000/agent";
        assert_eq!(ports(&["-p", other]), [other, agent, free, business]);
    }

    #[test]
    fn a_repeated_run_has_the_ports_that_its_box_declares_now() {
        let args = |options: &[String]| {
            RunArgs::of_words(["x.box".to_owned()].iter().chain(options)).unwrap()
        };
        let mut before = of_run(&args(&["-p=9000:3000".to_owned()]), &plan());
        assert_eq!(before.iter().map(|it| it.declared).collect::<Vec<_>>(), [false, true, true]);
        before[1].host.set_port(41_000);
        let repeated = before.iter().map(|it| format!("-p={}", PublishOption::again(*it)));
        let again = args(&repeated.collect::<Vec<_>>());
        assert_eq!(of_run(&again, &plan()), before);
        assert_eq!(notices(&again, &plan()).count(), 0);
        // A newer box declares a port no longer, and another one at another port of the host.
        let mut newer = plan();
        newer.publish.remove(0);
        newer.publish[1].host = 8081;
        let ports: Vec<_> = of_run(&again, &newer).iter().map(ToString::to_string).collect();
        let [given, free, moved] = [
            "127.0.0.1:9000:3000/agent",
            "127.0.0.1:41000:4000/agent",
            "127.0.0.1:8081:3000/business",
        ];
        assert_eq!(ports, [given, free, moved]);
        let new: Vec<_> = notices(&again, &newer).collect();
        assert!(new.len() == 1 && new[0].contains("127.0.0.1:8081"), "{new:?}");
        newer.publish.clear();
        assert_eq!(of_run(&again, &newer), before[..1]);
    }

    #[test]
    fn each_declared_port_is_said() {
        let args = RunArgs::of_words(["x.box", "-p", "9000:3000"]).unwrap();
        let all: String = notices(&args, &plan()).collect();
        insta::assert_snapshot!(all, @"
        boxlaunch: a free port of this host leads to port 4000 of the agent
        boxlaunch: 127.0.0.1:8080 leads to port 3000 of the business component
        ");
    }

    #[test]
    fn a_declared_port_that_is_taken_is_named_with_its_line() {
        let taken = |options: &[&str], at: &str| {
            let args = RunArgs::of_words(["x.box"].iter().chain(options)).unwrap();
            let source = io::Error::from_raw_os_error(98);
            let error = NetworkError::Port { at: at.parse().unwrap(), source };
            refused(&error.into(), &args, &plan()).map(|it| it.text())
        };
        insta::assert_snapshot!(taken(&[], "127.0.0.1:8080").unwrap(), @r#"
        error: cannot publish a port at 127.0.0.1:8080: Address already in use (os error 98)
          = help: the box declares it with `publish 3000 component="business"`; if another program uses it, add `-p HOST:3000/business` with another port, or 0 for any free one; `-p none` publishes none that the box declares
        "#);
        assert_eq!(taken(&["-p", "3000:3000"], "127.0.0.1:3000"), None);
    }
}
