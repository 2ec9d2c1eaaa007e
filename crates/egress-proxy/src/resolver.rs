//! Resolves names to addresses.

use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use tokio::net::lookup_host;

type Answer = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// A function that resolves names to addresses.
#[derive(Clone)]
pub struct Resolver(Arc<dyn Fn(String) -> Answer + Send + Sync>);

impl Resolver {
    /// Resolves names as other programs on the host do, by
    /// [getaddrinfo(3)](https://man7.org/linux/man-pages/man3/getaddrinfo.3.html), with the host's `/etc/hosts` and name servers.
    /// A lookup blocks a thread of tokio's blocking pool until getaddrinfo returns, even if its future was dropped. A runtime
    /// waits for these threads when it is dropped, so end it with `shutdown_background`.
    pub fn host() -> Self {
        Self::new(async |name| {
            let found = lookup_host((name, 0)).await?;
            Ok(found.map(|it| it.ip()).collect())
        })
    }

    /// Resolves names by calling a function, for example in a test.
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
