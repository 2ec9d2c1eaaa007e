//! The resources of a running box: skills, shares and disks, the network, secrets, a task, logs and
//! capabilities.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::rules::{MAX_SKILL_AUTHOR, MAX_SKILL_DESCRIPTION, MAX_SKILL_VERSION, is_name};
use crate::{ComponentName, named_enum};

/// A skill of the box: a directory under [`super::SKILLS_PATH`].
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillPlan {
    /// Names the directory below [`super::SKILLS_PATH`].
    pub name: String,
    /// How it comes there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: SkillMode,
    /// The version that its definition gives, as it is written there. It and what follows are of a skill whose
    /// definition cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its purpose, and when an agent should use it: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

impl SkillPlan {
    /// Returns whether the texts are as those of a definition that was checked: short, and without control characters.
    pub fn is_sound(&self) -> bool {
        let is_text = |text: &Option<String>, most| {
            text.as_ref()
                .is_none_or(|text| text.chars().count() <= most && !text.contains(char::is_control))
        };
        is_name(&self.name)
            && is_text(&self.version, MAX_SKILL_VERSION)
            && is_text(&self.description, MAX_SKILL_DESCRIPTION)
            && is_text(&self.author, MAX_SKILL_AUTHOR)
    }
}

named_enum! {
    /// How a skill comes into the box. Its name is the Boxfile's word; the plan, whose bytes are in
    /// every digest, has the variant's.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SkillMode {
        /// It is in the rootfs, and so is part of the box's digest.
        #[default]
        Baked "bake",
        /// It is a directory of the host, shown read-only while the box runs; it can change, and is
        /// not part of the digest.
        Mounted "mount",
    }
}

/// The components that get something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Only the agent sees it.
    Agent,
    /// The business component alone.
    Business,
    /// Each component that the box has.
    Both,
}

impl Scope {
    /// Returns `true` if a component gets what has this scope.
    pub const fn includes(self, component: ComponentName) -> bool {
        match self {
            Self::Agent => matches!(component, ComponentName::Agent),
            Self::Business => matches!(component, ComponentName::Business),
            Self::Both => true,
        }
    }
}

/// A directory of the host that components see while the box runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SharePlan {
    /// Its name on the launcher's command line.
    pub name: String,
    /// Where components see it, absolute.
    pub guest: String,
    /// The access that they have to it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub access: Access,
    /// The components that see it.
    pub scope: Scope,
    /// Its path on the host, as the Boxfile spells it; `None` if it is named at launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// A component's access to a share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Files can only be read.
    #[default]
    #[serde(rename = "ro")]
    ReadOnly,
    /// Files can be read and written.
    #[serde(rename = "rw")]
    ReadWrite,
}

/// A disk that is empty at each start and gone at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScratchPlan {
    /// Its name in the Boxfile.
    pub name: String,
    /// Where components see it, absolute.
    pub guest: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// The components that get it; with [`Scope::Both`] they share one disk.
    pub scope: Scope,
}

/// The part of the host's network that components reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkPlan {
    /// How they reach it.
    pub mode: NetworkMode,
    /// The hosts that a filter lets pass, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<PeerPlan>,
    /// The hosts that it blocks even if [`Self::allow`] lists them, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<PeerPlan>,
    /// How much a filter lets pass.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: NetworkLimits,
}

/// Hosts that a filter knows, and a port of theirs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PeerPlan {
    /// The hosts (`example.org`, `*.example.org`, `10.0.0.0/8`).
    pub peer: String,
    /// The port, of TCP; `None` for those of HTTP and HTTPS, and for all of a host that is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// Writes it as the arguments of `allow` and `deny` in a Boxfile (KDL).
impl fmt::Display for PeerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.peer)?;
        self.port.map_or(Ok(()), |port| write!(f, " port={port}"))
    }
}

/// How much a filter lets pass, for all components of a box together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkLimits {
    /// How many connections there may be at once, at most [`crate::rules::MAX_CONNECTIONS`].
    pub connections: u32,
    /// How many bytes may pass in a second, in both directions together.
    pub bytes_per_second: u64,
    /// How many names may be asked for in a minute.
    pub names_per_minute: u32,
}

impl NetworkLimits {
    /// What passes unless a plan says otherwise.
    pub const DEFAULT: Self =
        Self { connections: 128, bytes_per_second: 64 << 20, names_per_minute: 300 };
}

impl Default for NetworkLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

named_enum! {
    /// How components reach the host's network.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum NetworkMode {
        /// Not at all: there is loopback, over which the components talk, and the agent's port.
        #[default]
        None "none",
        /// Through a proxy that knows an allow list and a deny list.
        Filtered "filtered",
        /// As the host's own programs do.
        Shared "shared",
        /// Through the files of `/cap` alone.
        CapOnly "cap-only",
    }
}

/// A value that a component gets at launch. The plan knows its name and never its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SecretPlan {
    /// The name by which the launcher is given it, and that of the variable.
    pub name: String,
    /// The components that get it.
    pub scope: Scope,
    /// As a variable or as a file.
    pub delivery: SecretDelivery,
}

/// How a secret arrives in a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SecretDelivery {
    /// As an environment variable of the secret's name.
    Env,
    /// As a file in memory that the component's user alone may read.
    File {
        /// An absolute path of the guest.
        path: String,
    },
}

/// The agent's task, as `/task/spec.json` and `/task/meta.json` show it. Times (created, started,
/// finished) are written when the box runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TaskPlan {
    /// The task's id.
    pub id: String,
    /// The kind of task; only the agent gives it a meaning.
    #[serde(rename = "type")]
    pub kind: String,
    /// The description for people and models.
    pub description: String,
    /// The task's input: one JSON value, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Words to find the task by, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The time limit in seconds; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// The logs that `/logs` holds while the box runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogsPlan {
    /// `stdout.log`: the agent's standard output.
    pub stdout: bool,
    /// `stderr.log`: its standard error.
    pub stderr: bool,
    /// `events.jsonl`: what happened in the box, one JSON object per line.
    pub events: bool,
    /// `atif/`: a directory for the agent's trajectories (Agent Trajectory Interchange Format).
    pub atif: bool,
}

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
    /// `/cap/payments`: invoices that are created and tracked.
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
