//! Authentication: with a password, or with a token from the realm that the registry names.
//!
//! The realm must have the registry's origin or be trusted for this registry. Otherwise a registry could redirect its users'
//! passwords to any server.

use std::collections::BTreeSet;

use download::http::RemoteUrl;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::challenge::{self, Challenge};
use crate::credentials::{self, Credentials, Search};
use crate::error::RegistryError;
use crate::server::{Access, Server};
use crate::token::{self, Realm, basic, bearer};

/// The state of the authentication at a server.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The `Authorization` header of the next requests; `None` for anonymous requests.
    pub(crate) authorization: Option<HeaderValue>,
    /// The result of the search for credentials; `None` before the search.
    search: Option<Search>,
    /// The names of the registry's other repositories from which blobs are mounted. Tokens must allow reading them.
    pub(crate) sources: BTreeSet<String>,
    /// The names of repositories that the credentials may not read. No blob is mounted from them.
    pub(crate) closed: BTreeSet<String>,
}

impl State {
    /// Returns the result of the search for credentials; an empty result before the search.
    pub(crate) fn search(&self) -> Search {
        self.search.clone().unwrap_or_default()
    }
}

/// Renews the authorization after a server has answered "401 Unauthorized".
pub(crate) fn renew(
    server: &Server,
    state: &mut State,
    what: &str,
    headers: &HeaderMap,
) -> Result<(), RegistryError> {
    let scopes = scopes(server, &state.sources);
    let challenge = challenge::read(headers).map_err(|reason| unknown(server, reason))?;
    let search = state.search.get_or_insert_with(|| {
        let found = credentials::find(&server.options, &server.repository);
        found.passed_over.iter().for_each(|reason| server.options.notice(reason));
        found
    });
    let authorization = match (&challenge, search.login.as_ref().map(|it| &it.credentials)) {
        (_, Some(Credentials::Token(token))) => bearer(token),
        (Challenge::Basic, Some(Credentials::Password { user, password })) => basic(user, password),
        (Challenge::Basic, _) => None,
        (Challenge::Bearer { realm, service }, _) => {
            let realm = trusted(server, realm)?;
            let realm = Realm { url: &realm, service: service.as_deref(), scopes: &scopes };
            Some(granted(server, what, &realm, search)?)
        }
    };
    // Without a new value, a retry cannot help: the server has just refused `state.authorization`.
    if authorization.is_none() || authorization == state.authorization {
        return Err(server.unauthorized(what, search));
    }
    state.authorization = authorization;
    Ok(())
}

/// Returns a token for the login. If the realm refuses the login, for example because its password has expired, returns an
/// anonymous token, because public images need no login.
fn granted(
    server: &Server,
    what: &str,
    realm: &Realm<'_>,
    search: &mut Search,
) -> Result<HeaderValue, RegistryError> {
    // A refused login is not sent again, because further attempts could lock the account.
    let login = search.login.as_ref().filter(|_| !search.is_refused);
    let credentials = login.map(|it| &it.credentials);
    let refused = match (token::fetch(server, realm, credentials)?, login) {
        (Some(token), _) => return Ok(token),
        (None, Some(login)) => format!("{} refuses {login}", realm.url.host()),
        (None, None) => return Err(server.unauthorized(what, search)),
    };
    let Ok(Some(token)) = token::fetch(server, realm, None) else {
        return Err(server.unauthorized(what, search));
    };
    search.is_refused = true;
    server.options.notice(&refused);
    Ok(token)
}

/// Returns the scopes for which a token is requested. They depend on `server.access`, never on the registry's challenge.
fn scopes(server: &Server, sources: &BTreeSet<String>) -> Vec<String> {
    let actions = match server.access {
        Access::Pull => "pull",
        Access::Push => "pull,push",
    };
    let own = format!("repository:{}:{actions}", server.repository.name());
    let others = sources.iter().map(|name| format!("repository:{name}:pull"));
    [own].into_iter().chain(others).collect()
}

fn unknown(server: &Server, reason: &'static str) -> RegistryError {
    let host = server.repository.host();
    let what = format!("{host} asks for credentials in a way that is not known");
    RegistryError::Response { what, reason }
}

/// Returns the URL of the realm, or an error if credentials for this registry must not be sent to it.
fn trusted(server: &Server, realm: &str) -> Result<RemoteUrl, RegistryError> {
    let host = server.repository.host().to_owned();
    let Ok(url) = realm.parse::<RemoteUrl>() else {
        return Err(unknown(server, "its realm is not a URL"));
    };
    let known = url.same_origin(&server.base) || server.host.realms.contains(&url.host());
    if !known {
        let config_file = server.options.config_file.clone();
        return Err(RegistryError::Realm { host, realm: url.host(), config_file });
    }
    if !url.is_https() && server.base.is_https() {
        return Err(RegistryError::PlainRealm { host });
    }
    Ok(url)
}
