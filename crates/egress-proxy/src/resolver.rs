//! How names become addresses.

use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use tokio::net::lookup_host;

type Answer = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// How names become addresses.
#[derive(Clone)]
pub struct Resolver(Arc<dyn Fn(String) -> Answer + Send + Sync>);

impl Resolver {
    /// Resolves names as the host's own programs do, by getaddrinfo(3): with the host's `/etc/hosts`, and through its servers.
    /// A lookup takes a thread of tokio's for blocking work as long as getaddrinfo does, even if nobody waits for it any
    /// more; a runtime that is dropped waits for these threads, so end it with `shutdown_background`.
    pub fn host() -> Self {
        Self::new(async |name| {
            let found = lookup_host((name, 0)).await?;
            Ok(found.map(|it| it.ip()).collect())
        })
    }

    /// Resolves names by a function, such as one of a test.
    pub fn new<F, A>(function: F) -> Self
    where
        F: Fn(String) -> A + Send + Sync + 'static,
        A: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        Self(Arc::new(move |name| Box::pin(function(name))))
    }

    /// Returns the addresses of a name.
    pub(crate) fn resolve(&self, name: &str) -> Answer {
        (self.0)(name.to_owned())
    }
}

impl Debug for Resolver {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}
