//! Images from a registry: manifests, documents, and blobs for the store.
//!
//! The half of the OCI distribution-spec v1.1 that reads. Nothing here knows what an image is:
//! names, digests and sizes go in, verified bytes come out.
//!
//! ```text
//! name         text                    → Repository, Reference
//! config       registries.toml         → mirrors, plain http, trusted realms
//! options      –                         Options, Progress
//! credentials  repository              → password or token, from files and helpers
//! challenge    WWW-Authenticate        → Basic, or Bearer and its realm
//! auth, token  challenge, credentials  → the Authorization of one server
//! session      what is asked for       → the last answer behind its redirects
//! body         answer                  → bytes, at a bearable rate
//! refusal      answer                  → an error
//! manifest     answer                  → a verified document
//! blob, blobs  answers                 → verified blobs in the store
//! retry        error                   → whether, and when, to ask again
//! guard        –                         which rules hold: all, but in some tests
//! ```
//!
//! **Nobody is believed.** Every byte is hashed and counted, and compared with the digest and the
//! size that it was asked for by; manifests and other documents are bounded. What a registry names
//! by a tag is named here by what its bytes hash to. URLs that a manifest may give for its layers
//! are not looked at.
//!
//! **Secrets stay at home.** Credentials are looked for when a registry asks for some, by that
//! registry's own host. They go to its own origin (scheme, host and port), and to a realm only if
//! that has the same origin or is trusted for this registry, by the configuration or, for the
//! default registry, from the start. They go over https, unless the registry itself is configured
//! for plain http. A request that was redirected to another origin has none, also where a further
//! redirect leads back. A mirror is another host: it gets only what is kept for itself. No message
//! shows a secret, or any text from a server that could repeat one.
//!
//! **What fails.** A connection that breaks, a silent or slow server, a 408, 429 or 5xx are tried
//! again, after pauses that double; a blob then goes on where it was. Everything else is an error
//! at once. A blob gets its name in the store when its last byte was verified, and of one that
//! fails nothing stays.
#![forbid(unsafe_code)]

mod auth;
mod blob;
mod blobs;
mod body;
mod challenge;
mod config;
mod credentials;
mod error;
mod guard;
mod manifest;
mod name;
mod options;
mod refusal;
mod retry;
mod secret;
mod session;
#[cfg(test)]
mod tests;
mod token;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use box_cache::Store;
use box_image::Digest;
use download::http::{Client, ClientOptions, RemoteUrl};

pub use config::{ConfigError, RegistryConfig};
pub use error::RegistryError;
use guard::Guards;
pub use manifest::{MANIFEST_LIMIT, Manifest};
pub use name::{Reference, Repository, Tag};
pub use options::{Options, Progress};
pub use secret::Secret;
use session::Session;

/// A client for registries. It remembers the tokens that it was given, so one is made for as long
/// as there is something to ask.
///
/// Its calls block, for long where the network is slow, and may be made by several threads; not by
/// one that runs asynchronous tasks: the client has its own runtime, and tokio does not let one
/// wait inside another.
#[derive(Debug)]
pub struct Registry<'a> {
    options: Arc<Options<'a>>,
    guards: Guards,
    /// One for each file of further certificates.
    clients: Mutex<BTreeMap<Option<PathBuf>, Arc<Client>>>,
    /// The servers of each repository: its mirrors, then its registry.
    servers: Mutex<BTreeMap<Repository, Servers<'a>>>,
}

type Servers<'a> = Arc<[Session<'a>]>;

impl<'a> Registry<'a> {
    /// Makes a client; nothing is read or asked yet.
    pub fn new(options: Options<'a>) -> Self {
        Self {
            options: Arc::new(options),
            guards: Guards::default(),
            clients: Mutex::default(),
            servers: Mutex::default(),
        }
    }

