//! Capabilities: services of the host that appear as files in `/cap`.

use serde::{Deserialize, Serialize};

/// A service of the host that the agent uses through files of `/cap`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum CapPlan {
    /// `/cap/ws`: WebSocket connections.
    Ws {
        /// How many may be open at once.
        max_connections: u32,
    },
    /// `/cap/http`: HTTP requests.
    Http {
        /// How long one may take, in milliseconds.
        timeout_ms: u64,
    },
    /// `/cap/nostr`: events that are signed, published and read.
    Nostr {
        /// The relays' addresses (`wss://…`), sorted.
        relays: Vec<String>,
    },
    /// `/cap/payments`: invoices that are made and looked after.
    Payments,
}

impl CapPlan {
    /// Returns the name as the Boxfile spells it, which is the directory's in `/cap`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ws { .. } => "ws",
            Self::Http { .. } => "http",
            Self::Nostr { .. } => "nostr",
            Self::Payments => "payments",
        }
    }
}
