//! The sandbox: further restrictions on commands in the business component.

use serde::{Deserialize, Serialize};

use crate::defaults::MAX_OUTPUT_BYTES;

/// The rules for each command in the business component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SandboxPlan {
    /// The preset to which the other rules are added.
    pub preset: SandboxPreset,
    /// The fallback if the kernel lacks a feature that the rules need.
    pub fallback: SandboxFallback,
    /// The maximum number of bytes of a command's output that are kept. The result notes if output was cut off.
    pub max_output_bytes: u64,
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

impl Default for SandboxPlan {
    fn default() -> Self {
        Self {
            preset: SandboxPreset::Default,
            fallback: SandboxFallback::Strict,
            max_output_bytes: MAX_OUTPUT_BYTES,
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
    /// System directories cannot be written, sensitive directories cannot be read, and the network is filtered.
    #[default]
    Default,
    /// The default with an unrestricted network.
    Development,
    /// The default without a network.
    Ci,
}

/// The fallback if the kernel lacks a feature that a sandbox needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxFallback {
    /// Refuses to run commands, and names the missing feature.
    #[default]
    Strict,
    /// Runs commands without the feature, and adds a warning to every result.
    Warn,
}
