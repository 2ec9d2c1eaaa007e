//! Responses that do not have what was asked for.

use download::{Attempts, Body, DownloadError, FinalResponse};
use reqwest::StatusCode;
use serde_json::Value;

use crate::error::RegistryError;
use crate::server::Server;

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

/// Returns the error of a response that does not have what was asked for.
pub(crate) fn of(server: &Server, what: &str, response: FinalResponse) -> RegistryError {
    if response.response.status() == StatusCode::NOT_FOUND {
        return RegistryError::NotFound { what: what.to_owned(), host: response.url.host() };
    }
    status(server, what, response)
}

/// Returns the error of a status, with the error code of the body where it has a known one.
pub(crate) fn status(server: &Server, what: &str, response: FinalResponse) -> RegistryError {
    let mut error = response.status_error(what);
    if let DownloadError::Status { reason, .. } = &mut error {
        *reason = code(server, what, response);
    }
    error.into()
}

fn code(server: &Server, what: &str, response: FinalResponse) -> Option<&'static str> {
    let policy = &server.options.network.policy;
    let body = Body::new(what, response, policy, Attempts::new(policy).deadline(0));
    let errors: Value = serde_json::from_slice(&body.read_whole(LIMIT).ok()?).ok()?;
    let code = errors.pointer("/errors/0/code")?;
    CODES.into_iter().find(|known| code == known)
}
