//! A registry in memory: the OCI distribution-spec as far as images and artifacts need it, and what a test wants to go wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use box_digest::Digest;

use crate::{Early, Identity, Reply, Request, Server, file, length, reply};

/// Answers in the place of the registry, or leaves a request to it. The request has no body yet; the number says how often the
/// same method and path (without the query) were asked before.
pub type Deed = Box<dyn Fn(&Request, usize) -> Option<Early> + Send + Sync>;

/// How a registry behaves.
#[derive(Default)]
pub struct Rules {
    /// Whether each request needs a token. There is one for everybody, at `/token`.
    pub closed: bool,
    /// Whether blobs of other repositories are mounted; otherwise an upload begins.
    pub mounts: bool,
    /// Which manifests are refused as invalid.
    pub refuses: Option<fn(&str) -> bool>,
    /// What goes wrong.
    pub deed: Option<Deed>,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("closed", &self.closed).finish_non_exhaustive()
    }
}

/// What a registry has, by the repository and the digest or tag.
#[derive(Debug, Default)]
pub struct Held {
    /// The blobs.
    pub blobs: BTreeMap<(String, String), Vec<u8>>,
    /// The manifests with their media types.
    pub manifests: BTreeMap<(String, String), (String, Vec<u8>)>,
    /// The number of the token that is taken; older ones have ended.
    pub token: usize,
    uploads: usize,
    asked: BTreeMap<String, usize>,
}

/// A running registry.
#[derive(Debug)]
pub struct Registry {
    server: Server,
    held: Arc<Mutex<Held>>,
}

impl Registry {
    /// Starts an empty registry that speaks plain HTTP.
    pub fn start(rules: Rules) -> Self {
        let held = Arc::<Mutex<Held>>::default();
        let Rules { closed, mounts, refuses, deed } = rules;
        let counted = Arc::clone(&held);
        let early = move |request: &Request| {
            let path = request.path().split('?').next().unwrap_or_default();
            let mut held = counted.lock().unwrap();
            let asked = held.asked.entry(format!("{} {path}", request.method())).or_default();
            *asked += 1;
            let before = *asked - 1;
            // The deed may look at the registry.
            drop(held);
            deed.as_ref().and_then(|deed| deed(request, before))
        };
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
                let right = format!("Bearer token-{}", held.token);
                if closed && request.header("authorization") != Some(&right) {
                    return reply("401 Unauthorized", &[&challenge, "Content-Length: 0"], b"");
                }
                held.answer(request, mounts, refuses)
            }
        });
        Self { server, held }
    }

    /// Returns the host and port.
    pub fn host(&self) -> String {
        self.server.host()
    }

    /// Calls a function with what the registry has.
    pub fn with<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.held.lock().unwrap())
    }

    /// Returns what came so far.
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Returns what came so far: each request's method, path and query.
    pub fn lines(&self) -> Vec<String> {
        let requests = self.requests();
        requests.iter().map(|it| format!("{} {}", it.method(), it.path())).collect()
    }
}

impl Held {
    /// Puts a blob into a repository, and returns its digest.
    pub fn put_blob(&mut self, name: &str, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        self.blobs.insert((name.to_owned(), digest.to_string()), bytes.to_vec());
        digest
    }

    /// Puts a manifest into a repository under a tag and its digest, and returns that.
    pub fn put_manifest(&mut self, name: &str, tag: &str, kind: &str, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        for reference in [tag.to_owned(), digest.to_string()] {
            let held = (kind.to_owned(), bytes.to_vec());
            self.manifests.insert((name.to_owned(), reference), held);
        }
        digest
    }

