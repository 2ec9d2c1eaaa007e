//! The SSH agent of the host, with whose keys components sign.

use serde::{Deserialize, Serialize};

use super::Scope;

/// The path of the components' socket that leads to the SSH agent of the host.
pub const SSH_AGENT_SOCKET: &str = "/run/ssh-agent.sock";
/// The environment variable with [`SSH_AGENT_SOCKET`]: clients of an SSH agent connect to the socket that it names.
pub const SSH_AGENT_VARIABLE: &str = "SSH_AUTH_SOCK";

/// The access of components to the SSH agent of the host: they can sign with its keys, but cannot read, add or remove keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SshAgentPlan {
    /// The components that can connect to the agent. [`SSH_AGENT_VARIABLE`] is in their environments.
    pub scope: Scope,
}
