//! How registries are asked.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use download::{Policy, Progress};

use crate::config::RegistryConfig;

/// How registries are asked.
#[derive(Clone)]
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
    /// How patient downloads are.
    pub policy: Policy,
    /// How many blobs are fetched at once.
    pub parallel: usize,
    /// The proxy for all requests but those to this machine, `http://…` or `https://…`. It may have
    /// a name and a password, which only the proxy sees.
    pub proxy: Option<&'a str>,
    /// A PEM file with the root certificates that are trusted, in the place of the system's.
    pub roots: Option<&'a Path>,
    /// Is called after each piece of a blob: often, and from several threads.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl Default for Options<'_> {
    /// Returns options without credentials, special registries and a proxy, for four blobs at once.
    fn default() -> Self {
        Self {
            config: RegistryConfig::default(),
            auth_files: Vec::new(),
            helper_path: Vec::new(),
            helper_patience: Duration::from_secs(60),
            policy: Policy::default(),
            parallel: 4,
            proxy: None,
            roots: None,
            progress: None,
        }
    }
}

impl fmt::Debug for Options<'_> {
    /// Leaves out the proxy's text, which may have a password, and the closure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("config", &self.config)
            .field("auth_files", &self.auth_files)
            .field("helper_path", &self.helper_path)
            .field("policy", &self.policy)
            .field("parallel", &self.parallel)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}
