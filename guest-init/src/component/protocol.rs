//! The messages between init and a holder: one JSON value or one command per packet of a socket pair, with file
//! descriptors as ancillary data. A long packet is in a file of memory, because the kernel limits packets.

use std::fs::File;
use std::io::{self, IoSlice, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use box_contract::wire::{Exec, Failed, MAX_FRAME, MAX_WORDS, ProgramId};
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::sys;

/// The greatest size of a packet, in bytes. The kernel needs as much memory in one piece for each.
const MAX_PACKET: usize = 2 * MAX_FRAME;
/// The packet whose content is in the last descriptor. No message is empty, and an empty packet would be the end.
const IN_FILE: [u8; 1] = *b"F";
/// The first byte of a packet with a command. After it come the program's id and the body of the command's frame.
const EXEC: u8 = b'E';
/// The greatest size of a packet's content: the longest command.
const MAX_CONTENT: usize = MAX_FRAME + MAX_WORDS;

/// A request from init to a holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Starts the program of the plan, and the agent's health check. Has stdout and stderr as descriptors.
    Start { id: ProgramId },
    /// Runs a command. Has standard input (if any), stdout and stderr as descriptors; none if the command gets a
    /// terminal.
    #[serde(skip)]
    Exec { id: ProgramId, exec: Exec },
    /// Sends a signal to a program.
    Signal { id: ProgramId, signal: i32 },
    /// Kills a program and everything that it has started.
    Kill { id: ProgramId },
    /// Asks for the working directory, after all workloads have ended.
    Keep,
}

/// A message of one direction.
pub(crate) trait Message: Sized {
    fn encode(&self) -> io::Result<Vec<u8>>;
    fn decode(content: Vec<u8>) -> io::Result<Self>;
}

impl Message for Request {
    fn encode(&self) -> io::Result<Vec<u8>> {
        let Self::Exec { id, exec } = self else { return Ok(serde_json::to_vec(self)?) };
        Ok([&[EXEC][..], &id.0.to_le_bytes(), &exec.encoded()?].concat())
    }

    fn decode(mut content: Vec<u8>) -> io::Result<Self> {
        match *content.as_slice() {
            [EXEC, low, high, ..] => {
                let id = ProgramId(u16::from_le_bytes([low, high]));
                let exec = Exec::decoded(content.split_off(3))?;
                Ok(Self::Exec { id, exec })
            }
            _ => Ok(serde_json::from_slice(&content)?),
        }
    }
}

impl Message for Event {
    fn encode(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    fn decode(content: Vec<u8>) -> io::Result<Self> {
        Ok(serde_json::from_slice(&content)?)
    }
}

/// A report from a holder to init.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The namespaces and the root are set up.
    Prepared,
    /// The agent's program was executed.
    Started {
        /// The time on the clock of [`crate::time::now_ns`].
        at_ns: u64,
    },
    /// The agent's health check has passed.
    Healthy {
        /// The time on the clock of [`crate::time::now_ns`].
        at_ns: u64,
    },
    /// A command's terminal was made. Has init's end as a descriptor.
    Terminal { id: ProgramId },
    /// The policy was applied to a program without Landlock.
    LacksLandlock { id: ProgramId },
    /// The answer to [`Request::Keep`]. Has a detached mount of the working directory as a descriptor, if there is no reason.
    Kept {
        /// The path of the working directory, without symbolic links.
        path: PathBuf,
        /// Why the working directory cannot be taken over.
        reason: Option<String>,
    },
    /// A command was not started. Its end is reported by another event.
    Explained {
        id: ProgramId,
        /// A text for the user, without a newline.
        reason: String,
    },
    /// A program has ended.
    Exited {
        id: ProgramId,
        /// The exit status, as the control channel reports it.
        status: u8,
    },
    /// A step of the set-up or of the start failed. No other event follows.
    Failed(Failed),
}

/// One end of the connection between init and a holder.
#[derive(Debug)]
pub(crate) struct Link(OwnedFd);

impl Link {
    pub(crate) fn pair() -> nix::Result<(Self, Self)> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (one, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        Ok((Self(one), Self(other)))
    }

