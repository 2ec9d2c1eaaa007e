//! The HTTP/1 proxy.
//!
//! hyper parses and writes the messages, so a server gets the parsed request, and not the client's bytes. hyper refuses
//! most ambiguous messages. It treats a request that has a length and is chunked as chunked: it removes the length, and
//! closes the connection after the request ([RFC 9112, section
//! 6.3](https://www.rfc-editor.org/rfc/rfc9112#section-6.3)). [`head`] refuses the other ambiguous messages.

pub(crate) mod head;

use std::convert::Infallible;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use box_contract::ComponentName;
use egress_rules::Target;
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, client, server};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use crate::attempt::Attempt;
use crate::decision::{Channel, Verdict};
use crate::refusal::Refusal;
use crate::state::{Filter, Settings};
use crate::upstream::{BUFFER, Upstream};

/// The greatest number of a request's header lines.
const MAX_HEADERS: usize = 64;

/// The body of an answer: a server's body, or the text of a refusal.
type Body = Either<Incoming, Full<Bytes>>;

/// Serves a client.
pub(crate) async fn serve<S>(filter: &Arc<Filter>, component: ComponentName, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let client = Arc::new(Client {
        filter: Arc::clone(filter),
        component,
        tunnel: Mutex::default(),
        server: Mutex::default(),
    });
    let service = service_fn(|request| {
        let client = Arc::clone(&client);
        async move { Ok::<_, Infallible>(client.answer(request).await) }
    });
    let http = server(&filter.settings);
    // Ignore an error: the client was already informed of it, or is gone.
    let _ended = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    let tunnel = lock(&client.tunnel).take();
    if let Some(tunnel) = tunnel {
        tunnel.carry(&filter.settings).await;
    }
}

/// Returns the settings for the connections of clients.
pub(crate) fn server(settings: &Settings) -> server::conn::http1::Builder {
    let mut http = server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(settings.request);
    http.max_buf_size(BUFFER).max_headers(MAX_HEADERS).auto_date_header(false);
    http
}

/// A client, and its connections to servers.
struct Client {
    filter: Arc<Filter>,
    component: ComponentName,
    /// The tunnel that the client's connection becomes after the answer to CONNECT.
    tunnel: Mutex<Option<Tunnel>>,
    /// The task with the connection to the server of the client's last request. Dropping it ends the connection.
    server: Mutex<JoinSet<()>>,
}

struct Tunnel {
    client: OnUpgrade,
    attempt: Attempt,
    upstream: Upstream,
}

impl Tunnel {
    async fn carry(self, settings: &Settings) {
        let Self { client, mut attempt, upstream } = self;
        if let Ok(client) = client.await {
            upstream.tunnel(settings, &mut attempt, TokioIo::new(client)).await;
        }
    }
}

impl Client {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        // The previous request has its answer. End its connection, so that it is no longer included in the limit of
        // connections.
        let mut last = mem::take(&mut *lock(&self.server));
        last.shutdown().await;
        let is_connect = request.method() == Method::CONNECT;
        let channel = if is_connect { Channel::Connect } else { Channel::Http };
        let mut attempt = Attempt::new(&self.filter, self.component, channel);
        // Report only the host, because the URI may contain a user name and a password. Such a URI is refused below.
        if let Some(host) = request.uri().host() {
            attempt.asks(host, None);
        }
        let target = match head::target(&request, &self.filter.settings) {
            Ok(target) => target,
            Err(reason) => {
                attempt.refuse(&reason);
                return refusal(&reason, None);
            }
        };
        match attempt.connect(&target).await {
            Ok(upstream) if is_connect => {
                let client = hyper::upgrade::on(request);
                *lock(&self.tunnel) = Some(Tunnel { client, attempt, upstream });
                Response::new(Either::Right(Full::default()))
            }
            Ok(upstream) => {
                let attempt = Arc::new(Mutex::new(attempt));
                let answer = self.forward(&attempt, upstream, &target, request).await;
                answer.unwrap_or_else(|reason| {
                    lock(&attempt).ends(&reason);
                    refusal(&reason, None)
                })
            }
            Err(reason) => refusal(&reason, Some(&target)),
        }
    }

    /// Sends a request to its server, and returns the answer. The answer's body is read from the server while the
    /// client reads it.
    async fn forward(
        &self,
        attempt: &Arc<Mutex<Attempt>>,
        upstream: Upstream,
        target: &Target,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let Upstream { stream, mut watch } = upstream;
        let mut http = client::conn::http1::Builder::new();
        http.max_buf_size(BUFFER);
        let opened = http.handshake(TokioIo::new(stream)).await;
        let (mut server, connection) = opened.map_err(|_| Refusal::Answer)?;
        let attempt = Arc::clone(attempt);
        let mut carried = JoinSet::new();
        carried.spawn(async move {
            tokio::select! {
                _ = connection => {}
                reason = watch.denied() => lock(&attempt).ends(&reason),
            }
        });
        *lock(&self.server) = carried;
        let answer = server.send_request(head::to_server(request, target)?).await;
        let answer = answer.map_err(|error| no_answer(&error))?;
        head::to_client(answer).map(|it| it.map(Either::Left))
    }
}

/// Returns why a server did not answer after the connection was made.
pub(crate) fn no_answer(error: &hyper::Error) -> Refusal {
    if error.is_parse() { Refusal::Answer } else { Refusal::Closed }
}

/// Returns the response to a refused request, with the reason and, if there is one, the line that allows the target.
fn refusal(reason: &Refusal, target: Option<&Target>) -> Response<Body> {
    let mut text = match target {
        _ if matches!(reason, Refusal::Answer | Refusal::Closed) => {
            format!("The request has failed: {reason}.\n")
        }
        Some(target) => format!("The box cannot connect to {target}: {reason}.\n"),
        None => format!("The box cannot connect: {reason}.\n"),
    };
    if let Verdict::Denied { allow: Some(line), .. } = reason.verdict(target) {
        text += &format!("To allow it, add this to `network` in the Boxfile: {line}\n");
    }
    said(reason, text).map(Either::Right)
}

/// Returns a response with the status of a refusal and this text.
pub(crate) fn said(reason: &Refusal, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = reason.status();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
