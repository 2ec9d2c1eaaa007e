//! An HTTP client, and the network options.

use std::error::Error;
use std::fmt;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use box_digest::Digest;
use reqwest::blocking::{self, Response};
use reqwest::header::{ACCEPT_ENCODING, HeaderMap};
use reqwest::{Method, NoProxy, Proxy, Url, redirect};
use rustls::InvalidMessage;

use super::error::HttpError;
use super::screen::{self, Lookup, Screen, Screened};
use super::upload::Uploads;
use super::url::{RemoteUrl, host_of};
use crate::retry::{Policy, RetryObserver};

/// The hosts for which no proxy is used. The proxy would take them for its host instead of this one.
const THIS_MACHINE: &str = "localhost,127.0.0.0/8,::1";

/// The network options.
#[derive(Clone, Default)]
pub struct NetworkOptions {
    /// The time limits and retries.
    pub policy: Policy,
    /// The URL of the proxy, `http://…` or `https://…`, for all requests except those to this host. It may have a user name and a
    /// password, which are sent to the proxy only.
    pub proxy: Option<String>,
    /// A PEM file with the trusted root certificates, instead of the system's.
    pub roots: Option<PathBuf>,
    /// A function for the progress. It is called after each read of a download, so often, and from several threads.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// A function for the retries. It is called before the pause of each retry.
    pub retry: Option<RetryObserver>,
}

impl fmt::Debug for NetworkOptions {
    /// Omits the proxy, whose URL may have a password, and the functions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, roots, .. } = self;
        let mut shown = f.debug_struct("NetworkOptions");
        shown.field("policy", policy).field("roots", roots).finish_non_exhaustive()
    }
}

/// The progress of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The required sha256, which identifies the download.
    pub digest: Digest,
    /// The number of received bytes. It becomes smaller if the download starts again.
    pub received: u64,
    /// The size of the file, if it is known. `received` reaches it only after the target has the verified file.
    pub total: Option<u64>,
}

/// An HTTP client. It returns redirects as responses.
#[derive(Debug)]
pub struct Client {
    http: blocking::Client,
    /// The client for URLs from redirects. It connects only to addresses that [`Screen`] has checked.
    screened: blocking::Client,
    /// The clients for uploads. They keep no idle connections.
    pub(super) uploads: Uploads,
    has_roots: bool,
    /// The host of the proxy, for messages.
    proxy: Option<String>,
    pub(super) patience: Duration,
}

impl Client {
    /// Makes a client that also trusts the certificates in the PEM file `more_roots`, and keeps `idle` idle connections to each
    /// host.
    pub fn new(
        options: &NetworkOptions,
        more_roots: Option<&Path>,
        idle: usize,
    ) -> Result<Self, HttpError> {
        Self::with_lookup(options, more_roots, idle, screen::of_the_system)
    }

    /// Makes a client that resolves the names in redirects with `lookup`.
    pub(crate) fn with_lookup(
        options: &NetworkOptions,
        more_roots: Option<&Path>,
        idle: usize,
        lookup: Lookup,
    ) -> Result<Self, HttpError> {
        let patience = options.policy.patience;
        let roots = tls_roots::load(options.roots.as_deref(), more_roots)?;
        let has_roots = !roots.is_empty();
        let tls = tls_roots::client(roots).map_err(|error| HttpError::Client(error.into()))?;
        let proxy = options.proxy.as_deref().map(parse_proxy).transpose()?;
        let builder = || {
            let builder = reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .user_agent(concat!("boxbuild/", env!("CARGO_PKG_VERSION")))
                .redirect(redirect::Policy::none())
                .connect_timeout(patience)
                .tcp_user_timeout(patience)
                .pool_max_idle_per_host(idle)
                .no_proxy();
            match &proxy {
                Some((_, settings)) => builder.proxy(settings.clone()),
                None => builder,
            }
        };
        let proxy_host = proxy.as_ref().and_then(|(url, _)| url.host_str().map(str::to_owned));
        let screen = Arc::new(Screen { lookup, proxy: proxy_host });
        let screened = || builder().dns_resolver(Arc::clone(&screen));
        let waiting = |builder| blocking::ClientBuilder::from(builder).timeout(patience).build();
        let failed = |error: reqwest::Error| HttpError::Client(error.into());
        let uploads = Uploads {
            named: builder().pool_max_idle_per_host(0).build().map_err(failed)?,
            screened: screened().pool_max_idle_per_host(0).build().map_err(failed)?,
        };
        let http = waiting(builder()).map_err(failed)?;
        let screened = waiting(screened()).map_err(failed)?;
        let proxy = proxy.map(|(url, _)| host_of(&url));
        Ok(Self { http, screened, uploads, has_roots, proxy, patience })
    }

    /// Requests a URL.
    pub fn get(&self, at: &RemoteUrl, headers: HeaderMap) -> Result<Response, HttpError> {
        self.send(Method::GET, at, false, headers, None)
    }

    /// Sends a form to a URL.
    pub fn post(
        &self,
        at: &RemoteUrl,
        headers: HeaderMap,
        form: String,
    ) -> Result<Response, HttpError> {
        self.send(Method::POST, at, false, headers, Some(form.as_bytes()))
    }

