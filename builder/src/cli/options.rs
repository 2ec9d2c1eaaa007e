//! Options that several commands have.

use std::path::PathBuf;

use box_contract::Platform;
use box_contract::{ErrorCode, exit};
use boxbuild::project::{LockFile, LockPlace};
pub(crate) use cli_common::store::StoreOption;
pub(crate) use cli_registry::RegistryOptions;
use host_fs::own;
use safe_text::shell_path;

use super::failure::Failure;

/// Which Boxfile, and how its command reports.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProjectOptions {
    /// The Boxfile [default: Boxfile, Boxfile.kdl or Boxfile.toml, here
    /// or in the nearest directory above]
    #[arg(short, long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) checkout: CheckoutOption,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

/// The directory that the paths of a Boxfile may not lead out of.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CheckoutOption {
    /// The directory that the Boxfile's paths must stay in [default: the repository that contains the Boxfile, else the
    /// Boxfile's directory]
    #[arg(id = "checkout", long = "checkout", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// The inputs of a build beside the Boxfile.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct InputOptions {
    /// The path of the lock [default: Boxfile.lock beside the Boxfile]
    #[arg(long, value_name = "PATH")]
    pub(crate) lock_file: Option<PathBuf>,
    /// The init: a static box-init [default: ../lib/boxbuild/box-init or box-init beside this program]
    #[arg(long, value_name = "PATH", env = own::INIT, hide_env_values = true)]
    pub(crate) init: Option<PathBuf>,
    /// The guest kernel, if the Boxfile declares none: "lean", "krunfw", a libkrunfw.so.5 or an ELF kernel [default: the
    /// lean kernel of a release, else the libkrunfw of `boxbuild setup`, else libkrunfw.so.5 among the system's libraries]
    #[arg(long, value_name = "PATH", env = own::KERNEL, hide_env_values = true)]
    pub(crate) kernel: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreOption,
    /// Use no network: take images and downloads from the store only
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) registries: RegistryOptions,
}

/// The profile that a command applies.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProfileOption {
    /// Apply this profile of the Boxfile
    #[arg(long = "profile", value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// Whether the lock may change.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LockedOption {
    /// Fail with exit code 3 if the lock is missing or out of date
    #[arg(long)]
    pub(crate) locked: bool,
}

impl LockedOption {
    /// Reads the lock. If it must not change, a lock for another format epoch is an error, because its epoch would be updated.
    pub(crate) fn read(&self, place: LockPlace) -> Result<LockFile, Failure> {
        let file =
            if self.locked { LockFile::read(place) } else { LockFile::read_any_epoch(place) };
        file.map_err(|error| self.blame(error.into()))
    }

    /// Sets the exit code of `--locked` if a pin is stale.
    pub(crate) fn blame_pin(&self, failure: Failure) -> Failure {
        if failure.has(ErrorCode::LockPinStale) { self.blame(failure) } else { failure }
    }

    /// Sets the exit code of `--locked` for a failure that the lock has caused.
    pub(crate) fn blame(&self, failure: Failure) -> Failure {
        if self.locked { failure.with_exit(exit::LOCKED) } else { failure }
    }
}

/// Returns the command that writes the lock of a Boxfile.
pub(crate) fn lock_command(project: &ProjectOptions, inputs: &InputOptions) -> String {
    let option = |name: &str, path: Option<&PathBuf>| {
        path.map(|path| format!(" {name} {}", shell_path(path))).unwrap_or_default()
    };
    let file = option("-f", project.file.as_ref());
    let checkout = option("--checkout", project.checkout.directory.as_ref());
    let lock = option("--lock-file", inputs.lock_file.as_ref());
    format!("boxbuild lock{file}{checkout}{lock}")
}

/// Parses a platform.
pub(crate) fn platform(text: &str) -> Result<Platform, String> {
    text.parse().map_err(|error: box_contract::UnknownPlatform| error.to_string())
}
