//! Turns error responses into [`RegistryError`]s.

use download::{Attempts, Body, DownloadError, FinalResponse};
use reqwest::StatusCode;
use serde_json::Value;

use crate::error::RegistryError;
use crate::name::Reference;
use crate::server::{Resource, Server};

/// The maximum size of an error response's body, in bytes.
const LIMIT: u64 = 16 << 10;
/// The error codes of the OCI distribution-spec,
/// [Error Codes](https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#error-codes).
/// Messages repeat only these codes: any other text of a server is untrusted, and could repeat a secret of the request.
const CODES: [&str; 15] = [
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
    "TAG_INVALID",
    "UNAUTHORIZED",
    "DENIED",
    "UNSUPPORTED",
    "TOOMANYREQUESTS",
];

/// Returns the error of a response to a request for `resource` whose status is not a success.
pub(crate) fn of(server: &Server, resource: &Resource, response: FinalResponse) -> RegistryError {
    if response.response.status() == StatusCode::NOT_FOUND {
        return not_found(server, resource, response);
    }
    status(server, &resource.what, response)
}

/// Returns the error of a missing resource. Few registries distinguish a missing repository from a
/// missing tag.
fn not_found(server: &Server, resource: &Resource, response: FinalResponse) -> RegistryError {
    let (host, name) = (host(server, &response), server.repository.name());
    let code = code(server, &resource.what, response);
    let (what, tag) = match &resource.reference {
        None => (resource.what.trim_start_matches("the ").to_owned(), None),
        Some(_) if code == Some("NAME_UNKNOWN") => (format!("repository {name}"), None),
        Some(Reference::Digest(digest)) => (format!("{name} with the digest {digest}"), None),
        Some(tag) => (format!("{name} with the tag \"{tag}\""), Some(tag.to_string())),
    };
    RegistryError::NotFound { what, host, tag }
}

/// Returns the error of a rejected blob.
pub(crate) fn of_upload(
    server: &Server,
    what: &str,
    response: FinalResponse,
    size: u64,
) -> RegistryError {
    let (host, found) = (host(server, &response), response.response.status());
    let what = what.to_owned();
    match found {
        StatusCode::PAYLOAD_TOO_LARGE => RegistryError::TooLarge { what, host, size },
        StatusCode::FORBIDDEN if response.at.same_origin() => {
            let reason = code(server, &what, response);
            RegistryError::Denied { what, host, reason }
        }
        StatusCode::NOT_FOUND if response.at.same_origin() => {
            let what = match code(server, &what, response) {
                Some("BLOB_UPLOAD_UNKNOWN") => {
                    format!("{} any more", what.trim_start_matches("the "))
                }
                _ => format!("repository {}", server.repository.name()),
            };
            RegistryError::NotFound { what, host, tag: None }
        }
        _ => status(server, &what, response),
    }
}

/// Returns the error of a rejected manifest.
pub(crate) fn of_manifest(
    server: &Server,
    what: &str,
    response: FinalResponse,
    size: u64,
) -> RegistryError {
    let (host, status) = (host(server, &response), response.response.status());
    // Include 405, with which Amazon's registry rejects a media type that it does not know.
    let known = [
        StatusCode::BAD_REQUEST,
        StatusCode::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        StatusCode::UNPROCESSABLE_ENTITY,
    ];
    if !response.at.same_origin() || !known.contains(&status) {
        return of_upload(server, what, response, size);
    }
    let reason = code(server, what, response);
    // A 404 means that the repository is missing, or, at some registries, that a blob of the manifest is missing.
    let is_blob = matches!(reason, Some("BLOB_UNKNOWN" | "MANIFEST_BLOB_UNKNOWN"));
    if status == StatusCode::NOT_FOUND && !is_blob {
        let what = format!("repository {}", server.repository.name());
        return RegistryError::NotFound { what, host, tag: None };
    }
    RegistryError::Refused { what: what.to_owned(), host, status, reason }
}

/// Returns the host of the server that has sent the response.
fn host(server: &Server, response: &FinalResponse) -> String {
    match response.at.same_origin() {
        true => server.repository.host().to_owned(),
        false => response.at.url.host(),
    }
}

/// Returns the error of a response's status, with the error code of its body if that is one of [`CODES`].
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
