//! The encoding of messages as frames: a length, a kind and a body.

use std::io::{self, ErrorKind, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use zeroize::Zeroizing;

use super::sizes::MAX_FRAME;

/// The size of the length field, in bytes.
const PREFIX: usize = 4;
/// The initial capacity of a frame, in bytes. Most frames fit.
const USUAL: usize = 256;

/// The body of a frame, after its kind.
pub(super) trait Body: Sized {
    /// Appends the body to a frame.
    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()>;
    fn decode(body: Vec<u8>) -> io::Result<Self>;
}

impl<T: Serialize + DeserializeOwned> Body for T {
    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        Ok(serde_json::to_writer(frame, self)?)
    }

    fn decode(body: Vec<u8>) -> io::Result<Self> {
        // The error's message is kept but not its kind: JSON that ends early is not `UnexpectedEof`.
        serde_json::from_slice(&body).map_err(|error| invalid(&error.to_string()))
    }
}

/// Appends both slices to a frame. The frame is reallocated at most once, because each reallocation would leave a copy
/// of a secret in memory.
pub(super) fn put(frame: &mut Vec<u8>, first: &[u8], data: &[u8]) {
    frame.reserve_exact(first.len() + data.len());
    frame.extend_from_slice(first);
    frame.extend_from_slice(data);
}

/// Returns the error of a malformed frame.
pub(super) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Writes a frame in one call, so that one packet carries it. The encoded frame is cleared from memory afterwards.
pub(super) fn write_frame(writer: &mut impl Write, kind: u8, body: &impl Body) -> io::Result<()> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "the message is too long");
    let mut frame = Zeroizing::new(Vec::with_capacity(USUAL));
    frame.extend_from_slice(&[0, 0, 0, 0, kind]);
    body.encode(&mut frame)?;
    let length = frame.len() - PREFIX;
    if length > MAX_FRAME {
        return Err(too_long());
    }
    frame[..PREFIX].copy_from_slice(&u32::try_from(length).map_err(|_| too_long())?.to_le_bytes());
    writer.write_all(&frame)
}

/// Reads a frame. Returns `None` if the stream ends before it.
pub(super) fn read_frame(reader: &mut impl Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let Some(prefix) = read_prefix(reader)? else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(prefix)).unwrap_or(usize::MAX);
    if length == 0 || length > MAX_FRAME {
        return Err(invalid(&format!("a frame of {length} bytes")));
    }
    let mut frame = vec![0; length];
    reader.read_exact(&mut frame)?;
    // Removes the kind in place, because a copy of a secret would stay in memory.
    Ok(Some((frame.remove(0), frame)))
}

/// Reads the length field. Returns `None` if the stream ends before its first byte.
fn read_prefix(reader: &mut impl Read) -> io::Result<Option<[u8; PREFIX]>> {
    let mut prefix = Vec::new();
    reader.take(PREFIX as u64).read_to_end(&mut prefix)?;
    match <[u8; PREFIX]>::try_from(prefix) {
        Ok(prefix) => Ok(Some(prefix)),
        Err(prefix) if prefix.is_empty() => Ok(None),
        Err(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A buffer of received bytes that are not decoded yet.
#[derive(Debug, Default)]
pub struct Frames {
    received: Vec<u8>,
    /// The number of bytes of `received` that are already decoded.
    taken: usize,
}

impl Frames {
    /// Appends received bytes.
    pub fn push(&mut self, data: &[u8]) {
        self.received.drain(..std::mem::take(&mut self.taken));
        self.received.extend_from_slice(data);
    }

    /// Returns whether the buffer contains an incomplete frame.
    pub const fn is_inside_frame(&self) -> bool {
        self.taken < self.received.len()
    }

    /// Decodes the first frame with a message's `read` function, or returns `None` if the frame is incomplete. An
    /// invalid length is an error at once, before the rest of the frame arrives.
    ///
    /// # Errors
    /// Fails if the frame is malformed.
    ///
    /// # Examples
    /// ```
    /// use box_contract::wire::{Frames, HostMessage, Shutdown};
    ///
    /// let message = HostMessage::Shutdown(Shutdown { grace_ms: 2000 });
    /// let mut bytes = Vec::new();
    /// message.write(&mut bytes)?;
    /// let (start, end) = bytes.split_at(3);
    ///
    /// let mut frames = Frames::default();
    /// frames.push(start);
    /// assert_eq!(frames.next(|reader| HostMessage::read(reader))?, None);
    /// frames.push(end);
    /// assert_eq!(frames.next(|reader| HostMessage::read(reader))?, Some(message));
    /// # Ok::<(), std::io::Error>(())
    /// ```
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
