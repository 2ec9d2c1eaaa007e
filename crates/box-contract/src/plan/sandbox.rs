//! The sandbox: restrictions on commands in the business component beyond those of the component itself.

use serde::{Deserialize, Serialize};

use crate::defaults::MAX_OUTPUT_BYTES;

/// The rules for each command in the business component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SandboxPlan {
    /// The rules that hold before those of this declaration.
    pub preset: SandboxPreset,
    /// The fallback where the kernel lacks what the rules need.
    pub fallback: SandboxFallback,
    /// How much of a command's output is kept, in bytes; the rest is cut off, and that is told.
    pub max_output_bytes: u64,
    /// Directories that commands may write to, absolute, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// Paths that they may not read, absolute, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_read: Vec<String>,
    /// Paths that they may not write to, absolute, sorted. A path in both is denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_write: Vec<String>,
    /// Commands that run without a question, by rule, in the Boxfile's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Commands that run once somebody has agreed; goes before [`Self::allow`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// Commands that never run; goes before [`Self::ask`].
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

/// A set of rules with a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxPreset {
    /// System directories cannot be written, sensitive ones cannot be read, the network is filtered.
    #[default]
    Default,
    /// The default with the network open.
    Development,
    /// The default with the network closed.
    Ci,
}

/// The fallback where the kernel lacks what a sandbox needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxFallback {
    /// Run no command, and name what is missing.
    #[default]
    Strict,
    /// Run without it, and say so with every result.
    Warn,
}
