//! Authentication: with a password, or with a token from the realm that the registry names.
//!
//! The realm must be the registry itself, or a server that is trusted for this very
//! registry: otherwise a registry could have the password for it sent to anybody.

use download::Guard;
use download::http::RemoteUrl;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::challenge::{self, Challenge};
use crate::credentials::{self, Credentials, Login};
use crate::error::RegistryError;
use crate::server::Server;
use crate::token::{self, basic, bearer};

/// How far a server has authenticated us.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The `Authorization` header of each request.
    pub(crate) authorization: Option<HeaderValue>,
    /// The login, if there is one, once it was looked for.
    login: Option<Option<Login>>,
}

impl State {
    /// Returns the login for the server, if there is one.
    pub(crate) fn login(&self) -> Option<&Login> {
        self.login.as_ref()?.as_ref()
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
    let login = match state.login.take() {
        Some(known) => known,
        None => credentials::find(&server.options, &server.repository)?,
    };
    let login = state.login.insert(login).as_ref();
    let authorization = match (&challenge, login.map(|it| &it.credentials)) {
        (_, Some(Credentials::Token(token))) => bearer(token),
        (Challenge::Basic, Some(Credentials::Password { user, password })) => basic(user, password),
        (Challenge::Basic, _) => return Err(server.unauthorized(what, None)),
        (Challenge::Bearer { realm, service }, _) => {
            let realm = trusted(server, realm)?;
            Some(token::fetch(server, what, &realm, service.as_deref(), login)?)
        }
    };
    // A header that was refused, or that cannot be sent, is of no use.
    if authorization.is_none() || authorization == state.authorization {
        return Err(server.unauthorized(what, login));
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
        return Err(unknown(server, "its realm is not a URL"));
    };
    let known = url.same_origin(&server.base) || server.host.realms.contains(&url.host());
    if Guard::Realm.catches(!known) {
        let config_file = server.options.config_file.clone();
        return Err(RegistryError::Realm { host, realm: url.host(), config_file });
    }
    if Guard::PlainRealm.catches(!url.is_https() && server.base.is_https()) {
        return Err(RegistryError::PlainRealm { host });
    }
    Ok(url)
}
