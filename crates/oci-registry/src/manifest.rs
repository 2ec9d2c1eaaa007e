//! Manifests and other documents: small, whole, and verified.

use box_cache::BlobId;
use box_image::{Digest, ParseDigestError};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::body::Body;
use super::guard::Guard;
use super::retry::retry;
use super::session::Session;
use super::{Reference, RegistryError, refusal};

/// The most bytes that a manifest or an index may have: what registries must take (OCI
/// distribution-spec, "Pushing Manifests").
pub const MANIFEST_LIMIT: u64 = 4 << 20;

/// A manifest or an index as a registry has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The document: JSON, and either an index or an image's manifest.
    pub bytes: Vec<u8>,
    /// Its type, as the registry and, where it says so, the document have it.
    pub media_type: String,
    /// The sha256 of the bytes.
    pub digest: Digest,
}

/// What of a manifest tells its kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind {
    media_type: Option<String>,
    manifests: Option<IgnoredAny>,
    layers: Option<IgnoredAny>,
    config: Option<IgnoredAny>,
}

/// Fetches a manifest.
pub(super) fn manifest(
    session: &Session<'_>,
    reference: &Reference,
) -> Result<Manifest, RegistryError> {
    retry(session.tries(), || once(session, reference))
}

fn once(session: &Session<'_>, reference: &Reference) -> Result<Manifest, RegistryError> {
    let ask = session.manifest(reference);
    let answer = session.send(&ask)?;
    if answer.response.status() != StatusCode::OK {
        return Err(refusal::of(session, &ask.what, answer));
    }
    let headers = answer.response.headers().clone();
    let bytes = Body::of(session, &ask.what, answer)?.read_whole(limit(session, MANIFEST_LIMIT))?;
    let digest = Digest::from_bytes(BlobId::of(&bytes).0);
    if let Reference::Digest(expected) = reference {
        check_digest(session, &ask.what, *expected, digest)?;
    }
    if let Some(named) = named_digest(&headers, &ask.what)? {
        check_digest(session, &ask.what, named, digest)?;
    }
    let media_type = media_type(session, &headers, &bytes)
        .map_err(|why| RegistryError::Manifest { what: ask.what, why })?;
    Ok(Manifest { bytes, media_type, digest })
}

/// Fetches a document that something names by digest and size.
pub(super) fn document(
    session: &Session<'_>,
    digest: &Digest,
    size: u64,
    most: u64,
) -> Result<Vec<u8>, RegistryError> {
    let ask = session.blob(digest, 0);
    if size > most && session.guards.hold(Guard::Limit) {
        return Err(RegistryError::TooLarge { what: ask.what, limit: most });
    }
    retry(session.tries(), || {
        let answer = session.send(&ask)?;
        if answer.response.status() != StatusCode::OK {
            return Err(refusal::of(session, &ask.what, answer));
        }
        let body = Body::of(session, &ask.what, answer)?;
        check_size(session, &ask.what, size, body.announced().unwrap_or(size))?;
        let bytes = body.read_whole(limit(session, size)).map_err(|error| match error {
            RegistryError::TooLarge { what, .. } => {
                RegistryError::WrongSize { what, expected: size, found: size + 1 }
            }
            error => error,
        })?;
        check_size(session, &ask.what, size, bytes.len() as u64)?;
        check_digest(session, &ask.what, *digest, Digest::from_bytes(BlobId::of(&bytes).0))?;
        Ok(bytes)
    })
}

fn limit(session: &Session<'_>, limit: u64) -> u64 {
    if session.guards.hold(Guard::Limit) { limit } else { u64::MAX }
}

/// Refuses content that is something else than it should be.
pub(super) fn check_digest(
    session: &Session<'_>,
    what: &str,
    expected: Digest,
    found: Digest,
) -> Result<(), RegistryError> {
    if found == expected || !session.guards.hold(Guard::Digest) {
        return Ok(());
    }
    Err(RegistryError::WrongDigest { what: what.to_owned(), expected, found })
}

/// Refuses content that is shorter or longer than it should be.
pub(super) fn check_size(
    session: &Session<'_>,
    what: &str,
    expected: u64,
    found: u64,
) -> Result<(), RegistryError> {
    if found == expected || !session.guards.hold(Guard::Size) {
        return Ok(());
    }
    Err(RegistryError::WrongSize { what: what.to_owned(), expected, found })
}

/// Returns what the registry says that the bytes hash to. It need not say so, and is not believed,
/// but if it does and errs, then something between it and here is broken.
fn named_digest(headers: &HeaderMap, what: &str) -> Result<Option<Digest>, RegistryError> {
    let Some(value) = headers.get("docker-content-digest") else { return Ok(None) };
    let why = match value.to_str().unwrap_or_default().parse() {
        Ok(digest) => return Ok(Some(digest)),
        Err(ParseDigestError::Algorithm(_)) => "it is of an unknown algorithm; sha256 is known",
        Err(ParseDigestError::Hex(_)) => "it has not 64 lower-case hexadecimal digits",
    };
    Err(RegistryError::DigestHeader { what: what.to_owned(), why })
}

/// Returns what a manifest is. A document that can be read as two kinds of manifest, or whose own
/// type is not the registry's, could mean one image to one program and another to the next
/// (CVE-2021-41190).
fn media_type(
    session: &Session<'_>,
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<String, &'static str> {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let header = header.map(|it| it.split(';').next().unwrap_or(it).trim().to_owned());
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err("it is no JSON object");
    }
    let kind: Kind =
        serde_json::from_slice(bytes).map_err(|_| "it does not read as a manifest or an index")?;
    let is_index = kind.manifests.is_some();
    if is_index
        && (kind.layers.is_some() || kind.config.is_some())
        && session.guards.hold(Guard::Kind)
    {
        return Err("it is a manifest and an index at once");
    }
    match (header, kind.media_type) {
        (Some(header), Some(own)) if header != own && session.guards.hold(Guard::Kind) => {
            Err("the registry says that it is of another type than it says itself")
        }
        (Some(it), _) | (None, Some(it)) => Ok(it),
        (None, None) => Err("nothing says of which type it is"),
    }
}
