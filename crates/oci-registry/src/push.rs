//! Writes to a repository: blobs and manifests (OCI distribution-spec v1.1, "Push",
//! <https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#push>).
//!
//! A blob is sent with one POST and one PUT of its whole length, because all registries support this: Google's has no PATCH, and
//! some others implement it wrongly. A failed upload starts again with the POST, so no registry has to keep an incomplete blob.

use std::io::{self, Read};
use std::sync::Arc;

use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use download::http::{Content, InMemory};
use download::{
    Cancel, FinalResponse, NetworkOptions, Payload, Progress, Request, RequestUrl, Retryable, retry,
};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode};

use crate::error::RegistryError;
use crate::manifest::{self, Manifest, named_digest};
use crate::name::{Reference, Repository};
use crate::refusal;
use crate::server::Resource;
use crate::session::Session;

/// Writes to one repository of a registry.
///
/// It also reads from the registry itself and never from a mirror, because a mirror may have older content.
#[derive(Debug, Clone)]
pub struct Pusher {
    session: Arc<Session>,
}

/// How a blob got into a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uploaded {
    /// The blob was sent.
    Sent,
    /// The registry mounted the blob from another of its repositories. No bytes were sent.
    Mounted,
}

/// The result of the POST: the blob was mounted, or the upload continues at a URL.
enum Begun {
    Mounted,
    At(RequestUrl),
}

impl Pusher {
    pub(crate) const fn new(session: Arc<Session>) -> Self {
        Self { session }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the repository.
    pub fn repository(&self) -> &Repository {
        &self.session.server.repository
    }

    /// Fetches a manifest or an index as [`Registry::manifest`](crate::Registry::manifest) does. Returns `None` if the repository
    /// has no such manifest, or does not exist yet.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn manifest(&self, reference: &Reference) -> Result<Option<Manifest>, RegistryError> {
        match manifest::fetch(&self.session, reference) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(RegistryError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the repository has a blob. Also returns `false` if the registry, or a server to which it redirects,
    /// rejects the HEAD request: the caller then sends the blob.
    ///
    /// # Errors
    /// [`RegistryError::Response`] if the registry has the blob with another size, and the other variants.
    pub fn has_blob(&self, digest: &Digest, size: u64) -> Result<bool, RegistryError> {
        let resource = self.blob(digest);
        self.retry(|| {
            let at = RequestUrl::named(self.session.server.url(&resource.path)?);
            let request = Request::get(&resource.what, at, HeaderMap::new());
            let response = self.session.send(Request { method: Method::HEAD, ..request })?;
            match response.response.status() {
                StatusCode::NOT_FOUND => Ok(false),
                StatusCode::OK => check_size(&resource.what, &response, size).map(|()| true),
                status if refuses_question(status) => Ok(false),
                _ => Err(refusal::of(&self.session.server, &resource, response)),
            }
        })
    }

    /// Adds a blob to the repository. If `from` is a repository of the same registry, and the registry can mount the blob from
    /// it, no bytes are sent. Otherwise each attempt sends the whole content.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn upload(
        &self,
        digest: &Digest,
        content: &dyn Content,
        from: Option<&Repository>,
    ) -> Result<Uploaded, RegistryError> {
        let host = self.repository().host();
        let from = from.filter(|it| it.host() == host && *it != self.repository());
        let from = from.filter(|it| self.session.add_mount_source(it));
        let what = format!("the upload of the blob {digest} to {}", self.repository());
        let network = &self.session.server.options.network;
        let observed = Observed { content, digest: *digest, network };
        let upload = Upload { session: &self.session, what: &what, digest, content: &observed };
        let done = self.retry(|| upload.attempt(from))?;
        observed.report(content.size());
        Ok(done)
    }

    /// Adds a blob that the repository `from` of the same registry has, without sending bytes. Returns `false` if the registry
    /// does not mount it.
    ///
    /// # Errors
    /// [`RegistryError`], if the registry cannot be reached or its answer is malformed.
    pub fn mount(&self, digest: &Digest, from: &Repository) -> Result<bool, RegistryError> {
        let is_other = from.host() == self.repository().host() && from != self.repository();
        if !is_other || !self.session.add_mount_source(from) {
            return Ok(false);
        }
        let what = format!("the blob {digest} for {}", self.repository());
        let nothing = InMemory([].into());
        let upload = Upload { session: &self.session, what: &what, digest, content: &nothing };
        self.retry(|| match upload.begin(Some(from)) {
            Ok(begun) => Ok(matches!(begun, Begun::Mounted)),
            Err(error) if error.is_local() || error.retry_after().is_some() => Err(error),
            Err(_) => Ok(false),
        })
    }

    /// Writes a manifest or an index under a tag or its digest, and returns its digest. The repository must already have the
    /// blobs that it names.
    ///
    /// # Errors
    /// [`RegistryError::Refused`] if the registry rejects the manifest, and the other variants.
    pub fn put_manifest(
        &self,
        reference: &Reference,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<Digest, RegistryError> {
        self.put(reference, media_type, bytes).map(|_| Digest::of(bytes))
    }

    /// Writes a manifest or an index, and returns the headers of the registry's answer.
    pub(crate) fn put(
        &self,
        reference: &Reference,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<HeaderMap, RegistryError> {
        let mark = if matches!(reference, Reference::Tag(_)) { ':' } else { '@' };
        let what = format!("the manifest of {}{mark}{reference}", self.repository());
        let path = format!("manifests/{reference}");
        let kind = HeaderValue::from_str(media_type);
        let kind = kind.unwrap_or(HeaderValue::from_static(OCI_MANIFEST_TYPE));
        let digest = Digest::of(bytes);
        self.retry(|| {
            let at = RequestUrl::named(self.session.server.url(&path)?);
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind.clone())]);
            let request = Request::get(&what, at, headers);
            let (method, payload) = (Method::PUT, Payload::Bytes(bytes));
            let response = self.session.send(Request { method, payload, ..request })?;
            if response.response.status() != StatusCode::CREATED {
                let size = bytes.len() as u64;
                return Err(refusal::of_manifest(&self.session.server, &what, response, size));
            }
            check_digest(&what, &response, &digest)?;
            Ok(response.response.headers().clone())
        })
    }

