//! What of the host's network a box reaches.

use serde::{Deserialize, Serialize};

/// What of the host's network components reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkPlan {
    /// How they reach it.
    pub mode: NetworkMode,
    /// The hosts that a filter lets pass (`example.org`, `*.example.org`, `10.0.0.0/8`), sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The hosts that it does not, whatever [`Self::allow`] says, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// How components reach the host's network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// Not at all: there is loopback, over which the components talk, and the agent's port.
    #[default]
    None,
    /// Through a proxy that knows an allow list and a deny list.
    Filtered,
    /// As the host's own programs do.
    Shared,
    /// Through the files of `/cap` alone.
    CapOnly,
}

impl NetworkMode {
    /// Returns the name as the Boxfile spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Filtered => "filtered",
            Self::Shared => "shared",
            Self::CapOnly => "cap-only",
        }
    }
}
