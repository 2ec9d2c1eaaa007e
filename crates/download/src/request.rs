//! A GET request and the redirects that answer it.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};

use crate::error::DownloadError;
use crate::http::{Client, HttpError, RemoteUrl, UrlError};

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// A GET request and the headers that go with it.
#[derive(Debug)]
pub struct Request<'a> {
    /// The name of the file, for messages.
    pub what: &'a str,
    /// The first URL; up to `REDIRECTS` redirects are followed.
    pub url: RemoteUrl,
    /// The headers for every server.
    pub headers: HeaderMap,
    /// The headers for the URL's own origin (scheme, host and port), and only until a redirect
    /// leaves it: a request that comes back later was sent by somebody else.
    pub authorization: Option<HeaderValue>,
}

/// The response after all redirects.
#[derive(Debug)]
pub struct FinalResponse {
    /// Where it came from.
    pub url: RemoteUrl,
    /// Whether no redirect left the origin of the request.
    pub same_origin: bool,
    /// The status, the headers, and the body that is not read yet.
    pub response: Response,
}

impl Request<'_> {
    /// Sends the request and follows redirects.
    ///
    /// # Errors
    /// [`DownloadError::Http`], and those of redirects.
    pub fn send(&self, client: &Client) -> Result<FinalResponse, DownloadError> {
        let mut url = self.url.clone();
        let mut same_origin = true;
        for _ in 0..=REDIRECTS {
            same_origin = same_origin && url.same_origin(&self.url);
            let mut headers = self.headers.clone();
            if same_origin && let Some(authorization) = &self.authorization {
                headers.insert(AUTHORIZATION, authorization.clone());
            }
            let response = self.ask(client, &url, headers)?;
            match location(&response) {
                None => return Ok(FinalResponse { url, same_origin, response }),
                Some(location) => url = self.redirected(&url, location)?,
            }
        }
        let how = format!("more than {REDIRECTS} times");
        Err(DownloadError::Redirect { what: self.what.to_owned(), how })
    }

    /// Asks for what is at a URL: that of the request, or one to which a server has led.
    fn ask(
        &self,
        client: &Client,
        url: &RemoteUrl,
        headers: HeaderMap,
    ) -> Result<Response, DownloadError> {
        // Whoever names a server by a link-local address means that server, and no other there.
        let response = if url.same_host(&self.url) {
            client.get(url, headers)
        } else {
            client.get_redirected(url, headers)
        };
        response.map_err(|error| match error {
            HttpError::Screened { purpose, .. } => self.screened(&url.describe(), purpose),
            error => error.into(),
        })
    }

    /// Returns the URL that a redirect leads to, if it is followed.
    fn redirected(&self, from: &RemoteUrl, location: &str) -> Result<RemoteUrl, DownloadError> {
        let (what, to) = (self.what.to_owned(), from.describe_server(location));
        match from.join(location) {
            Ok(url) if from.is_https() && !url.is_https() => {
                Err(DownloadError::Downgrade { what, to })
            }
            Ok(url) => Ok(url),
            Err(error) => {
                let how = format!("to {to}, which is not followed: {}", rule(&error));
                Err(DownloadError::Redirect { what, how })
            }
        }
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

/// Returns where a response redirects to (RFC 9110, section 15.4).
fn location(response: &Response) -> Option<&str> {
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

impl FinalResponse {
    /// Returns the error of a status without the file. Only a server's own failures, its timeout and
    /// "too many requests" are transient.
    pub fn status_error(&self, what: &str) -> DownloadError {
        let status = self.response.status();
        DownloadError::Status {
            what: what.to_owned(),
            host: self.url.host(),
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
