//! The agent and the business application.

use std::collections::{BTreeMap, BTreeSet};

use box_contract::{AgentKind, Capabilities, ImageRef, Limits, Namespaces, Restart, Rlimits};
use box_digest::Digest;
use serde::Serialize;

use box_contract::image_ref::digits;
use diagnostics::{Span, Spanned};

/// The AI agent: the component that is started with the box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Agent {
    /// The kind of agent.
    pub kind: AgentKind,
    /// The agent's program, where it is not in an image: for the kinds
    /// [`AgentKind::LocalBinary`] and [`AgentKind::RemoteBinary`], and for no other.
    pub binary: Option<Binary>,
    /// The TCP port on which the agent listens; nothing where the image's label says, or else
    /// [`AgentKind::default_port`] holds.
    pub port: Option<u16>,
    /// When the agent is ready: by default as soon as its port accepts a connection.
    /// Nothing: as soon as it is started.
    pub health: Option<Health>,
    /// The tools that the agent may see, by their canonical names, sorted; nothing where all are
    /// visible.
    pub tools: Option<Vec<String>>,
    /// The part that it has in common with the business application.
    pub component: Component,
}

/// The agent's program, where it is not in an image. It becomes `/agent/bin/agent`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Binary {
    /// A file of the checkout.
    Local {
        /// The file, relative to the main Boxfile's directory.
        path: Spanned<String>,
        /// The sha256 that it must have, where the Boxfile names one.
        #[serde(serialize_with = "digits")]
        sha256: Option<Digest>,
    },
    /// A file that is downloaded.
    Remote {
        /// The URL: http or https, with a host and without a user.
        url: Spanned<String>,
        /// The sha256 that it must have.
        #[serde(serialize_with = "digits")]
        sha256: Digest,
    },
}

impl Binary {
    /// Returns where the program is named.
    pub const fn span(&self) -> Span {
        match self {
            Self::Local { path, .. } => path.span,
            Self::Remote { url, .. } => url.span,
        }
    }
}

/// The business application: where the agent's commands run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Business {
    /// Whether its own program is started once the agent is ready.
    pub autostart: bool,
    /// When that is started again.
    pub restart: Restart,
    /// How `boxlaunch health` finds out whether it is well. All ports are named.
    pub health: Option<Health>,
    /// The part that it has in common with the agent. Its image is always there.
    pub component: Component,
}

/// The part that the agent and the business application have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Component {
    /// The image that holds the component's files; nothing only for an agent that is a binary.
    pub image: Option<Spanned<ImageRef>>,
    /// Replaces the image's entrypoint; at least the program.
    pub entrypoint: Option<Spanned<Vec<String>>>,
    /// Replaces the image's command; may be empty.
    pub args: Option<Vec<String>>,
    /// Files of the checkout with environment variables, read in this order, over those of the
    /// image; relative to the main Boxfile's directory.
    pub env_files: Vec<Spanned<String>>,
    /// Environment variables over those of the files. No name and no value contains NUL.
    pub env: BTreeMap<String, String>,
    /// The names of the variables that may be given at launch. Each that has no value in `env` has to be given.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub launch_env: BTreeSet<String>,
    /// Files and directories of the checkout that are baked into the component's root, sorted by
    /// their places; each place once.
    pub files: Vec<BakedFile>,
    /// Replaces the image's working directory; absolute, and not in the guest's `/proc`, `/sys` or
    /// `/dev`.
    pub workdir: Option<Spanned<String>>,
    /// Replaces the image's user: `USER` or `USER:GROUP`, names or numbers.
    pub user: Option<Spanned<String>>,
    /// Which namespaces the component has for itself.
    pub namespaces: Namespaces,
    /// The host name in the component's UTS namespace (RFC 1123 label): `agent-host` or
    /// `business-host` by default.
    pub hostname: String,
    /// The component's limits.
    pub limits: Limits,
    /// The limits of each of its processes. The number of processes is not set for a component that
    /// is declared to run as root, for whom the kernel does not enforce it.
    pub rlimits: Rlimits,
    /// The capabilities of its root. None is added for a component that is declared to run as another user.
    pub capabilities: Capabilities,
}

impl Component {
    /// Returns whether the declaration decides on a variable, whatever files and the image say of it.
    pub fn decides(&self, variable: &str) -> bool {
        self.env.contains_key(variable) || self.launch_env.contains(variable)
    }

    /// Lists the variables that have to be given at launch.
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
    /// Its place in the component's root, its own name included: absolute and plain.
    pub to: Spanned<String>,
    /// The permissions of its regular files, at most `0o777`; nothing where they are `0o755` for what
    /// is executable in the checkout, and `0o644` for all else.
    pub mode: Option<u16>,
    /// Its owner: `USER` or `USER:GROUP`, names or numbers.
    pub owner: Spanned<String>,
}

/// How it is found out that a component is well: of the agent at the start, which is over then; of both when it is
/// asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Health {
    /// A TCP connection to loopback succeeds.
    Tcp {
        /// The port; nothing for the agent's own.
        port: Option<u16>,
    },
    /// `GET path` on loopback is answered with a 2xx status.
    Http {
        /// The port; nothing for the agent's own.
        port: Option<u16>,
        /// The path, with a query perhaps: it starts with `/` and is visible ASCII.
        path: String,
    },
    /// The standard health check of gRPC on loopback is answered with `SERVING`.
    Grpc {
        /// The port; nothing for the agent's own.
        port: Option<u16>,
        /// The service that is asked for; empty for the server as a whole.
        service: String,
    },
    /// `HealthCheck` of the interface of A3S agents is answered with `HEALTHY`.
    A3s {
        /// The port; nothing for the agent's own.
        port: Option<u16>,
    },
    /// This program, run inside the component, exits with 0.
    Exec {
        /// The program and its arguments; at least the program.
        argv: Spanned<Vec<String>>,
    },
}

impl Health {
    /// Returns where the program of the check is named, if it has one.
    pub const fn span(&self) -> Option<Span> {
        match self {
            Self::Exec { argv } => Some(argv.span),
            Self::Tcp { .. } | Self::Http { .. } | Self::Grpc { .. } | Self::A3s { .. } => None,
        }
    }
}
