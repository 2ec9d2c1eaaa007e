//! Serves the Unix socket on the host through which clients reach the agent's port.
//!
//! ```text
//! clients ── agent.sock ── supervisor ── vmm/agent.sock ── libkrun ── the agent's port
//! ```
//!
//! libkrun serves all connections of a box, including the control channel, in one loop. The loop stops when the socket
//! of one connection is full. So clients connect to the supervisor, which always reads the agent's bytes, and hangs up
//! on a client that does not read them.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use box_contract::plan::MAX_CLIENTS;
use host_fs::OsError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{AccessFlags, access, geteuid};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::MachineError;
use crate::streams::control::{CHUNK, Listener};
use vmm::AGENT_SOCKET;
use vmm::runtime_dir::{RuntimeDir, checked_socket_path};

/// The greatest backlog of one client, in bytes.
const MAX_WAITING: usize = 8 << 20;
/// The greatest backlog of all clients together, in bytes. The backlog of one client may be at most as large as the
/// unused rest of this limit, so that a few slow readers cannot use it up.
const MAX_ALL: usize = 32 << 20;
/// How long a client with a backlog may stop reading before the supervisor hangs up.
const STALLED: Duration = Duration::from_secs(10);
/// How often to check whether a client that has stopped sending has also stopped reading.
const LOOK: Duration = Duration::from_secs(1);
/// How long libkrun may refuse a connection. The queue of libkrun's socket has room for five connections, and libkrun
/// accepts none before the VM runs.
const NO_PLACE: Duration = Duration::from_secs(10);
/// The time between two attempts to connect to libkrun.
const AGAIN: Duration = Duration::from_millis(10);

/// The agent's port, and the paths of the two sockets that lead to it.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    port: u16,
    /// The socket for clients.
    outer: PathBuf,
    /// The socket of libkrun.
    inner: PathBuf,
}

/// Returns the paths of the sockets for the agent's port. The socket for clients is at `wanted`, or in the run's
/// private directory if that is `None`.
pub(crate) fn places(
    port: u16,
    wanted: Option<PathBuf>,
    runtime: &RuntimeDir,
) -> Result<Places, MachineError> {
    let inner = runtime.vmm_socket(AGENT_SOCKET)?;
    let Some(wanted) = wanted else {
        return Ok(Places { port, outer: runtime.socket("agent.sock")?, inner });
    };
    let path = std::path::absolute(&wanted).map_err(OsError::file("find", &wanted))?;
    let outer = checked_socket_path(path)?;
    // Checked here, before the box's blobs are hashed, because hashing takes time.
    may_be_made(&outer).map_err(OsError::file(MAKE, &outer))?;
    Ok(Places { port, outer, inner })
}

const MAKE: &str = "make the agent's socket";

/// Checks that a path is free, and that its directory is writable.
fn may_be_made(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(taken());
    }
    let directory = path.parent().unwrap_or(path).join(".");
    Ok(access(&directory, AccessFlags::W_OK)?)
}

fn taken() -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, "it exists already")
}

/// The agent's socket, which is served in the current runtime and removed on drop.
#[derive(Debug)]
pub(crate) struct AgentSocket {
    /// Removes the socket's file on drop.
    listener: Listener,
    /// The agent's port in the guest.
    pub(crate) port: u16,
    served: AbortHandle,
    /// Has a clone for each client that is connected.
    clients: Arc<()>,
}

impl AgentSocket {
    /// Creates the socket for clients, with access for this user alone, and starts to serve them.
    ///
    /// # Errors
    /// If the path is taken, or the socket cannot be created.
    pub(crate) fn serve(places: Places) -> Result<Self, MachineError> {
        let Places { port, outer, inner } = places;
        let listener = Listener::bind(outer).map_err(|error| match error {
            OsError::File { path, source, .. } if source.kind() == ErrorKind::AddrInUse => {
                OsError::File { action: MAKE, path, source: taken() }
            }
            error => error,
        })?;
        let watched = listener.watched().map_err(OsError::file("watch", listener.path()))?;
        let clients = Arc::new(());
        let served = tokio::spawn(accept(watched, inner, Arc::clone(&clients))).abort_handle();
        Ok(Self { listener, port, served, clients })
    }

    /// Returns the path of the socket for clients.
    pub(crate) fn path(&self) -> &Path {
        self.listener.path()
    }

    /// Returns whether a client is connected.
    pub(crate) fn has_clients(&self) -> bool {
        // `Self` and the task that accepts clients have a clone, too.
        Arc::strong_count(&self.clients) > 2
    }
}

