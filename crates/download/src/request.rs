//! A request and the redirects that answer it.

use std::time::Duration;

use reqwest::blocking::Response;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode};

use crate::error::DownloadError;
use crate::http::{Client, Content, HttpError, Outgoing, RemoteUrl, UrlError};
use crate::retry::{Attempts, Policy};

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// A URL, and whether those who led to it are the server that the user has named.
#[derive(Debug, Clone)]
pub struct RequestUrl {
    /// What is requested.
    pub url: RemoteUrl,
    /// The server that the user has named, or its configuration.
    origin: RemoteUrl,
    same_origin: bool,
}

impl RequestUrl {
    /// Takes a URL that no server has led to.
    pub fn named(url: RemoteUrl) -> Self {
        Self { origin: url.clone(), url, same_origin: true }
    }

    /// Returns whether the URL is of the origin that the user has named (scheme, host and port), and no step on the way to
    /// it has left that: whoever comes back later was sent by somebody else.
    pub const fn same_origin(&self) -> bool {
        self.same_origin
    }

    /// Returns where a header `Location` leads to from here, for a request of the file `what`.
    ///
    /// # Errors
    /// [`DownloadError::Downgrade`] and [`DownloadError::Redirect`].
    pub fn led_to(&self, what: &str, location: &str) -> Result<Self, DownloadError> {
        let to = self.url.describe_server(location);
        match self.url.join(location) {
            Ok(url) if self.url.is_https() && !url.is_https() => {
                Err(DownloadError::Downgrade { what: what.to_owned(), to })
            }
            Ok(url) => {
                let same_origin = self.same_origin && url.same_origin(&self.origin);
                Ok(Self { url, origin: self.origin.clone(), same_origin })
            }
            Err(error) => {
                let how = format!("to {to}, which is not followed: {}", rule(&error));
                Err(DownloadError::Redirect { what: what.to_owned(), how })
            }
        }
    }

    /// Returns the place with more in its query.
    #[must_use]
    pub fn with_query(&self, pairs: &[(&str, &str)]) -> Self {
        Self { url: self.url.with_query(pairs), ..self.clone() }
    }

    /// Returns whether a server has led here that need not be the one that the user has named. Whoever names a server by a
    /// link-local address means that server, and no other there.
    fn is_screened(&self) -> bool {
        !self.url.same_host(&self.origin)
    }
}

/// What a request carries.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// Nothing.
    None,
    /// A few bytes.
    Bytes(&'a [u8]),
    /// A file of any size, which is read again for each server that the request goes to. It may take as long as a download
    /// of its size.
    Content(&'a dyn Content, &'a Policy),
}

/// A request and what goes with it.
#[derive(Debug)]
pub struct Request<'a> {
    /// The name of the file, for messages.
    pub what: &'a str,
    /// GET and HEAD are repeated at up to `REDIRECTS` redirects. What changes something is repeated only where the redirect
    /// says that the method stays (307 and 308).
    pub method: Method,
    /// Where it goes first.
    pub at: RequestUrl,
    /// The headers for every server.
    pub headers: HeaderMap,
    /// The header for the origin that the user has named, and only until a redirect leaves it.
    pub authorization: Option<HeaderValue>,
    /// What is sent, to every server that the request goes to.
    pub payload: Payload<'a>,
}

/// The response after all redirects.
#[derive(Debug)]
pub struct FinalResponse {
    /// Where it came from.
    pub at: RequestUrl,
    /// The status, the headers, and the body that is not read yet.
    pub response: Response,
}

impl<'a> Request<'a> {
    /// Makes a request for what is at a URL.
    pub const fn get(what: &'a str, at: RequestUrl, headers: HeaderMap) -> Self {
        let (method, payload) = (Method::GET, Payload::None);
        Self { what, method, at, headers, authorization: None, payload }
    }

    /// Sends the request and follows redirects.
    ///
    /// # Errors
    /// [`DownloadError::Http`], and those of redirects.
    pub fn send(&self, client: &Client) -> Result<FinalResponse, DownloadError> {
        let mut at = self.at.clone();
        for _ in 0..=REDIRECTS {
            let response = self.ask(client, &at)?;
            match location(&response, &self.method) {
                None => return Ok(FinalResponse { at, response }),
                Some(location) => at = at.led_to(self.what, location)?,
            }
        }
        let how = format!("more than {REDIRECTS} times");
        Err(DownloadError::Redirect { what: self.what.to_owned(), how })
    }

    /// Sends the request to one server.
    fn ask(&self, client: &Client, at: &RequestUrl) -> Result<Response, DownloadError> {
        let (method, mut headers) = (self.method.clone(), self.headers.clone());
        if at.same_origin
            && let Some(authorization) = &self.authorization
        {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let led = at.is_screened();
        let response = match self.payload {
            Payload::None => client.send(method, &at.url, led, headers, None),
            Payload::Bytes(bytes) => client.send(method, &at.url, led, headers, Some(bytes)),
            Payload::Content(content, policy) => {
                let allowed = Attempts::new(policy).deadline(content.size()).allowed;
                let outgoing = Outgoing { method, headers, content, allowed, answer: policy.grace };
                client.upload(&at.url, led, outgoing)
            }
        };
        response.map_err(|error| match error {
            HttpError::Screened { purpose, .. } => self.screened(&at.url.describe(), purpose),
            error => error.into(),
        })
    }

    /// Returns the error of a redirect to an address of the link, or to a cloud's metadata.
    fn screened(&self, to: &str, purpose: &str) -> DownloadError {
        let how = format!("to {to}, which is not followed: its address is {purpose}");
        DownloadError::Redirect { what: self.what.to_owned(), how }
    }
}

/// Returns why a URL is not requested, without any of its text.
const fn rule(error: &UrlError) -> &'static str {
    match error {
        UrlError::Malformed { .. } => "it cannot be parsed",
        UrlError::Scheme(_) => "only https and http are",
        UrlError::Credentials { .. } => "it has a user name or a password",
    }
}

/// Returns where a response redirects a request to (RFC 9110, section 15.4).
fn location<'r>(response: &'r Response, method: &Method) -> Option<&'r str> {
    let redirects = match response.status() {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => {
            method.is_safe()
        }
        _ => false,
    };
    response.headers().get(LOCATION).filter(|_| redirects)?.to_str().ok()
}

impl FinalResponse {
    /// Returns the error of a status without the file. Only a server's own failures, its timeout and
    /// "too many requests" are transient.
    pub fn status_error(&self, what: &str) -> DownloadError {
        let status = self.response.status();
        DownloadError::Status {
            what: what.to_owned(),
            host: self.at.url.host(),
            status,
            reason: None,
            transient: status.is_server_error()
                || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT),
            retry_after: retry_after(self.response.headers()),
        }
    }
}

/// Reads `Retry-After` (RFC 9110, section 10.2.3) as a number of seconds. A date is not understood:
/// it would be compared with a clock that may be wrong.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?;
    seconds.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_and_dates_are_not() {
        let read = |text| {
            retry_after(&HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]))
        };
        assert_eq!(read("0"), Some(Duration::ZERO));
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        for other in ["", "-1", "1.5", "Fri, 31 Dec 1999 23:59:59 GMT", "99999999999999999999"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
