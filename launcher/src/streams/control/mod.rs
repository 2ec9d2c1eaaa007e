//! The supervisor's end of the control channel.
//!
//! The guest is hostile from its first instruction, and other programs of the user can reach the socket while it
//! exists. So the listener accepts one connection, which must come from the VMM process, and is then closed. The first
//! frame must prove with the boot's nonce that it comes from init. Any malformed frame after that is an error that ends
//! the run.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use box_contract::wire::{Frames, GuestMessage, Hello, HostMessage, is_spoken};
use host_fs::OsError;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, getsockopt, listen, socket,
    sockopt::PeerCredentials,
};
use nix::sys::stat::{Mode, fchmod};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream as Watched;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout};
use zeroize::Zeroizing;

use crate::streams::StreamError;

use vmm::Nonce;

/// How long to wait for a guest that does not read its requests.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for the last messages of a VM after a failure.
pub(crate) const SETTLE: Duration = Duration::from_millis(500);
/// How many requests may wait for a guest that does not read them.
const MAX_REQUESTS: usize = 4096;
/// How many bytes of requests may wait for such a guest.
const MAX_WAITING: usize = 32 << 20;
pub(crate) const SEND: &str = "send a request to init";
pub(crate) const ACCEPT: &str = "accept the control connection";
/// How much is read at a time, in bytes.
pub(crate) const CHUNK: usize = 16 << 10;

/// A private socket for connections of the VMM process or of clients. Its file is removed on drop.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// The identity of the socket's file. Drop removes the file at the path only if it still has this identity.
    file: Option<FileId>,
}

/// The device and the inode of a file.
type FileId = (u64, u64);

/// The backlog of [listen(2)](https://man7.org/linux/man-pages/man2/listen.2.html), the same as in the standard
/// library.
const WAITING: i32 = 128;

impl Listener {
    /// Creates the socket, with access for this user alone, at a path that does not exist.
    ///
    /// # Errors
    /// If the socket cannot be created, for example because the path exists.
    pub fn bind(path: PathBuf) -> Result<Self, OsError> {
        let socket = bind_private(&path).map_err(OsError::file("make", &path))?;
        let file = file_id(&path);
        Ok(Self { socket, path, file })
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts the one connection, which must come from the process `vmm`, and closes the socket.
    ///
    /// # Errors
    /// If another process connected.
    pub fn accept(self, vmm: u32) -> Result<UnixStream, StreamError> {
        let (stream, _) = self.socket.accept().map_err(OsError::system(ACCEPT))?;
        check_peer(&stream, vmm)?;
        Ok(stream)
    }

    /// Returns the same socket, registered with the current runtime.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn watched(&self) -> io::Result<tokio::net::UnixListener> {
        self.socket.set_nonblocking(true)?;
        tokio::net::UnixListener::from_std(self.socket.try_clone()?)
    }
}

/// Refuses a connection that does not come from the process `vmm`.
///
/// # Errors
/// [`StreamError::Protocol`].
pub(crate) fn check_peer(stream: &impl AsFd, vmm: u32) -> Result<(), StreamError> {
    let peer = peer(stream).map_err(OsError::system(ACCEPT))?;
    if peer == vmm {
        return Ok(());
    }
    Err(StreamError::Protocol(format!("process {peer}, not the VMM, connected first")))
}

/// Returns the id of the process at the other end of a connection; zero if it is in another PID namespace.
pub(crate) fn peer(stream: &impl AsFd) -> nix::Result<u32> {
    Ok(getsockopt(stream, PeerCredentials)?.pid().unsigned_abs())
}

