//! Ports of a component that clients on the host can connect to: `-p [ADDR:]HOST:GUEST[/COMPONENT]`.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use box_contract::ComponentName;
use serde::{Deserialize, Serialize};

/// A published port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Published {
    /// The address to which clients connect on the host. If the port is 0, the kernel chooses one.
    pub host: SocketAddr,
    /// The TCP port on the component's loopback interface.
    pub guest: u16,
    /// The component whose port it is.
    pub component: ComponentName,
    /// Whether the box declares it, and the command line leaves it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declared: bool,
}

impl FromStr for Published {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Users of docker name the protocol.
        let text = text.strip_suffix("/tcp").unwrap_or(text);
        let (ports, component) = match text.rsplit_once('/') {
            Some((ports, name)) => (ports, component(name)?),
            None => (text, ComponentName::Agent),
        };
        let (host, guest) = ports.rsplit_once(':').ok_or_else(usage)?;
        let guest = port(guest)?;
        if guest == 0 {
            return Err("a component has no port 0".to_owned());
        }
        let (address, host) = match host.rsplit_once(':') {
            Some((address, host)) => (read_address(address)?, host),
            None => (IpAddr::V4(Ipv4Addr::LOCALHOST), host),
        };
        let host = SocketAddr::new(address, port(host)?);
        Ok(Self { host, guest, component, declared: false })
    }
}

impl Display for Published {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.host, self.guest, self.component.name())
    }
}

fn component(name: &str) -> Result<ComponentName, String> {
    let reason = || match name {
        "udp" => "leave it out: all published ports are of TCP".to_owned(),
        _ => "write agent or business".to_owned(),
    };
    ComponentName::of(name).ok_or_else(|| format!("{name:?} is not a component; {}", reason()))
}

fn read_address(text: &str) -> Result<IpAddr, String> {
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let address = match bare {
        Some(inner) => inner.parse().map(IpAddr::V6).ok(),
        None => text.parse().map(IpAddr::V4).ok(),
    };
    address.ok_or_else(|| match port(text) {
        Ok(_) => usage(),
        Err(_) => format!("{text:?} is not an address; write one such as 127.0.0.1 or [::1]"),
    })
}

fn port(text: &str) -> Result<u16, String> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match text.parse() {
        Ok(port) if is_number => Ok(port),
        _ if is_number => Err(format!("{text} is not a port: the largest is 65535")),
        _ => Err(usage()),
    }
}

fn usage() -> String {
    "write HOST_PORT:GUEST_PORT, one port each, or ADDRESS:HOST_PORT:GUEST_PORT, and /business after it for a port of the \
     business component"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_of_loopback_and_of_the_agent_unless_it_is_said() {
        for (text, expected) in [
            ("8080:80", "127.0.0.1:8080:80/agent"),
            ("0:80", "127.0.0.1:0:80/agent"),
            ("8080:80/business", "127.0.0.1:8080:80/business"),
            ("8080:80/tcp", "127.0.0.1:8080:80/agent"),
            ("8080:80/business/tcp", "127.0.0.1:8080:80/business"),
            ("0.0.0.0:8080:80", "0.0.0.0:8080:80/agent"),
            ("[::1]:8080:80/agent", "[::1]:8080:80/agent"),
        ] {
            let published: Published = text.parse().unwrap();
            assert_eq!(published.to_string(), expected);
            assert_eq!(expected.parse(), Ok(published), "its own form is read");
        }
    }

    #[test]
    fn what_is_no_port_is_refused_with_how_to_write_it() {
        for text in [
            "",
            "80",
            ":80",
            "80:",
            "80:0",
            "80:65536",
            "65536:80",
            "+80:80",
            "a:80",
            "80:80/",
            "80:80/web",
            "::1:80:80",
            "[::1:80:80",
            "host:80:80",
            "1.2.3:80:80",
        ] {
            let error = text.parse::<Published>().unwrap_err();
            let says = ["write", "the largest is", "no port 0"].iter().any(|it| error.contains(it));
            assert!(says, "{text}: {error}");
        }
    }
}
