//! Requests to one repository on one server, with credentials where they belong.

use std::sync::{Mutex, MutexGuard, PoisonError};

use download::http::HttpError;
use download::{Attempts, DownloadError, FinalResponse, Request};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};

use crate::auth::{self, State};
use crate::error::RegistryError;
use crate::page;
use crate::server::{Resource, Server};

/// The attempts at a mirror, after which another server is asked.
const MIRROR_TRIES: u32 = 2;

/// One repository on one server, and how far it has authenticated us.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) server: Server,
    state: Mutex<State>,
}

impl Session {
    /// Starts without credentials.
    pub(crate) fn new(server: Server) -> Self {
        Self { server, state: Mutex::default() }
    }

    /// Starts to count attempts.
    pub(crate) fn attempts(&self) -> Attempts {
        let network = &self.server.options.network;
        let host = self.server.repository.host();
        let attempts = Attempts::new(&network.policy).observed(host, network.retry.as_ref());
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
            return self.found(what, response);
        }
        let renewed = {
            // One thread asks for the token; the others wait for it here.
            let mut state = self.state();
            if state.authorization == sent {
                auth::renew(&self.server, &mut state, what, response.response.headers())?;
            }
            state.authorization.clone()
        };
        let response = self.send_with(resource, headers, renewed)?;
        if asks_for_credentials(&response) {
            return Err(self.server.unauthorized(what, &self.state().search()));
        }
        self.found(what, response)
    }

    /// Checks that a response is not "no such image" only because the credentials for it were refused.
    fn found(&self, what: &str, response: FinalResponse) -> Result<FinalResponse, RegistryError> {
        let status = response.response.status();
        let is_hidden = matches!(status, StatusCode::NOT_FOUND | StatusCode::FORBIDDEN);
        if is_hidden && response.same_origin {
            let search = self.state().search();
            if search.is_refused {
                return Err(self.server.unauthorized(what, &search));
            }
        }
        Ok(response)
    }

    fn send_with(
        &self,
        resource: &Resource,
        headers: &HeaderMap,
        authorization: Option<HeaderValue>,
    ) -> Result<FinalResponse, RegistryError> {
        let Server { client, base, repository, options, .. } = &self.server;
        let (what, url) = (resource.what.as_str(), self.server.url(&resource.path)?);
        let request = Request { what, url, headers: headers.clone(), authorization };
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
                let why = "it is compressed, which was not asked for";
                return Err(RegistryError::response(what, why));
            }
            page::check_headers(&self.server, what, headers)?;
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
