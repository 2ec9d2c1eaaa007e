//! A gRPC server whose answers a test provides.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use box_contract::plan::A3S_SERVICE;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::net::UnixListener;

use super::super::frames::framed;
use super::super::*;

type Calls = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// An answer of a server.
pub(super) struct Answer {
    pub(super) http: u16,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
    /// The trailers. If there are none, the answer breaks off.
    pub(super) end: Vec<(&'static str, String)>,
    /// Whether the answer hangs after the body.
    pub(super) hangs: bool,
    /// Whether the status is in the header fields, and there are no trailers.
    pub(super) ends_first: bool,
}

impl Answer {
    /// Returns an answer with these messages.
    pub(super) fn of<M: prost::Message>(messages: &[M]) -> Self {
        Self::raw(messages.iter().flat_map(framed).collect())
    }

    pub(super) fn raw(body: Vec<u8>) -> Self {
        let end = vec![("grpc-status", "0".to_owned())];
        Self { http: 200, kind: "application/grpc", body, end, hangs: false, ends_first: false }
    }

    pub(super) fn failed(status: &str, message: &str) -> Self {
        let end = [("grpc-status", status.to_owned()), ("grpc-message", message.to_owned())];
        Self { end: end.into(), ..Self::raw(Vec::new()) }
    }
}

/// The body of an answer.
struct Sent {
    data: Option<Bytes>,
    end: Option<HeaderMap>,
    hangs: bool,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if self.hangs {
            return Poll::Pending;
        }
        match self.end.take() {
            Some(end) if end.is_empty() => Poll::Ready(Some(Err(io::Error::other("broken off")))),
            end => Poll::Ready(end.map(|it| Ok(Frame::trailers(it)))),
        }
    }
}

/// A server on a separate thread.
pub(super) struct Served {
    directory: TempDir,
    calls: Calls,
}

impl Served {
    pub(super) fn socket(&self) -> PathBuf {
        self.directory.path().join("agent.sock")
    }

    /// Returns the calls so far: the method and the message of each.
    pub(super) fn calls(&self) -> Vec<(String, Vec<u8>)> {
        self.calls.lock().unwrap().clone()
    }
}

/// Returns a client for a server, with a time limit of a second.
pub(super) fn client(served: &Served) -> AgentClient {
    AgentClient::new(&served.socket(), Duration::from_secs(1)).unwrap()
}

/// Like [`client`], but with time for many megabytes on a busy host.
pub(super) fn patient_client(served: &Served) -> AgentClient {
    AgentClient::new(&served.socket(), Duration::from_secs(60)).unwrap()
}

/// Runs a gRPC server, for which `answer` returns the answers.
pub(super) fn served(answer: fn(&str, &[u8]) -> Answer) -> Served {
    listening(move |listener, calls| async move {
        while let Ok((stream, _)) = listener.accept().await {
            let calls = calls.clone();
            let service = service_fn(move |request| answered(request, calls.clone(), answer));
            let served = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(served.serve_connection(TokioIo::new(stream), service));
        }
    })
}

/// Runs the server `serve` on a separate thread.
pub(super) fn listening<F: Future<Output = ()>>(
    serve: impl FnOnce(UnixListener, Calls) -> F + Send + 'static,
) -> Served {
    let served = Served { directory: tempfile::tempdir().unwrap(), calls: Calls::default() };
    let (socket, calls) = (served.socket(), served.calls.clone());
    let (ready, wait) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = UnixListener::bind(socket).unwrap();
            ready.send(()).unwrap();
            serve(listener, calls).await;
        });
    });
    wait.recv().unwrap();
    served
}

async fn answered(
    request: Request<Incoming>,
    calls: Calls,
    answer: fn(&str, &[u8]) -> Answer,
) -> Result<Response<Sent>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let method = path.strip_prefix(&format!("/{A3S_SERVICE}/")).unwrap();
    assert_eq!(request.headers()["te"], "trailers");
    let body = request.into_body().collect().await?.to_bytes();
    let message = body[5..].to_vec();
    let answer = answer(method, &message);
    calls.lock().unwrap().push((method.to_owned(), message));
    let field = |(name, value): (&'static str, String)| {
        (HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap())
    };
    let fields: HeaderMap = answer.end.into_iter().map(field).collect();
    let data = Some(Bytes::from(answer.body));
    let (head, end) = match answer.ends_first {
        true => (fields, None),
        false => (HeaderMap::new(), Some(fields)),
    };
    let mut response = Response::new(Sent { data, end, hangs: answer.hangs });
    response.headers_mut().extend(head);
    *response.status_mut() = answer.http.try_into().unwrap();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(answer.kind));
    Ok(response)
}
