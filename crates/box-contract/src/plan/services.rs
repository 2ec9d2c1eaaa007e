//! HTTP APIs that components reach through the host, which keeps their credentials.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CapPlan, ComponentName, PeerPlan, RunPlan};
use crate::rules::ServiceUrl;

/// The directory in a component for the capabilities that it uses as files ([`CapPlan`]).
pub const CAP_PATH: &str = "/cap";

/// An HTTP API that a component reaches through the host. The host adds the credentials and speaks TLS to the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ServicePlan {
    /// The name.
    pub name: String,
    /// The URL before the paths of requests ([`ServiceUrl`]).
    pub to: String,
    /// The component that reaches the API.
    pub component: ComponentName,
    /// The header lines that the host adds, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<CredentialPlan>,
    /// The allowed requests ([`RequestRule`](crate::rules::RequestRule)), sorted. Empty means all requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The names of headers and of query parameters that pass although they may be those of credentials, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<String>,
    /// The time limit of a request and its answer, in milliseconds.
    pub timeout_ms: u64,
    /// The variable of the component with the URL of the API inside the box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
}

/// A header line with a secret: the host adds it to requests to a service, and the agent to those to an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CredentialPlan {
    /// The name of the header, in lower case.
    pub name: String,
    /// The name of the secret. Its delivery is [`SecretDelivery::Host`](super::SecretDelivery::Host) for a service, and
    /// [`SecretDelivery::Env`](super::SecretDelivery::Env) for an MCP server.
    pub secret: String,
    /// The text before the secret, such as `Bearer `.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
}

impl ServicePlan {
    /// Returns the rule that permits connections to the API, and nothing else. `None` if the URL is malformed.
    pub fn peer(&self) -> Option<PeerPlan> {
        let url = ServiceUrl::parse(&self.to)?;
        Some(PeerPlan { peer: url.host.to_owned(), port: Some(url.port) })
    }
}

impl RunPlan {
    /// Returns the HTTP APIs of a component, each with its number: its position in [`RunPlan::services`].
    pub fn services_of(
        &self,
        component: ComponentName,
    ) -> impl Iterator<Item = (u16, &ServicePlan)> {
        (0..).zip(&self.services).filter(move |(_, it)| it.component == component)
    }

    /// Returns whether a component sends requests as files.
    pub fn has_file_requests(&self) -> bool {
        self.components().any(|(name, _)| self.file_requests(name).is_some())
    }

    /// Returns the time limit of a component's requests as files. `None` if the component cannot make such requests: the plan
    /// does not have the capability `http`, or the component has no HTTP API.
    pub fn file_requests(&self, component: ComponentName) -> Option<Duration> {
        self.services_of(component).next()?;
        self.caps.iter().find_map(|cap| match cap {
            CapPlan::Http { timeout_ms } => Some(Duration::from_millis(*timeout_ms)),
            CapPlan::Ws { .. } | CapPlan::Nostr { .. } | CapPlan::Payments => None,
        })
    }
}