impl Drop for Listener {
    fn drop(&mut self) {
        // If other users can write to the directory, another file may be at the path by now.
        if self.file.is_some() && file_id(&self.path) == self.file {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Creates a socket to which only this user can ever connect: its mode is set before it has a path, and the kernel
/// creates the file with no more permissions than that (`unix_bind_bsd` in net/unix/af_unix.c).
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let address = UnixAddr::new(path)?;
    let made = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    fchmod(&made, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(made.as_raw_fd(), &address)?;
    listen(&made, Backlog::new(WAITING)?)?;
    Ok(made.into())
}

/// Returns the identity of the file at a path, without following a symbolic link.
fn file_id(path: &Path) -> Option<FileId> {
    fs::symlink_metadata(path).ok().map(|it| (it.dev(), it.ino()))
}

/// An accepted control connection. Requests wait in a queue, so that a guest that reads none of them blocks nothing
/// else.
#[derive(Debug)]
pub struct Channel {
    stream: OwnedReadHalf,
    requests: mpsc::Sender<Request>,
    /// How many bytes of requests wait in the queue.
    waiting: Arc<AtomicUsize>,
    /// When this channel found out that init no longer reads requests.
    unread_since: Option<Instant>,
    nonce: Nonce,
    /// The messages for init, sent once it has proved its identity.
    first: Vec<HostMessage>,
    frames: Frames,
    /// The protocol that init speaks, once it has proved its identity.
    protocol: Option<u32>,
}

/// A frame for init, which may contain a secret.
type Request = Zeroizing<Vec<u8>>;

impl Channel {
    /// Creates the channel of a connection. When init has proved its identity, it gets the messages in `first`.
    pub fn new(stream: Watched, nonce: Nonce, first: Vec<HostMessage>) -> Self {
        let (stream, writer) = stream.into_split();
        let (requests, queue) = mpsc::channel(MAX_REQUESTS);
        let waiting = Arc::new(AtomicUsize::new(0));
        drop(tokio::spawn(write_requests(writer, queue, Arc::clone(&waiting))));
        let (frames, protocol, unread_since) = (Frames::default(), None, None);
        Self { stream, requests, waiting, unread_since, nonce, first, frames, protocol }
    }

    /// Reads the bytes that have arrived, once; returns `false` at the end of the stream. Cancel-safe.
    ///
    /// # Errors
    /// If the connection cannot be read, ends inside a frame, or init no longer reads its requests.
    pub async fn receive(&mut self) -> Result<bool, StreamError> {
        let mut chunk = [0; CHUNK];
        if self.requests.is_closed() {
            self.unread_since.get_or_insert_with(Instant::now);
        }
        let received = tokio::select! {
            biased;
            () = is_not_read(&self.requests, self.unread_since) => return Err(unread()),
            received = self.stream.read(&mut chunk) => received,
        };
        match received {
            Ok(0) if self.frames.is_inside_frame() => {
                Err(StreamError::Protocol("it ended inside a frame".to_owned()))
            }
            Ok(length) => {
                self.frames.push(&chunk[..length]);
                Ok(length > 0)
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(OsError::system("read the control channel")(error).into()),
        }
    }

    /// Returns the next message in the received bytes; `None` if they contain no complete message. The first message
    /// must be init's greeting, which proves its identity and is not returned.
    ///
    /// # Errors
    /// If a frame is malformed, or a greeting is missing, wrong or repeated.
    pub fn message(&mut self) -> Result<Option<GuestMessage>, StreamError> {
        while let Some(message) = self.next_frame()? {
            match (message, self.protocol.is_some()) {
                (GuestMessage::Hello(hello), false) => self.check(&hello)?,
                (GuestMessage::Hello(_), true) => return Err(misuse("a second greeting")),
                (_, false) => return Err(misuse("a message before the greeting")),
                (message, true) => return Ok(Some(message)),
            }
        }
        Ok(None)
    }

    /// Sends a request. A message that an older init does not understand, but does not need, is not sent.
    ///
    /// # Errors
    /// If the guest does not read its requests, or if its init is too old for this request.
    pub fn send(&self, message: &HostMessage) -> Result<(), StreamError> {
        if let Some(protocol) = self.protocol.filter(|it| message.since() > *it) {
            // An older init keeps the time that it had at its start.
            let is_needless = matches!(message, HostMessage::Clock(_));
            return if is_needless { Ok(()) } else { Err(StreamError::OlderBox(protocol)) };
        }
        let mut frame = Request::default();
        message.write(&mut *frame).map_err(OsError::system(SEND))?;
        let length = frame.len();
        if self.waiting.load(Ordering::Relaxed) + length > MAX_WAITING {
            return Err(unread());
        }
        self.requests.try_send(frame).map_err(|_| unread())?;
        self.waiting.fetch_add(length, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the protocol that init speaks, once it has proved its identity.
    pub(crate) const fn protocol(&self) -> Option<u32> {
        self.protocol
    }

    fn check(&mut self, hello: &Hello) -> Result<(), StreamError> {
        if !self.nonce.matches(&hello.nonce) {
            return Err(misuse("a greeting without this boot's nonce"));
        }
        if !is_spoken(hello.protocol) {
            return Err(StreamError::OtherProtocol(hello.protocol));
        }
        self.protocol = Some(hello.protocol);
        let first = std::mem::take(&mut self.first);
        first.iter().try_for_each(|it| self.send(it))
    }

    fn next_frame(&mut self) -> Result<Option<GuestMessage>, StreamError> {
        let frame = self.frames.next(|rest| GuestMessage::read(rest));
        frame.map_err(|error| StreamError::Protocol(error.to_string()))
    }
}

/// Registers a connection with the runtime.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn watched(stream: UnixStream) -> io::Result<Watched> {
    stream.set_nonblocking(true)?;
    Watched::from_std(stream)
}

/// Waits until init has stopped reading requests, and then for [`SETTLE`], in which the last messages of a connection
/// that is about to end can still arrive.
async fn is_not_read(requests: &mpsc::Sender<Request>, since: Option<Instant>) {
    requests.closed().await;
    sleep_until((since.unwrap_or_else(Instant::now) + SETTLE).into()).await;
}

fn unread() -> StreamError {
    let error = io::Error::new(ErrorKind::TimedOut, "it does not read its requests");
    OsError::system(SEND)(error).into()
}

/// Writes the requests one by one, until the guest has not read one for [`WRITE_TIMEOUT`].
async fn write_requests(
    mut stream: OwnedWriteHalf,
    mut queue: mpsc::Receiver<Request>,
    waiting: Arc<AtomicUsize>,
) {
    while let Some(frame) = queue.recv().await {
        let Ok(Ok(())) = timeout(WRITE_TIMEOUT, stream.write_all(&frame)).await else { return };
        waiting.fetch_sub(frame.len(), Ordering::Relaxed);
    }
}

fn misuse(what: &str) -> StreamError {
    StreamError::Protocol(format!("it got {what}"))
}

#[cfg(test)]
mod tests;
