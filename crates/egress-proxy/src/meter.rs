//! Streams whose bytes are counted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep_until};

use crate::limits::ByteRate;

/// How many bytes have passed in each direction.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) read: AtomicU64,
    pub(crate) written: AtomicU64,
}

/// The stream of a server, whose bytes are counted and limited.
#[derive(Debug)]
pub(crate) struct Metered<S> {
    stream: S,
    count: Arc<Count>,
    pace: Arc<ByteRate>,
    wait: Option<Pin<Box<Sleep>>>,
}

impl<S> Metered<S> {
    fn poll_pace(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(next) = self.pace.next() {
            let wait = self.wait.get_or_insert_with(|| Box::pin(sleep_until(next)));
            if wait.deadline() < next {
                wait.as_mut().reset(next);
            }
            ready!(wait.as_mut().poll(cx));
        }
        self.wait = None;
        Poll::Ready(())
    }

    fn passed(&self, counter: &AtomicU64, bytes: usize) {
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
        self.pace.pass(bytes);
    }
}

impl Metered<TcpStream> {
    /// Wraps a server's stream.
    pub(crate) const fn server(stream: TcpStream, count: Arc<Count>, pace: Arc<ByteRate>) -> Self {
        Self { stream, count, pace, wait: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_pace(cx));
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        this.passed(&this.count.read, buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_pace(cx));
        let written = ready!(Pin::new(&mut this.stream).poll_write(cx, buf))?;
        this.passed(&this.count.written, written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
