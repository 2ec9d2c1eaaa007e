//! The frames in what has been read of a stream, whole ones only.

use std::io::{self, ErrorKind};

/// Bytes that were read, and not yet taken as frames.
#[derive(Debug, Default)]
pub struct Frames {
    received: Vec<u8>,
    /// How much of `received` has been taken out.
    taken: usize,
}

impl Frames {
    /// Adds bytes of the stream.
    pub fn push(&mut self, data: &[u8]) {
        self.received.drain(..std::mem::take(&mut self.taken));
        self.received.extend_from_slice(data);
    }

    /// Returns whether a frame has begun, and not ended.
    pub const fn is_inside_frame(&self) -> bool {
        self.taken < self.received.len()
    }

    /// Takes the first frame with a message's own reader, if all of it has arrived. A length that no frame has is an
    /// error at once, not after it has been waited for.
    ///
    /// # Errors
    /// When the frame is malformed.
    pub fn next<T>(
        &mut self,
        read: impl FnOnce(&mut &[u8]) -> io::Result<Option<T>>,
    ) -> io::Result<Option<T>> {
        let mut rest = &self.received[self.taken..];
        match read(&mut rest) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            read => {
                self.taken = self.received.len() - rest.len();
                read
            }
        }
    }
}
