//! Uploads a file, and reads the response.
//!
//! A server may reject a file before it has read all of it. reqwest's blocking client loses such an early response, and has one
//! time limit for the upload and the response. So a file is sent by the asynchronous client, on the calling thread.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use reqwest::blocking::Response;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap};
use reqwest::{Method, blocking};
use tokio::runtime::{Builder, Runtime};

use super::client::Client;
use super::error::HttpError;
use super::url::RemoteUrl;

/// The size of a read, in bytes.
const PIECE: usize = 64 << 10;
/// The number of bytes of a response's body that are kept. The body has only the reason of a rejection.
const MAX_ANSWER: usize = 64 << 10;

/// Content to send, which can be read several times.
pub trait Content: fmt::Debug + Sync {
    /// Returns the size in bytes.
    fn size(&self) -> u64;

    /// Opens a reader at the first byte. Only one thread at a time uses it.
    ///
    /// # Errors
    /// The content cannot be opened.
    fn open(&self) -> io::Result<Box<dyn Read + Send + Sync>>;

    /// Receives the number of bytes that were sent since the last [`Self::open`]. It is called often.
    fn sent(&self, _bytes: u64) {}
}

/// Content in memory.
#[derive(Clone)]
pub struct InMemory(pub Arc<[u8]>);

impl fmt::Debug for InMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InMemory({} bytes)", self.0.len())
    }
}

impl Content for InMemory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send + Sync>> {
        Ok(Box::new(io::Cursor::new(Arc::clone(&self.0))))
    }
}

/// The clients for uploads.
#[derive(Debug)]
pub(super) struct Uploads {
    pub(super) named: reqwest::Client,
    /// The client for URLs from redirects, which checks addresses.
    pub(super) screened: reqwest::Client,
}

/// A request with a file.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) content: &'a dyn Content,
    /// The time limit for the whole request.
    pub(crate) allowed: Duration,
    /// The time limit for the response, after the last byte was sent.
    pub(crate) answer: Duration,
}

/// The progress of an upload. The body writes it, and the thread that waits for the response reads it.
#[derive(Debug)]
struct State {
    /// The last time at which the connection accepted bytes.
    moved: Instant,
    sent: u64,
    total: u64,
    failure: Option<io::Error>,
}

type Shared = Arc<Mutex<State>>;

/// The body of a request.
struct Pieces {
    reader: Box<dyn Read + Send + Sync>,
    state: Shared,
    left: u64,
}

impl Client {
    /// Uploads a file. Like a download, the upload has a limit for the time without progress, and a limit for the whole time.
    pub(crate) fn upload(
        &self,
        at: &RemoteUrl,
        is_redirected: bool,
        outgoing: Outgoing<'_>,
    ) -> Result<Response, HttpError> {
        self.check(at, is_redirected)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| HttpError::Client(error.into()))?;
        let answer = self.upload_on(&runtime, at, is_redirected, outgoing);
        // Dropping the runtime would wait for the thread that resolves names.
        runtime.shutdown_background();
        answer
    }

    fn upload_on(
        &self,
        runtime: &Runtime,
        at: &RemoteUrl,
        is_redirected: bool,
        outgoing: Outgoing<'_>,
    ) -> Result<Response, HttpError> {
        let Outgoing { method, headers, content, allowed, answer } = outgoing;
        let unreadable = |source| HttpError::Content { host: at.host(), source };
        let reader = content.open().map_err(unreadable)?;
        let (moved, left) = (Instant::now(), content.size());
        let state = State { moved, sent: 0, total: left, failure: None };
        let state = Arc::new(Mutex::new(state));
        let body = reqwest::Body::wrap(Pieces { reader, state: Arc::clone(&state), left });
        let client = if is_redirected { &self.uploads.screened } else { &self.uploads.named };
        let request = client.request(method, at.to_url()).headers(headers);
        // hyper sends no length for an empty body, and a registry may require one.
        let request = request.header(CONTENT_LENGTH, left);
        let sending = request.header(ACCEPT_ENCODING, "identity").body(body).send();
        let watch = Watch { state: &state, content, patience: self.patience, allowed, answer };
        let host = at.host();
        let response = runtime.block_on(async {
            tokio::select! {
                response = sending => Ok(response),
                late = watch.run(&host) => Err(late),
            }
        });
        if let Some(source) = lock(&state).failure.take() {
            return Err(unreadable(source));
        }
        let response = response?.map_err(|error| self.failed(at, error))?;
        Ok(runtime.block_on(self.whole(response)))
    }

    /// Returns the response with the bytes of its body that arrive within `patience`, at most [`MAX_ANSWER`].
    async fn whole(&self, mut response: reqwest::Response) -> Response {
        let mut body = Vec::new();
        let read = async {
            while body.len() < MAX_ANSWER
                && let Ok(Some(piece)) = response.chunk().await
            {
                let room = MAX_ANSWER - body.len();
                body.extend_from_slice(&piece[..piece.len().min(room)]);
            }
        };
        // After a timeout, the body, and so the reason of a rejection, is incomplete. The status is known.
        drop(tokio::time::timeout(self.patience, read).await);
        let mut whole = hyper::Response::new(body);
        *whole.status_mut() = response.status();
        *whole.headers_mut() = response.headers().clone();
        blocking::Response::from(whole)
    }
}

/// Watches the time limits of an upload.
struct Watch<'a> {
    state: &'a Shared,
    content: &'a dyn Content,
    patience: Duration,
    allowed: Duration,
    answer: Duration,
}

impl Watch<'_> {
    /// Returns an error when the upload exceeds a time limit, and never returns otherwise.
    async fn run(&self, host: &str) -> HttpError {
        let start = Instant::now();
        let pause = (self.patience / 8).clamp(Duration::from_millis(1), Duration::from_secs(1));
        loop {
            tokio::time::sleep(pause).await;
            let (silent, sent, total) = {
                let state = lock(self.state);
                (state.moved.elapsed(), state.sent, state.total)
            };
            self.content.sent(sent);
            let patience = if sent < total { self.patience } else { self.answer };
            if silent > patience {
                let what = match sent < total {
                    true => format!("{host} has taken nothing for {patience:?}"),
                    false => format!("{host} has not answered for {patience:?}"),
                };
                return HttpError::Unreachable { what, source: None };
            }
            if start.elapsed() > self.allowed {
                let allowed = self.allowed.as_secs();
                let what = format!("{host} has not taken {total} bytes after {allowed} s");
                return HttpError::Late { what };
            }
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = self.next();
        let mut state = lock(&self.state);
        Poll::Ready(Some(match piece {
            Ok(piece) => {
                state.moved = Instant::now();
                state.sent += piece.len() as u64;
                Ok(Frame::data(piece))
            }
            Err(error) => {
                let kind = error.kind();
                state.failure = Some(error);
                Err(kind.into())
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

impl Pieces {
    /// Reads the next piece. If the file has grown, bytes after its declared size are not sent. If it has shrunk, returns an
    /// error.
    fn next(&mut self) -> io::Result<Bytes> {
        let size = usize::try_from(self.left).unwrap_or(usize::MAX).min(PIECE);
        let mut piece = vec![0; size];
        let length = loop {
            match self.reader.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if length == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        piece.truncate(length);
        self.left -= length as u64;
        Ok(piece.into())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
