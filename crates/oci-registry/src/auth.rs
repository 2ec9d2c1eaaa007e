//! Authentication: with a password, or with a token from the realm that the registry names.
//!
//! The realm must be the registry itself, or a server that is trusted for this very
//! registry: otherwise a registry could have the password for it sent to anybody.

use std::collections::BTreeSet;

use download::http::RemoteUrl;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::challenge::{self, Challenge};
use crate::credentials::{self, Credentials, Search};
use crate::error::RegistryError;
use crate::server::{Access, Server};
use crate::token::{self, Realm, basic, bearer};

/// How far a server has authenticated us.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The `Authorization` header of each request.
    pub(crate) authorization: Option<HeaderValue>,
    /// The credentials, once they were looked for.
    search: Option<Search>,
    /// Other repositories of the registry that are read, too: blobs are mounted from there.
    pub(crate) sources: BTreeSet<String>,
    /// Those of them that these credentials may not read.
    pub(crate) closed: BTreeSet<String>,
}

impl State {
    /// Returns what looking for credentials gave; nothing before that.
    pub(crate) fn search(&self) -> Search {
        self.search.clone().unwrap_or_default()
    }
}

/// Renews the authorization for a server that has answered "unauthorized".
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
    // A header that was refused, or that cannot be sent, is of no use.
    if authorization.is_none() || authorization == state.authorization {
        return Err(server.unauthorized(what, search));
    }
    state.authorization = authorization;
    Ok(())
}

/// Returns a token for the login. Where that is refused, as after a password has expired, it returns
/// a token that everybody gets, if there is one: public images need no login.
fn granted(
    server: &Server,
    what: &str,
    realm: &Realm<'_>,
    search: &mut Search,
) -> Result<HeaderValue, RegistryError> {
    // To ask more often with a refused password could lock the account.
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

/// Returns what a token is asked for: never more than is done, whatever the registry says.
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

/// Returns the URL of the realm, if it may have credentials for this registry.
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
