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
    /// The maximum length of a frame with this body, after its length field.
    const MAX: usize = MAX_FRAME;

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
pub(super) fn write_frame<B: Body>(writer: &mut impl Write, kind: u8, body: &B) -> io::Result<()> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "the message is too long");
    let mut frame = Zeroizing::new(Vec::with_capacity(USUAL));
    frame.extend_from_slice(&[0, 0, 0, 0, kind]);
    body.encode(&mut frame)?;
    let length = frame.len() - PREFIX;
    if length > B::MAX {
        return Err(too_long());
    }
    frame[..PREFIX].copy_from_slice(&u32::try_from(length).map_err(|_| too_long())?.to_le_bytes());
    writer.write_all(&frame)
}

/// Reads a frame. Returns `None` if the stream ends before it. `limits` has the maximum length of each kind.
pub(super) fn read_frame(
    reader: &mut impl Read,
    limits: &[(u8, usize)],
) -> io::Result<Option<(u8, Vec<u8>)>> {
    let Some(prefix) = read_prefix(reader)? else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(prefix)).unwrap_or(usize::MAX);
    let refused = || invalid(&format!("a frame of {length} bytes"));
    let longest = limits.iter().map(|(_, limit)| *limit).fold(MAX_FRAME, usize::max);
    if length == 0 || length > longest {
        return Err(refused());
    }
    let mut kind = [0];
    reader.read_exact(&mut kind)?;
    let limit = limits.iter().find(|(of, _)| [*of] == kind).map_or(MAX_FRAME, |(_, limit)| *limit);
    if length > limit {
        return Err(refused());
    }
    let length = length - kind.len();
    if length > MAX_FRAME {
        return Ok(Some((kind[0], read_long(reader, length)?)));
    }
    // Not reallocated, because each reallocation would leave a copy of a secret in memory.
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((kind[0], body)))
}

/// Reads the body of a long frame.
fn read_long(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    reader.take(u64::try_from(length).unwrap_or(u64::MAX)).read_to_end(&mut body)?;
    match length - body.len() {
        0 => Ok(body),
        missing => Err(io::Error::new(ErrorKind::UnexpectedEof, Missing(missing))),
    }
}

/// How many bytes are missing at the end of the stream.
#[derive(Debug, thiserror::Error)]
#[error("the stream ends {0} bytes too early")]
struct Missing(usize);

impl Missing {
    fn of(error: &io::Error) -> Option<usize> {
        error.get_ref()?.downcast_ref().map(|Self(missing)| *missing)
    }
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
    /// How long `received` has to be before the frame after these can be whole.
    wanted: usize,
}

impl Frames {
    /// Appends received bytes.
    pub fn push(&mut self, data: &[u8]) {
        self.wanted = self.wanted.saturating_sub(self.taken);
        self.received.drain(..std::mem::take(&mut self.taken));
        self.received.extend_from_slice(data);
    }

    /// Returns whether the buffer contains an incomplete frame.
    pub const fn is_inside_frame(&self) -> bool {
        self.taken < self.received.len()
    }

    /// Returns the number of bytes that are not decoded yet.
    pub const fn waiting(&self) -> usize {
        self.received.len() - self.taken
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
        // A long frame arrives in many parts, and is decoded once.
        if self.received.len() < self.wanted {
            return Ok(None);
        }
        match read(&mut rest) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.wanted = self.received.len() + Missing::of(&error).unwrap_or_default();
                Ok(None)
            }
            read => {
                self.wanted = 0;
                self.taken = self.received.len() - rest.len();
                read
            }
        }
    }
}
