//! The registry and the other servers of a test, and the registry's correct answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_cache::Store;
use download::Policy;
use serde_json::{Value, json};
use test_server::{Request, Server, roots};

use super::*;

/// The password that no other server may get.
pub(super) const CANARY: &str = "canary-password";
/// The token that the registry issues for [`CANARY`].
pub(super) const TOKEN: &str = "canary-token";

/// An image of one layer.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) manifest: Vec<u8>,
    pub(super) config: Vec<u8>,
    pub(super) layer: Vec<u8>,
}

/// Answers a request instead of the correct registry, or returns `None`. Its arguments are the path, the number of earlier
/// requests for this path, and the request.
pub(super) type Deed = Box<dyn Fn(&str, usize, &Request) -> Option<Reply> + Send + Sync>;

/// The servers of a test, with the store and the credentials of its client.
pub(super) struct Stage {
    pub(super) image: Image,
    pub(super) registry: Server,
    /// Servers that must not get any secret.
    pub(super) foreign: Vec<Server>,
    pub(super) store: Store,
    /// Servers that may get a secret.
    pub(super) friends: Vec<Server>,
    dir: tempfile::TempDir,
    auth: String,
    config: String,
}

/// The setup of a case.
pub(super) struct Plan {
    pub(super) image: Image,
    pub(super) identity: Identity,
    pub(super) foreign: Vec<Server>,
    pub(super) friends: Vec<Server>,
    /// Whether the registry needs no token.
    pub(super) open: bool,
    /// The registry's answer to a request without credentials; `None` for the correct challenge.
    pub(super) challenge: Option<String>,
    pub(super) deed: Deed,
    /// The entry of the credential file for the registry.
    pub(super) auth: serde_json::Value,
    /// Further lines of the registry's table in `registries.toml`.
    pub(super) config: String,
}

impl Image {
    /// Makes an image whose manifest is changed by `change`.
    pub(super) fn with(change: impl FnOnce(&mut Value)) -> Self {
        let (config, layer) = (b"{}".to_vec(), b"the layer's bytes".to_vec());
        let entry = |kind: &str, bytes: &[u8]| {
            json!({
                "mediaType": format!("application/vnd.oci.image.{kind}"),
                "digest": digest(bytes), "size": bytes.len(),
            })
        };
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": entry("config.v1+json", &config),
            "layers": [entry("layer.v1.tar", &layer)],
        });
        change(&mut manifest);
        Self { manifest: manifest.to_string().into_bytes(), config, layer }
    }

    /// Returns the path of the layer on the registry.
    pub(super) fn layer_path(&self) -> String {
        format!("/v2/app/blobs/{}", digest(&self.layer))
    }

    /// Returns the path of the config on the registry.
    pub(super) fn config_path(&self) -> String {
        format!("/v2/app/blobs/{}", digest(&self.config))
    }

    /// Answers like a registry that has only this image.
    fn honest(&self, path: &str) -> Reply {
        let by_digest = format!("/v2/app/manifests/{}", digest(&self.manifest));
        if path == "/v2/app/manifests/v1" || path == by_digest {
            return manifest(&self.manifest);
        }
        if path == self.layer_path() {
            return file(&self.layer);
        }
        if path == self.config_path() { file(&self.config) } else { not_found() }
    }
}

impl Plan {
    /// Plans a correct registry, over HTTP, that wants a token.
    pub(super) fn new() -> Self {
        Self {
            image: Image::with(|_| ()),
            identity: Identity::None,
            foreign: Vec::new(),
            friends: Vec::new(),
            open: false,
            challenge: None,
            deed: Box::new(|_, _, _| None),
            auth: json!({ "auth": pair() }),
            config: String::new(),
        }
    }

    /// Plans answers that replace the correct ones.
    pub(super) fn deed(
        self,
        deed: impl Fn(&str, usize, &Request) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self { deed: Box::new(deed), ..self }
    }

    /// Plans the answers for one path. `answer` gets the number of earlier requests for it.
    pub(super) fn at(
        self,
        path: &str,
        answer: impl Fn(usize) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let path = path.to_owned();
        self.deed(move |at, before, _| (at == path).then(|| answer(before)).flatten())
    }

