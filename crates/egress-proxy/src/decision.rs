//! The report of each attempt.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use box_contract::ComponentName;
use serde::{Deserialize, Serialize};

/// How a program asked for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// By an HTTP request to the proxy for another server.
    Http,
    /// By HTTP CONNECT.
    Connect,
    /// By SOCKS5.
    Socks,
    /// By connecting to an address that stands for a name, as a program without proxy support does.
    Direct,
    /// By a DNS lookup of a name, which is not a connection.
    Dns,
    /// By an HTTP request to a service, which the host sends on with a credential.
    Service,
    /// By connecting to a Unix socket that stands for one of the host. No filter decides on that.
    Socket,
    /// By asking the SSH agent of the host for a signature, which is not a connection.
    SshAgent,
}

/// The decision on one attempt to reach a host, and the result.
///
/// Each attempt has one decision. The decision on an allowed attempt is reported when the connection has ended. The
/// lookup of a name is reported only if it is denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Decision {
    /// The component that made the attempt.
    pub component: ComponentName,
    /// How the component asked for the connection.
    pub way: Channel,
    /// The host in its canonical spelling. A malformed host is as the client wrote it, cut to 253 characters, with `?`
    /// for each character that is not printable ASCII. The path of a socket in the box. The fingerprint of a key of the SSH agent. `None`
    /// if the client named no host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port. `None` if the client named no port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The server's address; `None` if no connection was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The request, if it was one to a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ApiRequest>,
    /// What the signature of the SSH agent is for, in words, if it was asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The decision and its reason.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How many bytes were sent to the server.
    pub sent: u64,
    /// How many bytes were received from the server.
    pub received: u64,
    /// How long the attempt and the connection took, in milliseconds.
    pub milliseconds: u64,
}

/// A request to a service, and the status of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ApiRequest {
    /// The name of the service.
    pub service: String,
    /// The method, at most 253 printable characters.
    pub method: String,
    /// The path below the URL of the service, without a query, at most 253 printable characters.
    pub path: String,
    /// The status of the answer. `None` if there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// Formats the request: `model: POST /messages, status 200`.
impl Display for ApiRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.service, self.method, self.path)?;
        self.status.map_or(Ok(()), |status| write!(f, ", status {status}"))
    }
}

/// A decision and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// The connection was allowed, and was made.
    Allowed,
    /// The filter refused the connection, or ended it, for example after a change of the rules.
    Denied {
        /// The reason, as text.
        reason: String,
        /// The line that a user can add to `network` in the Boxfile to allow the connection. `None` if no line allows
        /// it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allow: Option<String>,
    },
    /// The connection could not be made, or was interrupted. The filter did not deny it.
    Failed {
        /// The reason, as text.
        reason: String,
    },
}

/// Formats the decision as text: the host and the purpose, the verdict, and the line that would allow it.
impl Display for Decision {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.request {
            Some(request) => write!(f, "{request}")?,
            None => f.write_str(&target(self.host.as_deref(), self.port))?,
        }
        if let Some(purpose) = &self.purpose {
            write!(f, " ({purpose})")?;
        }
        match &self.verdict {
            Verdict::Allowed => {
                write!(f, " allowed, {} bytes sent, {} received", self.sent, self.received)
            }
            Verdict::Denied { reason, allow } => {
                write!(f, " denied: {reason}{}", to_allow(allow.as_deref()))
            }
            Verdict::Failed { reason } => write!(f, " failed: {reason}"),
        }
    }
}

/// Returns the target of a connection as text: `HOST:PORT`, or `HOST` if the port is not known, and `a request` instead of an unknown
/// host.
pub fn target(host: Option<&str>, port: Option<u16>) -> String {
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", host.unwrap_or("a request"))
}

/// Returns the end of a text about a denied connection: the line of a Boxfile that would allow it.
pub fn to_allow(line: Option<&str>) -> String {
    line.map(|line| format!("; to allow it: {line}")).unwrap_or_default()
}

/// Returns a client's text for a log or a terminal: at most 253 characters, and `?` for each that is not printable
/// ASCII.
pub fn printable(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_graphic();
    text.chars().take(253).map(|it| if is_plain(it) { it } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_flat_objects() {
        let decision = Decision {
            component: ComponentName::Agent,
            way: Channel::Connect,
            host: Some("example.org".to_owned()),
            port: Some(443),
            address: None,
            request: None,
            purpose: None,
            verdict: Verdict::Denied { reason: "it is not allowed".to_owned(), allow: None },
            sent: 0,
            received: 0,
            milliseconds: 3,
        };
        let expected = r#"{"component":"agent","way":"connect","host":"example.org","port":443,"verdict":"denied","reason":"it is not allowed","sent":0,"received":0,"milliseconds":3}"#;
        assert_eq!(serde_json::to_string(&decision).unwrap(), expected);
        assert_eq!(serde_json::from_str::<Decision>(expected).unwrap(), decision);
    }

    #[test]
    fn a_signature_has_a_key_and_a_purpose() {
        let text = r#"{"component":"agent","way":"ssh-agent","host":"SHA256:x","purpose":"login as git","verdict":"allowed","sent":2,"received":1,"milliseconds":3}"#;
        let decision: Decision = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&decision).unwrap(), text);
        let shown = "SHA256:x (login as git) allowed, 2 bytes sent, 1 received";
        assert_eq!(decision.to_string(), shown);
    }

    #[test]
    fn what_is_logged_moves_no_cursor() {
        assert_eq!(printable("a\u{1b}[2J\r\n\u{202e}b c"), "a?[2J???b?c");
        assert_eq!(printable(&"a".repeat(5000)).len(), 253);
    }
}