impl Drop for AgentSocket {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// Accepts clients, and forwards each connection.
async fn accept(listener: UnixListener, inner: PathBuf, connected: Arc<()>) {
    let (mut clients, all) = (JoinSet::new(), Arc::default());
    loop {
        let accepted = listener.accept().await;
        while clients.try_join_next().is_some() {}
        match accepted {
            Ok((client, _)) if clients.len() < MAX_CLIENTS && is_own(&client) => {
                let carried = carry(client, inner.clone(), Backlog::of(&all));
                let connected = Arc::clone(&connected);
                clients.spawn(async move {
                    carried.await;
                    drop(connected);
                });
            }
            // Hangs up: too many clients, or a process of another user.
            Ok(_) => {}
            // Retry after a pause: for example, too many files are open, and another connection may close soon.
            Err(_) => sleep(AGAIN).await,
        }
    }
}

/// Returns whether a client runs as this user or as root
/// ([`SO_PEERCRED`](https://man7.org/linux/man-pages/man7/unix.7.html)). The socket's mode alone is not enough, because
/// it may have been changed.
fn is_own(client: &UnixStream) -> bool {
    client.peer_cred().is_ok_and(|it| it.uid() == geteuid().as_raw() || it.uid() == 0)
}

/// Forwards a connection until the agent has ended it, or the client has stopped sending and reading.
async fn carry(client: UnixStream, inner: PathBuf, backlog: Backlog) {
    let Some(agent) = connect(&inner).await else { return };
    let ((mut from_client, to_client), (from_agent, mut to_agent)) =
        (client.into_split(), agent.into_split());
    let upwards = async {
        // If the client stops sending, it may still read the rest of the answer.
        drop(copy(&mut from_client, &mut to_agent).await);
        drop(to_agent.shutdown().await);
        gone(from_client.as_ref()).await;
    };
    tokio::select! {
        () = upwards => {}
        () = pass_down(from_agent, to_client, backlog) => {}
    }
}

/// Waits until a client that has stopped sending has also stopped reading. An agent that sends nothing would not notice
/// that.
async fn gone(client: &UnixStream) {
    let is_gone = || {
        let mut fds = [PollFd::new(client.as_fd(), PollFlags::empty())];
        matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1..))
    };
    loop {
        // Wait before the first check, too, because the client's last bytes may not have reached the agent.
        sleep(LOOK).await;
        if is_gone() {
            return;
        }
    }
}

/// Connects to libkrun's socket; returns `None` if that fails for [`NO_PLACE`].
async fn connect(inner: &Path) -> Option<UnixStream> {
    let deadline = Instant::now() + NO_PLACE;
    loop {
        match UnixStream::connect(inner).await {
            Ok(stream) => return Some(stream),
            Err(_) if Instant::now() < deadline => sleep(AGAIN).await,
            Err(_) => return None,
        }
    }
}

/// The agent's bytes that a client has not read.
#[derive(Debug)]
struct Backlog {
    bytes: VecDeque<u8>,
    /// The backlog of all clients together, in bytes.
    all: Arc<AtomicUsize>,
}

impl Backlog {
    /// Returns an empty backlog whose size is included in the sum `all`.
    fn of(all: &Arc<AtomicUsize>) -> Self {
        Self { bytes: VecDeque::new(), all: Arc::clone(all) }
    }

    /// Adds bytes. Returns `false` if the backlog exceeds its limit after that.
    fn push(&mut self, data: &[u8]) -> bool {
        let all = self.all.fetch_add(data.len(), Ordering::Relaxed) + data.len();
        self.bytes.extend(data);
        self.bytes.len() <= MAX_WAITING.min(MAX_ALL.saturating_sub(all))
    }

