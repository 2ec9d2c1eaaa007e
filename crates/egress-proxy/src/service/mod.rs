//! HTTP APIs whose credentials stay on the host.
//!
//! ```text
//! component ── HTTP ── Service: check, add the credential ── TLS ── the API
//! component ── HTTP ── Service: look for the credential   ── TLS ── the API
//! ```
//!
//! A component gets the answer of the API, but nothing in it that contains the credential. So the host follows no redirect, asks for
//! an answer that is not compressed, and replaces the credential in the body by asterisks, also if it is cut into pieces. A server
//! that sends its credential in another form, for example in base64, is not recognized.

mod answer;
mod names;
mod request;

use std::convert::Infallible;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use box_contract::rules::ServiceUrl;
use box_contract::{ComponentName, ServicePlan};
use egress_rules::{Host, Target};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, client};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use crate::attempt::Attempt;
use crate::decision::Channel;
use crate::http::{lock, no_answer, said, server};
use crate::refusal::Refusal;
use crate::state::Filter;
use crate::upstream::{BUFFER, Upstream};
use answer::Masked;
pub use answer::{Held, Secrets};

/// The body of an answer: the API's, or the text of a refusal.
type Body = Either<Masked, Full<Bytes>>;

/// An HTTP API that a component reaches without its credential.
pub struct Service {
    name: String,
    component: ComponentName,
    target: Target,
    server_name: ServerName<'static>,
    /// The path of the API's URL, which is before the paths of requests.
    path: String,
    allow: Vec<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The names of headers and of parameters that pass although they may be those of credentials.
    pass: Vec<String>,
    secrets: Secrets,
    timeout: Duration,
    filter: Arc<Filter>,
    tls: TlsConnector,
}

/// Why a service cannot be served. No [checked](box_contract::RunPlan::check) plan has such a service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The URL is malformed.
    #[error("the URL of the service {0} is malformed")]
    Url(String),
    /// A header has no secret, or one that cannot be in a header.
    #[error("the service {service} has no secret for the header {header}")]
    Credential {
        /// The name of the service.
        service: String,
        /// The name of the header.
        header: String,
    },
}

