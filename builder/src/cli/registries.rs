//! The client for registries: its configuration, credentials, certificates, a proxy.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use box_image::ErrorCode;
use download::NetworkOptions;
use host_fs::FileError;
use host_fs::read::{Links, ReadError, read_file};
use oci_registry::{Options, Registry, RegistryConfig};

use super::failure::{Failure, chain};
use super::locate::{config_home, path, xdg};
use super::options::RegistryOptions;
use super::progress::Progress;

/// The most bytes of a registry configuration.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Makes the client of this command. Progress is shown to people, unless a machine reads along.
pub(crate) fn client(options: &RegistryOptions, as_json: bool) -> Result<Registry, Failure> {
    let search = env::var_os("PATH").unwrap_or_default();
    Ok(Registry::new(Options {
        config: config(options)?,
        auth_files: auth_files(),
        helper_path: env::split_paths(&search).filter(|it| it.is_absolute()).collect(),
        network: network(as_json),
        ..Options::default()
    }))
}

/// Returns how this command uses the network.
pub(crate) fn network(as_json: bool) -> NetworkOptions {
    let progress = Progress::new(as_json);
    NetworkOptions {
        proxy: text("HTTPS_PROXY").or_else(|| text("https_proxy")),
        // Trusted certificates, in the place of the system's.
        roots: path("SSL_CERT_FILE"),
        progress: Some(Arc::new(move |it| progress.tell(it))),
        ..NetworkOptions::default()
    }
}

/// Reads the configuration that is named, or the user's, or none.
fn config(options: &RegistryOptions) -> Result<RegistryConfig, Failure> {
    let users = || config_home().map(|it| it.join("boxbuild/registries.toml"));
    let file = options.registry_config.clone().or_else(|| users().filter(|file| file.exists()));
    let Some(file) = file else { return Ok(RegistryConfig::default()) };
    let text = read_file(&file, Links::Follow, CONFIG_BYTES_MAX).map_err(|error| {
        let code = match error {
            ReadError::TooLong { .. } => ErrorCode::TooLarge,
            _ => ErrorCode::RegistryConfig,
        };
        Failure::new(code, chain(&FileError::of("read", &file)(error)))
    })?;
    let unusable = |message: String| {
        let help = "docs/registries.md says what can be there";
        Failure::new((ErrorCode::RegistryConfig, help), message)
    };
    let text = host_fs::read::text(&file, text).map_err(|error| unusable(chain(&error)))?;
    RegistryConfig::parse(&text).map_err(|error| unusable(format!("{}: {error}", file.display())))
}

/// Returns the files that may have credentials, the first to count first: as podman has it, then as
/// docker has it.
fn auth_files() -> Vec<PathBuf> {
    let docker = path("DOCKER_CONFIG").or_else(|| path("HOME").map(|home| home.join(".docker")));
    let files = [
        path("REGISTRY_AUTH_FILE"),
        xdg("XDG_RUNTIME_DIR").map(|it| it.join("containers/auth.json")),
        config_home().map(|it| it.join("containers/auth.json")),
        docker.map(|it| it.join("config.json")),
    ];
    files.into_iter().flatten().collect()
}

fn text(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
