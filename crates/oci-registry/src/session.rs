//! Requests to one repository on one server, with credentials only for the registry's origin.

use std::sync::{Mutex, MutexGuard, PoisonError};

use download::http::HttpError;
use download::{Attempts, DownloadError, FinalResponse, Request, RequestUrl};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use crate::auth::{self, State};
use crate::error::RegistryError;
use crate::name::Repository;
use crate::page;
use crate::server::{Resource, Server};

/// The maximum number of attempts at a mirror. Then the next server is tried.
const MIRROR_TRIES: u32 = 2;

/// One repository on one server, and the state of the authentication there.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) server: Server,
    state: Mutex<State>,
}

impl Session {
    /// Makes a session without credentials.
    pub(crate) fn new(server: Server) -> Self {
        Self { server, state: Mutex::default() }
    }

    /// Returns a new count of attempts.
    pub(crate) fn attempts(&self) -> Attempts {
        let network = &self.server.options.network;
        let host = self.server.repository.host();
        let attempts = Attempts::new(&network.policy).observed(host, network.retry.as_ref());
        if self.server.is_mirror { attempts.at_most(MIRROR_TRIES) } else { attempts }
    }

    /// Requests a resource.
    pub(crate) fn get(
        &self,
        resource: &Resource,
        headers: &HeaderMap,
    ) -> Result<FinalResponse, RegistryError> {
        let at = RequestUrl::named(self.server.url(&resource.path)?);
        self.send(Request::get(&resource.what, at, headers.clone()))
    }

    /// Sends a request. If the registry requests credentials, sends it again with them.
    pub(crate) fn send(&self, mut request: Request<'_>) -> Result<FinalResponse, RegistryError> {
        if let Some(response) = self.send_once(&mut request)? {
            return Ok(response);
        }
        request.authorization.clone_from(&self.state().authorization);
        let response = self.send_with(&request)?;
        if asks_for_credentials(&response) {
            return Err(self.unauthorized(request.what));
        }
        self.found(request.what, response)
    }

    /// Sends a request. If the registry requests credentials, gets them for the next request and returns `None`.
    pub(crate) fn send_once(
        &self,
        request: &mut Request<'_>,
    ) -> Result<Option<FinalResponse>, RegistryError> {
        request.authorization.clone_from(&self.state().authorization);
        let response = self.send_with(request)?;
        if !asks_for_credentials(&response) {
            return self.found(request.what, response).map(Some);
        }
        // One thread gets the token. The others wait here, and then see that the authorization has changed.
        let mut state = self.state();
        if state.authorization == request.authorization {
            let headers = response.response.headers();
            auth::renew(&self.server, &mut state, request.what, headers)?;
        }
        Ok(None)
    }

    /// Adds read access to another repository of the registry to the scopes of the next token. Returns `false` if
    /// [`Self::exclude_mount_source`] has excluded the repository.
    pub(crate) fn add_mount_source(&self, repository: &Repository) -> bool {
        let mut state = self.state();
        if state.closed.contains(repository.name()) {
            return false;
        }
        state.sources.insert(repository.name().to_owned());
        true
    }

    /// Removes another repository from the scopes of the next tokens, because the login may not read it.
    pub(crate) fn exclude_mount_source(&self, repository: &Repository) {
        let mut state = self.state();
        state.sources.remove(repository.name());
        state.closed.insert(repository.name().to_owned());
    }

    /// Returns the error of a registry that refuses the login, or anonymous access, for `what`.
    pub(crate) fn unauthorized(&self, what: &str) -> RegistryError {
        self.server.unauthorized(what, &self.state().search())
    }

    /// Returns the response, or the error of the refused login if the login was refused and the anonymous request got 403 or
    /// 404: the resource may be visible with a valid login.
    fn found(&self, what: &str, response: FinalResponse) -> Result<FinalResponse, RegistryError> {
        let status = response.response.status();
        let is_hidden = matches!(status, StatusCode::NOT_FOUND | StatusCode::FORBIDDEN);
        if is_hidden && response.at.same_origin() {
            let search = self.state().search();
            if search.is_refused {
                return Err(self.server.unauthorized(what, &search));
            }
        }
        Ok(response)
    }

    fn send_with(&self, request: &Request<'_>) -> Result<FinalResponse, RegistryError> {
        let Server { client, base, repository, options, .. } = &self.server;
        let what = request.what;
        let response = request.send(client).map_err(|error| match error {
            DownloadError::Http(HttpError::NotTls { host }) if host == base.host() => {
                let (host, config_file) = (repository.host(), options.config_file.clone());
                RegistryError::NotTls { host: host.to_owned(), config_file }
            }
            error => error.into(),
        })?;
        let headers = response.response.headers();
        if response.response.status().is_success() {
            if headers.get(CONTENT_ENCODING).is_some_and(|it| it != "identity") {
                let reason = "it is compressed, which was not asked for";
                return Err(RegistryError::response(what, reason));
            }
            page::check_headers(&self.server, what, headers)?;
        }
        Ok(response)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the registry itself requests credentials. A server behind a redirect gets none.
fn asks_for_credentials(response: &FinalResponse) -> bool {
    response.at.same_origin() && response.response.status() == StatusCode::UNAUTHORIZED
}
