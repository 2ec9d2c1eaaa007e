#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod client;
mod located;
mod progress;
mod pull;
mod view;

use std::path::PathBuf;

use host_fs::own;

pub use client::{SetupError, Variable, client, network};
pub use located::Located;
pub use pull::{PullArgs, PullError, Pulled};
pub use view::View;

/// How registries are asked.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RegistryOptions {
    /// The configuration of registries: mirrors, plain http, certificates [default: boxbuild/registries.toml in
    /// $XDG_CONFIG_HOME or ~/.config, if it exists]
    #[arg(long, value_name = "PATH", env = own::REGISTRIES, hide_env_values = true)]
    pub registry_config: Option<PathBuf>,
    /// The environment variables that helpers for credentials do not get.
    #[arg(skip)]
    pub hidden_variables: Vec<String>,
}

/// The direction of the transferred bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From a registry to this host.
    Fetch,
    /// From this host to a registry.
    Send,
}

impl Way {
    /// Returns the verbs for a running and a completed transfer.
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Fetch => ["fetching", "fetched"],
            Self::Send => ["sending", "sent"],
        }
    }
}

/// The functions with which a program informs its user.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Prints a line.
    pub note: fn(&str),
    /// Shows a text on a line that changes; an empty text removes the line.
    pub status: fn(&str),
    /// Whether a user watches the line, as on a terminal.
    pub is_watched: bool,
    /// The direction of the transfers whose progress is shown.
    pub way: Way,
}
