//! One repository on one server.

use std::sync::Arc;

use download::http::{Client, RemoteUrl};

use crate::config::Host;
use crate::error::RegistryError;
use crate::name::Repository;
use crate::options::Options;

/// One repository on one server, and how it is reached.
#[derive(Debug)]
pub(crate) struct Server<'a> {
    pub(crate) client: Arc<Client>,
    /// The repository by its name on this server.
    pub(crate) repository: Repository,
    /// `https://HOST/`, or `http://HOST/` where the configuration says so.
    pub(crate) base: RemoteUrl,
    /// What the configuration says about the server.
    pub(crate) host: Host,
    /// Whether another server is asked where this one cannot help.
    pub(crate) is_mirror: bool,
    pub(crate) options: Arc<Options<'a>>,
}

impl Server<'_> {
    /// Returns the URL of a resource of the repository.
    pub(crate) fn url(&self, path: &str) -> Result<RemoteUrl, RegistryError> {
        let path = format!("/v2/{}/{path}", self.repository.name());
        // Names, tags and digests are checked, so that this does not fail.
        let why = "it makes no URL";
        self.base.join(&path).map_err(|_| RegistryError::Name { text: path, why })
    }

    /// Returns the error of a server that does not accept the credentials, or has been given none.
    pub(crate) fn unauthorized(&self, what: &str, has_credentials: bool) -> RegistryError {
        let (what, host) = (what.to_owned(), self.repository.host().to_owned());
        RegistryError::Unauthorized { what, host, has_credentials }
    }
}
