//! The first bytes of a connection, which an error message can show if the agent does not speak HTTP/2.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// How many bytes of a connection are kept.
const KEPT: usize = 32;
/// The type of the first frame of an HTTP/2 connection, and the type's offset in the frame ([RFC
/// 9113](https://www.rfc-editor.org/rfc/rfc9113), 3.4 and 4.1).
const SETTINGS: u8 = 4;
const TYPE: usize = 3;

/// The first received bytes of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Opening(Arc<Mutex<Vec<u8>>>);

impl Opening {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT - kept.len();
        kept.extend_from_slice(&bytes[..room.min(bytes.len())]);
    }

    /// Returns the first line of an answer that is not HTTP/2. `None` if fewer than four bytes have arrived, or if they
    /// may be HTTP/2.
    pub(super) fn foreign(&self) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_foreign = kept.get(TYPE).is_some_and(|kind| *kind != SETTINGS);
        let line = kept.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        is_foreign.then(|| String::from_utf8_lossy(line).into_owned())
    }
}

/// A connection whose first received bytes are kept.
pub(super) struct Watched {
    stream: UnixStream,
    opening: Opening,
}

impl Watched {
    pub(super) const fn new(stream: UnixStream, opening: Opening) -> Self {
        Self { stream, opening }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.opening.add(&buffer.filled()[before..]);
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
