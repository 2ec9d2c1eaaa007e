//! Lists and writes *referrers*: manifests about another manifest, their `subject`, such as its signatures
//! (OCI distribution-spec v1.1, [Listing
//! Referrers](https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#listing-referrers)).
//!
//! A registry without this API keeps the list as an index under the tag `sha256-<hexadecimal digest of the subject>`, the
//! *fallback tag*. Its clients write that index. No registry can replace a tag on a condition, so two writers can overwrite each
//! other: a writer therefore reads the index again some time after it has written it, and writes again what has disappeared.

use std::thread::sleep;
use std::time::{Duration, Instant};

use box_contract::Descriptor;
use box_contract::manifest::{OCI_INDEX_TYPE, OCI_MANIFEST_TYPE};
use box_digest::Digest;
use download::{Body, Cancel, Deadline, Request, RequestUrl, retry};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, LINK};
use safe_text::with_causes;
use serde_json::value::{RawValue, to_raw_value};

use crate::client::Registry;
use crate::error::RegistryError;
use crate::index::Index;
use crate::manifest::{self, MAX_MANIFEST};
use crate::name::{Reference, Repository, Tag};
use crate::page;
use crate::push::Pusher;
use crate::refusal;
use crate::session::Session;

/// The maximum number of referrers of a manifest that are listed.
pub const MAX_REFERRERS: usize = 1024;
/// The maximum number of pages of a list.
pub const MAX_PAGES: usize = 32;
/// How often the index of a fallback tag is written if other writers replace it at the same time.
const TRIES: usize = 8;
/// The minimum time between the write of an index and the read that looks for overwritten entries. Another writer that has read
/// the index before this write has written its index by then.
const SETTLED: Duration = Duration::from_millis(250);

/// The maximum size of all pages of a list together, in bytes.
pub const MAX_LIST: u64 = 2 * MAX_MANIFEST;

/// The referrers of a manifest that a registry lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// The first ones, at most [`MAX_REFERRERS`], in the order of the list.
    pub all: Vec<Descriptor>,
    /// The number of the others. If the list is longer than what is read of one ([`MAX_PAGES`], [`MAX_LIST`]), the rest counts as one.
    pub left_out: usize,
}

impl Listed {
    /// Adds the entries of an index.
    fn extend(&mut self, index: &Index) {
        self.all.extend(index.descriptors());
        self.left_out += index.surplus + self.all.len().saturating_sub(MAX_REFERRERS);
        self.all.truncate(MAX_REFERRERS);
    }
}

/// A page of a list.
struct Page {
    index: Index,
    /// The size of the page in bytes.
    size: u64,
    next: Option<RequestUrl>,
}

impl Registry {
    /// Lists the referrers of a manifest, all or those with an artifact type. A repository without such a manifest has none.
    /// Entries that are no descriptors of a sha256 digest are ignored.
    ///
    /// The answer of a mirror counts if the mirror has the API or a fallback tag. Otherwise the next mirror is asked, and at last
    /// the registry. If the registry then fails, but a mirror has answered, there are no referrers: a host may only reach the
    /// mirror.
    ///
    /// # Errors
    /// [`RegistryError`], for example if the server is down. A server that does not know the API is no error: an answer 4xx
    /// except 401, 408 and 429, the status 501, and a page that no registry sends.
    pub fn referrers(
        &self,
        repository: &Repository,
        subject: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Listed, RegistryError> {
        let (mut failed, mut is_answered) = (Vec::new(), false);
        for session in self.servers(repository)?.iter() {
            let server = &session.server;
            match list(session, subject, artifact_type) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => is_answered = true,
                Err(error) if error.is_local() => return Err(error),
                Err(error) if server.is_mirror => {
                    failed.push(format!("{}: {}", server.repository.host(), with_causes(&error)));
                }
                Err(_) if is_answered => {}
                Err(error) if failed.is_empty() => return Err(error),
                Err(error) => {
                    let (mirrors, host) = (failed, server.repository.host().to_owned());
                    return Err(RegistryError::AfterMirrors {
                        mirrors,
                        host,
                        source: Box::new(error),
                    });
                }
            }
        }
        Ok(Listed::default())
    }
}

