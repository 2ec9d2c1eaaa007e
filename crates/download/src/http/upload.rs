//! Sends a file piece by piece, and reads the answer to it.
//!
//! The blocking client of reqwest loses an answer that comes before it has sent everything, and has one time limit for both. A
//! server that refuses a file need not read it to its end, so a file is sent by the asynchronous client, on the calling
//! thread.

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

/// How much is read and sent at once, in bytes.
const PIECE: usize = 64 << 10;
/// The most bytes of an answer that are read. There is nothing in it but the reason of a refusal.
const MAX_ANSWER: usize = 64 << 10;

/// Something to send, which can be read again from its start.
pub trait Content: fmt::Debug + Sync {
    /// Returns how many bytes there are.
    fn size(&self) -> u64;

    /// Starts to read at the first byte. A reader is not used by two threads at once.
    ///
    /// # Errors
    /// It cannot be opened.
    fn open(&self) -> io::Result<Box<dyn Read + Send + Sync>>;

    /// Is told how many bytes were sent since the last [`Self::open`], often.
    fn sent(&self, _bytes: u64) {}
}

/// Bytes in memory, to be sent.
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

/// The clients for what is sent piece by piece.
#[derive(Debug)]
pub(super) struct Uploads {
    pub(super) named: reqwest::Client,
    /// For what strangers lead to.
    pub(super) screened: reqwest::Client,
}

/// A request that has a file.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) content: &'a dyn Content,
    /// The time that all of it may take.
    pub(crate) allowed: Duration,
    /// The time that the answer may take once everything was sent.
    pub(crate) answer: Duration,
}

/// How far a file is sent. The thread that waits for the answer reads what the body writes.
#[derive(Debug)]
struct State {
    /// When the connection last took something.
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
    /// Sends a file. As with a download, at most so much time passes in which nothing moves, and in which all of it is done.
    pub(crate) fn upload(
        &self,
        at: &RemoteUrl,
        led: bool,
        outgoing: Outgoing<'_>,
    ) -> Result<Response, HttpError> {
        self.check(at, led)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| HttpError::Client(error.into()))?;
        let answer = self.upload_on(&runtime, at, led, outgoing);
        // A name that is still being resolved keeps nobody waiting.
        runtime.shutdown_background();
        answer
    }

    fn upload_on(
        &self,
        runtime: &Runtime,
        at: &RemoteUrl,
        led: bool,
        outgoing: Outgoing<'_>,
    ) -> Result<Response, HttpError> {
        let Outgoing { method, headers, content, allowed, answer } = outgoing;
        let unreadable = |source| HttpError::Content { host: at.host(), source };
        let reader = content.open().map_err(unreadable)?;
        let (moved, left) = (Instant::now(), content.size());
        let state = State { moved, sent: 0, total: left, failure: None };
        let state = Arc::new(Mutex::new(state));
        let body = reqwest::Body::wrap(Pieces { reader, state: Arc::clone(&state), left });
        let client = if led { &self.uploads.screened } else { &self.uploads.named };
        let request = client.request(method, at.to_url()).headers(headers);
        // hyper names no length for an empty body, and a registry may want one.
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

    /// Reads an answer, as far as it comes in time.
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
        // What is missing is the reason of a refusal, and never the refusal.
        drop(tokio::time::timeout(self.patience, read).await);
        let mut whole = hyper::Response::new(body);
        *whole.status_mut() = response.status();
        *whole.headers_mut() = response.headers().clone();
        blocking::Response::from(whole)
    }
}

/// Ends an upload that takes too long.
struct Watch<'a> {
    state: &'a Shared,
    content: &'a dyn Content,
    patience: Duration,
    allowed: Duration,
    answer: Duration,
}

impl Watch<'_> {
    /// Returns the error of an upload that takes too long, and never if it does not.
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
    /// Reads the next piece. A file that has changed is not sent longer or shorter than it was said to be.
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
