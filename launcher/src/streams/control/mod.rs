//! The supervisor's end of the control channel.
//!
//! The guest is hostile from the moment that it runs, and other programs of the user can reach the
//! socket while it exists. So the listener takes one connection, which must come from the VMM
//! process, and is gone then; the first frame must prove with the boot's nonce that it is init's;
//! and whatever is malformed after that is an error that ends the run.

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

/// How long a guest that does not read its requests is waited for.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what a machine has still to say is waited for once something has failed.
pub(crate) const SETTLE: Duration = Duration::from_millis(500);
/// How many requests may wait for a guest that does not read them.
const MAX_REQUESTS: usize = 4096;
/// How many bytes of them.
const MAX_WAITING: usize = 32 << 20;
pub(crate) const SEND: &str = "send a request to init";
pub(crate) const ACCEPT: &str = "accept the control connection";
/// How much is read at a time, in bytes.
pub(crate) const CHUNK: usize = 16 << 10;

/// A private socket that waits for connections of the machine's process or of clients; its file goes with it.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Its file, which is removed if it is still the one at the path.
    file: Option<FileId>,
}

/// The device and the number of a file.
type FileId = (u64, u64);

/// How many clients may wait to be accepted; what std has.
const WAITING: i32 = 128;

impl Listener {
    /// Makes the socket, for this user alone, at a path where there is nothing.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn bind(path: PathBuf) -> Result<Self, OsError> {
        let socket = bind_private(&path).map_err(OsError::file("make", &path))?;
        let file = file_id(&path);
        Ok(Self { socket, path, file })
    }

    /// Returns where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the one connection, which has to come from the process `vmm`, and closes the socket.
    ///
    /// # Errors
    /// When another process connected.
    pub fn accept(self, vmm: u32) -> Result<UnixStream, StreamError> {
        let (stream, _) = self.socket.accept().map_err(OsError::system(ACCEPT))?;
        check_peer(&stream, vmm)?;
        Ok(stream)
    }

    /// Returns the same socket for the current runtime to wait on.
    ///
    /// # Errors
    /// When the kernel refuses.
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

/// Returns the process at the other end of a connection, zero where it is in another PID namespace.
pub(crate) fn peer(stream: &impl AsFd) -> nix::Result<u32> {
    Ok(getsockopt(stream, PeerCredentials)?.pid().unsigned_abs())
}

impl Drop for Listener {
    fn drop(&mut self) {
        // In a directory of others, something else may be there by now.
        if self.file.is_some() && file_id(&self.path) == self.file {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Makes a socket that nobody but this user can ever connect to: its mode is set before it has a name, and the kernel
/// gives its file no more than that (`unix_bind_bsd` in net/unix/af_unix.c).
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let address = UnixAddr::new(path)?;
    let made = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    fchmod(&made, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(made.as_raw_fd(), &address)?;
    listen(&made, Backlog::new(WAITING)?)?;
    Ok(made.into())
}

/// Returns which file is at a path; a link itself, and not what it leads to.
fn file_id(path: &Path) -> Option<FileId> {
    fs::symlink_metadata(path).ok().map(|it| (it.dev(), it.ino()))
}

/// An accepted control connection. Requests wait in a queue, so that a guest which reads nothing stops nothing else.
#[derive(Debug)]
pub struct Channel {
    stream: OwnedReadHalf,
    requests: mpsc::Sender<Request>,
    /// How many bytes wait to be sent.
    waiting: Arc<AtomicUsize>,
    /// When it was found out that init reads its requests no more.
    unread_since: Option<Instant>,
    nonce: Nonce,
    /// The messages for init once it has proved itself.
    first: Vec<HostMessage>,
    frames: Frames,
    /// The protocol that init speaks, once it has proved itself.
    protocol: Option<u32>,
}

/// A frame for init, which may have a secret in it.
type Request = Zeroizing<Vec<u8>>;

impl Channel {
    /// Makes the channel of a connection; init has yet to prove itself, and gets the first messages then.
    pub fn new(stream: Watched, nonce: Nonce, first: Vec<HostMessage>) -> Self {
        let (stream, writer) = stream.into_split();
        let (requests, queue) = mpsc::channel(MAX_REQUESTS);
        let waiting = Arc::new(AtomicUsize::new(0));
        drop(tokio::spawn(write_requests(writer, queue, Arc::clone(&waiting))));
        let (frames, protocol, unread_since) = (Frames::default(), None, None);
        Self { stream, requests, waiting, unread_since, nonce, first, frames, protocol }
    }

    /// Reads once what has arrived; false at the end of the stream. May be dropped at any time.
    ///
    /// # Errors
    /// When the connection cannot be read, or ends inside a frame, or init reads its requests no more.
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

    /// Takes the next message out of what was received. Nothing comes out before init has proved
    /// itself; its greeting is not a message.
    ///
    /// # Errors
    /// When a frame is malformed, or a greeting is missing, wrong or repeated.
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

    /// Sends a request. What an older init needs no words for is left out.
    ///
    /// # Errors
    /// When the guest does not take it, or its init is too old to understand it.
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

    /// Returns the protocol that init speaks, once it has proved itself.
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

/// Gives a connection to the runtime.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn watched(stream: UnixStream) -> io::Result<Watched> {
    stream.set_nonblocking(true)?;
    Watched::from_std(stream)
}

/// Returns a while after the last request that init has taken. A connection that is at its end is read until then.
async fn is_not_read(requests: &mpsc::Sender<Request>, since: Option<Instant>) {
    requests.closed().await;
    sleep_until((since.unwrap_or_else(Instant::now) + SETTLE).into()).await;
}

fn unread() -> StreamError {
    let error = io::Error::new(ErrorKind::TimedOut, "it does not read its requests");
    OsError::system(SEND)(error).into()
}

/// Writes the requests one by one, until the guest does not take one any more.
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
