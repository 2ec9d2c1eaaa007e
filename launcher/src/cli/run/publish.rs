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
}

/// The word for [`PublishOption::Undeclare`].
const NONE: &str = "none";

impl FromStr for PublishOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == NONE { Ok(Self::Undeclare) } else { text.parse().map(Self::Port) }
    }
}

impl Display for PublishOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undeclare => f.write_str(NONE),
            Self::Port(published) => published.fmt(f),
        }
    }
}

/// Returns the published ports of a run. A port of the command line replaces the declaration of the same port. The ports of the
/// command line are first, because an update gets their sockets in this order.
pub(in crate::cli) fn of_run(args: &RunArgs, plan: &RunPlan) -> Vec<Published> {
    given(args).chain(declared(args, plan)).collect()
}

fn given(args: &RunArgs) -> impl Iterator<Item = Published> {
    args.published.iter().filter_map(|it| match it {
        PublishOption::Undeclare => None,
        PublishOption::Port(published) => Some(*published),
    })
}

/// Returns the ports that the box declares and the command line leaves.
fn declared(args: &RunArgs, plan: &RunPlan) -> impl Iterator<Item = Published> {
    let is_given = |it: &PublishPlan| {
        given(args).any(|port| (port.component, port.guest) == (it.component, it.guest))
    };
    let all = if args.published.contains(&PublishOption::Undeclare) { &[] } else { &*plan.publish };
    all.iter().filter(move |it| !is_given(it)).map(|it| Published {
        host: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), it.host),
        guest: it.guest,
        component: it.component,
    })
}

/// Returns a notice for each port that the box declares, because no option of the command line names it.
pub(super) fn notices(args: &RunArgs, plan: &RunPlan) -> impl Iterator<Item = String> {
    declared(args, plan).map(|Published { host, guest, component }| {
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
