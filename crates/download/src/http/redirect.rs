//! Where an answer leads to.

use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::LOCATION;

use super::{RemoteUrl, UrlError};

/// Why a redirect is not followed.
#[derive(Debug)]
pub enum Refused {
    /// It leads to something that is never fetched.
    Target(UrlError),
    /// It leads from https to http: there.
    Downgrade(RemoteUrl),
}

/// Returns where an answer redirects to (RFC 9110, section 15.4).
pub fn location(response: &Response) -> Option<&str> {
    let redirects = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    response.headers().get(LOCATION).filter(|_| redirects)?.to_str().ok()
}

/// Returns the URL that a redirect from `at` leads to.
pub fn next(at: &RemoteUrl, location: &str) -> Result<RemoteUrl, Refused> {
    let to = at.join(location).map_err(Refused::Target)?;
    if at.is_https() && !to.is_https() { Err(Refused::Downgrade(to)) } else { Ok(to) }
}