    fn answer(
        &mut self,
        request: &Request,
        mounts: bool,
        refuses: Option<fn(&str) -> bool>,
    ) -> Reply {
        let (path, query) = request.path().split_once('?').unwrap_or((request.path(), ""));
        let path = path.strip_prefix("/v2/").unwrap_or_default();
        if let Some((name, _)) = path.split_once("/blobs/uploads/") {
            return match request.method() {
                "POST" => self.begin(name, query, mounts),
                _ => self.finish(name, query, &request.bytes),
            };
        }
        if let Some((name, digest)) = path.split_once("/blobs/") {
            let blob = self.blobs.get(&(name.to_owned(), digest.to_owned()));
            return blob
                .map_or_else(|| error("404 Not Found", "BLOB_UNKNOWN"), |it| read(request, it));
        }
        match path.split_once("/manifests/") {
            Some((name, reference)) if request.method() == "PUT" => {
                self.write(name, reference, request, refuses)
            }
            Some((name, reference)) => {
                match self.manifests.get(&(name.to_owned(), reference.to_owned())) {
                    Some((kind, bytes)) => {
                        let kind = format!("Content-Type: {kind}");
                        reply("200 OK", &[&kind, &named(bytes), &length(bytes.len())], bytes)
                    }
                    None => error("404 Not Found", "MANIFEST_UNKNOWN"),
                }
            }
            None => error("404 Not Found", "UNSUPPORTED"),
        }
    }

    fn begin(&mut self, name: &str, query: &str, mounts: bool) -> Reply {
        if let (Some(digest), Some(from)) = (value(query, "mount"), value(query, "from")) {
            let there = self.blobs.get(&(from, digest.clone())).cloned();
            if let Some(bytes) = there.filter(|_| mounts) {
                let named = named(&bytes);
                self.blobs.insert((name.to_owned(), digest), bytes);
                return reply("201 Created", &[&named, "Content-Length: 0"], b"");
            }
        }
        self.uploads += 1;
        let at = format!("Location: /v2/{name}/blobs/uploads/{}?state=a%2Fb", self.uploads);
        reply("202 Accepted", &[&at, "Content-Length: 0"], b"")
    }

    fn finish(&mut self, name: &str, query: &str, bytes: &[u8]) -> Reply {
        let digest = value(query, "digest").unwrap_or_default();
        if digest != Digest::of(bytes).to_string() {
            return error("400 Bad Request", "DIGEST_INVALID");
        }
        self.blobs.insert((name.to_owned(), digest), bytes.to_vec());
        reply("201 Created", &[&named(bytes), "Content-Length: 0"], b"")
    }

    fn write(
        &mut self,
        name: &str,
        reference: &str,
        request: &Request,
        refuses: Option<fn(&str) -> bool>,
    ) -> Reply {
        if refuses.is_some_and(|refuses| refuses(&request.body)) {
            return error("400 Bad Request", "MANIFEST_INVALID");
        }
        let mut digests =
            request.body.split("\"digest\":\"").skip(1).filter_map(|it| it.split('"').next());
        if !digests.all(|digest| self.blobs.contains_key(&(name.to_owned(), digest.to_owned()))) {
            return error("400 Bad Request", "MANIFEST_BLOB_UNKNOWN");
        }
        let kind = request.header("content-type").unwrap_or_default();
        self.put_manifest(name, reference, kind, &request.bytes);
        reply("201 Created", &[&named(&request.bytes), "Content-Length: 0"], b"")
    }
}

/// Answers with an error code of the specification.
pub fn error(status: &str, code: &str) -> Reply {
    let body = format!("{{\"errors\":[{{\"code\":\"{code}\",\"message\":\"no\"}}]}}");
    reply(status, &[&length(body.len())], body.as_bytes())
}

/// Answers with a blob, or the rest of it.
fn read(request: &Request, blob: &[u8]) -> Reply {
    let from = request
        .header("range")
        .and_then(|it| it.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let is_head = request.method() == "HEAD";
    let body = |from: usize| if is_head { &[][..] } else { &blob[from..] };
    match from {
        Some(from) if from < blob.len() => {
            let range = format!("Content-Range: bytes {from}-{}/{}", blob.len() - 1, blob.len());
            reply("206 Partial Content", &[&range, &length(blob.len() - from)], body(from))
        }
        _ => reply("200 OK", &[&length(blob.len())], body(0)),
    }
}

fn named(bytes: &[u8]) -> String {
    format!("Docker-Content-Digest: {}", Digest::of(bytes))
}

/// Returns a value of a query. Of what is escaped in it, this reads what tests send.
fn value(query: &str, key: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == key)?;
    Some(value.replace("%3A", ":").replace("%2F", "/"))
}
