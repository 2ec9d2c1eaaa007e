//! A registry in memory. It implements what images and artifacts need of the
//! [OCI distribution specification](https://github.com/opencontainers/distribution-spec/blob/main/spec.md), and the faults
//! that a test injects.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use box_digest::Digest;

use crate::storage::Storage;
use crate::{Early, Identity, Reply, Request, Server, Step, file, length, redirect, reply};

/// A function that answers instead of the registry, or returns `None`. The body of the request has not been read. The second
/// argument is the number of earlier requests with the same method and path (without the query).
pub type Deed = Box<dyn Fn(&Request, usize) -> Option<Early> + Send + Sync>;

/// The registry's answer to a manifest that it refuses.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// The status code and its reason, such as `400 Bad Request`.
    pub status: &'static str,
    /// The body.
    pub body: &'static str,
}

impl Default for Refusal {
    fn default() -> Self {
        let body = r#"{"errors":[{"code":"MANIFEST_INVALID","message":"no"}]}"#;
        Self { status: "400 Bad Request", body }
    }
}

/// The server that has the content of blobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Blobs {
    /// The registry itself.
    #[default]
    Own,
    /// Another server, to which the registry redirects downloads and uploads with a signed URL. It ignores credentials, and
    /// refuses HEAD requests, because a signature is valid for one method only.
    Elsewhere,
}

/// The list of the manifests whose `subject` is another manifest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Referrers {
    /// The registry does not know the API: it answers 404, and without the header `OCI-Subject`.
    #[default]
    Unknown,
    /// The registry has the API, and answers with pages of this number of entries.
    Paged(usize),
}

/// The behaviour of a registry. By default it needs no token, accepts all manifests, supports HEAD and ranges, and does not
/// mount blobs.
#[derive(Default)]
pub struct Rules {
    /// Whether each request needs a token. All clients get the same token, from `/token`.
    pub closed: bool,
    /// Whether a request to mount a blob of another repository is granted. Otherwise it begins an upload.
    pub mounts: bool,
    /// Returns whether a manifest is refused.
    pub refuses: Option<fn(&str) -> bool>,
    /// The answer to a refused manifest.
    pub refusal: Refusal,
    /// The registry's list of referrers. By default it does not have that API.
    pub referrers: Referrers,
    /// The server that has the content of blobs.
    pub blobs: Blobs,
    /// Whether the answer to a range request has the whole blob.
    pub ignores_ranges: bool,
    /// Whether HEAD requests are refused.
    pub refuses_head: bool,
    /// How many times each request, except those to `/token`, is refused with 429 and `Retry-After: 1`.
    pub busy: usize,
    /// The number of bytes to which the next longer answer with the largest blob is truncated. The registry then sets the
    /// number to [`usize::MAX`].
    pub cut: Option<Arc<AtomicUsize>>,
    /// The fault to inject.
    pub deed: Option<Deed>,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl Rules {
    /// Truncates an answer if [`Rules::cut`] applies.
    fn cut(&self, mut answer: Reply) -> Reply {
        let Some((cut, Step::Send(body))) = self.cut.as_ref().zip(answer.last_mut()) else {
            return answer;
        };
        let at = cut.load(Ordering::SeqCst);
        if body.len() > at && cut.swap(usize::MAX, Ordering::SeqCst) == at {
            body.truncate(at);
        }
        answer
    }
}

/// The content of a registry. The keys are a repository, and a digest or tag.
#[derive(Debug, Default)]
pub struct Held {
    /// The content of each blob.
    pub blobs: BTreeMap<(String, String), Vec<u8>>,
    /// The media type and the content of each manifest.
    pub manifests: BTreeMap<(String, String), (String, Vec<u8>)>,
    /// The number of the valid token. Lower numbers have expired.
    pub token: usize,
    /// The number of requests after which the token expires. 0 if it never expires.
    pub token_left: usize,
    /// Whether the header `Docker-Content-Digest` has a wrong digest.
    pub lies: bool,
    /// The delay before the second half of a blob.
    pub slow: Duration,
    /// The minimum size of a blob for the delay [`Self::slow`], in bytes.
    pub slow_from: usize,
    pub(crate) uploads: usize,
    asked: BTreeMap<String, usize>,
}

/// A running registry.
///
/// # Examples
/// ```
/// use test_server::registry::{Registry, Rules};
///
/// // For example, this one requires a token.
/// let registry = Registry::start(Rules { closed: true, ..Rules::default() });
/// let digest = registry.with(|held| held.put_blob("team/box", b"content"));
/// println!("http://{}/v2/team/box/blobs/{digest}", registry.host());
/// assert!(registry.lines().is_empty());
/// ```
#[derive(Debug)]
pub struct Registry {
    server: Server,
    storage: Storage,
    held: Arc<Mutex<Held>>,
}

impl Registry {
    /// Starts an empty registry without TLS.
    pub fn start(mut rules: Rules) -> Self {
        let held = Arc::<Mutex<Held>>::default();
        let storage = Storage::start(&held);
        let (busy, deed) = (rules.busy, rules.deed.take());
        let counted = Arc::clone(&held);
        let early = move |request: &Request| {
            let path = request.path().split('?').next().unwrap_or_default();
            // Each upload has a separate path, so only the start of the path identifies the request.
            let (path, _) = path.split_once("/uploads/").unwrap_or((path, ""));
            let mut held = counted.lock().unwrap();
            let asked = held.asked.entry(format!("{} {path}", request.method())).or_default();
            *asked += 1;
            let before = *asked - 1;
            // The deed may lock the registry too.
            drop(held);
            if before < busy && !path.starts_with("/token") {
                return Some(Early { after: usize::MAX, reply: come_back() });
            }
            deed.as_ref().and_then(|deed| deed(request, before))
        };
        let elsewhere = (rules.blobs == Blobs::Elsewhere).then(|| storage.url(""));
        let answering = Arc::clone(&held);
        let server = Server::start_hasty(Identity::None, early, |port| {
            let challenge = format!(
                "WWW-Authenticate: Bearer realm=\"http://127.0.0.1:{port}/token\",service=\"reg\""
            );
            move |request: &Request| {
                let mut held = answering.lock().unwrap();
                if request.path().starts_with("/token") {
                    return file(format!("{{\"token\":\"token-{}\"}}", held.token).as_bytes());
                }
                if rules.closed && !held.admits(request) {
                    return reply("401 Unauthorized", &[&challenge, "Content-Length: 0"], b"");
                }
                held.answer(request, &rules, elsewhere.as_deref())
            }
        });
        Self { server, storage, held }
    }

