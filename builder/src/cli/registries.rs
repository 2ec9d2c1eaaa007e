//! Finding what registries are asked with: their configuration, credentials, certificates, a proxy.

use std::env;
use std::path::PathBuf;

use box_image::ErrorCode;
use download::NetworkOptions;
use host_fs::FileError;
use host_fs::read::{Links, read_file};
use oci_registry::{Options, Registry, RegistryConfig};

use super::failure::{Advice, Failure};
use super::options::RegistryOptions;
use super::progress::Progress;

/// The most bytes of a registry configuration.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// What registries are asked with.
pub(crate) struct Registries {
    config: RegistryConfig,
    auth_files: Vec<PathBuf>,
    helper_path: Vec<PathBuf>,
    proxy: Option<String>,
    /// Trusted certificates, in the place of the system's.
    roots: Option<PathBuf>,
    progress: Box<dyn Fn(download::Progress) + Sync>,
}

impl Registries {
    /// Finds it. How far things are is told to people, unless a machine reads along.
    pub(crate) fn find(options: &RegistryOptions, as_json: bool) -> Result<Self, Failure> {
        let progress = Progress::new(as_json);
        let search = env::var_os("PATH").unwrap_or_default();
        Ok(Self {
            config: config(options)?,
            auth_files: auth_files(),
            helper_path: env::split_paths(&search).filter(|it| it.is_absolute()).collect(),
            proxy: text("HTTPS_PROXY").or_else(|| text("https_proxy")),
            roots: path("SSL_CERT_FILE"),
            progress: Box::new(move |it| progress.tell(it)),
        })
    }

    /// Makes a client.
    pub(crate) fn client(&self) -> Registry<'_> {
        let network = NetworkOptions {
            proxy: self.proxy.as_deref(),
            roots: self.roots.as_deref(),
            progress: Some(&*self.progress),
            ..NetworkOptions::default()
        };
        Registry::new(Options {
            config: self.config.clone(),
            auth_files: self.auth_files.clone(),
            helper_path: self.helper_path.clone(),
            network,
            ..Options::default()
        })
    }
}

/// Reads the configuration that is named, or the user's, or none.
fn config(options: &RegistryOptions) -> Result<RegistryConfig, Failure> {
    let users = || config_home().map(|it| it.join("boxbuild/registries.toml"));
    let file = match &options.registry_config {
        Some(named) => named.clone(),
        None => match users().filter(|file| file.exists()) {
            Some(file) => file,
            None => return Ok(RegistryConfig::default()),
        },
    };
    let shown = file.display();
    let text =
        read_file(&file, Links::Follow, CONFIG_BYTES_MAX).map_err(FileError::of("read", &file))?;
    let text =
        String::from_utf8(text).map_err(|error| FileError::not_text(&file, &error.utf8_error()))?;
    RegistryConfig::parse(&text).map_err(|error| {
        let help = "docs/registries.md says what can be there";
        let advice = Advice::new(ErrorCode::RegistryConfig, help);
        Failure::new(advice, format!("{shown}: {error}"))
    })
}

/// Returns the files that may have credentials, the first to count first: as podman has it, then as
/// docker has it.
fn auth_files() -> Vec<PathBuf> {
    let docker = path("DOCKER_CONFIG").or_else(|| path("HOME").map(|home| home.join(".docker")));
    let files = [
        path("REGISTRY_AUTH_FILE"),
        path("XDG_RUNTIME_DIR").map(|it| it.join("containers/auth.json")),
        config_home().map(|it| it.join("containers/auth.json")),
        docker.map(|it| it.join("config.json")),
    ];
    files.into_iter().flatten().collect()
}

fn config_home() -> Option<PathBuf> {
    path("XDG_CONFIG_HOME").or_else(|| path("HOME").map(|home| home.join(".config")))
}

fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn text(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
