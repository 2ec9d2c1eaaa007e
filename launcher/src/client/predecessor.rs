//! A running box that another one replaces, as the supervisor of the other box sees it.

use std::io::{self, ErrorKind, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use box_contract::wire::{
    CLIENT_PROTOCOL, ClientMessage, Failed, Follow, Frames, Greeting, GuestMessage, HandOver,
    TakeOver,
};
use host_fs::OsError;

use super::{ClientError, PATIENCE, supervisor_of};
use crate::boxes::Record;
use crate::streams::control::CHUNK;
use crate::streams::{StreamError, attached};
use crate::supervisor::RUN;

/// How long the other supervisor may take to exchange the names: longer than it waits for the lock of the records.
const EXCHANGE: Duration = Duration::from_secs(30);
/// The action in an error about the connection.
const ACTION: &str = "take over from another box";

/// A box that runs, and has handed the sockets of its published ports over. It goes on until [`Self::take_over`], or for good
/// if this value is dropped before.
#[derive(Debug)]
pub struct Predecessor {
    stream: UnixStream,
    frames: Frames,
    name: String,
}

impl Predecessor {
    /// Asks a box for the sockets of its published ports.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`], [`ClientError::Refused`], [`ClientError::BoxEnded`] and [`ClientError::NoAnswer`].
    pub fn ask(record: &Record) -> Result<(Self, Vec<TcpListener>), ClientError> {
        let stream = supervisor_of(record)?;
        let waits = stream.set_read_timeout(Some(PATIENCE));
        waits.map_err(OsError::system(ACTION))?;
        let mut asked = Self { stream, frames: Frames::default(), name: record.name.clone() };
        let greeting = Greeting { protocol: CLIENT_PROTOCOL, agent: Follow::Nothing };
        asked.send(&ClientMessage::Greeting(greeting))?;
        asked.send(&ClientMessage::HandOver(HandOver {}))?;
        let mut files = Vec::new();
        asked.await_handed(&mut files)?;
        if files.len() != record.published.len() {
            let sockets = format!("{} sockets for {} ports", files.len(), record.published.len());
            return Err(StreamError::Protocol(sockets).into());
        }
        Ok((asked, files.into_iter().map(TcpListener::from).collect()))
    }

    /// Takes the box's name, and ends the box once the clients of its ports are gone, or after `drain`. The box gets
    /// `name`, which was the name of the new box until now.
    ///
    /// # Errors
    /// The errors of [`Self::ask`]. The names may have been exchanged even so:
    /// [`Entry::settle_name`](crate::boxes::Entry::settle_name) returns whether they have.
    pub fn take_over(mut self, name: &str, drain: Duration) -> Result<(), ClientError> {
        let waits = self.stream.set_read_timeout(Some(EXCHANGE));
        waits.map_err(OsError::system(ACTION))?;
        let drain_ms = u32::try_from(drain.as_millis()).unwrap_or(u32::MAX);
        self.send(&ClientMessage::TakeOver(TakeOver { name: name.to_owned(), drain_ms }))?;
        self.await_handed(&mut Vec::new())
    }

    fn send(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        let mut frame = Vec::new();
        message.write(&mut frame).map_err(OsError::system(ACTION))?;
        self.stream.write_all(&frame).map_err(|error| self.failed(error))
    }

    /// Waits for the answer to a request. Adds the files that are attached to it to `files`.
    fn await_handed(&mut self, files: &mut Vec<OwnedFd>) -> Result<(), ClientError> {
        loop {
            match self.next(files)? {
                GuestMessage::Handed(_) => return Ok(()),
                GuestMessage::Failed(Failed { step, .. }) if step == RUN => {
                    return Err(ClientError::BoxEnded(self.name.clone()));
                }
                GuestMessage::Failed(Failed { step, message }) => {
                    return Err(ClientError::Refused { step, reason: message });
                }
                _ => {}
            }
        }
    }

    fn next(&mut self, files: &mut Vec<OwnedFd>) -> Result<GuestMessage, ClientError> {
        loop {
            let misused = |error: io::Error| StreamError::Protocol(error.to_string());
            if let Some(message) =
                self.frames.next(|rest| GuestMessage::read(rest)).map_err(misused)?
            {
                return Ok(message);
            }
            let mut chunk = [0; CHUNK];
            match attached::receive(&self.stream, &mut chunk, files) {
                Ok(0) => return Err(ClientError::BoxEnded(self.name.clone())),
                Ok(length) => self.frames.push(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    fn failed(&self, error: io::Error) -> ClientError {
        match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                ClientError::BoxEnded(self.name.clone())
            }
            ErrorKind::WouldBlock => ClientError::NoAnswer,
            _ => OsError::system(ACTION)(error).into(),
        }
    }
}