    /// Returns the requests to the server that has the content of blobs.
    pub fn stored(&self) -> Vec<Request> {
        self.storage.requests()
    }

    /// Returns the host and port.
    pub fn host(&self) -> String {
        self.server.host()
    }

    /// Calls a function with the registry's content.
    pub fn with<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.held.lock().unwrap())
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Returns the method, path and query of each request so far.
    pub fn lines(&self) -> Vec<String> {
        let requests = self.requests();
        requests.iter().map(|it| format!("{} {}", it.method(), it.path())).collect()
    }
}

impl Held {
    /// Adds a blob to a repository, and returns its digest.
    pub fn put_blob(&mut self, name: &str, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        self.blobs.insert((name.to_owned(), digest.to_string()), bytes.to_vec());
        digest
    }

    /// Adds a manifest to a repository under a tag and its digest, and returns the digest.
    pub fn put_manifest(&mut self, name: &str, tag: &str, kind: &str, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        for reference in [tag.to_owned(), digest.to_string()] {
            let held = (kind.to_owned(), bytes.to_vec());
            self.manifests.insert((name.to_owned(), reference), held);
        }
        digest
    }

    /// Returns whether a request has the valid token.
    fn admits(&mut self, request: &Request) -> bool {
        if request.header("authorization") != Some(&format!("Bearer token-{}", self.token)) {
            return false;
        }
        self.token += usize::from(self.token_left == 1);
        self.token_left = self.token_left.saturating_sub(1);
        true
    }

    fn is_largest(&self, blob: &[u8]) -> bool {
        self.blobs.values().all(|it| it.len() <= blob.len())
    }

