//! Messages in the body of an answer: each has a byte that says whether it is compressed, and its length (gRPC over HTTP/2).

use std::collections::VecDeque;

use super::error::AgentError;

/// The greatest size of a message, in bytes. Decoded, its parts may take fifty times that.
pub(super) const MAX_MESSAGE: usize = 1 << 20;
/// The most that all messages of an answer may have, in bytes.
pub(super) const MAX_ALL: usize = 16 << 20;
const HEAD: usize = 5;
/// The bytes that a message counts beside its own, so that very many small ones are refused: decoded, each takes more than it had.
pub(super) const COST: usize = 64;

/// Bytes that have come, of which messages are taken.
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

    /// Adds what has come.
    ///
    /// # Errors
    /// [`AgentError::TooLarge`] where all of it together is too much.
    pub(super) fn add(&mut self, data: &[u8]) -> Result<(), AgentError> {
        self.count(data.len())?;
        self.bytes.extend(data);
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), AgentError> {
        self.all += bytes;
        if self.all > MAX_ALL { Err(self.too_large(MAX_ALL)) } else { Ok(()) }
    }

    /// Takes the next message; `None` where it has not come entirely.
    ///
    /// # Errors
    /// When it is too large or compressed, or one of too many.
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

    /// Returns whether there is nothing left of a message.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    const fn too_large(&self, limit: usize) -> AgentError {
        AgentError::TooLarge { method: self.method, limit }
    }
}

/// Returns a message as it is sent.
pub(super) fn framed(message: &impl prost::Message) -> Vec<u8> {
    let length = message.encoded_len();
    let mut bytes = Vec::with_capacity(HEAD + length);
    bytes.push(0);
    // What is sent is bounded by its caller.
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend(message.encode_to_vec());
    bytes
}
