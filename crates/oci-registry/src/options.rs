//! How registries are asked.

use std::path::PathBuf;
use std::time::Duration;

use download::NetworkOptions;

use crate::config::RegistryConfig;

/// How registries are asked.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// Mirrors, plain http, and trusted realms.
    pub config: RegistryConfig,
    /// Where credentials may be: files such as docker's `config.json` and podman's `auth.json`. The
    /// first that has some for a registry wins; one that does not exist is skipped.
    pub auth_files: Vec<PathBuf>,
    /// The directories in which `docker-credential-NAME` is looked for, where a file names one:
    /// absolute ones only. The program gets the environment of this one.
    pub helper_path: Vec<PathBuf>,
    /// How long to wait for such a program, which may ask a person.
    pub helper_patience: Duration,
    /// How many blobs are fetched at once.
    pub parallel: usize,
    /// How the network is used.
    pub network: NetworkOptions<'a>,
}

impl Default for Options<'_> {
    /// Returns options without credentials, special registries and a proxy, for four blobs at once.
    fn default() -> Self {
        Self {
            config: RegistryConfig::default(),
            auth_files: Vec::new(),
            helper_path: Vec::new(),
            helper_patience: Duration::from_secs(60),
            parallel: 4,
            network: NetworkOptions::default(),
        }
    }
}
