//! The resources of a running box: skills, shares, disks, the network, secrets, the task, logs and capabilities.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::rules::{MAX_SKILL_AUTHOR, MAX_SKILL_DESCRIPTION, MAX_SKILL_VERSION, is_name};
use crate::{ComponentName, named_enum};

/// A skill of the box: a directory under [`super::SKILLS_PATH`].
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillPlan {
    /// The skill's name, and the name of its directory.
    pub name: String,
    /// How the skill gets into the box.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: SkillMode,
    /// The version in the skill's definition, verbatim. This field and the following fields are set only for a skill
    /// whose definition cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The skill's purpose, and when an agent should use it, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The skill's author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

impl SkillPlan {
    /// Returns whether the name is valid, and the texts could be from a checked definition: they are short and have no
    /// control characters.
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
    /// How a skill gets into the box. The Boxfile uses the names in quotes. The plan uses the names of the variants,
    /// which must not change because the digest of a box covers them.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SkillMode {
        /// The skill is in the rootfs, and part of the box's digest.
        #[default]
        Baked "bake",
        /// The skill is a directory of the host, mounted read-only while the box runs. It can change, and is not part
        /// of the digest.
        Mounted "mount",
    }
}

/// The components that get a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The agent alone.
    Agent,
    /// The business component alone.
    Business,
    /// All components of the box.
    Both,
}

impl Scope {
    /// Returns whether a component gets a resource with this scope.
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
    /// The share's name on the launcher's command line.
    pub name: String,
    /// The mount point in the components, absolute.
    pub guest: String,
    /// The components' access to the directory.
    #[serde(default, skip_serializing_if = "is_default")]
    pub access: Access,
    /// The components that see the share.
    pub scope: Scope,
    /// The path on the host, as the Boxfile spells it. `None` if the user names the directory at launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// A component's access to a share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Read-only.
    #[default]
    #[serde(rename = "ro")]
    ReadOnly,
    /// Read and write.
    #[serde(rename = "rw")]
    ReadWrite,
}

/// A disk that is empty at each start and deleted after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScratchPlan {
    /// The disk's name in the Boxfile.
    pub name: String,
    /// The mount point in the components, absolute.
    pub guest: String,
    /// The disk's size in bytes.
    pub size_bytes: u64,
    /// The components that get the disk. With [`Scope::Both`] they share one disk.
    pub scope: Scope,
}

/// A disk of the host that outlives the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VolumePlan {
    /// The volume's name in the Boxfile.
    pub name: String,
    /// The mount point in the components, absolute.
    pub guest: String,
    /// The components that get the volume. With [`Scope::Both`] they share one volume.
    pub scope: Scope,
}

/// A port of a component that clients on the host can connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PublishPlan {
    /// The component whose port it is.
    pub component: ComponentName,
    /// The TCP port on the component's loopback interface.
    pub guest: u16,
    /// The TCP port on the host's loopback interface. If it is 0, the host's kernel chooses one.
    pub host: u16,
}

/// The access of the components to the host's network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkPlan {
    /// How the components reach the network.
    pub mode: NetworkMode,
    /// The hosts that the filter allows, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<PeerPlan>,
    /// The hosts that the filter blocks, sorted. They take precedence over [`Self::allow`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<PeerPlan>,
    /// The filter's limits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: NetworkLimits,
}

/// A rule's hosts and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PeerPlan {
    /// The hosts. For example, `example.org`, `*.example.org` or `10.0.0.0/8`.
    pub peer: String,
    /// The TCP port. `None` means the ports of HTTP and HTTPS in an `allow` rule, and all ports in a `deny` rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// Formats the rule as the arguments of `allow` and `deny` in a Boxfile ([KDL](https://kdl.dev)).
impl fmt::Display for PeerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.peer)?;
        self.port.map_or(Ok(()), |port| write!(f, " port={port}"))
    }
}

/// The filter's limits, for all components of a box together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkLimits {
    /// The maximum number of simultaneous connections, at most [`crate::rules::MAX_CONNECTIONS`].
    pub connections: u32,
    /// The maximum number of bytes per second, in both directions together.
    pub bytes_per_second: u64,
    /// The maximum number of DNS names that are resolved per minute.
    pub names_per_minute: u32,
}

impl NetworkLimits {
    /// The limits of a plan that declares none.
    pub const DEFAULT: Self =
        Self { connections: 128, bytes_per_second: 64 << 20, names_per_minute: 300 };
}

impl Default for NetworkLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

named_enum! {
    /// How the components reach the host's network.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum NetworkMode {
        /// Not at all: only loopback between the components and the agent's port are available.
        #[default]
        None "none",
        /// Through a filtering proxy with an allow list and a deny list.
        Filtered "filtered",
        /// Directly, like programs on the host.
        Shared "shared",
        /// Only to the [services](super::ServicePlan) of the box.
        CapOnly "cap-only",
    }
}

/// A secret that a component gets at launch. The plan contains its name, never its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SecretPlan {
    /// The secret's name on the launcher's command line, and the name of its environment variable.
    pub name: String,
    /// The components that get the secret.
    pub scope: Scope,
    /// How the secret is delivered.
    pub delivery: SecretDelivery,
}

/// How a component gets a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SecretDelivery {
    /// In an environment variable with the secret's name.
    Env,
    /// In a file in memory that only the component's user may read.
    File {
        /// The absolute path of the file in the guest.
        path: String,
    },
    /// Not into the box: the host adds the secret to requests to a [service](super::ServicePlan).
    Host,
}

/// The agent's task, shown in `/task/spec.json` and `/task/meta.json`. The times when it was created, started and
/// finished are written when the box runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TaskPlan {
    /// The task's id.
    pub id: String,
    /// The kind of task. Only the agent interprets it.
    #[serde(rename = "type")]
    pub kind: String,
    /// The description, for the agent's model and for readers.
    pub description: String,
    /// The task's input: one JSON value, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Keywords of the task, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The time limit in seconds; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// The verification after the agent's end. `None` if the agent alone decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyPlan>,
}

/// The command that init runs after the agent has ended. The task is completed only if the agent and this command succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VerifyPlan {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The component in whose fresh root the command runs.
    pub component: ComponentName,
    /// The time limit in seconds.
    pub timeout_seconds: u64,
}

/// The logs in `/logs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogsPlan {
    /// `stdout.log`: the agent's standard output.
    pub stdout: bool,
    /// `stderr.log`: the agent's standard error.
    pub stderr: bool,
    /// `events.jsonl`: the events of the box, one JSON object per line.
    pub events: bool,
    /// `atif/`: the directory for the agent's trajectories (Agent Trajectory Interchange Format).
    pub atif: bool,
}

/// A service of the host that components use through files in `/cap`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum CapPlan {
    /// `/cap/ws`: WebSocket connections.
    Ws {
        /// The maximum number of open connections.
        max_connections: u32,
    },
    /// `/cap/http`: requests to the [services](super::ServicePlan) of the component.
    Http {
        /// The time limit of a request and its answer, in milliseconds.
        timeout_ms: u64,
    },
    /// `/cap/nostr`: signing, publishing and reading of Nostr events.
    Nostr {
        /// The relays' addresses (`wss://…`), sorted.
        relays: Vec<String>,
    },
    /// `/cap/payments`: creation and tracking of invoices.
    Payments,
}

impl CapPlan {
    /// Returns the name in the Boxfile, which is also the name of the directory in `/cap`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ws { .. } => "ws",
            Self::Http { .. } => "http",
            Self::Nostr { .. } => "nostr",
            Self::Payments => "payments",
        }
    }
}
