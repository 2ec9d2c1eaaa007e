//! Answers that have not what was asked for.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;

use super::RegistryError;
use super::body::Body;
use super::session::{Answer, Session};

/// The most bytes of a refusal that are read.
const LIMIT: u64 = 16 << 10;
/// The error codes of the OCI distribution-spec. Only these are repeated: any other text could be
/// anything, also what was sent.
const CODES: [&str; 14] = [
    "BLOB_UNKNOWN",
    "BLOB_UPLOAD_INVALID",
    "BLOB_UPLOAD_UNKNOWN",
    "DIGEST_INVALID",
    "MANIFEST_BLOB_UNKNOWN",
    "MANIFEST_INVALID",
    "MANIFEST_UNKNOWN",
    "NAME_INVALID",
    "NAME_UNKNOWN",
    "SIZE_INVALID",
    "UNAUTHORIZED",
    "DENIED",
    "UNSUPPORTED",
    "TOOMANYREQUESTS",
];

#[derive(Deserialize)]
struct Errors {
    errors: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    code: String,
}

/// Returns the error for an answer that has not what was asked for.
pub(super) fn of(session: &Session<'_>, what: &str, answer: Answer) -> RegistryError {
    let (what, host) = (what.to_owned(), answer.url.host());
    if answer.response.status() == StatusCode::NOT_FOUND {
        return RegistryError::NotFound { what, host };
    }
    status(session, what, host, answer.response)
}

/// Returns the error for a status. Only a server's own failures, its impatience and "too many
/// requests" pass by themselves.
pub(super) fn status(
    session: &Session<'_>,
    what: String,
    host: String,
    response: Response,
) -> RegistryError {
    let status = response.status();
    let passing = status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    let retry_after = retry_after(response.headers());
    let code = code(session, &host, response);
    RegistryError::Status { what, host, status: status.to_string(), code, passing, retry_after }
}

/// Reads `Retry-After` (RFC 9110, section 10.2.3) as a number of seconds. A date is not understood:
/// it would be compared with a clock of which nobody knows whether it is right.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?;
    seconds.parse().ok().map(Duration::from_secs)
}

/// Reads the error code of a refusal, where it has a known one.
fn code(session: &Session<'_>, host: &str, response: Response) -> Option<&'static str> {
    let body = Body::new(session, String::new(), host.to_owned(), response);
    let errors: Errors = serde_json::from_slice(&body.read_whole(LIMIT).ok()?).ok()?;
    let code = &errors.errors.first()?.code;
    CODES.into_iter().find(|known| known == code)
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

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
