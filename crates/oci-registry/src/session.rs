//! Requests to one repository on one server, with credentials where they belong.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use download::http::{Client, HttpError, RemoteUrl};
use download::{Attempts, DownloadError, FinalResponse, Request};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};

use crate::auth::{self, State};
use crate::client::Options;
use crate::config::Host;
use crate::error::RegistryError;
use crate::name::Repository;

/// The attempts at a mirror, after which another server is asked.
const MIRROR_TRIES: u32 = 2;

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

/// One repository on one server, and how far it has authenticated us.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) server: Server<'a>,
    state: Mutex<State>,
}

/// A manifest or a blob of the repository.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Its name for messages.
    pub(crate) what: String,
    /// Its path after the repository's name.
    pub(crate) path: String,
}

impl<'a> Session<'a> {
    /// Starts without credentials.
    pub(crate) fn new(server: Server<'a>) -> Self {
        Self { server, state: Mutex::default() }
    }

    /// Starts to count attempts.
    pub(crate) fn attempts(&self) -> Attempts {
        let attempts = Attempts::new(&self.server.options.network.policy);
        if self.server.is_mirror { attempts.at_most(MIRROR_TRIES) } else { attempts }
    }

    /// Sends a request, and once more with credentials where the registry asks for some.
    pub(crate) fn send(
        &self,
        resource: &Resource,
        headers: &HeaderMap,
    ) -> Result<FinalResponse, RegistryError> {
        let what = &resource.what;
        let sent = self.state().authorization.clone();
        let response = self.send_with(resource, headers, sent.clone())?;
        if !asks_for_credentials(&response) {
            return Ok(response);
        }
        let (renewed, has_credentials) = {
            // One thread asks for the token; the others wait for it here.
            let mut state = self.state();
            if state.authorization == sent {
                auth::renew(&self.server, &mut state, what, response.response.headers())?;
            }
            (state.authorization.clone(), state.has_credentials())
        };
        let response = self.send_with(resource, headers, renewed)?;
        if asks_for_credentials(&response) {
            return Err(self.server.unauthorized(what, has_credentials));
        }
        Ok(response)
    }

    fn send_with(
        &self,
        resource: &Resource,
        headers: &HeaderMap,
        authorization: Option<HeaderValue>,
    ) -> Result<FinalResponse, RegistryError> {
        let Server { client, base, repository, .. } = &self.server;
        let (what, url) = (resource.what.as_str(), self.server.url(&resource.path)?);
        let request = Request { what, url, headers: headers.clone(), authorization };
        let response = request.send(client).map_err(|error| match error {
            DownloadError::Http(HttpError::NotTls { host }) if host == base.host() => {
                RegistryError::NotTls { host: repository.host().to_owned() }
            }
            error => error.into(),
        })?;
        let encoding = response.response.headers().get(CONTENT_ENCODING);
        if response.response.status().is_success() && encoding.is_some_and(|it| it != "identity") {
            let why = "it is compressed, which was not asked for";
            return Err(RegistryError::Response { what: what.to_owned(), why });
        }
        Ok(response)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the registry itself asks for credentials. No other server gets any.
fn asks_for_credentials(response: &FinalResponse) -> bool {
    response.same_origin && response.response.status() == StatusCode::UNAUTHORIZED
}
