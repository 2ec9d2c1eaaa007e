//! One repository on one server, and how registries are asked.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use download::NetworkOptions;
use download::http::{Client, RemoteUrl};

use crate::config::{Host, RegistryConfig};
use crate::credentials::Login;
use crate::error::RegistryError;
use crate::name::{Reference, Repository};

/// How registries are asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// Mirrors, plain http, and trusted realms.
    pub config: RegistryConfig,
    /// The file that `config` is read from, or would be if it existed: errors name it.
    pub config_file: Option<PathBuf>,
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
    pub network: NetworkOptions,
}

impl Default for Options {
    /// Returns options without credentials, special registries and a proxy, for four blobs at once.
    fn default() -> Self {
        Self {
            config: RegistryConfig::default(),
            config_file: None,
            auth_files: Vec::new(),
            helper_path: Vec::new(),
            helper_patience: Duration::from_secs(60),
            parallel: 4,
            network: NetworkOptions::default(),
        }
    }
}

/// One repository on one server, and how it is reached.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) client: Arc<Client>,
    /// The repository by its name on this server.
    pub(crate) repository: Repository,
    /// `https://HOST/`, or `http://HOST/` where the configuration says so.
    pub(crate) base: RemoteUrl,
    /// The configuration of the server.
    pub(crate) host: Host,
    /// Whether another server is asked where this one cannot help.
    pub(crate) is_mirror: bool,
    pub(crate) options: Arc<Options>,
}

impl Server {
    /// Returns the URL of a resource of the repository.
    pub(crate) fn url(&self, path: &str) -> Result<RemoteUrl, RegistryError> {
        let path = format!("/v2/{}/{path}", self.repository.name());
        // Names, tags and digests are checked, so that this does not fail.
        let why = "it does not form a URL";
        self.base.join(&path).map_err(|_| RegistryError::Name { text: path, why })
    }

    /// Returns the error of a server that does not accept a login, or has been given none.
    pub(crate) fn unauthorized(&self, what: &str, login: Option<&Login>) -> RegistryError {
        let (what, host) = (what.to_owned(), self.repository.host().to_owned());
        RegistryError::Unauthorized { what, host, credentials: login.map(ToString::to_string) }
    }
}

/// A manifest or a blob of the repository.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Its name for messages.
    pub(crate) what: String,
    /// Its path after the repository's name.
    pub(crate) path: String,
    /// The reference to a manifest; `None` for a blob.
    pub(crate) reference: Option<Reference>,
}
