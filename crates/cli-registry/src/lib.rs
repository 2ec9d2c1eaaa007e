//! Registries on the command lines of boxbuild and boxlaunch: the options, the user's configuration and credentials, progress, and
//! pulling a box into the store.
//!
//! Nothing here prints or reads the environment: a program passes functions for both.
#![forbid(unsafe_code)]

mod client;
mod progress;
mod pull;

use std::path::PathBuf;

use host_fs::own;

pub use client::{SetupError, Variable, client, network};
pub use pull::{PullArgs, PullError, Pulled};

/// How registries are asked.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RegistryOptions {
    /// The configuration of registries: mirrors, plain http, certificates
    /// [default: boxbuild/registries.toml in $XDG_CONFIG_HOME or ~/.config, if it is there]
    #[arg(long, value_name = "PATH", env = own::REGISTRIES, hide_env_values = true)]
    pub registry_config: Option<PathBuf>,
}

/// Where the bytes go that a client counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To this machine.
    Fetch,
    /// To a registry.
    Send,
}

impl Way {
    /// Returns what the program is doing, and what it has done.
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Fetch => ["fetching", "fetched"],
            Self::Send => ["sending", "sent"],
        }
    }
}

/// How a program tells its user what happens.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Prints a line.
    pub note: fn(&str),
    /// Shows a text on a line that changes; an empty one removes it.
    pub status: fn(&str),
    /// Whether a person watches that line.
    pub is_watched: bool,
    /// What the bytes do that are counted.
    pub way: Way,
}