    /// Fetches a manifest or an index: at most [`MANIFEST_LIMIT`] bytes, JSON, of one kind, and
    /// with the digest that it is asked for by.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn manifest(
        &self,
        repository: &Repository,
        reference: &Reference,
    ) -> Result<Manifest, RegistryError> {
        self.each(repository, |session| manifest::manifest(session, reference))
    }

    /// Fetches a blob into memory, such as an image's config. `limit` is what such a document may
    /// have at most, whatever names it.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn document(
        &self,
        repository: &Repository,
        digest: &Digest,
        size: u64,
        limit: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        self.each(repository, |session| manifest::document(session, digest, size, limit))
    }

    /// Fetches those blobs that the store does not hold undamaged, several at once. Memory does not
    /// grow with them. How large a blob may be at most, the caller decides: `blobs` has the sizes.
    ///
    /// # Errors
    /// [`RegistryError`]: the first one; the others are then given up. Of a blob that was not whole
    /// nothing stays; those that were stay, and need not be fetched again.
    pub fn fetch_blobs(
        &self,
        repository: &Repository,
        blobs: &[(Digest, u64)],
        store: &Store,
    ) -> Result<(), RegistryError> {
        blobs::fetch(self, repository, blobs, store)
    }

    /// Asks the mirrors, one after the other, and then the registry itself.
    fn each<T>(
        &self,
        repository: &Repository,
        ask: impl Fn(&Session<'_>) -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        let mut failed = Vec::new();
        for session in self.servers(repository)?.iter() {
            match ask(session) {
                Err(error) if session.is_mirror && !error.is_local() => {
                    failed.push(format!("{}: {}", session.repository.host(), error.whole()));
                }
                Err(error) if !failed.is_empty() && !error.is_local() => {
                    let (mirrors, source) = (failed.join("; "), Box::new(error));
                    return Err(RegistryError::AfterMirrors { mirrors, source });
                }
                done => return done,
            }
        }
        Err(RegistryError::Name { text: repository.to_string(), why: "it has no server" })
    }

    fn servers(&self, repository: &Repository) -> Result<Servers<'a>, RegistryError> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = servers.get(repository) {
            return Ok(Arc::clone(known));
        }
        let mirrors = self.options.config.host(repository.host()).mirrors;
        let mirrored = mirrors.iter().map(|it| repository.mirrored(&it.host, &it.prefix));
        let mut made = mirrored.map(|it| self.session(it, true)).collect::<Result<Vec<_>, _>>()?;
        made.push(self.session(repository.clone(), false)?);
        let made = Servers::from(made);
        servers.insert(repository.clone(), Arc::clone(&made));
        Ok(made)
    }

    fn session(
        &self,
        repository: Repository,
        is_mirror: bool,
    ) -> Result<Session<'a>, RegistryError> {
        let host = self.options.config.host(repository.host());
        let scheme = if host.plain_http { "http" } else { "https" };
        let base = format!("{scheme}://{}/", config::server(repository.host()));
        // The host was checked, so that this does not fail.
        let why = "it makes no URL";
        let base: RemoteUrl = base.parse().map_err(|_| RegistryError::Name { text: base, why })?;
        Ok(Session {
            client: self.client(host.ca_file.as_ref())?,
            repository,
            base,
            host,
            is_mirror,
            options: Arc::clone(&self.options),
            guards: self.guards,
            state: Mutex::default(),
        })
    }

    /// Returns the client that also trusts the certificates of a file.
    fn client(&self, ca_file: Option<&PathBuf>) -> Result<Arc<Client>, RegistryError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = clients.get(&ca_file.cloned()) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(Client::new(&ClientOptions {
            patience: self.options.patience,
            proxy: self.options.proxy,
            roots: self.options.roots,
            more_roots: ca_file.map(PathBuf::as_path),
            idle: self.options.parallel,
        })?);
        clients.insert(ca_file.cloned(), Arc::clone(&made));
        Ok(made)
    }
}
