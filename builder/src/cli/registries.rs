//! The clients of `boxbuild` for registries.

use std::env;

use cli_registry::{RegistryOptions, Screen, Way};
use download::NetworkOptions;
use oci_registry::Registry;

use super::failure::Failure;
use super::terminal;

/// Makes the client of a command that fetches. The client shows progress unless `as_json`.
pub(crate) fn client(options: &RegistryOptions, as_json: bool) -> Result<Registry, Failure> {
    Ok(cli_registry::client(options, &|name| env::var_os(name), screen(as_json, Way::Fetch))?)
}

/// Makes the client of a command that sends.
pub(crate) fn sender(options: &RegistryOptions, as_json: bool) -> Result<Registry, Failure> {
    Ok(cli_registry::client(options, &|name| env::var_os(name), screen(as_json, Way::Send))?)
}

/// Returns the network options of a command.
pub(crate) fn network(as_json: bool) -> NetworkOptions {
    cli_registry::network(&|name| env::var_os(name), screen(as_json, Way::Fetch))
}

fn screen(as_json: bool, way: Way) -> Option<Screen> {
    let is_watched = terminal::shows_status();
    let screen = || Screen { note: terminal::note, status: terminal::status, is_watched, way };
    (!as_json).then(screen)
}
