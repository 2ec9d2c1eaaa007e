//! Where redirects may lead: not to a link's own addresses, and not to a cloud's metadata.
//!
//! Clouds answer there with credentials of the machine, and a server that is asked on purpose is named by a user. A name can
//! have such an address, too. So a client for redirects resolves names here, and connects to what was checked and to nothing
//! else.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::{future, thread};

use egress_rules::address::link_or_metadata;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Finds the addresses of a name.
pub(crate) type Lookup = fn(&str) -> io::Result<Vec<SocketAddr>>;

/// A redirect leads to an address to which none leads.
#[derive(Debug, thiserror::Error)]
#[error("its address is {0}")]
pub(super) struct Screened(pub(super) &'static str);

/// Checks an address to which a redirect leads.
pub(super) fn check(address: IpAddr) -> Result<(), Screened> {
    link_or_metadata(address).map_or(Ok(()), |purpose| Err(Screened(purpose)))
}

/// Asks the system for the addresses of a name.
pub(super) fn of_the_system(name: &str) -> io::Result<Vec<SocketAddr>> {
    (name, 0).to_socket_addrs().map(Iterator::collect)
}

/// Resolves the names to which redirects lead.
pub(super) struct Screen {
    pub(super) lookup: Lookup,
    /// The host of the proxy, which the user has named.
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

/// The result of work on a thread, and who waits for it.
type Shared<T> = Mutex<(Option<T>, Option<Waker>)>;

/// Does what blocks on a thread of its own, so that the client meanwhile serves others, and its timeouts hold.
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