    fn blob(&self, digest: &Digest) -> Resource {
        let what = format!("the blob {digest} of {}", self.repository());
        Resource { what, path: format!("blobs/{digest}"), reference: None }
    }

    fn retry<T>(&self, attempt: impl Fn() -> Result<T, RegistryError>) -> Result<T, RegistryError> {
        retry(self.session.attempts(), &Cancel::default(), |_| attempt())
    }
}

/// The upload of one blob.
struct Upload<'a> {
    session: &'a Session,
    what: &'a str,
    digest: &'a Digest,
    content: &'a dyn Content,
}

impl Upload<'_> {
    /// Makes one attempt. If the token expires between POST and PUT, as it may in a long upload, it is renewed once.
    fn attempt(&self, from: Option<&Repository>) -> Result<Uploaded, RegistryError> {
        for _ in 0..2 {
            let at = match self.begin(from)? {
                Begun::Mounted => return Ok(Uploaded::Mounted),
                Begun::At(at) => at,
            };
            if self.finish(at)? {
                return Ok(Uploaded::Sent);
            }
        }
        Err(self.session.unauthorized(self.what))
    }

    /// Asks the registry to mount the blob from `from`. Begins an upload if the registry cannot mount it, or does not allow
    /// reading `from`, or if there is no `from`.
    fn begin(&self, from: Option<&Repository>) -> Result<Begun, RegistryError> {
        let Some(from) = from else { return self.post(&[]) };
        let digest = self.digest.to_string();
        match self.post(&[("mount", &digest), ("from", from.name())]) {
            Err(error) if !error.is_local() && error.retry_after().is_none() => {
                if matches!(error, RegistryError::Unauthorized { .. }) {
                    self.session.exclude_mount_source(from);
                }
                self.post(&[])
            }
            begun => begun,
        }
    }

    fn post(&self, query: &[(&str, &str)]) -> Result<Begun, RegistryError> {
        let server = &self.session.server;
        let url = server.url("blobs/uploads/")?;
        let url = if query.is_empty() { url } else { url.with_query(query) };
        let request = Request::get(self.what, RequestUrl::named(url), HeaderMap::new());
        let (method, payload) = (Method::POST, Payload::Bytes(b""));
        let response = self.session.send(Request { method, payload, ..request })?;
        match response.response.status() {
            StatusCode::CREATED if !query.is_empty() => {
                check_digest(self.what, &response, self.digest)?;
                Ok(Begun::Mounted)
            }
            StatusCode::ACCEPTED => self.continued_at(&response).map(Begun::At),
            _ => Err(refusal::of_upload(server, self.what, response, self.content.size())),
        }
    }

    /// Returns the URL for the PUT, from the `Location` header. It may be relative to the request's URL, or on another server.
    fn continued_at(&self, response: &FinalResponse) -> Result<RequestUrl, RegistryError> {
        let location = response.response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        let Some(location) = location else {
            let reason = "it does not say where the bytes go";
            return Err(RegistryError::response(self.what, reason));
        };
        let at = response.at.led_to(self.what, location)?;
        let digest = self.digest.to_string();
        Ok(at.with_query(&[("digest", &digest)]))
    }

    /// Sends the bytes. Returns `false` if the registry refused the token. A new token is then ready for the next attempt.
    fn finish(&self, at: RequestUrl) -> Result<bool, RegistryError> {
        let server = &self.session.server;
        let kind = HeaderValue::from_static("application/octet-stream");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind)]);
        let request = Request::get(self.what, at, headers);
        let payload = Payload::Content(self.content, &server.options.network.policy);
        let mut request = Request { method: Method::PUT, payload, ..request };
        let Some(response) = self.session.send_once(&mut request)? else { return Ok(false) };
        match response.response.status() {
            StatusCode::CREATED | StatusCode::NO_CONTENT => {
                check_digest(self.what, &response, self.digest)?;
                Ok(true)
            }
            _ => Err(refusal::of_upload(server, self.what, response, self.content.size())),
        }
    }
}

