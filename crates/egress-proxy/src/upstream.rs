//! Allowed connections to servers.

use std::future::pending;
use std::net::IpAddr;
use std::sync::Arc;

use egress_rules::hello::{self, HelloError};
use egress_rules::{Host, Rules, Target};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional_with_sizes,
};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use crate::attempt::Attempt;
use crate::first::FirstBytes;
use crate::limits::ByteRate;
use crate::meter::{Count, Metered};
use crate::own::check_address;
use crate::refusal::Refusal;
use crate::state::{Filter, Settings};

/// The size of a buffer, in bytes. A connection has one buffer in each direction.
pub(crate) const BUFFER: usize = 16 << 10;

/// An allowed connection to a server.
pub(crate) struct Upstream {
    pub(crate) stream: Metered<TcpStream>,
    pub(crate) watch: Watch,
}

/// The target of a connection, and whether it is still allowed.
pub(crate) struct Watch {
    rules: watch::Receiver<Arc<Rules>>,
    target: Target,
    /// The address of the server. `None` if only the proxy of the host knows it.
    address: Option<IpAddr>,
    _permit: OwnedSemaphorePermit,
}

impl Watch {
    pub(crate) fn new(
        rules: watch::Receiver<Arc<Rules>>,
        target: Target,
        address: Option<IpAddr>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self { rules, target, address, _permit: permit }
    }

    /// Waits until a change of the rules denies the connection, and returns the reason.
    pub(crate) async fn denied(&mut self) -> Refusal {
        loop {
            if self.rules.changed().await.is_err() {
                return pending().await;
            }
            let rules = Arc::clone(&self.rules.borrow_and_update());
            let checked = rules.check(&self.target);
            let checked = checked.and_then(|()| {
                let address = self.address;
                address.map_or(Ok(()), |it| check_address(&rules, &self.target, it))
            });
            if let Err(denial) = checked {
                return denial.into();
            }
        }
    }
}

impl Upstream {
    pub(crate) fn new(
        stream: TcpStream,
        count: Arc<Count>,
        pace: Arc<ByteRate>,
        watch: Watch,
    ) -> Self {
        // Send each buffer at once. A failure only makes the connection slower.
        let _unsupported = stream.set_nodelay(true);
        keep_alive(&stream);
        Self { stream: Metered::server(stream, count, pace), watch }
    }

    /// Passes bytes both ways until both sides have ended, or until the filter ends the connection.
    pub(crate) async fn tunnel<S>(self, settings: &Settings, attempt: &mut Attempt, client: S)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Self { stream, mut watch } = self;
        let target = &watch.target;
        let name = matches!(target.host, Host::Name(_)).then(|| target.clone());
        let is_tls = Filter::is_tls(settings, target);
        let result = tokio::select! {
            result = carry(settings, (name, is_tls), client, stream) => result,
            reason = watch.denied() => Err(reason),
        };
        if let Err(reason) = result {
            attempt.ends(&reason);
        }
    }
}

/// How long a connection transfers nothing before its server is asked whether it is alive, and the pause between two questions, in
/// seconds.
const ASKED_AFTER: u32 = 60;

/// Lets the kernel ask a silent server whether it is alive ([tcp(7)](https://man7.org/linux/man-pages/man7/tcp.7.html)): it ends the
/// connection after nine questions without an answer. A server that lives may be silent for ever, for example while a model thinks.
fn keep_alive(stream: &TcpStream) {
    // A failure only keeps a dead connection longer.
    let _unsupported = setsockopt(stream, sockopt::KeepAlive, &true)
        .and_then(|()| setsockopt(stream, sockopt::TcpKeepIdle, &ASKED_AFTER))
        .and_then(|()| setsockopt(stream, sockopt::TcpKeepInterval, &ASKED_AFTER));
}

async fn carry<C, S>(
    settings: &Settings,
    (name, is_tls): (Option<Target>, bool),
    mut client: C,
    mut server: S,
) -> Result<(), Refusal>
where
    C: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Some(name) = name.as_ref().filter(|_| is_tls) {
        let hello = timeout(settings.hello, first_message(&mut client, name)).await;
        let hello = hello.map_err(|_| Refusal::Timeout("the client's first message"))??;
        if server.write_all(&hello).await.is_err() {
            return Ok(());
        }
    }
    let mut client = FirstBytes::new(client, name.filter(|_| !is_tls));
    // Ignore an error of one side: it ends the connection, as the end of both sides does.
    let _ended = copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER).await;
    client.refused().map_or(Ok(()), |reason| Err(reason.into()))
}

/// Reads the first message of a TLS client, and checks that it asks for `name`.
async fn first_message<C>(client: &mut C, name: &Target) -> Result<Vec<u8>, Refusal>
where
    C: AsyncRead + Unpin,
{
    let mut bytes = Vec::new();
    while !hello::read(&bytes, name)? {
        let room = (BUFFER - bytes.len()) as u64;
        if room == 0 {
            return Err(HelloError::TooLong.into());
        }
        match (&mut *client).take(room).read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return Err(Refusal::Gone),
            Ok(_) => {}
        }
    }
    Ok(bytes)
}
