//! A pair of connected streams in this process that tells an end from a break.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

/// The end of the component. If the other end was dropped before it was shut down, a read fails with [`ErrorKind::ConnectionReset`].
pub(super) type Near = End<true>;
/// The end of the peer. It reads an end in both cases.
pub(super) type Far = End<false>;

/// An end of a pair. `BREAKS` tells whether it reads a break.
#[derive(Debug)]
pub(super) struct End<const BREAKS: bool> {
    stream: DuplexStream,
    /// Whether the far end was shut down.
    is_shut: Arc<AtomicBool>,
}

/// Returns a pair, of which each end takes `size` bytes that the other one has not read.
pub(super) fn pipe(size: usize) -> (Near, Far) {
    let (near, far) = duplex(size);
    let is_shut = Arc::new(AtomicBool::new(false));
    (End { stream: near, is_shut: Arc::clone(&is_shut) }, End { stream: far, is_shut })
}

impl<const BREAKS: bool> AsyncRead for End<BREAKS> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.remaining();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let is_end = before > 0 && buf.remaining() == before;
        if BREAKS && is_end && !self.is_shut.load(Ordering::Acquire) {
            return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl<const BREAKS: bool> AsyncWrite for End<BREAKS> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !BREAKS {
            self.is_shut.store(true, Ordering::Release);
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn who_is_dropped_without_an_end_breaks_off() {
        for is_shut in [true, false] {
            let (mut near, mut far) = pipe(16);
            far.write_all(b"half").await.unwrap();
            if is_shut {
                far.shutdown().await.unwrap();
            }
            drop(far);
            let mut got = Vec::new();
            let read = near.read_to_end(&mut got).await.map_err(|error| error.kind());
            assert_eq!(got, b"half");
            assert_eq!(read, if is_shut { Ok(4) } else { Err(ErrorKind::ConnectionReset) });
        }
        let (near, mut far) = pipe(16);
        drop(near);
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0, "the component has hung up");
    }
}
