//! The messages in the body of an answer. Before each message are a byte that is 1 if the message is compressed, and
//! four bytes with its length ([gRPC over HTTP/2](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md)).

use std::collections::VecDeque;

use super::error::AgentError;

/// The greatest size of a message, in bytes. Decoded, a message may take fifty times as much memory.
pub(super) const MAX_MESSAGE: usize = 1 << 20;
/// The greatest size of all messages of an answer together, in bytes, including [`COST`] for each.
pub(super) const MAX_ALL: usize = 16 << 20;
const HEAD: usize = 5;
/// How many bytes each message adds to the sum that [`MAX_ALL`] limits, in addition to its size. This bounds the number
/// of small messages, because a decoded message takes more memory than its bytes.
pub(super) const COST: usize = 64;

/// Splits received bytes into messages.
#[derive(Debug)]
pub(super) struct Frames {
    method: &'static str,
    bytes: VecDeque<u8>,
    all: usize,
}

impl Frames {
    pub(super) const fn new(method: &'static str) -> Self {
        Self { method, bytes: VecDeque::new(), all: 0 }
    }

    /// Adds received bytes.
    ///
    /// # Errors
    /// [`AgentError::TooLarge`] if all messages together are too large.
    pub(super) fn add(&mut self, data: &[u8]) -> Result<(), AgentError> {
        self.count(data.len())?;
        self.bytes.extend(data);
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), AgentError> {
        self.all += bytes;
        if self.all > MAX_ALL { Err(self.too_large(MAX_ALL)) } else { Ok(()) }
    }

    /// Takes the next message; `None` if it is incomplete.
    ///
    /// # Errors
    /// If the message is too large or compressed, or if all messages together are too large.
    pub(super) fn take(&mut self) -> Result<Option<Vec<u8>>, AgentError> {
        if self.bytes.len() < HEAD {
            return Ok(None);
        }
        let head: Vec<_> = self.bytes.range(..HEAD).copied().collect();
        if head[0] != 0 {
            return Err(AgentError::Compressed(self.method));
        }
        let length = head[1..].iter().fold(0, |sum: usize, byte| sum << 8 | usize::from(*byte));
        if length > MAX_MESSAGE {
            return Err(self.too_large(MAX_MESSAGE));
        }
        if self.bytes.len() < HEAD + length {
            return Ok(None);
        }
        self.count(COST)?;
        self.bytes.drain(..HEAD);
        Ok(Some(self.bytes.drain(..length).collect()))
    }

    /// Forgets the sizes of the messages that were taken, so that [`MAX_ALL`] limits only what follows.
    pub(super) fn forget(&mut self) {
        self.all = self.bytes.len();
    }

    /// Returns whether no bytes of an incomplete message are left.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    const fn too_large(&self, limit: usize) -> AgentError {
        AgentError::TooLarge { method: self.method, limit }
    }
}

/// Encodes a message, with its length before it, as it is transmitted.
pub(super) fn framed(message: &impl prost::Message) -> Vec<u8> {
    let length = message.encoded_len();
    let mut bytes = Vec::with_capacity(HEAD + length);
    bytes.push(0);
    // Callers send only small messages: the largest is a prompt of [`MAX_PROMPT`](super::MAX_PROMPT) bytes.
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend(message.encode_to_vec());
    bytes
}
