//! Checks the first bytes of a client, whenever they arrive.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use egress_rules::hello::{self, HelloError};
use egress_rules::{Target, first};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is read at a time, in bytes.
const PIECE: usize = 4096;

/// A client that must not ask for another server than its target. Only the client's bytes wait for the check: the server
/// may send bytes before the client, as in SSH.
pub(crate) struct FirstBytes<C> {
    client: C,
    /// The client's target; `None` once the client's first bytes have passed the check.
    target: Option<Target>,
    /// The bytes that were received from the client, and that `poll_read` has not returned yet.
    begun: Vec<u8>,
    /// Why the client is no longer served.
    refused: Option<HelloError>,
}

impl<C> FirstBytes<C> {
    /// Wraps a client with this target. If `target` is `None`, nothing is checked.
    pub(crate) const fn new(client: C, target: Option<Target>) -> Self {
        Self { client, target, begun: Vec::new(), refused: None }
    }

    /// Returns why the client was refused, if it was.
    pub(crate) const fn refused(&self) -> Option<HelloError> {
        self.refused
    }
}

impl<C: AsyncRead + Unpin> FirstBytes<C> {
    /// Reads until the first bytes show which server the client asks for.
    fn poll_judged(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(target) = &self.target {
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut self.client).poll_read(cx, &mut piece))?;
            let came = piece.filled();
            if came.is_empty() {
                self.target = None;
                if self.begun.first() == Some(&hello::HANDSHAKE) {
                    // Drop an incomplete TLS handshake, because it does not show which server the client asks for.
                    self.begun.clear();
                }
                break;
            }
            self.begun.extend_from_slice(came);
            match first::read(&self.begun, target) {
                Ok(true) => self.target = None,
                Ok(false) => {}
                Err(reason) => {
                    self.refused = Some(reason);
                    return Poll::Ready(Err(io::Error::other(reason)));
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for FirstBytes<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_judged(cx))?;
        if self.begun.is_empty() {
            return Pin::new(&mut self.client).poll_read(cx, buf);
        }
        let count = self.begun.len().min(buf.remaining());
        buf.put_slice(&self.begun[..count]);
        self.begun.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for FirstBytes<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.client).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.client).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.client).poll_shutdown(cx)
    }
}
