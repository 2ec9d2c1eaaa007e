//! Frames: the length, the kind and the body of each message.

use std::io::{self, ErrorKind, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use zeroize::Zeroizing;

use super::sizes::MAX_FRAME;

/// The size of the length field.
const PREFIX: usize = 4;
/// As large as most frames.
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
        // Not as serde_json converts it: JSON that ends early is not the end of the stream.
        serde_json::from_slice(&body).map_err(|error| invalid(&error.to_string()))
    }
}

/// Appends both to a frame, which grows once: a copy of a secret would stay in memory.
pub(super) fn put(frame: &mut Vec<u8>, first: &[u8], data: &[u8]) {
    frame.reserve_exact(first.len() + data.len());
    frame.extend_from_slice(first);
    frame.extend_from_slice(data);
}

/// Returns the error of a malformed frame.
pub(super) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Writes a frame with one call, so that a packet carries it whole. Nothing of it stays in memory.
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

/// Reads a frame, or returns `None` where the stream ends before it.
pub(super) fn read_frame(reader: &mut impl Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let Some(prefix) = read_prefix(reader)? else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(prefix)).unwrap_or(usize::MAX);
    if length == 0 || length > MAX_FRAME {
        return Err(invalid(&format!("a frame of {length} bytes")));
    }
    let mut frame = vec![0; length];
    reader.read_exact(&mut frame)?;
    // In place: a copy of a secret would stay in memory.
    Ok(Some((frame.remove(0), frame)))
}

/// Reads the length field, or nothing where the stream ends before its first byte.
fn read_prefix(reader: &mut impl Read) -> io::Result<Option<[u8; PREFIX]>> {
    let mut prefix = Vec::new();
    reader.take(PREFIX as u64).read_to_end(&mut prefix)?;
    match <[u8; PREFIX]>::try_from(prefix) {
        Ok(prefix) => Ok(Some(prefix)),
        Err(prefix) if prefix.is_empty() => Ok(None),
        Err(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

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
