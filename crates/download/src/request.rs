//! A request, and the redirects that it follows.

use std::time::Duration;

use reqwest::blocking::Response;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode};

use crate::error::DownloadError;
use crate::http::{Client, Content, HttpError, Outgoing, RemoteUrl, UrlError};
use crate::retry::{Attempts, Policy};

/// The maximum number of redirects.
const REDIRECTS: usize = 5;

/// A URL, and the first URL, from which redirects led to it.
#[derive(Debug, Clone)]
pub struct RequestUrl {
    /// The URL of the request.
    pub url: RemoteUrl,
    /// The first URL, from the user or the configuration.
    origin: RemoteUrl,
    same_origin: bool,
}

impl RequestUrl {
    /// Makes the first URL of a request, which is not from a redirect.
    pub fn named(url: RemoteUrl) -> Self {
        Self { origin: url.clone(), url, same_origin: true }
    }

    /// Returns whether this URL and all URLs before it have the origin (scheme, host and port) of the first URL. If a redirect
    /// leads away from this origin and a later one back to it, returns `false`, because another server chose the last URL.
    pub const fn same_origin(&self) -> bool {
        self.same_origin
    }

    /// Returns the URL of a redirect from this URL with a `Location` header. `what` describes the file.
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

    /// Returns this URL with `pairs` appended to its query.
    #[must_use]
    pub fn with_query(&self, pairs: &[(&str, &str)]) -> Self {
        Self { url: self.url.with_query(pairs), ..self.clone() }
    }

    /// Returns whether the URL has another host than the first URL. If so, it must not have a link-local address. The first URL
    /// may have one, because the user has chosen it.
    fn is_screened(&self) -> bool {
        !self.url.same_host(&self.origin)
    }
}

/// The body of a request.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// No body.
    None,
    /// A short body.
    Bytes(&'a [u8]),
    /// A file of any size. It is read again for each redirect. The upload has the time limit of a download of its size.
    Content(&'a dyn Content, &'a Policy),
}

/// A request, with all its headers and its body.
#[derive(Debug)]
pub struct Request<'a> {
    /// The description of the file, for messages.
    pub what: &'a str,
    /// GET and HEAD follow up to `REDIRECTS` redirects. Other methods follow only the redirects that keep the method (307 and
    /// 308).
    pub method: Method,
    /// The first URL.
    pub at: RequestUrl,
    /// The headers for the first server and for each redirect.
    pub headers: HeaderMap,
    /// The `Authorization` header. It is sent until a redirect leads to another origin.
    pub authorization: Option<HeaderValue>,
    /// The body for the first server and for each redirect.
    pub payload: Payload<'a>,
}

/// The response after all redirects.
#[derive(Debug)]
pub struct FinalResponse {
    /// The URL that returned the response.
    pub at: RequestUrl,
    /// The status, the headers, and the unread body.
    pub response: Response,
}

impl<'a> Request<'a> {
    /// Makes a GET request.
    pub const fn get(what: &'a str, at: RequestUrl, headers: HeaderMap) -> Self {
        let (method, payload) = (Method::GET, Payload::None);
        Self { what, method, at, headers, authorization: None, payload }
    }

    /// Sends the request and follows redirects.
    ///
    /// # Errors
    /// [`DownloadError::Http`], and the errors of [`RequestUrl::led_to`].
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
        let is_redirected = at.is_screened();
        let response = match self.payload {
            Payload::None => client.send(method, &at.url, is_redirected, headers, None),
            Payload::Bytes(bytes) => {
                client.send(method, &at.url, is_redirected, headers, Some(bytes))
            }
            Payload::Content(content, policy) => {
                let allowed = Attempts::new(policy).deadline(content.size()).allowed;
                let outgoing = Outgoing { method, headers, content, allowed, answer: policy.grace };
                client.upload(&at.url, is_redirected, outgoing)
            }
        };
        response.map_err(|error| match error {
            HttpError::Screened { purpose, .. } => self.screened(&at.url.describe(), purpose),
            error => error.into(),
        })
    }

    /// Returns the error of a redirect to a link-local address or a cloud's metadata service.
    fn screened(&self, to: &str, purpose: &str) -> DownloadError {
        let how = format!("to {to}, which is not followed: its address is {purpose}");
        DownloadError::Redirect { what: self.what.to_owned(), how }
    }
}

/// Returns the reason why a URL is not requested. It contains no part of the URL.
const fn rule(error: &UrlError) -> &'static str {
    match error {
        UrlError::Malformed { .. } => "it cannot be parsed",
        UrlError::Scheme(_) => "only https and http are",
        UrlError::Credentials { .. } => "it has a user name or a password",
    }
}

/// Returns the `Location` header if the response is a redirect that the client follows ([RFC 9110, section
/// 15.4](https://www.rfc-editor.org/rfc/rfc9110#section-15.4)).
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
    /// Returns the error of this response's status. Only server errors (5xx), 408 and 429 are transient.
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

/// Reads `Retry-After` ([RFC 9110, section 10.2.3](https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3)) as a number of
/// seconds. A date is ignored, because the local clock may be wrong.
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
