//! Forbids redirects to link-local addresses and to a cloud's metadata service.
//!
//! At such an address, a cloud returns credentials of the host. So only the user's URL may have one, and no redirect. Because a
//! name can resolve to such an address, the client for redirects resolves names here, and connects only to checked addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::{future, thread};

use egress_rules::address::link_or_metadata;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A function that resolves a name to addresses.
pub(crate) type Lookup = fn(&str) -> io::Result<Vec<SocketAddr>>;

/// A redirect leads to a forbidden address.
#[derive(Debug, thiserror::Error)]
#[error("its address is {0}")]
pub(super) struct Screened(pub(super) &'static str);

/// Checks the address of a redirect.
pub(super) fn check(address: IpAddr) -> Result<(), Screened> {
    link_or_metadata(address).map_or(Ok(()), |purpose| Err(Screened(purpose)))
}

/// Resolves a name with the system's resolver.
pub(super) fn of_the_system(name: &str) -> io::Result<Vec<SocketAddr>> {
    (name, 0).to_socket_addrs().map(Iterator::collect)
}

/// The resolver for names in redirects.
pub(super) struct Screen {
    pub(super) lookup: Lookup,
    /// The host of the proxy. Its address is not checked, because the user has chosen the proxy.
    pub(super) proxy: Option<String>,
}

impl Resolve for Screen {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, name) = (self.lookup, name.as_str().to_owned());
        let is_named = self.proxy.as_deref() == Some(&*name);
        Box::pin(async move {
            let found = on_a_thread(move || lookup(&name)).await?;
            if !is_named {
                found.iter().try_for_each(|it| check(it.ip()))?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The result of the work on a thread, and the waker of the task that waits for it.
type Shared<T> = Mutex<(Option<T>, Option<Waker>)>;

/// Runs blocking work on a new thread, so that the client's other tasks and its timeouts continue.
async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let shared: Arc<Shared<io::Result<T>>> = Arc::default();
    let theirs = Arc::clone(&shared);
    thread::Builder::new().name("resolver".to_owned()).spawn(move || {
        let done = work();
        let mut state = theirs.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = Some(done);
        if let Some(waiting) = state.1.take() {
            waiting.wake();
        }
    })?;
    future::poll_fn(move |context| {
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        match state.0.take() {
            Some(done) => Poll::Ready(done),
            None => {
                state.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}
