//! The options that several commands have.

use std::path::PathBuf;

use box_image::ComponentName;
use boxfile_spec::Platform;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Which Boxfile, and how its command reports.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProjectOptions {
    /// The Boxfile [default: ./Boxfile, ./Boxfile.kdl, ./Boxfile.toml]
    #[arg(short, long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// Print JSON, errors included, but for a wrong command line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The inputs of a build beside the Boxfile.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct InputOptions {
    /// The lock [default: Boxfile.lock beside the Boxfile]
    #[arg(long, value_name = "PATH")]
    pub(crate) lock_file: Option<PathBuf>,
    /// The init, a static box-init [default: ../lib/boxbuild/box-init or box-init beside this program]
    #[arg(long, value_name = "PATH", env = "BOXBUILD_INIT", hide_env_values = true)]
    pub(crate) init: Option<PathBuf>,
    /// The guest kernel, if the Boxfile names no file: libkrunfw.so.5 or an ELF kernel
    /// [default: that of `boxbuild setup`, else libkrunfw.so.5 among the system's libraries]
    #[arg(long, value_name = "PATH", env = "BOXBUILD_KERNEL", hide_env_values = true)]
    pub(crate) kernel: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreOption,
    /// Never touch a network: take downloads and images of registries from the store only
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) registries: RegistryOptions,
}

/// Where the store is.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StoreOption {
    /// The directory of the store
    /// [default: $BOXBUILD_STORE, $XDG_CACHE_HOME/boxbuild, ~/.cache/boxbuild]
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
}

/// How registries are asked.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RegistryOptions {
    /// Mirrors, plain http and certificates of registries
    /// [default: boxbuild/registries.toml in $XDG_CONFIG_HOME or ~/.config, if it is there]
    #[arg(long, value_name = "PATH", env = "BOXBUILD_REGISTRIES", hide_env_values = true)]
    pub(crate) registry_config: Option<PathBuf>,
}

/// The profile that a command applies.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProfileOption {
    /// Apply this profile of the Boxfile
    #[arg(long = "profile", value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// Returns the reader of a component's name.
pub(crate) fn component() -> impl TypedValueParser<Value = ComponentName> {
    let names = PossibleValuesParser::new(ComponentName::ALL.map(ComponentName::name));
    let named = |name: String| ComponentName::ALL.into_iter().find(|it| it.name() == name);
    names.try_map(move |name| named(name).ok_or("no component has this name"))
}

/// Reads a platform of the command line.
pub(crate) fn platform(text: &str) -> Result<Platform, String> {
    text.parse().map_err(|error: boxfile_spec::UnknownPlatform| error.to_string())
}