impl Pusher {
    /// Lists all referrers of a manifest, as [`Registry::referrers`] does, from the registry itself.
    ///
    /// # Errors
    /// The errors of [`Registry::referrers`].
    pub fn referrers(&self, subject: &Digest) -> Result<Listed, RegistryError> {
        Ok(list(self.session(), subject, None)?.unwrap_or_default())
    }

    /// Writes manifests whose `subject` is the manifest `subject`, each with its descriptor. The descriptor has the artifact type
    /// and the annotations of the manifest. The repository must already have the blobs that the manifests name.
    ///
    /// If the registry does not list referrers itself (its answer has no `OCI-Subject` header), also adds them to the index of
    /// the fallback tag. The entries of other writers stay there.
    ///
    /// # Errors
    /// [`RegistryError`]. The manifests that were written stay.
    pub fn put_referrers(
        &self,
        subject: &Digest,
        referrers: &[(Descriptor, Vec<u8>)],
    ) -> Result<(), RegistryError> {
        let mut unlisted = Vec::new();
        for (descriptor, bytes) in referrers {
            let reference = Reference::Digest(descriptor.digest);
            let headers = self.put(&reference, OCI_MANIFEST_TYPE, bytes)?;
            if !headers.contains_key("oci-subject") {
                // Every descriptor can be written.
                unlisted.extend(to_raw_value(descriptor));
            }
        }
        if unlisted.is_empty() { Ok(()) } else { self.list_by_tag(subject, unlisted) }
    }

    /// Adds entries to the index of the fallback tag. Writes it until it has them, and the entries of all other writers that were
    /// there before.
    fn list_by_tag(
        &self,
        subject: &Digest,
        mut wanted: Vec<Box<RawValue>>,
    ) -> Result<(), RegistryError> {
        let tag = Reference::Tag(fallback_tag(subject)?);
        let what = format!("the referrers of {}@{subject}", self.repository());
        for _ in 0..TRIES {
            let start = Instant::now();
            let before = self.manifest(&tag)?;
            let index = before.map_or_else(|| Some(Index::new()), |it| Index::of(&it.bytes));
            let reason = "its fallback tag is not an index";
            let mut index = index.ok_or_else(|| RegistryError::response(&what, reason))?;
            let has_surplus = index.surplus > 0;
            if !index.add(&wanted) {
                return Ok(());
            }
            wanted.clone_from(&index.manifests);
            let bytes = index.bytes();
            if bytes.len() as u64 > MAX_MANIFEST
                || index.manifests.len() > MAX_REFERRERS
                || has_surplus
            {
                return Err(RegistryError::response(&what, "there are too many"));
            }
            self.put_manifest(&tag, OCI_INDEX_TYPE, &bytes)?;
            // A writer at the same distance needs about as long.
            sleep(SETTLED.max(start.elapsed() * 2));
        }
        Err(RegistryError::response(&what, "other writers replace the list again and again"))
    }
}

/// Returns the tag under which a registry without the API lists the referrers of a manifest.
fn fallback_tag(subject: &Digest) -> Result<Tag, RegistryError> {
    Tag::new(&format!("sha256-{}", subject.hex()))
}

/// Lists referrers. Returns `None` if the server has neither the API nor an index under the fallback tag.
fn list(
    session: &Session,
    subject: &Digest,
    artifact_type: Option<&str>,
) -> Result<Option<Listed>, RegistryError> {
    let found = match by_api(session, subject, artifact_type)? {
        None => by_tag(session, subject)?,
        found => found,
    };
    // A registry may ignore the filter.
    let is_wanted =
        |it: &Descriptor| artifact_type.is_none() || it.artifact_type.as_deref() == artifact_type;
    Ok(found.map(|mut it| {
        it.all.retain(is_wanted);
        it
    }))
}

