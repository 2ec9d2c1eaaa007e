//! Calls: commands that the agent runs in the business component, over a Unix socket.
//!
//! The socket is made before any component and bound into the agent's root, together with its client, `box-exec`. Each
//! call is one connection for one command. It uses the messages of the control channel, but ignores the id in them. The
//! windows ([`box_contract::wire`], "Flow control") limit the data in transit to a caller to the size of its socket's
//! buffer, so init never waits for a caller that does not read. If a caller grants more than it has read and the buffer
//! overflows, init disconnects it.

use std::collections::BTreeMap;
use std::fs::{Permissions, set_permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};

use box_contract::wire::{Frames, GuestMessage, HostMessage, MAX_FRAME, ProgramId};
use box_contract::{ComponentName, User};
use nix::sys::signal::Signal;

use super::Server;
use crate::error::{InitError, Step as _};
use crate::wait::is_temporary;

/// The first id of a program that the agent runs.
const FIRST: u16 = ProgramId::BUSINESS.0 + 1;
/// The greatest number of calls that are served at once. Further calls wait to be accepted.
const MAX_CALLS: usize = 64;
/// How many bytes of long commands are received at once, of all calls together, because the memory of init has no limit.
/// Beyond that, one long command is received after the other.
const MAX_RECEIVED: usize = 4 << 20;
/// How many bytes are read at a time.
const CHUNK: usize = 16 << 10;

/// The path of the socket in init's root.
pub(crate) const SOCKET: &str = "/run/box-exec.sock";
/// Only the agent's user can connect.
const SOCKET_MODE: u32 = 0o600;

/// Makes the socket for an agent that runs as `user`.
///
/// # Errors
/// The kernel's error.
pub(crate) fn listen(user: &User) -> Result<UnixListener, InitError> {
    let listen = || -> io::Result<UnixListener> {
        let listener = UnixListener::bind(SOCKET)?;
        set_permissions(SOCKET, Permissions::from_mode(SOCKET_MODE))?;
        chown(SOCKET, Some(user.uid), Some(user.gid))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().step("listen for the agent's calls")
}

/// The agent's open connections, by the ids of their programs.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: BTreeMap<ProgramId, Call>,
    /// The id that was assigned last.
    last: u16,
}

/// A connection of `box-exec` to init.
#[derive(Debug)]
struct Call {
    stream: UnixStream,
    frames: Frames,
}

impl Call {
    /// Returns whether a part of a long command has been received.
    const fn is_long(&self) -> bool {
        self.frames.waiting() > MAX_FRAME
    }
}

impl Calls {
    pub(super) fn has_room(&self) -> bool {
        self.open.len() < MAX_CALLS
    }

    pub(super) fn is_open(&self, id: ProgramId) -> bool {
        self.open.contains_key(&id)
    }

    /// Returns the connections that init reads.
    pub(super) fn fds(&self) -> impl Iterator<Item = (ProgramId, BorrowedFd<'_>)> {
        let long = || self.open.iter().filter(|(_, call)| call.is_long());
        let received: usize = long().map(|(_, call)| call.frames.waiting()).sum();
        let first = long().next().map(|(id, _)| *id);
        let is_read = move |id: ProgramId, call: &Call| {
            received <= MAX_RECEIVED || !call.is_long() || Some(id) == first
        };
        let open = self.open.iter().filter(move |(id, call)| is_read(**id, call));
        open.map(|(id, call)| (*id, call.stream.as_fd()))
    }
}