    /// Sends a request with a short body. `is_redirected` is whether a redirect led to the URL's host. If so, the request is not sent to a
    /// link-local address or to a cloud's metadata service, even if the host's name resolves to it. With a proxy, the proxy
    /// resolves names, so they are not checked.
    pub(crate) fn send(
        &self,
        method: Method,
        at: &RemoteUrl,
        is_redirected: bool,
        headers: HeaderMap,
        bytes: Option<&[u8]>,
    ) -> Result<Response, HttpError> {
        self.check(at, is_redirected)?;
        let client = if is_redirected { &self.screened } else { &self.http };
        let request = client.request(method, at.to_url()).headers(headers);
        let request = match bytes {
            Some(bytes) => request.body(bytes.to_vec()),
            None => request,
        };
        request.header(ACCEPT_ENCODING, "identity").send().map_err(|error| self.failed(at, error))
    }

    /// Returns an error for a URL that must not be requested.
    pub(super) fn check(&self, at: &RemoteUrl, is_redirected: bool) -> Result<(), HttpError> {
        // `Screen` checks only names, so an address in the URL is checked here.
        if is_redirected && let Some(Err(Screened(purpose))) = at.address().map(screen::check) {
            return Err(HttpError::Screened { host: at.host(), purpose });
        }
        if at.is_https() && !self.has_roots {
            return Err(HttpError::NoRoots { host: at.host() });
        }
        Ok(())
    }

    pub(super) fn failed(&self, at: &RemoteUrl, error: reqwest::Error) -> HttpError {
        let host = at.host();
        if error.is_timeout() && !error.is_connect() {
            return HttpError::stalled(&host, self.patience);
        }
        // The URL may be from a redirect, and contain a signature.
        let source = error.without_url();
        if let Some(Screened(purpose)) = screened(&source) {
            return HttpError::Screened { host, purpose };
        }
        match tls_error(&source) {
            Some(rustls::Error::InvalidCertificate(_)) => {
                let what = format!("{host} cannot be trusted: its certificate is not valid here");
                HttpError::Untrusted { what, source: source.into() }
            }
            // A plain HTTP answer begins with `H`, which is not the type of a TLS record.
            Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                HttpError::NotTls { host }
            }
            _ if is_malformed(&source) => HttpError::NotHttp { host, source: source.into() },
            _ => {
                let through = self.proxy.as_ref().filter(|_| !at.is_this_machine());
                let through = through.map(|proxy| format!(" through the proxy {proxy}"));
                let through = through.unwrap_or_default();
                let what = match source.is_connect() {
                    true => format!("cannot connect to {host}{through}"),
                    false => format!("the connection to {host}{through} has failed"),
                };
                let cause = root_cause(&source).into();
                match is_refused(&source) {
                    true => HttpError::Refused { what, source: cause },
                    false => HttpError::Unreachable { what, source: Some(cause) },
                }
            }
        }
    }
}

/// Returns whether reading a body has failed with a timeout.
pub fn timed_out(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<reqwest::Error>());
    inner.is_some_and(reqwest::Error::is_timeout)
}

/// Returns the message of the first cause, such as `Connection refused (os error 111)`. The errors above it name only the layers of
/// the client.
fn root_cause(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), root_cause)
}

/// Returns whether the answer was not HTTP.
fn is_malformed(error: &reqwest::Error) -> bool {
    causes(error).any(|cause| cause.downcast_ref().is_some_and(hyper::Error::is_parse))
}

/// Returns whether the host has refused the connection.
fn is_refused(error: &reqwest::Error) -> bool {
    let io = |cause: &(dyn Error + 'static)| cause.downcast_ref().map(io::Error::kind);
    causes(error).any(|cause| io(cause) == Some(io::ErrorKind::ConnectionRefused))
}

/// Returns the reason why the client did not connect to the address of a redirect's host.
fn screened(error: &reqwest::Error) -> Option<&Screened> {
    causes(error).find_map(<dyn Error>::downcast_ref)
}

/// Returns the causes of an error, from the nearest to the first.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    iter::successors(error.source(), |&cause| cause.source())
}

/// Returns the TLS error that made a connection fail. `source` of an [`io::Error`] skips the error that it wraps, so this
/// function uses `get_ref`.
fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = held.map_or_else(|| error.downcast_ref(), |held| held.downcast_ref());
        if tls.is_some() {
            return tls;
        }
        cause = held.map_or_else(|| error.source(), |held| Some(held as &dyn Error));
    }
    None
}

/// Parses a proxy's URL.
fn parse_proxy(text: &str) -> Result<(Url, Proxy), HttpError> {
    let url = Url::parse(text).ok().filter(|it| matches!(it.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| HttpError::Proxy("it is not an http or https URL".to_owned()))?;
    let proxy = Proxy::all(url.clone());
    let proxy = proxy.map_err(|error| HttpError::Proxy(error.without_url().to_string()))?;
    Ok((url, proxy.no_proxy(NoProxy::from_string(THIS_MACHINE))))
}