/// Content that reports its upload as [`Progress`].
#[derive(Debug)]
struct Observed<'a> {
    content: &'a dyn Content,
    digest: Digest,
    network: &'a NetworkOptions,
}

impl Observed<'_> {
    fn report(&self, received: u64) {
        if let Some(progress) = &self.network.progress {
            progress(Progress { digest: self.digest, received, total: Some(self.content.size()) });
        }
    }
}

impl Content for Observed<'_> {
    fn size(&self) -> u64 {
        self.content.size()
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send + Sync>> {
        self.content.open()
    }

    fn sent(&self, bytes: u64) {
        // The last byte is reported once the registry has confirmed the blob.
        if bytes < self.content.size() {
            self.report(bytes);
        }
    }
}

/// Returns whether the server rejects the HEAD request itself with this status. If the cause is a missing permission, the upload
/// that follows returns the error.
const fn refuses_question(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::FORBIDDEN
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED
    )
}

/// Returns an error if the response has a digest that differs from the digest of the sent bytes.
fn check_digest(
    what: &str,
    response: &FinalResponse,
    expected: &Digest,
) -> Result<(), RegistryError> {
    match named_digest(response.response.headers(), what)? {
        Some(found) if found != *expected => {
            Err(RegistryError::response(what, "it names another digest than that of what was sent"))
        }
        _ => Ok(()),
    }
}

/// Returns an error if the response has a size other than the blob's.
fn check_size(what: &str, response: &FinalResponse, expected: u64) -> Result<(), RegistryError> {
    let named = response.response.headers().get(CONTENT_LENGTH);
    let named = named.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    match named {
        Some(found) if found != expected => {
            Err(RegistryError::response(what, "it names another size than the blob's"))
        }
        _ => Ok(()),
    }
}
