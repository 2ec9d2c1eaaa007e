//! Authentication: with a password, or with a token from the realm that the registry names.
//!
//! The realm must be the registry itself, or a server that is trusted for this very
//! registry: otherwise a registry could have the password for it sent to anybody.

use download::Guard;
use download::http::RemoteUrl;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::challenge::{self, Challenge};
use crate::credentials::{self, Credentials};
use crate::error::RegistryError;
use crate::server::Server;
use crate::token::{self, basic, bearer};

/// How far a server has authenticated us.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The `Authorization` header of each request.
    pub(crate) authorization: Option<HeaderValue>,
    /// The credentials, if there are any, once they were looked for.
    credentials: Option<Option<Credentials>>,
}

impl State {
    /// Returns whether there are credentials for the server.
    pub(crate) const fn has_credentials(&self) -> bool {
        matches!(self.credentials, Some(Some(_)))
    }
}

/// Renews the authorization for a server that has answered "unauthorized".
pub(crate) fn renew(
    server: &Server,
    state: &mut State,
    what: &str,
    headers: &HeaderMap,
) -> Result<(), RegistryError> {
    let challenge = challenge::read(headers).map_err(|why| unknown(server, why))?;
    let credentials = match state.credentials.take() {
        Some(known) => known,
        None => credentials::find(&server.options, &server.repository)?,
    };
    let credentials = state.credentials.insert(credentials).as_ref();
    let authorization = match (&challenge, credentials) {
        (_, Some(Credentials::Token(token))) => bearer(token),
        (Challenge::Basic, Some(Credentials::Password { user, password })) => basic(user, password),
        (Challenge::Basic, _) => return Err(server.unauthorized(what, false)),
        (Challenge::Bearer { realm, service }, credentials) => {
            let realm = trusted(server, realm)?;
            Some(token::fetch(server, what, &realm, service.as_deref(), credentials)?)
        }
    };
    // A header that was refused, or that cannot be sent, is of no use.
    if authorization.is_none() || authorization == state.authorization {
        return Err(server.unauthorized(what, true));
    }
    state.authorization = authorization;
    Ok(())
}

fn unknown(server: &Server, why: &'static str) -> RegistryError {
    let host = server.repository.host();
    let what = format!("{host} asks for credentials in a way that is not known");
    RegistryError::Response { what, why }
}

/// Returns the URL of the realm, if it may have credentials for this registry.
fn trusted(server: &Server, realm: &str) -> Result<RemoteUrl, RegistryError> {
    let host = server.repository.host().to_owned();
    let Ok(url) = realm.parse::<RemoteUrl>() else {
        return Err(unknown(server, "its realm is no URL"));
    };
    let known = url.same_origin(&server.base) || server.host.realms.contains(&url.host());
    if Guard::Realm.catches(!known) {
        return Err(RegistryError::Realm { host, realm: url.host() });
    }
    if Guard::PlainRealm.catches(!url.is_https() && server.base.is_https()) {
        return Err(RegistryError::PlainRealm { host });
    }
    Ok(url)
}
