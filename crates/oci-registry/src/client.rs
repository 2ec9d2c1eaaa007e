//! A client for registries, which tries the mirrors of a repository before its registry.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use download::NetworkOptions;
use download::http::{Client, RemoteUrl};
use safe_text::with_causes;

use crate::config;
use crate::error::RegistryError;
use crate::manifest::{self, Manifest};
use crate::name::{Reference, Repository};
use crate::push::Pusher;
use crate::server::{Access, Options, Server};
use crate::session::Session;

/// A client for registries. It reuses its tokens, so make one client and use it for all requests.
///
/// Its methods block, for long if the network is slow. Several threads may call them, but no asynchronous task may: the client
/// has its own tokio runtime, and tokio does not allow one runtime to block inside another.
#[derive(Debug)]
pub struct Registry {
    pub(crate) options: Arc<Options>,
    /// One HTTP client for each `ca-file`, and one with the key `None` for registries without a `ca-file`.
    clients: Mutex<BTreeMap<Option<PathBuf>, Arc<Client>>>,
    /// The servers of each repository: its mirrors, then its registry.
    servers: Mutex<BTreeMap<Repository, Sessions>>,
    /// The sessions for pushes. They are always with the registry itself, never with a mirror.
    pushed_to: Mutex<BTreeMap<Repository, Arc<Session>>>,
}

type Sessions = Arc<[Session]>;

impl Registry {
    /// Makes a client. It does no I/O.
    pub fn new(options: Options) -> Self {
        let options = Arc::new(options);
        Self {
            options,
            clients: Mutex::default(),
            servers: Mutex::default(),
            pushed_to: Mutex::default(),
        }
    }

    /// Returns the network options, for other downloads.
    pub fn network(&self) -> NetworkOptions {
        self.options.network.clone()
    }

    /// Returns how many blobs are transferred in parallel.
    pub fn parallel(&self) -> usize {
        self.options.parallel
    }

    /// Fetches a manifest or an index of at most [`MAX_MANIFEST`](crate::MAX_MANIFEST) bytes. If
    /// `reference` is a digest, the bytes are verified against it.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn manifest(
        &self,
        repository: &Repository,
        reference: &Reference,
    ) -> Result<Manifest, RegistryError> {
        self.each(repository, |session| manifest::fetch(session, reference))
    }

    /// Returns a [`Pusher`], which writes to a repository. It sends no request yet.
    ///
    /// # Errors
    /// [`RegistryError::Name`], and [`RegistryError::Download`] if no HTTP client can be made.
    pub fn pusher(&self, repository: &Repository) -> Result<Pusher, RegistryError> {
        let mut known = self.pushed_to.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = known.get(repository) {
            return Ok(Pusher::new(Arc::clone(session)));
        }
        let session = Arc::new(self.session(repository.clone(), false, Access::Push)?);
        known.insert(repository.clone(), Arc::clone(&session));
        Ok(Pusher::new(session))
    }

    /// Calls `ask` for the mirrors in their order, and then for the registry itself, until one succeeds. An error whose cause is
    /// on this host is returned at once.
    pub(crate) fn each<T>(
        &self,
        repository: &Repository,
        ask: impl Fn(&Session) -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        let mut failed = Vec::new();
        for session in self.servers(repository)?.iter() {
            let server = &session.server;
            match ask(session) {
                Err(error) if server.is_mirror && !error.is_local() => {
                    failed.push(format!("{}: {}", server.repository.host(), with_causes(&error)));
                }
                Err(error) if !failed.is_empty() && !error.is_local() => {
                    let host = server.repository.host().to_owned();
                    let source = Box::new(error);
                    return Err(RegistryError::AfterMirrors { mirrors: failed, host, source });
                }
                done => return done,
            }
        }
        Err(RegistryError::Name { text: repository.to_string(), reason: "it has no server" })
    }

    /// Returns the servers of a repository: its mirrors, then its registry.
    pub(crate) fn servers(&self, repository: &Repository) -> Result<Sessions, RegistryError> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = servers.get(repository) {
            return Ok(Arc::clone(known));
        }
        let mirrors = self.options.config.host(repository.host()).mirrors;
        let mirrored = mirrors.iter().map(|it| repository.mirrored(&it.host, &it.prefix));
        let mut made = mirrored
            .map(|it| self.session(it, true, Access::Pull))
            .collect::<Result<Vec<_>, _>>()?;
        made.push(self.session(repository.clone(), false, Access::Pull)?);
        let made = Sessions::from(made);
        servers.insert(repository.clone(), Arc::clone(&made));
        Ok(made)
    }

    fn session(
        &self,
        repository: Repository,
        is_mirror: bool,
        access: Access,
    ) -> Result<Session, RegistryError> {
        let host = self.options.config.host(repository.host());
        let scheme = if host.plain_http { "http" } else { "https" };
        let base = format!("{scheme}://{}/", config::server(repository.host()));
        // `Repository` has checked the host, so this does not fail.
        let reason = "it does not form a URL";
        let base: RemoteUrl =
            base.parse().map_err(|_| RegistryError::Name { text: base, reason })?;
        let client = self.client(host.ca_file.as_ref())?;
        let options = Arc::clone(&self.options);
        Ok(Session::new(Server { client, repository, base, host, is_mirror, access, options }))
    }

    /// Returns the HTTP client that also trusts the certificates in `ca_file`.
    fn client(&self, ca_file: Option<&PathBuf>) -> Result<Arc<Client>, RegistryError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = clients.get(&ca_file.cloned()) {
            return Ok(Arc::clone(known));
        }
        let Options { network, parallel, .. } = &*self.options;
        let made = Arc::new(Client::new(network, ca_file.map(PathBuf::as_path), *parallel)?);
        clients.insert(ca_file.cloned(), Arc::clone(&made));
        Ok(made)
    }
}