    /// Starts the servers.
    pub(super) fn set(self) -> Stage {
        let Self { image, identity, foreign, friends, open, challenge, deed, auth, config } = self;
        let answers = image.clone();
        let registry = Server::start(identity, |port| {
            let scheme = if matches!(identity, Identity::None) { "http" } else { "https" };
            let own = format!("Bearer realm=\"{scheme}://127.0.0.1:{port}/token\",service=\"reg\"");
            let challenge = challenge.unwrap_or(own);
            let before = Mutex::new(BTreeMap::<String, usize>::new());
            move |request: &Request| {
                let path = request.path().split('?').next().unwrap_or_default();
                let basic = challenge.starts_with("Basic") && is_basic(request);
                let allowed = open || path == "/token" || basic || is_bearer(request);
                if !allowed && path != "/v2/app/back" {
                    return unauthorized(&challenge);
                }
                let before = {
                    let mut before = before.lock().unwrap();
                    let count = before.entry(path.to_owned()).or_default();
                    *count += 1;
                    *count - 1
                };
                let done = deed(path, before, request);
                done.unwrap_or_else(|| match path {
                    "/token" => token(request),
                    _ => answers.honest(path),
                })
            }
        });
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store")).unwrap();
        let auth = json!({ "auths": { registry.host(): auth } }).to_string();
        Stage { image, registry, foreign, friends, store, dir, auth, config }
    }
}

impl Stage {
    /// Returns a client that has a password for the registry.
    pub(super) fn client(&self, options: Options) -> Registry {
        Registry::new(self.options(options))
    }

    /// Returns options with a password for the registry.
    pub(super) fn options(&self, options: Options) -> Options {
        let auth = self.dir.path().join("auth.json");
        std::fs::write(&auth, &self.auth).unwrap();
        let plain = self.registry.url("").starts_with("http:");
        let table = format!("[registry.\"{}\"]\nplain-http = {plain}\n", self.registry.host());
        let config = RegistryConfig::parse(&format!("{table}{}", self.config)).unwrap();
        Options { auth_files: vec![auth], config, ..options }
    }

    pub(super) fn repository(&self) -> Repository {
        Repository::new(&self.registry.host(), "app").unwrap()
    }

    /// Returns the store's directory.
    pub(super) fn store_path(&self) -> std::path::PathBuf {
        self.dir.path().join("store")
    }

    /// Returns the names of all files in the store, including incomplete ones.
    pub(super) fn stored(&self) -> Vec<String> {
        let list = |name: &str| std::fs::read_dir(self.store_path().join(name)).unwrap();
        let names = ["blobs", "tmp", "actions"].into_iter().flat_map(list);
        names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Returns the requests for a path that had the token.
    pub(super) fn asked(&self, path: &str) -> Vec<Request> {
        let mut requests = self.registry.requests();
        requests.retain(|request| request.path() == path && is_bearer(request));
        requests
    }
}

/// Returns options for tests: retries after milliseconds, and the tests' root certificates.
pub(super) fn quick() -> Options {
    let policy = Policy { backoff: Duration::from_millis(1), tries: 3, ..Policy::default() };
    let network = NetworkOptions { policy, roots: Some(roots()), ..NetworkOptions::default() };
    Options { network, ..Options::default() }
}

pub(super) fn with_policy(options: Options, policy: Policy) -> Options {
    Options { network: NetworkOptions { policy, ..options.network }, ..options }
}

/// Returns the options, and a list that collects the reported progress.
pub(super) fn watched(mut options: Options) -> (Options, Arc<Mutex<Vec<Progress>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    options.network.progress = Some(Arc::new(move |it| log.lock().unwrap().push(it)));
    (options, seen)
}

pub(super) fn digest(bytes: &[u8]) -> Digest {
    Digest::of(bytes)
}

/// Answers with a manifest and its correct digest.
pub(super) fn manifest(bytes: &[u8]) -> Reply {
    let named = format!("Docker-Content-Digest: {}", digest(bytes));
    let kind = "Content-Type: application/vnd.oci.image.manifest.v1+json";
    reply("200 OK", &[kind, &named, &length(bytes.len())], bytes)
}

pub(super) fn not_found() -> Reply {
    reply("404 Not Found", &["Content-Length: 0"], b"")
}

/// Requests credentials.
pub(super) fn unauthorized(challenge: &str) -> Reply {
    let challenge = format!("WWW-Authenticate: {challenge}");
    reply("401 Unauthorized", &[&challenge, "Content-Length: 0"], b"")
}

/// Answers with the token if the request has the password, or an identity token with the same text.
fn token(request: &Request) -> Reply {
    if is_basic(request) || request.body.contains(&format!("&refresh_token={CANARY}")) {
        file(json!({ "token": TOKEN }).to_string().as_bytes())
    } else {
        unauthorized("Basic realm=\"reg\"")
    }
}

/// Returns the user name and the password in base64, as they are sent.
pub(super) fn pair() -> String {
    BASE64_STANDARD.encode(format!("me:{CANARY}"))
}

fn is_basic(request: &Request) -> bool {
    request.header("authorization") == Some(&format!("Basic {}", pair()))
}

fn is_bearer(request: &Request) -> bool {
    let bearer = format!("Bearer {TOKEN}");
    request.header("authorization").is_some_and(|header| header.starts_with(&bearer))
}