    /// Removes the first `length` bytes.
    fn remove(&mut self, length: usize) {
        self.bytes.drain(..length);
        self.all.fetch_sub(length, Ordering::Relaxed);
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// Forwards the agent's bytes to a client, and never lets the agent wait. Returns when the agent has ended and the
/// backlog is empty, or when the backlog is too large or the client has not read from it for [`STALLED`].
async fn pass_down(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut waiting: Backlog) {
    let mut chunk = vec![0; CHUNK];
    let (mut taken, mut has_ended) = (Instant::now(), false);
    while !has_ended || !waiting.bytes.is_empty() {
        tokio::select! {
            read = from.read(&mut chunk), if !has_ended => match read {
                Ok(length @ 1..) => {
                    taken = if waiting.bytes.is_empty() { Instant::now() } else { taken };
                    if !waiting.push(&chunk[..length]) {
                        return;
                    }
                }
                Ok(0) | Err(_) => has_ended = true,
            },
            written = to.write(waiting.bytes.as_slices().0), if !waiting.bytes.is_empty() => match written {
                Ok(length @ 1..) => {
                    waiting.remove(length);
                    taken = Instant::now();
                }
                Ok(0) | Err(_) => return,
            },
            () = sleep_until(taken + STALLED), if !waiting.bytes.is_empty() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::{UnixListener as Plain, UnixStream as PlainStream};
    use std::thread;

    use testkit::test_box::{TestBox, config};
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn the_agents_socket_needs_a_free_place() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let (made, directory) = (TestBox::new(&config()), tempfile::tempdir().unwrap());
        let directory = RuntimeDir::create(directory.path()).unwrap();
        let plan = |path: &str| places(80, Some(made.path().join(path)), &directory);
        let free = plan("a.sock").unwrap();
        assert_eq!(free.outer, made.path().join("a.sock"));
        fs::write(&free.outer, "another run's").unwrap();
        let error = AgentSocket::serve(free).unwrap_err().to_string();
        assert!(error.ends_with("a.sock: it exists already"), "{error}");
        assert!(made.path().join("a.sock").exists());
        for (path, reason) in [
            ("index.json", "it exists already"),
            ("missing/a.sock", "No such file or directory (os error 2)"),
            ("index.json/a.sock", "Not a directory (os error 20)"),
        ] {
            let error = plan(path).unwrap_err().to_string();
            let path = made.path().join(path);
            assert_eq!(
                error,
                format!("cannot make the agent's socket {}: {reason}", path.display())
            );
        }
        let served = AgentSocket::serve(plan("b.sock").unwrap()).unwrap();
        let path = served.path().to_owned();
        assert!(path.exists());
        drop(served);
        assert!(!path.exists());
    }

    /// Serves a socket in a thread; returns the socket's path and a listener in libkrun's role.
    fn served() -> (tempfile::TempDir, PathBuf, Plain) {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("agent.sock");
        let inner = base.path().join("inner");
        let plain = Plain::bind(&inner).unwrap();
        // The socket listens from here on, so a client can connect before the thread accepts it.
        let outer = Plain::bind(&path).unwrap();
        outer.set_nonblocking(true).unwrap();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                accept(UnixListener::from_std(outer).unwrap(), inner, Arc::default()).await;
            });
        });
        (base, path, plain)
    }

    #[test]
    fn a_client_counts_as_long_as_it_is_connected() {
        let base = tempfile::tempdir().unwrap();
        let directory = RuntimeDir::create(base.path()).unwrap();
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let places = places(80, None, &directory).unwrap();
            let agent = UnixListener::bind(&places.inner).unwrap();
            let socket = AgentSocket::serve(places).unwrap();
            let client = UnixStream::connect(socket.path()).await.unwrap();
            let (inside, _) = agent.accept().await.unwrap();
            assert!(socket.has_clients());
            drop((client, inside));
            let over = Instant::now() + Duration::from_secs(20);
            while socket.has_clients() {
                assert!(Instant::now() < over, "it has left");
                sleep(AGAIN).await;
            }
        });
    }

    #[test]
    fn both_directions_are_carried_to_their_ends() {
        let (_base, path, agent) = served();
        let mut client = PlainStream::connect(path).unwrap();
        let (mut inside, _) = agent.accept().unwrap();
        client.write_all(b"request").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut got = String::new();
        inside.read_to_string(&mut got).unwrap();
        assert_eq!(got, "request");
        inside.write_all(&[7; 100_000]).unwrap();
        drop(inside);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, [7; 100_000]);
    }

    #[test]
    fn a_client_that_is_gone_leaves_nothing_with_an_agent_that_says_nothing() {
        let (_base, path, agent) = served();
        let mut client = PlainStream::connect(path).unwrap();
        client.write_all(b"?").unwrap();
        let (inside, _) = agent.accept().unwrap();
        drop(client);
        let mut fds = [PollFd::new(inside.as_fd(), PollFlags::empty())];
        assert_eq!(poll(&mut fds, PollTimeout::from(20_000_u16)), Ok(1), "it is hung up on");
        let mut output = String::new();
        (&inside).read_to_string(&mut output).unwrap();
        assert_eq!(output, "?", "what the client had sent has come");
    }

    /// Fails if slow readers use up the limit of all clients.
    #[test]
    fn all_clients_together_have_a_bound_and_each_has_a_part() {
        let all = Arc::default();
        let part = vec![0; 1 << 16];
        let mut slow: Vec<_> = (0..MAX_CLIENTS - 1).map(|_| Backlog::of(&all)).collect();
        // Each backlog grows to its limit. The supervisor would hang up on the clients then; here they keep their
        // backlogs.
        slow.iter_mut().for_each(|it| while it.push(&part) {});
        assert!(all.load(Ordering::Relaxed) <= MAX_ALL + (MAX_CLIENTS << 16));
        slow.truncate(8);
        assert!(Backlog::of(&all).push(&part), "one that reads is carried on");
        drop(slow);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_client_that_reads_nothing_stops_no_agent_and_is_given_up() {
        let (_base, path, agent) = served();
        let mut client = PlainStream::connect(path).unwrap();
        let (mut inside, _) = agent.accept().unwrap();
        // More than the sockets' buffers: the agent's bytes are read nevertheless, up to the limit.
        inside.write_all(&vec![7; MAX_WAITING / 2]).unwrap();
        assert!(inside.write_all(&vec![7; 2 * MAX_WAITING]).is_err(), "it was hung up on");
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        assert!(rest.len() < MAX_WAITING);
    }
}