    fn answer(&mut self, request: &Request, rules: &Rules, elsewhere: Option<&str>) -> Reply {
        if rules.refuses_head && request.method() == "HEAD" {
            return reply("405 Method Not Allowed", &["Content-Length: 0"], b"");
        }
        let (path, query) = request.path().split_once('?').unwrap_or((request.path(), ""));
        let path = path.strip_prefix("/v2/").unwrap_or_default();
        if let Some((name, _)) = path.split_once("/blobs/uploads/") {
            return match request.method() {
                "POST" => self.begin(name, query, rules, elsewhere),
                "PUT" if request.header("content-length").is_none() => {
                    error("411 Length Required", "SIZE_INVALID")
                }
                "PUT" => self.finish(name, query, &request.bytes),
                _ => error("405 Method Not Allowed", "UNSUPPORTED"),
            };
        }
        if let Some((name, digest)) = path.split_once("/blobs/") {
            let blob = self.blobs.get(&(name.to_owned(), digest.to_owned()));
            return match (blob, elsewhere) {
                (None, _) => error("404 Not Found", "BLOB_UNKNOWN"),
                (_, Some(url)) => redirect(&format!("{url}/{name}/blobs/{digest}?signature=7")),
                (Some(blob), _) => {
                    let answer = read(request, blob, rules.ignores_ranges);
                    let answer = if self.is_largest(blob) { rules.cut(answer) } else { answer };
                    let is_slow = blob.len() >= self.slow_from;
                    slowed(answer, self.slow, is_slow)
                }
            };
        }
        if let (Referrers::Paged(page), Some((name, subject))) =
            (rules.referrers, path.split_once("/referrers/"))
        {
            return self.referrers(name, subject, query, page);
        }
        match path.split_once("/manifests/") {
            Some((name, reference)) if request.method() == "PUT" => {
                self.write(name, reference, request, rules)
            }
            Some((name, reference)) => {
                match self.manifests.get(&(name.to_owned(), reference.to_owned())) {
                    Some((kind, bytes)) => {
                        let kind = format!("Content-Type: {kind}");
                        let digest = named(bytes, self.lies);
                        reply("200 OK", &[&kind, &digest, &length(bytes.len())], bytes)
                    }
                    None => error("404 Not Found", "MANIFEST_UNKNOWN"),
                }
            }
            None => error("404 Not Found", "UNSUPPORTED"),
        }
    }

    fn begin(&mut self, name: &str, query: &str, rules: &Rules, elsewhere: Option<&str>) -> Reply {
        if let (Some(digest), Some(from)) = (value(query, "mount"), value(query, "from")) {
            let there = self.blobs.get(&(from, digest.clone())).cloned();
            if let Some(bytes) = there.filter(|_| rules.mounts) {
                let named = named(&bytes, self.lies);
                self.blobs.insert((name.to_owned(), digest), bytes);
                return reply("201 Created", &[&named, "Content-Length: 0"], b"");
            }
        }
        self.uploads += 1;
        let at = elsewhere.unwrap_or("/v2");
        let at = format!("Location: {at}/{name}/blobs/uploads/{}?state=a%2Fb", self.uploads);
        reply("202 Accepted", &[&at, "Content-Length: 0"], b"")
    }

    pub(crate) fn finish(&mut self, name: &str, query: &str, bytes: &[u8]) -> Reply {
        let digest = value(query, "digest").unwrap_or_default();
        if digest != Digest::of(bytes).to_string() {
            return error("400 Bad Request", "DIGEST_INVALID");
        }
        self.blobs.insert((name.to_owned(), digest), bytes.to_vec());
        reply("201 Created", &[&named(bytes, self.lies), "Content-Length: 0"], b"")
    }

    fn write(&mut self, name: &str, reference: &str, request: &Request, rules: &Rules) -> Reply {
        if rules.refuses.is_some_and(|refuses| refuses(&request.body)) {
            let Refusal { status, body } = rules.refusal;
            return reply(status, &[&length(body.len())], body.as_bytes());
        }
        let mut digests =
            request.body.split("\"digest\":\"").skip(1).filter_map(|it| it.split('"').next());
        let has = |digest: &str| {
            let key = (name.to_owned(), digest.to_owned());
            self.blobs.contains_key(&key) || self.manifests.contains_key(&key)
        };
        if !digests.all(has) {
            return error("400 Bad Request", "MANIFEST_BLOB_UNKNOWN");
        }
        let kind = request.header("content-type").unwrap_or_default();
        self.put_manifest(name, reference, kind, &request.bytes);
        let named = named(&request.bytes, self.lies);
        let subject = subject(&request.body).filter(|_| rules.referrers != Referrers::Unknown);
        let subject = subject.map(|it| format!("OCI-Subject: {it}"));
        let headers = [&*named, "Content-Length: 0"].into_iter().chain(subject.as_deref());
        reply("201 Created", &headers.collect::<Vec<_>>(), b"")
    }

