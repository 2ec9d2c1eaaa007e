//! One repository on one server, and the options of the client.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use download::NetworkOptions;
use download::http::{Client, RemoteUrl};

use crate::config::{Host, RegistryConfig};
use crate::credentials::Search;
use crate::error::RegistryError;
use crate::name::{Reference, Repository};

/// The options of a client for registries.
#[derive(Debug, Clone)]
pub struct Options {
    /// Mirrors, plain HTTP, trusted realms and certificates.
    pub config: RegistryConfig,
    /// The file from which `config` was read, or would be if it existed. Errors name it.
    pub config_file: Option<PathBuf>,
    /// The files that may have credentials, such as docker's `config.json` and podman's `auth.json`. The first one that has
    /// credentials for a registry takes precedence. Missing files are skipped.
    pub auth_files: Vec<PathBuf>,
    /// The directories that are searched for the helpers `docker-credential-NAME` that these files name. Relative ones are
    /// ignored. A helper inherits the environment of this process, except `hidden_variables`.
    pub helper_path: Vec<PathBuf>,
    /// The environment variables that no helper gets, because they have secrets of another purpose.
    pub hidden_variables: Vec<String>,
    /// The time limit for a helper's output. A helper may wait for its user.
    pub helper_patience: Duration,
    /// Receives a warning for each file of credentials or helper that could not be used.
    pub notices: Option<Notices>,
    /// How many blobs are fetched or sent in parallel.
    pub parallel: usize,
    /// The network options.
    pub network: NetworkOptions,
}

impl Default for Options {
    /// Returns options for four parallel blobs, without credentials, settings of registries or a proxy.
    fn default() -> Self {
        Self {
            config: RegistryConfig::default(),
            config_file: None,
            auth_files: Vec::new(),
            helper_path: Vec::new(),
            hidden_variables: Vec::new(),
            helper_patience: Duration::from_secs(60),
            notices: None,
            parallel: 4,
            network: NetworkOptions::default(),
        }
    }
}

/// A function that receives the reason why credentials were skipped, as one sentence without a full stop and without secrets.
/// Malformed files of credentials are no error, because the registry may be public.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(&str) + Send + Sync>);

impl Notices {
    /// Wraps a function. Several threads may call the function, and with the same sentence several times.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notices").finish_non_exhaustive()
    }
}

impl Options {
    /// Reports why credentials were skipped.
    pub(crate) fn notice(&self, statement: &str) {
        if let Some(Notices(tell)) = &self.notices {
            tell(statement);
        }
    }
}

/// The access to a repository, which is also the scope of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read only.
    Pull,
    /// Read and write.
    Push,
}

/// One repository on one server, with the settings and the HTTP client for it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) client: Arc<Client>,
    /// The repository, with its name on this server.
    pub(crate) repository: Repository,
    /// `https://HOST/`, or `http://HOST/` if the configuration has `plain-http`.
    pub(crate) base: RemoteUrl,
    /// The configuration of the server.
    pub(crate) host: Host,
    /// Whether another server is tried if this one fails.
    pub(crate) is_mirror: bool,
    pub(crate) access: Access,
    pub(crate) options: Arc<Options>,
}

impl Server {
    /// Returns the URL of a resource of the repository.
    pub(crate) fn url(&self, path: &str) -> Result<RemoteUrl, RegistryError> {
        let path = format!("/v2/{}/{path}", self.repository.name());
        // Names, tags and digests are valid, so this does not fail.
        let reason = "it does not form a URL";
        self.base.join(&path).map_err(|_| RegistryError::Name { text: path, reason })
    }

    /// Returns the error of a server that refuses the login, or requests one if there is none.
    pub(crate) fn unauthorized(&self, what: &str, search: &Search) -> RegistryError {
        let (what, host) = (what.to_owned(), self.repository.host().to_owned());
        let credentials = search.login.as_ref().map(ToString::to_string);
        let passed_over = search.passed_over.clone();
        RegistryError::Unauthorized { what, host, credentials, passed_over }
    }
}

/// A manifest or a blob of the repository.
#[derive(Debug)]
pub(crate) struct Resource {
    /// The description for messages.
    pub(crate) what: String,
    /// The path after the repository's name, such as `manifests/v1`.
    pub(crate) path: String,
    /// The reference to a manifest; `None` for a blob.
    pub(crate) reference: Option<Reference>,
}
