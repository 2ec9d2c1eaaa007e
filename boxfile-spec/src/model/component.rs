//! The agent and the business application.

use std::collections::{BTreeMap, BTreeSet};

use box_contract::{
    AgentKind, Capabilities, ImageRef, Limits, Namespaces, Restart, Rlimits, SystemDirectories,
};
use box_digest::Digest;
use serde::Serialize;

use box_contract::image_ref::digits;
use diagnostics::{Span, Spanned};

/// The AI agent, which is started with the box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Agent {
    /// The kind of agent, which selects the default port and the default health check.
    pub kind: AgentKind,
    /// The agent's program if it is not in an image: `Some` only for the kinds [`AgentKind::LocalBinary`] and
    /// [`AgentKind::RemoteBinary`].
    pub binary: Option<Binary>,
    /// The TCP port on which the agent listens. `None` if the image's label declares it; without a label,
    /// [`AgentKind::default_port`] applies.
    pub port: Option<u16>,
    /// The check after which the agent is ready; by default the check of its kind. `None` if the Boxfile declares
    /// `health "none"`: the agent is ready as soon as it is started.
    pub health: Option<Health>,
    /// Whether the Boxfile declares `health`. Otherwise, a label of the image takes precedence over the check of the
    /// agent's kind.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub declares_health: bool,
    /// The canonical names of the tools that the agent may see, sorted. `None` if all tools are visible.
    pub tools: Option<Vec<String>>,
    /// The declarations that the business application can have, too.
    pub component: Component,
}

/// The agent's program if it is not in an image. It becomes `/agent/bin/agent`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Binary {
    /// A file of the checkout.
    Local {
        /// The path of the file, relative to the main Boxfile's directory.
        path: Spanned<String>,
        /// The sha256 that the file must have, if the Boxfile names one.
        #[serde(serialize_with = "digits")]
        sha256: Option<Digest>,
    },
    /// A file that is downloaded.
    Remote {
        /// The URL: http or https, with a host and without a user.
        url: Spanned<String>,
        /// The sha256 that the file must have.
        #[serde(serialize_with = "digits")]
        sha256: Digest,
    },
}

impl Binary {
    /// Returns the span of the program's path or URL.
    pub const fn span(&self) -> Span {
        match self {
            Self::Local { path, .. } => path.span,
            Self::Remote { url, .. } => url.span,
        }
    }
}

/// The business application, in which the agent's commands run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Business {
    /// Whether the application's program is started once the agent is ready.
    pub autostart: bool,
    /// When the program is restarted.
    pub restart: Restart,
    /// The check that `boxlaunch health` runs. If the kind of check has a port, the port is not `None`.
    pub health: Option<Health>,
    /// The declarations that the agent can have, too. The image is not `None`.
    pub component: Component,
}

/// The declarations that an agent and a business application have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Component {
    /// The image with the component's files. `None` only for an agent that is a [`Binary`].
    pub image: Option<Spanned<ImageRef>>,
    /// Replaces the image's entrypoint. The first item is the program; the list is never empty.
    pub entrypoint: Option<Spanned<Vec<String>>>,
    /// Replaces the image's command. An empty list means no arguments.
    pub args: Option<Vec<String>>,
    /// Files with environment variables, relative to the main Boxfile's directory and in the order in which they are
    /// read. Their variables override the image's variables.
    pub env_files: Vec<Spanned<String>>,
    /// Environment variables, which override the variables of `env_files`. No name and no value contains NUL.
    pub env: BTreeMap<String, String>,
    /// The names of the variables that may be given at launch. A variable without a value in `env` must be given.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub launch_env: BTreeSet<String>,
    /// Files and directories of the checkout that are baked into the component's root, sorted by [`BakedFile::to`]. No
    /// two have the same `to`.
    pub files: Vec<BakedFile>,
    /// Replaces the image's working directory. Absolute, and not in the guest's `/proc`, `/sys` or `/dev`.
    pub workdir: Option<Spanned<String>>,
    /// Replaces the image's user: `USER` or `USER:GROUP`, names or numbers.
    pub user: Option<Spanned<String>>,
    /// The namespaces that the component does not share with the other component.
    pub namespaces: Namespaces,
    /// The host name in the component's UTS namespace, a label of [RFC 1123](https://www.rfc-editor.org/rfc/rfc1123):
    /// `agent-host` or `business-host` by default.
    pub hostname: String,
    /// The limits of all the component's processes together.
    pub limits: Limits,
    /// The limits of each of the component's processes. The number of processes is not limited if the component is
    /// declared to run as root, because the kernel exempts root from this limit.
    pub rlimits: Rlimits,
    /// The capabilities of the component's root user. None is added if the component is declared to run as another
    /// user.
    pub capabilities: Capabilities,
    /// Whether the component's programs can change its system.
    #[serde(skip_serializing_if = "is_writable")]
    pub system: SystemDirectories,
}

/// Returns whether the canonical form omits `system`, as it did before there was the declaration.
fn is_writable(system: &SystemDirectories) -> bool {
    *system == SystemDirectories::Writable
}

impl Component {
    /// Returns whether the Boxfile declares `variable`. The declaration takes precedence over `env_files` and the
    /// image.
    pub fn decides(&self, variable: &str) -> bool {
        self.env.contains_key(variable) || self.launch_env.contains(variable)
    }

    /// Lists the variables that must be given at launch, because they have no default.
    pub fn required_env(&self) -> impl Iterator<Item = &str> {
        let names = self.launch_env.iter().filter(|it| !self.env.contains_key(*it));
        names.map(String::as_str)
    }
}

/// A file or directory of the checkout that is baked into a component's root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BakedFile {
    /// The file or directory, relative to the main Boxfile's directory.
    pub path: Spanned<String>,
    /// The path in the component's root, with the name of the file: absolute and normalized.
    pub to: Spanned<String>,
    /// The permissions of the baked regular files, at most `0o777`. `None`: `0o755` for files that are executable in
    /// the checkout, and `0o644` for all others.
    pub mode: Option<u16>,
    /// The owner of the baked files: `USER` or `USER:GROUP`, names or numbers.
    pub owner: Spanned<String>,
}

/// A health check. The start of the box ends when the agent's check succeeds. `boxlaunch health` runs the checks of
/// both components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Health {
    /// A TCP connection to loopback succeeds.
    Tcp {
        /// The port; `None` for the agent's port.
        port: Option<u16>,
    },
    /// `GET path` on loopback returns a 2xx status.
    Http {
        /// The port; `None` for the agent's port.
        port: Option<u16>,
        /// The path, with an optional query: it starts with `/` and is visible ASCII.
        path: String,
    },
    /// The [gRPC health check](https://github.com/grpc/grpc/blob/master/doc/health-checking.md) on loopback returns
    /// `SERVING`.
    Grpc {
        /// The port; `None` for the agent's port.
        port: Option<u16>,
        /// The service to ask for; empty for the server as a whole.
        service: String,
    },
    /// The gRPC call `HealthCheck` of A3S agents returns `HEALTHY`.
    A3s {
        /// The port; `None` for the agent's port.
        port: Option<u16>,
    },
    /// The program, run inside the component, exits with 0.
    Exec {
        /// The program and its arguments; at least the program.
        argv: Spanned<Vec<String>>,
    },
}

impl Health {
    /// Returns the span of the check's program, if it has one.
    pub const fn span(&self) -> Option<Span> {
        match self {
            Self::Exec { argv } => Some(argv.span),
            Self::Tcp { .. } | Self::Http { .. } | Self::Grpc { .. } | Self::A3s { .. } => None,
        }
    }
}
