//! What a box is given when it runs: shares, disks, network, secrets, task, logs, capabilities and
//! the policy for commands.

use serde::Serialize;

use crate::Spanned;

/// Which components see something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The agent alone.
    Agent,
    /// The business application alone.
    Business,
    /// Both.
    #[default]
    Both,
}

/// Whether a share can be written to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Read only.
    #[default]
    Ro,
    /// Read and write.
    Rw,
}

/// A host directory that the guest sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Share {
    /// Its name, by the same rule as the box's.
    pub name: String,
    /// Where the guest sees it; absolute.
    pub guest: Spanned<String>,
    /// The directory unless the launch names another; relative to where the box is launched.
    pub host: Option<Spanned<String>>,
    /// Whether it can be written to.
    pub access: Access,
    /// Who sees it.
    pub component: Scope,
}

/// An empty disk for what a run writes; gone when the box stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Scratch {
    /// Its name, by the same rule as the box's.
    pub name: String,
    /// Where the guest sees it; absolute.
    pub guest: Spanned<String>,
    /// Its size in bytes: whole MiB, from 1 MiB to 1 TiB.
    pub size: u64,
    /// Who sees it.
    pub component: Scope,
}

/// What the guest can reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Network {
    /// How.
    pub mode: NetworkMode,
    /// What may be reached ([`NetworkMode::Filtered`] only): domains, `*.` and a domain, IP
    /// addresses or networks. Sorted.
    pub allow: Vec<String>,
    /// What may not be reached although `allow` names it. Sorted.
    pub deny: Vec<String>,
}

/// How the guest reaches what is outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// Not at all: loopback only.
    #[default]
    None,
    /// Through a proxy that lets through what is allowed.
    Filtered,
    /// As the host does.
    Shared,
    /// Only through `/cap`.
    CapOnly,
}

/// Something that the launcher hands over at run time. Its value is in no Boxfile and no box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Secret {
    /// Its name: that of an environment variable.
    pub name: Spanned<String>,
    /// How the component gets it.
    pub delivery: Delivery,
    /// Who gets it.
    pub component: Scope,
}

/// How a component gets a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// As the environment variable of its name.
    Env,
    /// As a file that only its user can read.
    File {
        /// Where; absolute.
        path: String,
    },
}

/// The task of a run: `/task/spec.json` and `/task/meta.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Task {
    /// Its identifier.
    pub id: String,
    /// What kind of task it is, in the agent's words.
    pub kind: String,
    /// What is to be done.
    pub description: String,
    /// What it works on: a JSON text in its shortest form.
    pub input: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// After how many milliseconds it is ended.
    pub timeout: Option<u64>,
}

/// What is recorded under `/logs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::struct_excessive_bools, reason = "each is a file of its own, on or off")]
pub struct Logs {
    /// `/logs/stdout.log`.
    pub stdout: bool,
    /// `/logs/stderr.log`.
    pub stderr: bool,
    /// `/logs/events.jsonl`.
    pub events: bool,
    /// The directory `/logs/atif`, for trajectories.
    pub atif: bool,
}

/// A capability under `/cap`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Cap {
    /// `/cap/http`: requests.
    Http {
        /// How many milliseconds a request may take; 30000 by default.
        timeout: u64,
    },
    /// `/cap/nostr`: events of relays.
    Nostr {
        /// The relays' URLs: ws or wss. At least one.
        relays: Vec<String>,
    },
    /// `/cap/payments`: invoices.
    Payments,
    /// `/cap/ws`: WebSocket connections.
    Ws {
        /// How many may be open at once, 1 to 1024; 16 by default.
        max_connections: u16,
    },
}

impl Cap {
    /// Returns the name under `/cap`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Http { .. } => "http",
            Self::Nostr { .. } => "nostr",
            Self::Payments => "payments",
            Self::Ws { .. } => "ws",
        }
    }
}

/// The policy for the commands that the agent runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sandbox {
    /// What it starts from.
    pub preset: Preset,
    /// What is done where the guest's kernel lacks what the policy needs.
    pub fallback: Fallback,
    /// The most bytes of output that a command may give back; by default
    /// [`MAX_OUTPUT_BYTES`](box_image::defaults::MAX_OUTPUT_BYTES).
    pub max_output: u64,
    /// Where commands may write, on top of the preset; absolute paths, sorted.
    pub writable: Vec<String>,
    /// What they may not read; absolute paths, sorted.
    pub deny_read: Vec<String>,
    /// What they may not write; absolute paths, sorted.
    pub deny_write: Vec<String>,
    /// Commands that run without a question, as patterns.
    pub allow: Vec<String>,
    /// Commands that need a person's consent, as patterns.
    pub ask: Vec<String>,
    /// Commands that never run, as patterns.
    pub forbid: Vec<String>,
}

/// What a command policy starts from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Filtered network; system directories not writable, sensitive ones not readable.
    #[default]
    Default,
    /// As the default, with the network open, and degrading where a feature is missing.
    Development,
    /// As the default, with no network.
    Ci,
}

/// What is done where the guest's kernel lacks what a policy needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// The command fails, and names what is missing.
    Strict,
    /// It runs with less protection, and every result says so.
    Warn,
}
