//! Tokens from a realm (the distribution project's "Token Authentication Specification" and "OAuth2
//! Token Authentication").
//!
//! What is asked for is always to read this one repository, whatever the registry says. A realm
//! answers itself: its redirects are not followed.

use download::http::{HttpError, RemoteUrl};
use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;

use super::auth::{basic, bearer};
use super::body::Body;
use super::credentials::Credentials;
use super::session::{Ask, Session};
use super::{RegistryError, Secret, refusal};

/// The most bytes that the answer with a token may have.
const LIMIT: u64 = 128 << 10;
/// The content type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// A token, under one of its two names.
#[derive(Deserialize)]
struct Granted {
    token: Option<Secret>,
    access_token: Option<Secret>,
}

/// Fetches a token for reading the session's repository, and returns the header that has it.
pub(super) fn fetch(
    session: &Session<'_>,
    ask: &Ask,
    realm: &RemoteUrl,
    service: Option<&str>,
    credentials: Option<&Credentials>,
) -> Result<HeaderValue, RegistryError> {
    let response = request(session, realm, service, credentials)?;
    match response.status() {
        StatusCode::OK => read(session, realm, response),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Err(session.unauthorized(ask, credentials.is_some()))
        }
        status if status.is_redirection() => Err(useless(session, realm, "it redirects")),
        _ => {
            let what = format!("a token for {}", session.repository);
            Err(refusal::status(session, what, realm.host(), response))
        }
    }
}

fn request(
    session: &Session<'_>,
    realm: &RemoteUrl,
    service: Option<&str>,
    credentials: Option<&Credentials>,
) -> Result<Response, HttpError> {
    let scope = format!("repository:{}:pull", session.repository.name());
    let mut query = vec![("scope", scope.as_str())];
    query.extend(service.map(|service| ("service", service)));
    match credentials {
        Some(Credentials::Identity(token)) => {
            query.extend([("grant_type", "refresh_token"), ("client_id", "boxbuild")]);
            query.push(("refresh_token", token.expose()));
            let headers = [(CONTENT_TYPE, HeaderValue::from_static(FORM))];
            session.client.post(realm, HeaderMap::from_iter(headers), RemoteUrl::form(&query))
        }
        Some(Credentials::Password { user, password }) => {
            let header = basic(user, password).map(|header| (AUTHORIZATION, header));
            session.client.get(&realm.with_query(&query), header.into_iter().collect())
        }
        Some(Credentials::Token(_)) | None => {
            session.client.get(&realm.with_query(&query), HeaderMap::new())
        }
    }
}

fn read(
    session: &Session<'_>,
    realm: &RemoteUrl,
    response: Response,
) -> Result<HeaderValue, RegistryError> {
    let what = format!("the token for {}", session.repository);
    let text = Body::new(session, what, realm.host(), response).read_whole(LIMIT)?;
    let granted = serde_json::from_slice::<Granted>(&text)
        .map_err(|_| useless(session, realm, "its answer does not read"))?;
    let token = granted.token.or(granted.access_token);
    let token = token.ok_or_else(|| useless(session, realm, "its answer has none"))?;
    bearer(&token).ok_or_else(|| useless(session, realm, "it cannot stand in a header"))
}

fn useless(session: &Session<'_>, realm: &RemoteUrl, why: &'static str) -> RegistryError {
    let host = session.repository.host().to_owned();
    RegistryError::Token { host, realm: realm.host(), why }
}