    /// Sends one message and copies of `fds`.
    ///
    /// # Errors
    /// The error of the socket. `EPIPE` if the other end is closed.
    pub(crate) fn send(&self, message: &impl Message, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut packet = message.encode()?;
        let file = (packet.len() > MAX_PACKET).then(|| in_file(&packet)).transpose()?;
        if file.is_some() {
            packet = IN_FILE.to_vec();
        }
        let fds: Vec<_> =
            fds.iter().map(AsRawFd::as_raw_fd).chain(file.as_ref().map(File::as_raw_fd)).collect();
        let rights = [ControlMessage::ScmRights(&fds)];
        let rights = if fds.is_empty() { [].as_slice() } else { &rights };
        let iov = [IoSlice::new(&packet)];
        sendmsg::<()>(self.0.as_raw_fd(), &iov, rights, MsgFlags::MSG_NOSIGNAL, None)?;
        Ok(())
    }

    /// Waits for one message. Returns `None` if the other end is closed.
    ///
    /// # Errors
    /// The error of the socket, or `InvalidData` for a malformed message.
    pub(crate) fn receive<T: Message>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut packet = vec![0; MAX_PACKET];
        let (length, mut fds) = match sys::receive(self.0.as_fd(), &mut packet) {
            // The other end was closed before it had read all packets of this end. The kernel reports this once, before
            // the packets that the other end has sent, such as the reason for its end.
            Err(Errno::ECONNRESET) => sys::receive(self.0.as_fd(), &mut packet)?,
            received => received?,
        };
        if length == 0 {
            return Ok(None);
        }
        packet.truncate(length);
        if packet == IN_FILE
            && let Some(file) = fds.pop()
        {
            packet = of_file(file.into())?;
        }
        Ok(Some((T::decode(packet)?, fds)))
    }
}

/// Writes the content of a packet to a file of memory.
fn in_file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"packet", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(content)?;
    Ok(file)
}

fn of_file(mut file: File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.rewind()?;
    file.take(MAX_CONTENT as u64 + 3).read_to_end(&mut content)?;
    Ok(content)
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use box_contract::ComponentName;

    fn exec(argv: Vec<OsString>) -> Request {
        Request::Exec { id: ProgramId(300), exec: Exec::new(ComponentName::Business, argv) }
    }

    #[test]
    fn the_last_words_of_an_end_that_reads_no_more_arrive() {
        let (ours, theirs) = Link::pair().unwrap();
        ours.send(&Request::Start { id: ProgramId::AGENT }, &[]).unwrap();
        theirs.send(&Event::Prepared, &[]).unwrap();
        drop(theirs);
        let (got, _) = ours.receive::<Event>().unwrap().unwrap();
        assert_eq!(got, Event::Prepared);
        assert!(ours.receive::<Event>().unwrap().is_none());
    }

    #[test]
    fn packets_and_files_arrive_and_the_end_is_seen() {
        let (ours, theirs) = Link::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let request = exec(vec!["a b".into(), "\u{1}\"".into()]);
        ours.send(&request, &[writer.as_fd(), writer.as_fd()]).unwrap();
        ours.send(&Request::Signal { id: ProgramId(7), signal: 9 }, &[]).unwrap();
        drop(writer);

        let (got, mut fds) = theirs.receive::<Request>().unwrap().unwrap();
        assert_eq!((got, fds.len()), (request, 2));
        drop(fds.pop());
        std::fs::File::from(fds.remove(0)).write_all(b"through").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");

        let (got, fds) = theirs.receive::<Request>().unwrap().unwrap();
        assert_eq!((got, fds.len()), (Request::Signal { id: ProgramId(7), signal: 9 }, 0));
        drop(ours);
        assert!(theirs.receive::<Request>().unwrap().is_none());
    }

    #[test]
    fn the_greatest_command_fits_a_packet() {
        let (ours, theirs) = Link::pair().unwrap();
        // Its end and its address count for nine bytes.
        let longest = OsString::from_vec(vec![0xFF; MAX_WORDS - 9]);
        let (_, writer) = std::io::pipe().unwrap();
        for word in ["\n".repeat(MAX_FRAME / 2 - 100).into(), longest] {
            let request = exec(vec![word]);
            ours.send(&request, &[writer.as_fd(); 3]).unwrap();
            let (got, fds) = theirs.receive::<Request>().unwrap().unwrap();
            assert_eq!((got, fds.len()), (request, 3));
        }
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let (ours, theirs) = Link::pair().unwrap();
        for packet in ["\"hello\"", "F", "E", "E12", "E12{}"] {
            nix::unistd::write(&ours, packet.as_bytes()).unwrap();
            assert!(theirs.receive::<Request>().is_err(), "{packet}");
        }
    }
}
