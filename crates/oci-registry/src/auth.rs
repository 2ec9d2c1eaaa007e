//! Convincing a registry: with a password, or with a token from the place that it names.
//!
//! That place, the realm, must be the registry itself, or a server that is trusted for this very
//! registry: otherwise a registry could have the password for it sent to anybody.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use download::http::RemoteUrl;
use reqwest::header::{HeaderMap, HeaderValue};

use super::challenge::{self, Challenge};
use super::credentials::{Credentials, Places};
use super::guard::Guard;
use super::session::{Ask, Session};
use super::{RegistryError, Secret, token};

/// The longest token, in bytes.
const TOKEN_LIMIT: usize = 32 << 10;

/// How a server was convinced so far.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What goes along with each request.
    pub(super) authorization: Option<HeaderValue>,
    /// The credentials, if there are any, once they were looked for.
    credentials: Option<Option<Credentials>>,
}

impl State {
    /// Whether there are credentials for the server.
    pub(super) const fn has_credentials(&self) -> bool {
        matches!(self.credentials, Some(Some(_)))
    }
}

/// Finds out what convinces a server that has answered "unauthorized".
pub(super) fn renew(
    session: &Session<'_>,
    state: &mut State,
    ask: &Ask,
    headers: &HeaderMap,
) -> Result<(), RegistryError> {
    let challenge = challenge::read(headers).map_err(|why| {
        let host = session.repository.host().to_owned();
        RegistryError::Challenge { host, why }
    })?;
    let credentials = match state.credentials.take() {
        Some(known) => known,
        None => places(session).find(&session.repository)?,
    };
    let credentials = state.credentials.insert(credentials).as_ref();
    let authorization = match (&challenge, credentials) {
        (_, Some(Credentials::Token(token))) => bearer(token),
        (Challenge::Basic, Some(Credentials::Password { user, password })) => basic(user, password),
        (Challenge::Basic, _) => return Err(session.unauthorized(ask, false)),
        (Challenge::Bearer { realm, service }, credentials) => {
            let realm = trusted(session, realm)?;
            Some(token::fetch(session, ask, &realm, service.as_deref(), credentials)?)
        }
    };
    // A header that was refused, or that cannot be sent, is of no use.
    if authorization.is_none() || authorization == state.authorization {
        return Err(session.unauthorized(ask, true));
    }
    state.authorization = authorization;
    Ok(())
}

fn places<'s>(session: &'s Session<'_>) -> Places<'s> {
    Places {
        files: &session.options.auth_files,
        helper_path: &session.options.helper_path,
        helper_patience: session.options.helper_patience,
    }
}

/// Returns the place of the tokens, if it may have credentials for this registry.
fn trusted(session: &Session<'_>, realm: &str) -> Result<RemoteUrl, RegistryError> {
    let host = session.repository.host().to_owned();
    let Ok(url) = realm.parse::<RemoteUrl>() else {
        return Err(RegistryError::Challenge { host, why: "its realm is no URL" });
    };
    let known = url.same_origin(&session.base) || session.host.realms.contains(&url.host());
    if !known && session.guards.hold(Guard::Realm) {
        return Err(RegistryError::Realm { host, realm: url.host() });
    }
    if !url.is_https() && session.base.is_https() && session.guards.hold(Guard::PlainRealm) {
        return Err(RegistryError::PlainRealm { host });
    }
    Ok(url)
}

/// Returns a header with a name and a password.
pub(super) fn basic(user: &str, password: &Secret) -> Option<HeaderValue> {
    let pair = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
    sensitive(&format!("Basic {pair}"))
}

/// Returns a header with a token; nothing for what cannot be one.
pub(super) fn bearer(token: &Secret) -> Option<HeaderValue> {
    let token = token.expose();
    let right = (1..=TOKEN_LIMIT).contains(&token.len());
    let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
    (right && visible).then(|| sensitive(&format!("Bearer {token}")))?
}

/// Returns a header that `{:?}` does not show.
fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}
