//! Why an attempt was refused, failed or ended.

use std::io;

use box_contract::PeerPlan;
use egress_rules::hello::HelloError;
use egress_rules::{Denial, Host, Peer, Target, TargetError, USUAL_PORTS};
use hyper::StatusCode;

use crate::decision::Verdict;
use crate::proxy::ProxyFailure;

/// Why a connection was refused, could not be made, or was interrupted.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The client's target is malformed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The rules do not allow the connection.
    #[error(transparent)]
    Rules(#[from] Denial),
    /// The client's first message is malformed, or asks for another server than the client has named. At port 443, it is also
    /// refused if it is not TLS.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// The client's request is not for a proxy, or is ambiguous.
    #[error("{0}")]
    Request(&'static str),
    /// The service has no rule for the request.
    #[error("the service {service} does not allow {request}{}", as_rule(allow.as_deref()))]
    NotOffered {
        /// The name of the service.
        service: String,
        /// The method and the path.
        request: String,
        /// The rule that would allow this request alone. `None` if there is none.
        allow: Option<String>,
    },
    /// The query of a request to a service has a parameter that may be a credential or another method.
    #[error(
        "the query has {0:?}, which may be a credential, and the host adds the one of this service; if it is none, add this to the service: pass {0:?}"
    )]
    Parameter(String),
    /// The TLS connection to a service failed.
    #[error("TLS has failed: {0}")]
    Tls(io::Error),
    /// The service answers with a redirect.
    #[error("the service redirects the request, and the host does not follow")]
    Redirected,
    /// The service encodes its answer, so that the host cannot look for the credential in it.
    #[error("the service's answer is compressed, which the request does not accept")]
    Encoded,
    /// The box has reached its limit of connections.
    #[error("the box has {0} connections, which is its limit")]
    Connections(u32),
    /// The box has reached its limit of names per minute.
    #[error("the box has asked for {0} names within a minute, which is its limit")]
    Names(u32),
    /// The name could not be resolved.
    #[error("its name could not be resolved: {0}")]
    Unresolved(io::Error),
    /// The name has no address.
    #[error("its name has no address")]
    NoAddress,
    /// No address accepted the connection. Contains the last error.
    #[error("could not connect: {0}")]
    Unreachable(io::Error),
    /// The proxy of the host has not made the connection.
    #[error(transparent)]
    Proxy(#[from] ProxyFailure),
    /// A step, such as `connecting`, took longer than its time limit.
    #[error("{0} took too long")]
    Timeout(&'static str),
    /// The server's answer is not HTTP, is too long, has an ambiguous end, or switches to another protocol.
    #[error("the server's answer is not HTTP, or too long")]
    Answer,
    /// The server ended the connection before its answer was complete.
    #[error("the server disconnected")]
    Closed,
    /// The client ended the connection too early.
    #[error("the client disconnected")]
    Gone,
}

impl Refusal {
    /// Returns the line that a user can add to `network` in the Boxfile to allow this target. `None` if no line allows
    /// it.
    pub fn allow(&self, target: &Target) -> Option<String> {
        let peer = match (self, &target.host) {
            (Self::Rules(denial @ Denial::Special(address, _)), _) if denial.is_worth_a_hint() => {
                address.to_string()
            }
            (Self::Rules(Denial::NotAllowed | Denial::Port(_)), Host::Name(name)) => name.clone(),
            (Self::Rules(Denial::NotAllowed | Denial::Port(_)), Host::Address(address)) => {
                address.to_string()
            }
            _ => return None,
        };
        let peer = Peer::parse(&peer)?.to_string();
        let port = Some(target.port).filter(|port| !USUAL_PORTS.contains(port));
        Some(format!("allow {}", PeerPlan { peer, port }))
    }

    /// Returns whether the filter refused the connection. Otherwise the connection failed for another reason.
    fn is_denial(&self) -> bool {
        match self {
            Self::Target(_) | Self::Rules(_) | Self::Hello(_) | Self::Request(_) => true,
            Self::NotOffered { .. }
            | Self::Parameter(_)
            | Self::Connections(_)
            | Self::Names(_) => true,
            Self::Tls(_) | Self::Redirected | Self::Encoded => false,
            Self::Unresolved(_) | Self::NoAddress | Self::Unreachable(_) | Self::Proxy(_) => false,
            Self::Timeout(_) | Self::Answer | Self::Closed | Self::Gone => false,
        }
    }

    /// Returns the verdict to report. `target` is `None` if the client's target is malformed or unknown.
    pub(crate) fn verdict(&self, target: Option<&Target>) -> Verdict {
        let reason = self.to_string();
        if self.is_denial() {
            Verdict::Denied { reason, allow: target.and_then(|it| self.allow(it)) }
        } else {
            Verdict::Failed { reason }
        }
    }

    /// Returns the status of the response to an HTTP client.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Target(_) | Self::Request(_) | Self::Parameter(_) => StatusCode::BAD_REQUEST,
            Self::Rules(_) | Self::Hello(_) | Self::NotOffered { .. } => StatusCode::FORBIDDEN,
            Self::Tls(_) | Self::Redirected | Self::Encoded => StatusCode::BAD_GATEWAY,
            Self::Connections(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Names(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Unresolved(_) | Self::NoAddress | Self::Unreachable(_) | Self::Proxy(_) => {
                StatusCode::BAD_GATEWAY
            }
            Self::Answer | Self::Closed | Self::Gone => StatusCode::BAD_GATEWAY,
        }
    }
}

/// Returns the end of a text about a request: the rule that would allow it.
fn as_rule(rule: Option<&str>) -> String {
    let text = |rule| format!("; to allow it, add this to the service: allow {rule:?}");
    rule.map(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_could_allow_is_said_in_the_words_of_a_boxfile() {
        let address = "10.0.0.5".parse().unwrap();
        for (refusal, target, expected) in [
            (Denial::NotAllowed, "example.org:443", Some("allow \"example.org\"")),
            (Denial::NotAllowed, "example.org:80", Some("allow \"example.org\"")),
            (Denial::NotAllowed, "db.example.org:5432", Some("allow \"db.example.org\" port=5432")),
            (Denial::Port(22), "example.org:22", Some("allow \"example.org\" port=22")),
            (Denial::NotAllowed, "93.184.216.34:443", Some("allow \"93.184.216.34\"")),
            (Denial::NotAllowed, "[2606:2800::1]:22", Some("allow \"2606:2800::1\" port=22")),
            (Denial::Special(address, "private"), "example.org:443", Some("allow \"10.0.0.5\"")),
            // A rule needs a domain of two labels. A denied name needs more than a line: the denying rule must be
            // removed.
            (Denial::NotAllowed, "localhost:80", None),
            (Denial::Denied(Peer::Name("example.org".to_owned())), "example.org:80", None),
        ] {
            let target = Target::parse(target).unwrap();
            assert_eq!(Refusal::from(refusal).allow(&target).as_deref(), expected, "{target}");
        }
        let target = Target::parse("example.org:443").unwrap();
        assert_eq!(Refusal::Connections(1).allow(&target), None);
        assert_eq!(Refusal::Hello(HelloError::NotTls).allow(&target), None);
    }
}
