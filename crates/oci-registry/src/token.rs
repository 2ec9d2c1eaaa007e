//! Fetches tokens from a realm, with a [GET](https://distribution.github.io/distribution/spec/auth/token/) or, for an identity
//! token, an [OAuth 2 POST](https://distribution.github.io/distribution/spec/auth/oauth/) request.
//!
//! The scopes depend on the access to the repository and not on the registry's challenge. Redirects of a realm are not followed.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use download::http::{HttpError, RemoteUrl};
use download::{Attempts, Body, FinalResponse, RequestUrl};
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;

use crate::credentials::{Credentials, Secret};
use crate::error::RegistryError;
use crate::page;
use crate::refusal;
use crate::server::Server;

/// The maximum size of the response with a token, in bytes.
const LIMIT: u64 = 128 << 10;
/// The maximum length of a token, in bytes.
const MAX_TOKEN: usize = 32 << 10;
/// The content type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// A realm, and the scopes of the requested token.
#[derive(Debug)]
pub(crate) struct Realm<'a> {
    pub(crate) url: &'a RemoteUrl,
    /// The registry's name at the realm.
    pub(crate) service: Option<&'a str>,
    /// The scopes, each in the form `repository:NAME:ACTIONS`.
    pub(crate) scopes: &'a [String],
}

/// The response of a realm, with the token in one of two fields.
#[derive(Deserialize)]
struct Granted {
    token: Option<Secret>,
    access_token: Option<Secret>,
}

/// Fetches a token for the server's repository, and returns it as an `Authorization` header. Returns `None` if the realm refuses
/// the credentials, or an anonymous request.
pub(crate) fn fetch(
    server: &Server,
    realm: &Realm<'_>,
    credentials: Option<&Credentials>,
) -> Result<Option<HeaderValue>, RegistryError> {
    let response = request(server, realm, credentials)?;
    let realm = realm.url;
    match response.response.status() {
        StatusCode::OK => read(server, realm, response).map(Some),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Ok(None),
        status if status.is_redirection() => Err(useless(server, realm, "it redirects")),
        _ => {
            let what = format!("a token for {}", server.repository);
            Err(refusal::status(server, &what, response))
        }
    }
}

fn request(
    server: &Server,
    realm: &Realm<'_>,
    credentials: Option<&Credentials>,
) -> Result<FinalResponse, HttpError> {
    let mut query: Vec<_> = realm.scopes.iter().map(|scope| ("scope", scope.as_str())).collect();
    query.extend(realm.service.map(|service| ("service", service)));
    // In a form, all scopes are in one field, separated by spaces
    // ([RFC 6749, section 3.3](https://www.rfc-editor.org/rfc/rfc6749#section-3.3)).
    let joined = realm.scopes.join(" ");
    let realm = realm.url;
    let response = match credentials {
        Some(Credentials::Identity(token)) => {
            query.retain(|(key, _)| *key != "scope");
            query.insert(0, ("scope", &joined));
            query.extend([("grant_type", "refresh_token"), ("client_id", "boxbuild")]);
            query.push(("refresh_token", token.expose()));
            let headers = [(CONTENT_TYPE, HeaderValue::from_static(FORM))];
            server.client.post(realm, HeaderMap::from_iter(headers), RemoteUrl::form(&query))
        }
        Some(Credentials::Password { user, password }) => {
            let header = basic(user, password).map(|header| (AUTHORIZATION, header));
            server.client.get(&realm.with_query(&query), header.into_iter().collect())
        }
        Some(Credentials::Token(_)) | None => {
            server.client.get(&realm.with_query(&query), HeaderMap::new())
        }
    };
    Ok(FinalResponse { at: RequestUrl::named(realm.clone()), response: response? })
}

fn read(
    server: &Server,
    realm: &RemoteUrl,
    response: FinalResponse,
) -> Result<HeaderValue, RegistryError> {
    let what = format!("the token for {}", server.repository);
    let policy = &server.options.network.policy;
    let deadline = Attempts::new(policy).deadline(0);
    page::check_headers(server, &what, response.response.headers())?;
    let text = Body::new(&what, response, policy, deadline).read_whole(LIMIT)?;
    page::check_page(server, &what, &text)?;
    let granted = serde_json::from_slice::<Granted>(&text)
        .map_err(|_| useless(server, realm, "its answer is malformed"))?;
    let token = granted.token.or(granted.access_token);
    let token = token.ok_or_else(|| useless(server, realm, "its answer has none"))?;
    bearer(&token).ok_or_else(|| useless(server, realm, "it cannot be sent in a header"))
}

fn useless(server: &Server, realm: &RemoteUrl, reason: &'static str) -> RegistryError {
    let (realm, host) = (realm.host(), server.repository.host());
    let what = format!("{realm} returned no usable token for {host}");
    RegistryError::Response { what, reason }
}

/// Returns a `Basic` header.
pub(crate) fn basic(user: &str, password: &Secret) -> Option<HeaderValue> {
    let pair = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
    sensitive(&format!("Basic {pair}"))
}

/// Returns a `Bearer` header, or `None` if the token is empty, longer than [`MAX_TOKEN`], or not printable ASCII.
pub(crate) fn bearer(token: &Secret) -> Option<HeaderValue> {
    let token = token.expose();
    let right = (1..=MAX_TOKEN).contains(&token.len());
    let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
    (right && visible).then(|| sensitive(&format!("Bearer {token}")))?
}

/// Returns a header whose value `{:?}` does not show.
fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}
