//! Errors of the byte streams between a box and its host.

use std::io::{self, ErrorKind};

use box_contract::wire::{OLDEST_PROTOCOL, PROTOCOL};
use host_fs::OsError;
use vmm::signals::{StopSignals, Stopped};

/// Why bytes did not reach the box or the host.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum StreamError {
    /// The operating system refused an operation.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A signal requested the end of the run.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The box's init speaks an unsupported version of the control channel's protocol.
    #[error(
        "the box's init speaks protocol {0}, but this boxlaunch speaks {OLDEST_PROTOCOL} to {PROTOCOL}"
    )]
    OtherProtocol(u32),
    /// The box's init speaks an older protocol, which lacks this request.
    #[error("this box cannot do that: its init speaks protocol {0}")]
    OlderBox(u32),
    /// The peer of the control channel sent something that init never sends.
    #[error("the control channel was misused: {0}")]
    Protocol(String),
    /// The input of a command could not be read.
    #[error("cannot read the standard input: {0}")]
    Input(#[source] io::Error),
    /// A program's output could not be passed on.
    #[error("cannot pass on the program's output: {0}")]
    Output(#[source] io::Error),
}

impl StreamError {
    /// Returns the error for output that was not passed on: [`Stopped`] if a signal ended the wait for the reader.
    pub(crate) fn not_written(error: io::Error, signals: &StopSignals) -> Self {
        if error.kind() != ErrorKind::WouldBlock {
            return Self::Output(error);
        }
        match signals.next() {
            Ok(Some(signal)) => Stopped(signal).into(),
            Ok(None) => Self::Output(error),
            Err(error) => error.into(),
        }
    }
}
