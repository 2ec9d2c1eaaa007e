//! How registries are asked.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use box_image::Digest;

use super::RegistryConfig;

/// How registries are asked.
#[derive(Clone)]
pub struct Options<'a> {
    /// Mirrors, plain http, and whom to trust.
    pub config: RegistryConfig,
    /// Where credentials may be: files such as docker's `config.json` and podman's `auth.json`. The
    /// first that has some for a registry counts; one that does not exist is passed over.
    pub auth_files: Vec<PathBuf>,
    /// The directories in which `docker-credential-NAME` is looked for, where a file names one:
    /// absolute ones only. The program gets the environment of this one.
    pub helper_path: Vec<PathBuf>,
    /// How long to wait for such a program, which may ask a person.
    pub helper_patience: Duration,
    /// How long to wait for the connection, for the answer, and for each next byte of it.
    pub patience: Duration,
    /// The least that a server must send, in bytes per second, measured over each `patience`.
    pub least_rate: u64,
    /// How often is asked without getting farther.
    pub tries: u32,
    /// How long to wait before the second try; before each next one, twice as long.
    pub backoff: Duration,
    /// The longest wait between two tries. A server that asks for a longer one is not asked again.
    pub longest_pause: Duration,
    /// How many blobs are fetched at once.
    pub parallel: usize,
    /// The proxy for all requests but those to this machine, `http://…` or `https://…`. It may have
    /// a name and a password, which only the proxy sees.
    pub proxy: Option<&'a str>,
    /// A PEM file with the root certificates that are trusted, in the place of the system's.
    pub roots: Option<&'a Path>,
    /// Is told after each piece how far a blob is: often, and from several threads. That all bytes
    /// are there is told when the store has the blob, verified.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

/// How far a blob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The blob.
    pub digest: Digest,
    /// Bytes so far; fewer than before where it had to start again.
    pub received: u64,
    /// All bytes.
    pub total: u64,
}

impl Default for Options<'_> {
    /// Returns options without credentials and special registries: four blobs at once, four tries,
    /// servers that may pause for 30 s but send 1 KiB per second, and no proxy.
    fn default() -> Self {
        Self {
            config: RegistryConfig::default(),
            auth_files: Vec::new(),
            helper_path: Vec::new(),
            helper_patience: Duration::from_secs(60),
            patience: Duration::from_secs(30),
            least_rate: 1 << 10,
            tries: 4,
            backoff: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
            parallel: 4,
            proxy: None,
            roots: None,
            progress: None,
        }
    }
}

impl fmt::Debug for Options<'_> {
    /// Leaves out the proxy's text, which may have a password, and what is told of the progress.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("config", &self.config)
            .field("auth_files", &self.auth_files)
            .field("helper_path", &self.helper_path)
            .field("patience", &self.patience)
            .field("tries", &self.tries)
            .field("parallel", &self.parallel)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}