    /// Lists the manifests of a repository with this subject, sorted by their digests.
    fn referrers(&self, name: &str, digest: &str, query: &str, page: usize) -> Reply {
        let kind = value(query, "artifactType");
        let all = self.manifests.iter().filter(|((in_name, reference), (_, bytes))| {
            let body = String::from_utf8_lossy(bytes);
            let is_wanted =
                || kind.as_ref().is_none_or(|it| field(&body, "artifactType") == Some(it));
            in_name == name
                && reference.starts_with("sha256:")
                && subject(&body) == Some(digest)
                && is_wanted()
        });
        let from: usize = value(query, "from").and_then(|it| it.parse().ok()).unwrap_or_default();
        let all: Vec<_> = all.map(|((_, digest), held)| descriptor(digest, held)).collect();
        let more = all.iter().skip(from + page).count();
        let body = all.into_iter().skip(from).take(page).collect::<Vec<_>>().join(",");
        let body =
            format!(r#"{{"schemaVersion":2,"mediaType":"{INDEX_TYPE}","manifests":[{body}]}}"#);
        let mut headers = vec![format!("Content-Type: {INDEX_TYPE}"), length(body.len())];
        if kind.is_some() {
            headers.push("OCI-Filters-Applied: artifactType".to_owned());
        }
        if more > 0 {
            let query = kind.map(|it| format!("artifactType={}&", it.replace('+', "%2B")));
            let (query, from) = (query.unwrap_or_default(), from + page);
            let next = format!("/v2/{name}/referrers/{digest}?{query}from={from}");
            headers.push(format!("Link: <{next}>; rel=\"next\""));
        }
        reply("200 OK", &headers.iter().map(|it| &**it).collect::<Vec<_>>(), body.as_bytes())
    }
}

/// The media type of an index.
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// Returns the digest in a manifest's field `subject`.
fn subject(body: &str) -> Option<&str> {
    let (_, rest) = body.split_once("\"subject\":{")?;
    field(rest, "digest")
}

/// Returns the text of the first field with this name.
fn field<'b>(body: &'b str, name: &str) -> Option<&'b str> {
    let (_, rest) = body.split_once(&format!("\"{name}\":\""))?;
    Some(rest.split_once('"')?.0)
}

/// Returns the descriptor of a manifest, with its artifact type and its annotations.
fn descriptor(digest: &str, (media_type, bytes): &(String, Vec<u8>)) -> String {
    let (body, size) = (String::from_utf8_lossy(bytes), bytes.len());
    let kind = field(&body, "artifactType").unwrap_or_default();
    let annotations = body.rsplit_once("\"annotations\":{").and_then(|(_, it)| it.split_once('}'));
    let annotations = annotations.map_or("", |(it, _)| it);
    format!(
        "{{\"mediaType\":\"{media_type}\",\"digest\":\"{digest}\",\"size\":{size},\
         \"artifactType\":\"{kind}\",\"annotations\":{{{annotations}}}}}"
    )
}

/// Returns an answer with an error code of the specification.
pub fn error(status: &str, code: &str) -> Reply {
    let body = format!("{{\"errors\":[{{\"code\":\"{code}\",\"message\":\"no\"}}]}}");
    reply(status, &[&length(body.len())], body.as_bytes())
}

/// Adds a pause in the middle of an answer's body.
fn slowed(mut answer: Reply, slow: Duration, is_slow: bool) -> Reply {
    if slow.is_zero() || !is_slow {
        return answer;
    }
    if let Some(Step::Send(mut body)) = answer.pop() {
        let second = body.split_off(body.len() / 2);
        answer.extend([Step::Send(body), Step::Pause(slow), Step::Send(second)]);
    }
    answer
}

/// Returns the answer 429 of an overloaded registry.
fn come_back() -> Reply {
    let body = r#"{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}"#;
    let headers = ["Retry-After: 1", &length(body.len())];
    reply("429 Too Many Requests", &headers, body.as_bytes())
}

/// Returns an answer with a blob, or the range of it that is requested.
pub(crate) fn read(request: &Request, blob: &[u8], whole: bool) -> Reply {
    let from = request
        .header("range")
        .and_then(|it| it.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let is_head = request.method() == "HEAD";
    let body = |from: usize| if is_head { &[][..] } else { &blob[from..] };
    match from {
        Some(from) if from < blob.len() && !whole => {
            let range = format!("Content-Range: bytes {from}-{}/{}", blob.len() - 1, blob.len());
            reply("206 Partial Content", &[&range, &length(blob.len() - from)], body(from))
        }
        _ => reply("200 OK", &[&length(blob.len())], body(0)),
    }
}

fn named(bytes: &[u8], lies: bool) -> String {
    let digest = if lies { Digest::of(b"a lie") } else { Digest::of(bytes) };
    format!("Docker-Content-Digest: {digest}")
}

/// Returns the value of a key in a query. Decodes only the escapes that tests send: `%3A`, `%2F` and `%2B`.
fn value(query: &str, key: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == key)?;
    Some(value.replace("%3A", ":").replace("%2F", "/").replace("%2B", "+"))
}
