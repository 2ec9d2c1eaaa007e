//! Init's end of the control channel.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use box_contract::plan::CONTROL_PORT;
use box_contract::wire::{GuestMessage, Hello, HostMessage, PROTOCOL};
use nix::libc;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, VsockAddr, connect, setsockopt, socket, sockopt,
};

use crate::error::{InitError, Step as _};

/// How many seconds closing the channel can take if the VMM does not acknowledge the last data.
const LINGER_SECONDS: i32 = 1;

/// The connection to the launcher.
#[derive(Debug)]
pub struct Channel(File);

impl Channel {
    /// Connects to the launcher and sends the hello message.
    ///
    /// # Errors
    /// The error of the connection.
    pub fn open(nonce: String) -> Result<Self, InitError> {
        let mut channel = Self::connect().step("connect to the launcher")?;
        let hello = Hello { protocol: PROTOCOL, nonce };
        channel.send(&GuestMessage::Hello(hello)).step("say hello to the launcher")?;
        Ok(channel)
    }

    /// Connects with `SO_LINGER` ([socket(7)](https://man7.org/linux/man-pages/man7/socket.7.html)): closing waits
    /// until the VMM has received all data, so that a report just before power-off arrives.
    fn connect() -> nix::Result<Self> {
        let vsock = socket(AddressFamily::Vsock, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        let linger = libc::linger { l_onoff: 1, l_linger: LINGER_SECONDS };
        setsockopt(&vsock, sockopt::Linger, &linger)?;
        connect(vsock.as_raw_fd(), &VsockAddr::new(libc::VMADDR_CID_HOST, CONTROL_PORT))?;
        Ok(Self::from(vsock))
    }

    /// Sends one message. Blocks until there is room for it.
    ///
    /// # Errors
    /// The error of the connection.
    pub fn send(&mut self, message: &GuestMessage) -> io::Result<()> {
        message.write(&mut self.0)
    }

    /// Reports an error to the launcher.
    pub fn send_failed(&mut self, error: &InitError) -> io::Result<()> {
        self.send(&GuestMessage::Failed(error.report()))
    }

    /// Receives one message. Returns `None` if the launcher has hung up.
    ///
    /// # Errors
    /// The error of the connection, or `InvalidData` for a malformed frame.
    pub fn receive(&mut self) -> io::Result<Option<HostMessage>> {
        HostMessage::read(&mut self.0)
    }
}

impl From<OwnedFd> for Channel {
    fn from(socket: OwnedFd) -> Self {
        Self(File::from(socket))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_contract::wire::{Failed, Shutdown};
    use std::os::unix::net::UnixStream;

    #[test]
    fn both_directions_and_the_end_are_carried() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut channel = Channel::from(OwnedFd::from(ours));
        channel.send_failed(&InitError::new("mount", "no disk")).unwrap();
        let expected = Failed { step: "mount".into(), message: "no disk".into() };
        let got = GuestMessage::read(&mut theirs).unwrap();
        assert_eq!(got, Some(GuestMessage::Failed(expected)));

        let shutdown = HostMessage::Shutdown(Shutdown { grace_ms: 5 });
        shutdown.write(&mut theirs).unwrap();
        assert_eq!(channel.receive().unwrap(), Some(shutdown));
        drop(theirs);
        assert_eq!(channel.receive().unwrap(), None);
    }
}