fn by_tag(session: &Session, subject: &Digest) -> Result<Option<Listed>, RegistryError> {
    let tag = Reference::Tag(fallback_tag(subject)?);
    match manifest::fetch(session, &tag) {
        Ok(found) => {
            let mut listed = Listed::default();
            Ok(Index::of(&found.bytes).map(|it| {
                listed.extend(&it);
                listed
            }))
        }
        Err(RegistryError::NotFound { .. } | RegistryError::NotARegistry { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Lists referrers with the API. Returns `None` if the server does not have it.
fn by_api(
    session: &Session,
    subject: &Digest,
    artifact_type: Option<&str>,
) -> Result<Option<Listed>, RegistryError> {
    let what = format!("the referrers of {}@{subject}", session.server.repository);
    let url = session.server.url(&format!("referrers/{subject}"))?;
    let url =
        artifact_type.map_or_else(|| url.clone(), |it| url.with_query(&[("artifactType", it)]));
    let is_empty = |it: &Option<Listed>| it.as_ref().is_none_or(|it| it.all.is_empty());
    let (mut at, mut listed, mut bytes) = (RequestUrl::named(url), None, 0);
    for _ in 0..MAX_PAGES {
        let page = retry(session.attempts(), &Cancel::default(), |attempts| {
            page(session, &what, &at, attempts.deadline(0))
        });
        let Page { index, size, next } = match page? {
            Some(page) => page,
            None if is_empty(&listed) => return Ok(None),
            None => return Err(RegistryError::response(&what, "a page of them is missing")),
        };
        listed.get_or_insert_with(Listed::default).extend(&index);
        bytes += size;
        match next {
            None => return Ok(listed),
            Some(_) if bytes > MAX_LIST => break,
            Some(next) => at = next,
        }
    }
    // Whoever can write to the repository can make the list longer, so that is no error.
    Ok(listed.map(|it| Listed { left_out: it.left_out + 1, ..it }))
}

/// Fetches a page. Returns `None` if the server does not know the API.
fn page(
    session: &Session,
    what: &str,
    at: &RequestUrl,
    deadline: Deadline,
) -> Result<Option<Page>, RegistryError> {
    let server = &session.server;
    let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(OCI_INDEX_TYPE))]);
    let response = match session.send(Request::get(what, at.clone(), accept)) {
        Err(RegistryError::NotARegistry { .. }) => return Ok(None),
        response => response?,
    };
    match response.response.status() {
        StatusCode::OK => {}
        status if is_unknown(status) => return Ok(None),
        _ => return Err(refusal::status(server, what, response)),
    }
    let next = next(what, &response.at, response.response.headers())?;
    let policy = &server.options.network.policy;
    let bytes = Body::new(what, response, policy, deadline).read_whole(MAX_MANIFEST)?;
    if page::check_page(server, what, &bytes).is_err() {
        return Ok(None);
    }
    let (index, size) = (Index::of(&bytes), bytes.len() as u64);
    let Some(index) = index else { return Ok(None) };
    Ok(Some(Page { index, size, next }))
}

/// Returns whether a server that does not know the API answers with this status.
fn is_unknown(status: StatusCode) -> bool {
    let others =
        [StatusCode::UNAUTHORIZED, StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    status == StatusCode::NOT_IMPLEMENTED || status.is_client_error() && !others.contains(&status)
}

/// Returns the URL of the next page, from the `Link` header ([RFC 8288](https://www.rfc-editor.org/rfc/rfc8288)). It must be on
/// the same server.
fn next(
    what: &str,
    at: &RequestUrl,
    headers: &HeaderMap,
) -> Result<Option<RequestUrl>, RegistryError> {
    let links = headers.get_all(LINK).into_iter().filter_map(|it| it.to_str().ok());
    let next = links.filter_map(|link| {
        let (url, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |it: &str| matches!(it.trim(), r#"rel="next""# | "rel=next");
        parameters.split(';').any(is_next).then_some(url)
    });
    let Some(url) = next.into_iter().next() else { return Ok(None) };
    let next = at.led_to(what, url)?;
    if next.same_origin() {
        return Ok(Some(next));
    }
    Err(RegistryError::response(what, "its next page is on another server"))
}
