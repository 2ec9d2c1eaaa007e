//! A connection to an agent, and calls over it: [gRPC over
//! HTTP/2](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).

use std::path::Path;

use box_contract::plan::A3S_SERVICE;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::header::{CONTENT_TYPE, HeaderMap, TE, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::UnixStream;

use super::error::AgentError;
use super::frames::{Frames, framed};
use super::opening::{Opening, Watched};
use super::status::{Verdict, verdict};

const GRPC: &str = "application/grpc";
/// The greatest size of an answer's header fields, in bytes. Excess trailer fields are dropped, and trailers of four
/// times that size are an error.
pub(super) const MAX_HEADERS: u32 = 16 << 10;
/// How many bytes an agent may send that the client has not read: the HTTP/2 flow-control window.
const WINDOW: u32 = 256 << 10;

/// A connection to an agent.
pub(super) struct Channel {
    sender: SendRequest<Full<Bytes>>,
    opening: Opening,
}

impl Channel {
    /// Connects to the socket that leads to an agent. Only the first call shows whether the agent speaks gRPC.
    ///
    /// # Errors
    /// If the socket refuses the connection, or the connection breaks at once.
    pub(super) async fn connect(socket: &Path, first: &'static str) -> Result<Self, AgentError> {
        let stream = UnixStream::connect(socket).await.map_err(AgentError::Connect)?;
        let opening = Opening::default();
        let io = TokioIo::new(Watched::new(stream, opening.clone()));
        let mut builder = Builder::new(TokioExecutor::new());
        builder.max_header_list_size(MAX_HEADERS).initial_max_send_streams(1);
        builder.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
        let connected = builder.handshake(io).await;
        let (sender, connection) = connected.map_err(|_| broken(&opening, first))?;
        // This task ends with the connection, or with the runtime. The call reports an error of the connection.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, opening })
    }

    /// Calls a method that has one answer.
    ///
    /// # Errors
    /// [`AgentError`].
    pub(super) async fn call<A: Message + Default>(
        &mut self,
        method: &'static str,
        message: &impl Message,
    ) -> Result<A, AgentError> {
        decoded(method, &self.call_with(method, framed(message)).await?)
    }

    /// Calls a method that has one answer, and returns the answer's bytes. This function is not generic, so it is
    /// compiled once for all types of messages.
    ///
    /// # Errors
    /// [`AgentError`].
    pub(super) async fn call_with(
        &mut self,
        method: &'static str,
        message: Vec<u8>,
    ) -> Result<Vec<u8>, AgentError> {
        let malformed = |reason: &str| AgentError::Malformed { method, reason: reason.to_owned() };
        let mut answers = self.stream(method, message).await?;
        let first = answers.next().await?.ok_or_else(|| malformed("there is no message in it"))?;
        match answers.next().await? {
            None => Ok(first),
            Some(_) => Err(malformed("there are several messages in it")),
        }
    }

    /// Calls a method that has any number of answers. `message` is the result of [`framed`].
    ///
    /// # Errors
    /// [`AgentError`].
    pub(super) async fn stream(
        &mut self,
        method: &'static str,
        message: Vec<u8>,
    ) -> Result<Answers, AgentError> {
        let broken = |_| broken(&self.opening, method);
        self.sender.ready().await.map_err(broken)?;
        let response = self.sender.send_request(request(method, message)?).await;
        let response = response.map_err(broken)?;
        check_head(method, &response)?;
        let (parts, body) = response.into_parts();
        let (opening, frames) = (self.opening.clone(), Frames::new(method));
        Ok(Answers { method, body, frames, last: parts.headers, opening })
    }
}

/// Decodes a message.
///
/// # Errors
/// [`AgentError::Malformed`].
pub(super) fn decoded<A: Message + Default>(
    method: &'static str,
    message: &[u8],
) -> Result<A, AgentError> {
    A::decode(message).map_err(|error| AgentError::Malformed { method, reason: error.to_string() })
}

fn request(method: &'static str, body: Vec<u8>) -> Result<Request<Full<Bytes>>, AgentError> {
    Request::builder()
        .method(Method::POST)
        .uri(format!("http://localhost/{A3S_SERVICE}/{method}"))
        .header(CONTENT_TYPE, GRPC)
        .header(TE, "trailers")
        .header(USER_AGENT, concat!("boxlaunch/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(Bytes::from(body)))
        // Does not fail, because all fields of the request are constants.
        .map_err(|error| AgentError::Malformed { method, reason: error.to_string() })
}

/// Returns the error for a connection that broke, by the first bytes that arrived on it.
fn broken(opening: &Opening, method: &'static str) -> AgentError {
    match opening.foreign() {
        Some(start) => AgentError::NotGrpc(format!("its answer begins with {start:?}")),
        None => AgentError::Closed { method },
    }
}

/// Checks that an answer has the status and the content type of gRPC.
fn check_head(method: &'static str, response: &Response<Incoming>) -> Result<(), AgentError> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let is_grpc = kind.is_some_and(|it| {
        it.strip_prefix(GRPC).is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
    });
    if response.status() != StatusCode::OK {
        let status = response.status().as_u16();
        return Err(AgentError::NotGrpc(format!(
            "its answer to {method} has the HTTP status {status}"
        )));
    }
    if !is_grpc {
        let kind = kind.unwrap_or("nothing known");
        return Err(AgentError::NotGrpc(format!("its answer to {method} is {kind}")));
    }
    Ok(())
}

/// The answers of a call.
pub(super) struct Answers {
    method: &'static str,
    body: Incoming,
    frames: Frames,
    /// The fields that can contain the status: the trailers, or the header fields of an answer without a body.
    last: HeaderMap,
    opening: Opening,
}

impl Answers {
    /// Returns the bytes of the next message; `None` after the last one, if the agent reports success.
    ///
    /// # Errors
    /// [`AgentError`].
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, AgentError> {
        loop {
            if let Some(message) = self.frames.take()? {
                return Ok(Some(message));
            }
            let Some(frame) = self.body.frame().await else { break };
            match frame.map_err(|_| broken(&self.opening, self.method))?.into_data() {
                Ok(data) => {
                    // The header fields contain the status only if there is no body.
                    self.last.clear();
                    self.frames.add(&data)?;
                }
                Err(frame) => self.last = frame.into_trailers().unwrap_or_default(),
            }
        }
        self.end().map(|()| None)
    }

    /// Forgets the sizes of the messages so far. For a stream without an end, whose messages the client does not keep.
    pub(super) fn forget(&mut self) {
        self.frames.forget();
    }

    /// Checks the status at the end of the answers.
    fn end(&self) -> Result<(), AgentError> {
        let method = self.method;
        match verdict(&self.last) {
            Verdict::Missing => Err(AgentError::Closed { method }),
            Verdict::Failed { code, message } => Err(AgentError::Status { method, code, message }),
            Verdict::Done if !self.frames.is_empty() => Err(AgentError::Malformed {
                method,
                reason: "it ends in the middle of a message".to_owned(),
            }),
            Verdict::Done => Ok(()),
        }
    }
}
