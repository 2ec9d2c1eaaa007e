//! The sandbox: the policy for the commands of a box.

use serde::{Deserialize, Serialize};

use crate::defaults::{ASK_TIMEOUT_SECONDS, MAX_OUTPUT_BYTES};

/// The rules for each command in the components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SandboxPlan {
    /// The preset to which the other rules are added.
    pub preset: SandboxPreset,
    /// The fallback if the kernel lacks a feature that the rules need.
    pub fallback: SandboxFallback,
    /// The maximum number of bytes of a command's output that are kept. The result notes if output was cut off.
    pub max_output_bytes: u64,
    /// How long a command waits for an answer before it is denied, in seconds.
    #[serde(default = "ask_timeout", skip_serializing_if = "is_ask_timeout")]
    pub ask_timeout_seconds: u32,
    /// Directories that commands may write to, absolute, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// Paths that commands may not read, absolute, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_read: Vec<String>,
    /// Paths that commands may not write to, absolute, sorted. They take precedence over [`Self::writable`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_write: Vec<String>,
    /// Patterns of commands that run without confirmation, in the Boxfile's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Patterns of commands that need confirmation. They take precedence over [`Self::allow`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// Patterns of commands that never run. They take precedence over [`Self::ask`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbid: Vec<String>,
}

const fn ask_timeout() -> u32 {
    ASK_TIMEOUT_SECONDS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_ask_timeout(seconds: &u32) -> bool {
    *seconds == ASK_TIMEOUT_SECONDS
}

impl Default for SandboxPlan {
    fn default() -> Self {
        Self {
            preset: SandboxPreset::Default,
            fallback: SandboxFallback::Strict,
            max_output_bytes: MAX_OUTPUT_BYTES,
            ask_timeout_seconds: ASK_TIMEOUT_SECONDS,
            writable: Vec::new(),
            deny_read: Vec::new(),
            deny_write: Vec::new(),
            allow: Vec::new(),
            ask: Vec::new(),
            forbid: Vec::new(),
        }
    }
}

/// A named set of rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxPreset {
    /// Everything outside of the writable directories is read-only, and credentials are hidden. The network is that of the box, which
    /// must not be shared.
    #[default]
    Default,
    /// The default with any network, and with fewer questions.
    Development,
    /// The default, but commands have no network.
    Ci,
}

/// The fallback if the kernel lacks a feature that a sandbox needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxFallback {
    /// Refuses to run commands, and names the missing feature.
    #[default]
    Strict,
    /// Runs commands without the feature. Their results have the state `without-landlock`.
    Warn,
}
