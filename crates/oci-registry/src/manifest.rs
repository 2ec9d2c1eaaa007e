//! Fetches manifests and indexes, limits their size, and verifies their digest.

use box_contract::manifest::MANIFEST_TYPES;
use box_digest::{Digest, ParseDigestError};
use download::{Body, Cancel, Deadline, DownloadError, retry};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::error::RegistryError;
use crate::name::Reference;
use crate::page;
use crate::refusal;
use crate::server::Resource;
use crate::session::Session;

/// The maximum size of a manifest or an index, in bytes. Registries should accept this size (OCI distribution-spec,
/// [Pushing Manifests](https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-manifests)).
pub const MAX_MANIFEST: u64 = 4 << 20;
/// The media types of manifests of Docker's first schema, plain and signed. This crate never requests them, but some registries
/// still send them. `oci-image` has a message for them.
pub const DOCKER_SCHEMA_1_TYPES: [&str; 2] = [
    "application/vnd.docker.distribution.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v1+prettyjws",
];
/// Media types that servers of plain files give to any document. They are ignored: the document's `mediaType` field then
/// decides.
const GENERIC_TYPES: [&str; 4] =
    ["application/json", "application/octet-stream", "binary/octet-stream", "text/plain"];
/// A manifest or an index from a registry. Its bytes are verified; its content is not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The bytes, verified against `digest`.
    pub bytes: Vec<u8>,
    /// The media type in the response: an OCI or docker type for manifests and indexes. `None` if the response has no media type,
    /// or one for any document, such as `application/json`.
    pub media_type: Option<&'static str>,
    /// The sha256 of the bytes.
    pub digest: Digest,
}

pub(crate) fn fetch(session: &Session, reference: &Reference) -> Result<Manifest, RegistryError> {
    let mark = if matches!(reference, Reference::Tag(_)) { ':' } else { '@' };
    let what = format!("the manifest of {}{mark}{reference}", session.server.repository);
    let path = format!("manifests/{reference}");
    let resource = Resource { what, path, reference: Some(reference.clone()) };
    retry(session.attempts(), &Cancel::default(), |attempts| {
        attempt(session, &resource, reference, attempts.deadline(0))
    })
}

fn attempt(
    session: &Session,
    resource: &Resource,
    reference: &Reference,
    deadline: Deadline,
) -> Result<Manifest, RegistryError> {
    let (server, what) = (&session.server, &resource.what);
    let mut accept = HeaderMap::new();
    for media_type in MANIFEST_TYPES {
        accept.append(ACCEPT, HeaderValue::from_static(media_type));
    }
    let response = session.get(resource, &accept)?;
    if response.response.status() != StatusCode::OK {
        return Err(refusal::of(server, resource, response));
    }
    let headers = response.response.headers().clone();
    let policy = &server.options.network.policy;
    let bytes = Body::new(what, response, policy, deadline).read_whole(MAX_MANIFEST)?;
    page::check_page(server, what, &bytes)?;
    let digest = Digest::of(&bytes);
    let asked = match reference {
        Reference::Digest(digest) => Some(*digest),
        Reference::Tag(_) => None,
    };
    for expected in [asked, named_digest(&headers, what)?].into_iter().flatten() {
        if digest != expected {
            let (what, found) = (what.clone(), digest);
            return Err(DownloadError::WrongDigest { what, expected, found }.into());
        }
    }
    page::check_document(server, what, &bytes)?;
    Ok(Manifest { bytes, media_type: media_type(&headers, what)?, digest })
}

/// Returns the digest in the response's `Docker-Content-Digest` header, if any. It is not trusted, but a wrong one means that the
/// server or a proxy has changed the response.
pub(crate) fn named_digest(
    headers: &HeaderMap,
    what: &str,
) -> Result<Option<Digest>, RegistryError> {
    let Some(value) = headers.get("docker-content-digest") else { return Ok(None) };
    let reason = match value.to_str().unwrap_or_default().parse() {
        Ok(digest) => return Ok(Some(digest)),
        Err(ParseDigestError::Algorithm { .. }) => {
            "it names a digest of an unknown algorithm; sha256 is known"
        }
        Err(ParseDigestError::Hex(_)) => {
            "it names a digest without 64 lower-case hexadecimal digits"
        }
    };
    Err(RegistryError::response(what, reason))
}

/// Returns the media type in the response, without its parameters, or `None` for a type that any document can have. An unknown
/// type is not repeated in messages, because it is untrusted text.
fn media_type(headers: &HeaderMap, what: &str) -> Result<Option<&'static str>, RegistryError> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(None) };
    let named = value.to_str().unwrap_or_default();
    let named = named.split(';').next().unwrap_or(named).trim();
    if GENERIC_TYPES.iter().any(|it| named.eq_ignore_ascii_case(it)) {
        return Ok(None);
    }
    let reason = "its media type is not that of a manifest or an index";
    let mut known = MANIFEST_TYPES.into_iter().chain(DOCKER_SCHEMA_1_TYPES);
    known
        .find(|known| *known == named)
        .map(Some)
        .ok_or_else(|| RegistryError::response(what, reason))
}
