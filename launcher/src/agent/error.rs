//! Errors of calls to an agent.

use std::io;

use host_fs::OsError;

use crate::streams::StreamError;

/// Why a call to an agent failed. Texts from the agent are bounded, but not safe for a terminal.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum AgentError {
    /// The operating system refused an operation.
    #[error(transparent)]
    Os(#[from] OsError),
    /// The caller could not write a part of the agent's answer.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The socket that leads to the agent refuses the connection.
    #[error("cannot connect to the agent's socket: {0}")]
    Connect(#[source] io::Error),
    /// The agent sends something other than gRPC.
    #[error("the agent does not speak gRPC: {0}")]
    NotGrpc(String),
    /// The agent ended the connection before its answer was complete.
    #[error("the agent ended the connection before its answer to {method} was complete")]
    Closed { method: &'static str },
    /// The agent does not answer in time.
    #[error("the agent did not answer {method} within {seconds} s")]
    Timeout { method: &'static str, seconds: u64 },
    /// A message is compressed, although the client offered no compression.
    #[error("the agent's answer to {0} is compressed, and no compression was offered")]
    Compressed(&'static str),
    /// An answer exceeds its greatest size.
    #[error("the agent's answer to {method} is larger than {limit} bytes")]
    TooLarge { method: &'static str, limit: usize },
    /// An answer is not the expected message.
    #[error("the agent's answer to {method} is malformed: {reason}")]
    Malformed { method: &'static str, reason: String },
    /// The agent reports that it did not do what was asked.
    #[error("the agent did not carry out {method}{}", message_suffix(.reason))]
    Declined { method: &'static str, reason: String },
    /// The agent has answered with an error.
    #[error("the agent refused {method}: {}{}", status_name(*.code), message_suffix(.message))]
    Status { method: &'static str, code: u32, message: String },
}

impl AgentError {
    /// The status of a method that a server does not implement.
    pub const UNIMPLEMENTED: u32 = 12;

    /// Returns whether the agent does not implement the method.
    pub const fn is_unimplemented(&self) -> bool {
        matches!(self, Self::Status { code: Self::UNIMPLEMENTED, .. })
    }
}

/// The names of gRPC's [status codes](https://github.com/grpc/grpc/blob/master/doc/statuscodes.md), by number.
const STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

fn status_name(code: u32) -> String {
    let name = usize::try_from(code).ok().and_then(|it| STATUSES.get(it));
    name.map_or_else(|| format!("status {code}"), |it| (*it).to_owned())
}

/// Returns the end of a sentence: a colon and the agent's message, or an empty text if there is no message.
fn message_suffix(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}