impl Server<'_> {
    /// Accepts a new connection.
    pub(super) fn accept_call(&mut self) {
        let accepted = self.machine.calls.as_ref().map(UnixListener::accept);
        let Some(Ok((stream, _))) = accepted else { return };
        if stream.set_nonblocking(true).is_ok() {
            let id = self.free_id();
            self.calls.open.insert(id, Call { stream, frames: Frames::default() });
        }
    }

    /// Returns an unused id. There is always one: there are many more ids than programs can run.
    fn free_id(&mut self) -> ProgramId {
        loop {
            self.calls.last = self.calls.last.wrapping_add(1).max(FIRST);
            let id = ProgramId(self.calls.last);
            let is_used = self.is_used(id) || self.calls.is_open(id);
            if !is_used && id != ProgramId::VERIFICATION {
                return id;
            }
        }
    }

    /// Serves a caller's messages. If the caller has hung up or has sent a malformed message, kills its command.
    pub(super) fn serve_call(&mut self, id: ProgramId) -> Result<(), InitError> {
        let Some(call) = self.calls.open.get_mut(&id) else { return Ok(()) };
        let mut chunk = [0; CHUNK];
        match call.stream.read(&mut chunk) {
            Ok(length @ 1..) => call.frames.push(&chunk[..length]),
            Err(error) if is_temporary(&error) => return Ok(()),
            Ok(_) | Err(_) => return self.end_call(id),
        }
        while let Some(call) = self.calls.open.get_mut(&id) {
            match call.frames.next(|rest| HostMessage::read(rest)) {
                Ok(Some(message)) => self.serve_caller(id, message)?,
                Ok(None) => return Ok(()),
                Err(_) => return self.end_call(id),
            }
        }
        Ok(())
    }

    fn serve_caller(&mut self, id: ProgramId, message: HostMessage) -> Result<(), InitError> {
        match message {
            HostMessage::Exec(_) if self.is_used(id) => return self.end_call(id),
            HostMessage::Exec(exec) if exec.component == ComponentName::Business => {
                return self.exec(id, exec);
            }
            HostMessage::Exec(_) => self.refuse(id, "the agent runs commands in business only"),
            HostMessage::Signal(signal) => return self.pass_signal(id, signal.signal),
            HostMessage::Input(input) => self.take_input(id, &input.data),
            HostMessage::InputEnd(_) => self.end_input(id),
            HostMessage::Credit(credit) => self.grant(id, credit.bytes),
            HostMessage::Resize(resize) => self.resize(id, resize.size),
            // Only the host may stop and measure the box, set its clock, connect its components to the network, answer
            // questions, and send it variables, secrets and mounts.
            HostMessage::Shutdown(_)
            | HostMessage::Measure(_)
            | HostMessage::Clock(_)
            | HostMessage::Variable(_)
            | HostMessage::Secret(_)
            | HostMessage::Mounts(_)
            | HostMessage::FilePart(_)
            | HostMessage::Answer(_)
            | HostMessage::Connect(_) => return self.end_call(id),
        }
        Ok(())
    }

    /// Sends a message about a command to its caller. If the caller is gone, discards the output and grants its bytes
    /// to the program, so that the program can continue to write.
    pub(super) fn answer_call(
        &mut self,
        id: ProgramId,
        message: impl FnOnce(ProgramId) -> GuestMessage,
    ) {
        let message = message(ProgramId::COMMAND);
        if let Some(call) = self.calls.open.get_mut(&id) {
            if write(&mut call.stream, &message).is_ok() {
                return;
            }
            // Init then reads the end of the connection, and asks the holder to kill the command (`serve_call`).
            drop(call.stream.shutdown(std::net::Shutdown::Both));
        }
        if let (GuestMessage::Output(output), Some(program)) =
            (&message, self.programs.get_mut(&id))
        {
            program.grant(output.cost());
        }
    }

    /// Closes the connection of a program that has ended.
    pub(super) fn hang_up(&mut self, id: ProgramId) {
        self.calls.open.remove(&id);
    }

    /// Closes a connection and kills its command.
    fn end_call(&mut self, id: ProgramId) -> Result<(), InitError> {
        self.calls.open.remove(&id);
        self.cancel(id, Signal::SIGKILL);
        self.kill(id)?;
        // The command may have ended already, and its last output may wait for a grant.
        self.conclude(id);
        Ok(())
    }
}

/// Writes a whole message without blocking, or fails.
fn write(stream: &mut UnixStream, message: &GuestMessage) -> io::Result<()> {
    let mut frame = Vec::new();
    message.write(&mut frame)?;
    stream.write_all(&frame)
}

#[cfg(test)]
mod tests {
    use box_contract::wire::MAX_WORDS;

    use super::*;

    #[test]
    fn what_is_received_of_long_commands_is_bounded() {
        let mut calls = Calls::default();
        let receive = |calls: &mut Calls, id: u16, length: usize| {
            let (stream, _) = UnixStream::pair().unwrap();
            let call = calls.open.entry(ProgramId(id));
            let call = call.or_insert(Call { stream, frames: Frames::default() });
            call.frames.push(&vec![0; length]);
        };
        let read = |calls: &Calls| calls.fds().map(|(id, _)| id.0).collect::<Vec<_>>();
        receive(&mut calls, 300, 10);
        receive(&mut calls, 301, MAX_WORDS);
        receive(&mut calls, 302, MAX_WORDS);
        assert_eq!(read(&calls), [300, 301, 302]);
        receive(&mut calls, 303, MAX_FRAME + 1);
        assert_eq!(read(&calls), [300, 301], "the first long one is received to its end");
        calls.open.remove(&ProgramId(301));
        assert_eq!(read(&calls), [300, 302, 303]);
    }
}