impl Service {
    /// Returns the service of a plan. `secret` returns the value of a secret by its name. `filter` connects to the API, reports the
    /// requests, and limits them; it must allow the API ([`ServicePlan::peer`]). Use
    /// [`Filter::beside`], so that the limits hold for all services of a box together.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn new<'a>(
        plan: &ServicePlan,
        secret: impl Fn(&str) -> Option<&'a [u8]>,
        filter: Arc<Filter>,
        tls: Arc<ClientConfig>,
    ) -> Result<Self, ServiceError> {
        let malformed = || ServiceError::Url(plan.name.clone());
        let url = ServiceUrl::parse(&plan.to).ok_or_else(malformed)?;
        let host = Host::parse(url.host).map_err(|_| malformed())?;
        let server_name = ServerName::try_from(url.host.to_owned()).map_err(|_| malformed())?;
        let (mut headers, mut secrets) = (Vec::new(), Vec::new());
        for header in &plan.headers {
            let failed = || ServiceError::Credential {
                service: plan.name.clone(),
                header: header.name.clone(),
            };
            let value = secret(&header.secret).ok_or_else(failed)?;
            if !secrets.iter().any(|it: &Zeroizing<Vec<u8>>| it.as_slice() == value) {
                secrets.push(Zeroizing::new(value.to_vec()));
            }
            let line = Zeroizing::new([header.prefix.as_bytes(), value].concat());
            let mut line = HeaderValue::from_bytes(&line).map_err(|_| failed())?;
            line.set_sensitive(true);
            let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| failed())?;
            headers.push((name, line));
        }
        Ok(Self {
            name: plan.name.clone(),
            component: plan.component,
            target: Target { host, port: url.port },
            server_name,
            path: url.path.to_owned(),
            allow: plan.allow.clone(),
            headers,
            pass: plan.pass.clone(),
            secrets: Secrets::new(secrets),
            timeout: Duration::from_millis(plan.timeout_ms),
            filter,
            tls: TlsConnector::from(tls),
        })
    }

    /// Returns the component that reaches the API.
    pub const fn component(&self) -> ComponentName {
        self.component
    }

    /// Serves a client until it ends the connection.
    ///
    /// Dropping the future ends all connections of the client. The future must run in a tokio runtime.
    pub async fn serve<S>(self: Arc<Self>, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let filter = Arc::clone(&self.filter);
        let Ok(_client) = filter.clients.try_acquire() else {
            let refusal = Refusal::Connections(filter.limits.connections);
            return self.attempt().refuse(&refusal);
        };
        let stream = TokioIo::new(stream);
        let service = service_fn(|request| {
            let service = Arc::clone(&self);
            async move { Ok::<_, Infallible>(service.answer(request).await) }
        });
        // Ignore an error: the client was already informed of it, or is gone.
        let _ended = server(&filter.settings).serve_connection(stream, service).await;
    }

    fn attempt(&self) -> Attempt {
        let mut attempt = Attempt::new(&self.filter, self.component, Channel::Service);
        attempt.asks(&self.target.host.to_string(), Some(self.target.port));
        attempt
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let mut attempt = self.attempt();
        attempt.requests(request::described(&self.name, &request));
        let deadline = Instant::now() + self.timeout;
        let request = match self.checked(request) {
            Ok(request) => request,
            Err(reason) => {
                attempt.refuse(&reason);
                return self.refusal(&reason);
            }
        };
        let upstream = match attempt.connect(&self.target).await {
            Ok(upstream) => upstream,
            Err(reason) => return self.refusal(&reason),
        };
        let attempt = Arc::new(Mutex::new(attempt));
        let sent = timeout_at(deadline, self.send(&attempt, upstream, request, deadline)).await;
        sent.unwrap_or(Err(Refusal::Timeout("the request"))).unwrap_or_else(|reason| {
            lock(&attempt).ends(&reason);
            self.refusal(&reason)
        })
    }

    /// Sends a checked request to the API. The body of the answer is read from the API while the client reads it.
    async fn send(
        &self,
        attempt: &Arc<Mutex<Attempt>>,
        Upstream { stream, mut watch }: Upstream,
        request: Request<Incoming>,
        deadline: Instant,
    ) -> Result<Response<Body>, Refusal> {
        let connected = self.tls.connect(self.server_name.clone(), stream).await;
        let mut http = client::conn::http1::Builder::new();
        http.max_buf_size(BUFFER);
        let opened = http.handshake(TokioIo::new(connected.map_err(Refusal::Tls)?)).await;
        let (mut server, connection) = opened.map_err(|_| Refusal::Answer)?;
        let (mut carried, reporter) = (JoinSet::new(), Arc::clone(attempt));
        carried.spawn(async move {
            tokio::select! {
                _ = connection => {}
                reason = watch.denied() => lock(&reporter).ends(&reason),
                () = sleep_until(deadline) => lock(&reporter).ends(&Refusal::Timeout("the request")),
            }
        });
        let answer = server.send_request(request).await.map_err(|error| no_answer(&error))?;
        lock(attempt).answered(answer.status().as_u16());
        let answer = self.secrets.checked(answer, &self.headers)?;
        let (secrets, attempt) = (self.secrets.clone(), Arc::clone(attempt));
        Ok(answer.map(|it| Either::Left(Masked::new(it, secrets, (attempt, carried)))))
    }

    fn refusal(&self, reason: &Refusal) -> Response<Body> {
        let text = format!("The box cannot use the service {}: {reason}.\n", self.name);
        said(reason, text).map(Either::Right)
    }
}

impl Debug for Service {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, target, .. } = self;
        f.debug_struct("Service")
            .field("name", name)
            .field("target", target)
            .finish_non_exhaustive()
    }
}
