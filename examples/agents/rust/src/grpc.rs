//! The part of [gRPC over HTTP/2](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md) that a server needs:
//! length-prefixed messages, and a status in the trailers.

use std::convert::Infallible;
use std::io;

use http_body_util::combinators::WithTrailers;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpListener;

/// The prefix of a method's path.
const SERVICE: &str = "/a3s.code.agent.v1.CodeAgentService/";
/// The maximum size of a request, in bytes.
const MAX_REQUEST: usize = 4 << 20;
/// The size of a message's prefix, in bytes: the compression flag and the length.
const HEAD: usize = 5;

/// The encoded messages of a response.
#[derive(Default)]
pub(crate) struct Reply(Vec<u8>);

impl Reply {
    /// Adds a message.
    pub(crate) fn add(&mut self, message: &impl Message) {
        let length = u32::try_from(message.encoded_len()).unwrap_or(u32::MAX);
        self.0.push(0);
        self.0.extend(length.to_be_bytes());
        self.0.extend(message.encode_to_vec());
    }
}

/// Returns a response with one message.
pub(crate) fn reply(message: &impl Message) -> Result<Reply, Status> {
    let mut reply = Reply::default();
    reply.add(message);
    Ok(reply)
}

/// The error of a call: a [status code](https://grpc.io/docs/guides/status-codes/), and a message. The message has no `%` and no
/// line ends, which gRPC would require to be encoded.
pub(crate) struct Status(u32, String);

impl Status {
    pub(crate) fn invalid(error: &impl ToString) -> Self {
        Self(3, error.to_string())
    }

    pub(crate) fn not_found(message: &str) -> Self {
        Self(5, message.to_owned())
    }

    pub(crate) fn unimplemented(method: &str) -> Self {
        Self(12, format!("there is no method {method}"))
    }
}

/// Serves all clients until accepting a connection fails.
pub(crate) async fn serve(
    listener: TcpListener,
    call: fn(&str, &[u8]) -> Result<Reply, Status>,
) -> io::Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        let answer = service_fn(move |request| answer(request, call));
        let server = http2::Builder::new(TokioExecutor::new());
        tokio::spawn(server.serve_connection(TokioIo::new(client), answer));
    }
}

type Body = WithTrailers<Full<Bytes>, std::future::Ready<Option<Result<HeaderMap, Infallible>>>>;

async fn answer(
    request: Request<Incoming>,
    call: fn(&str, &[u8]) -> Result<Reply, Status>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let method = path.strip_prefix(SERVICE).unwrap_or_default();
    let (reply, status) = match read(request.into_body()).await.and_then(|it| call(method, &it)) {
        Ok(reply) => (reply, Status(0, String::new())),
        Err(status) => (Reply::default(), status),
    };
    let mut end = HeaderMap::new();
    end.insert("grpc-status", status.0.into());
    if let Ok(words) = HeaderValue::from_str(&status.1) {
        end.insert("grpc-message", words);
    }
    let body = Full::new(Bytes::from(reply.0)).with_trailers(std::future::ready(Some(Ok(end))));
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    Ok(response)
}

/// Returns the message of a request.
async fn read(body: Incoming) -> Result<Bytes, Status> {
    let body = Limited::new(body, MAX_REQUEST).collect().await;
    let mut bytes = body.map_err(|error| Status::invalid(&error))?.to_bytes();
    if bytes.len() < HEAD || bytes[0] != 0 {
        return Err(Status::invalid(&"send one message, not compressed"));
    }
    Ok(bytes.split_off(HEAD))
}
