//! One repository on one server, and how registries are asked.

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
    /// Receives a warning about credentials that could not be used.
    pub notices: Option<Notices>,
    /// How many blobs are fetched or sent at once.
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
            notices: None,
            parallel: 4,
            network: NetworkOptions::default(),
        }
    }
}

/// A function that is told, in one statement without a full stop, why credentials were passed over: a broken file
/// of credentials does not keep a registry that is open to everybody from being asked. No statement has a secret.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(&str) + Send + Sync>);

impl Notices {
    /// Returns notices that go to a function. It may be called from several threads, and more than once with the
    /// same statement.
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
    /// Tells why credentials were passed over.
    pub(crate) fn notice(&self, statement: &str) {
        if let Some(Notices(tell)) = &self.notices {
            tell(statement);
        }
    }
}

/// What is done with a repository: a token is asked for no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only reading.
    Pull,
    /// Reading and writing.
    Push,
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
    pub(crate) access: Access,
    pub(crate) options: Arc<Options>,
}

impl Server {
    /// Returns the URL of a resource of the repository.
    pub(crate) fn url(&self, path: &str) -> Result<RemoteUrl, RegistryError> {
        let path = format!("/v2/{}/{path}", self.repository.name());
        // Names, tags and digests are checked, so that this does not fail.
        let reason = "it does not form a URL";
        self.base.join(&path).map_err(|_| RegistryError::Name { text: path, reason })
    }

    /// Returns the error of a server that does not accept the login that was found, or has been given none.
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
    /// Its name for messages.
    pub(crate) what: String,
    /// Its path after the repository's name.
    pub(crate) path: String,
    /// The reference to a manifest; `None` for a blob.
    pub(crate) reference: Option<Reference>,
}
