//! Storage beside the read-only rootfs: shares of the host, and scratch disks.

use serde::{Deserialize, Serialize};

use super::is_default;

/// Who gets something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The agent alone.
    Agent,
    /// The business component alone.
    Business,
    /// Each component that the box has.
    Both,
}

/// A directory of the host that components see while the box runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SharePlan {
    /// What the launcher's command line calls it.
    pub name: String,
    /// Where components see it, absolute.
    pub guest: String,
    /// What they may do there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub access: Access,
    /// Who sees it.
    pub scope: Scope,
    /// Where it lies on the host, as the Boxfile spells it. Nothing: it is named at launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// What a component may do in a share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Read.
    #[default]
    #[serde(rename = "ro")]
    ReadOnly,
    /// Read and write.
    #[serde(rename = "rw")]
    ReadWrite,
}

/// A disk that is empty at each start and gone at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScratchPlan {
    /// What the Boxfile calls it.
    pub name: String,
    /// Where components see it, absolute.
    pub guest: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Who gets it; with [`Scope::Both`] the components have one disk in common.
    pub scope: Scope,
}
