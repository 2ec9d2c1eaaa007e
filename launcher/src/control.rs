//! The supervisor's end of the control channel.
//!
//! The guest is hostile from the moment that it runs, and other programs of the user can reach the
//! socket while it exists. So the listener takes one connection, which must come from the VMM
//! process, and is gone then; the first frame must prove with the boot's nonce that it is init's;
//! and whatever is malformed after that is an error that ends the run.

use std::fmt;
use std::fs::{self, Permissions};
use std::hint::black_box;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use box_digest::hex;
use box_image::wire::{GuestMessage, Hello, HostMessage, PREVIOUS_PROTOCOL, PROTOCOL};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use serde::{Deserialize, Serialize};

use crate::LaunchError;

/// How long a guest that does not read its requests is waited for.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How much is read at a time, in bytes.
pub(crate) const CHUNK: usize = 16 << 10;

/// The secret of one boot: 32 random bytes, written as 64 hexadecimal digits.
#[derive(Clone, Serialize, Deserialize)]
pub struct Nonce(String);

impl Nonce {
    /// Makes a new one.
    ///
    /// # Errors
    /// When the kernel gives no random bytes.
    pub fn random() -> Result<Self, LaunchError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(LaunchError::system("get random bytes"))?;
        Ok(Self(hex(&bytes)))
    }

    /// Returns the 64 digits.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares without telling through its duration where the first difference is.
    pub fn matches(&self, other: &str) -> bool {
        let pairs = self.0.bytes().zip(other.bytes());
        let difference = pairs.fold(0, |seen, (ours, theirs)| black_box(seen | (ours ^ theirs)));
        self.0.len() == other.len() && difference == 0
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(…)")
    }
}

/// The socket that waits for init's one connection; its file goes with it.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Makes the socket, for this user alone.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn bind(path: PathBuf) -> Result<Self, LaunchError> {
        let socket = UnixListener::bind(&path).map_err(LaunchError::file("make", &path))?;
        let listener = Self { socket, path };
        fs::set_permissions(&listener.path, Permissions::from_mode(0o600))
            .map_err(LaunchError::file("protect", &listener.path))?;
        Ok(listener)
    }

    /// Returns where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the one connection, which has to come from the process `vmm`, and closes the socket.
    ///
    /// # Errors
    /// When another process connected.
    pub fn accept(self, vmm: u32) -> Result<UnixStream, LaunchError> {
        let action = "accept the control connection";
        let (stream, _) = self.socket.accept().map_err(LaunchError::system(action))?;
        let peer = getsockopt(&stream, PeerCredentials).map_err(LaunchError::system(action))?;
        let peer = peer.pid();
        if u32::try_from(peer) != Ok(vmm) {
            let what = format!("process {peer}, not the VMM, connected first");
            return Err(LaunchError::Protocol(what));
        }
        stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(LaunchError::system(action))?;
        Ok(stream)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The file lies in the run's own directory, which is removed after it.
        drop(fs::remove_file(&self.path));
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An accepted control connection.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    nonce: Nonce,
    received: Vec<u8>,
    /// How much of `received` has been taken out.
    taken: usize,
    /// The protocol that init speaks, once it has proved itself.
    protocol: Option<u32>,
}

impl Channel {
    /// Makes the channel of a connection; init has yet to prove itself.
    pub const fn new(stream: UnixStream, nonce: Nonce) -> Self {
        Self { stream, nonce, received: Vec::new(), taken: 0, protocol: None }
    }

    /// Reads once what has arrived; false at the end of the stream.
    ///
    /// # Errors
    /// When the connection cannot be read, or ends inside a frame.
    pub fn receive(&mut self) -> Result<bool, LaunchError> {
        self.received.drain(..std::mem::take(&mut self.taken));
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) if !self.received.is_empty() => {
                Err(LaunchError::Protocol("it ended inside a frame".to_owned()))
            }
            Ok(length) => {
                self.received.extend_from_slice(&chunk[..length]);
                Ok(length > 0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(LaunchError::system("read the control channel")(error)),
        }
    }

    /// Takes the next message out of what was received. Nothing comes out before init has proved
    /// itself; its greeting is not a message.
    ///
    /// # Errors
    /// When a frame is malformed, or a greeting is missing, wrong or repeated.
    pub fn message(&mut self) -> Result<Option<GuestMessage>, LaunchError> {
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
    pub fn send(&mut self, message: &HostMessage) -> Result<(), LaunchError> {
        if let Some(protocol) = self.protocol.filter(|it| message.since() > *it) {
            // Without windows there is nothing to grant.
            let is_needless = matches!(message, HostMessage::Credit(_));
            return if is_needless { Ok(()) } else { Err(LaunchError::OlderBox(protocol)) };
        }
        message.write(&mut self.stream).map_err(LaunchError::system("send a request to init"))
    }

    fn check(&mut self, hello: &Hello) -> Result<(), LaunchError> {
        if !self.nonce.matches(&hello.nonce) {
            return Err(misuse("a greeting without this boot's nonce"));
        }
        if ![PROTOCOL, PREVIOUS_PROTOCOL].contains(&hello.protocol) {
            return Err(LaunchError::OtherProtocol(hello.protocol));
        }
        self.protocol = Some(hello.protocol);
        Ok(())
    }

    /// Reads the first frame, if all of it has arrived. A length that no frame has is an error at
    /// once, not after it has been waited for.
    fn next_frame(&mut self) -> Result<Option<GuestMessage>, LaunchError> {
        let mut rest = &self.received[self.taken..];
        match GuestMessage::read(&mut rest) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            read => {
                self.taken = self.received.len() - rest.len();
                read.map_err(|error| LaunchError::Protocol(error.to_string()))
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn misuse(what: &str) -> LaunchError {
    LaunchError::Protocol(format!("it got {what}"))
}

#[cfg(test)]
mod tests;
