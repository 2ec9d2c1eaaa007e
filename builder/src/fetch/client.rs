//! Requests, and the redirects that answer them.

use reqwest::StatusCode;
use reqwest::blocking::{self, Response};
use reqwest::header::{ACCEPT_ENCODING, HeaderValue, IF_RANGE, LOCATION, RANGE};
use reqwest::{Proxy, Url, redirect};

use super::{FetchError, FetchOptions, RemoteUrl, roots};

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// An HTTP client for one download.
#[derive(Debug)]
pub(super) struct Client {
    http: blocking::Client,
    has_roots: bool,
    patience: std::time::Duration,
}

/// Where to go on with a file that a server sent in part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resume<'a> {
    /// The first byte that is missing.
    pub(super) from: u64,
    /// The strong entity tag of the file whose first bytes there are.
    pub(super) tag: &'a HeaderValue,
}

/// The last answer behind all redirects: a file, or a refusal.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) url: RemoteUrl,
    pub(super) response: Response,
}

impl Client {
    /// Makes a client.
    pub(super) fn new(options: &FetchOptions<'_>) -> Result<Self, FetchError> {
        let roots = roots::load(options.roots)?;
        let has_roots = !roots.is_empty();
        let tls = roots::tls(roots).map_err(|error| FetchError::Client(error.into()))?;
        let mut builder = blocking::Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(concat!("boxbuild/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .timeout(options.patience)
            .connect_timeout(options.patience)
            // The next try must not meet a connection that broke.
            .pool_max_idle_per_host(0)
            .no_proxy();
        if let Some(proxy) = options.proxy {
            builder = builder.proxy(parse_proxy(proxy)?);
        }
        let http = builder.build().map_err(|error| FetchError::Client(error.into()))?;
        Ok(Self { http, has_roots, patience: options.patience })
    }

    /// Asks for a file, or for the rest of it, and follows redirects.
    pub(super) fn get(
        &self,
        url: &RemoteUrl,
        resume: Option<Resume<'_>>,
    ) -> Result<Answer, FetchError> {
        let mut at = url.clone();
        for _ in 0..=REDIRECTS {
            let response = self.request(&at, resume)?;
            match location(&response) {
                None => return Ok(Answer { url: at, response }),
                Some(location) => at = follow(url, &at, location)?,
            }
        }
        Err(FetchError::TooManyRedirects { url: url.clone(), limit: REDIRECTS })
    }

    fn request(&self, at: &RemoteUrl, resume: Option<Resume<'_>>) -> Result<Response, FetchError> {
        if at.is_https() && !self.has_roots {
            return Err(FetchError::NoRoots { host: at.host() });
        }
        let mut request = self.http.get(at.to_url()).header(ACCEPT_ENCODING, "identity");
        if let Some(Resume { from, tag }) = resume {
            request = request.header(RANGE, format!("bytes={from}-")).header(IF_RANGE, tag);
        }
        request.send().map_err(|error| {
            let host = at.host();
            if error.is_timeout() && !error.is_connect() {
                return FetchError::Stalled { host, waited: self.patience };
            }
            // The URL may be a redirect's, and then be signed.
            FetchError::Unreachable { host, source: error.without_url().into() }
        })
    }
}

/// Reads a proxy's URL.
fn parse_proxy(text: &str) -> Result<Proxy, FetchError> {
    let url = Url::parse(text).map_err(|error| FetchError::Proxy(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(FetchError::Proxy(format!("it speaks {:?}", url.scheme())));
    }
    Proxy::all(url).map_err(|error| FetchError::Proxy(error.without_url().to_string()))
}

/// Returns where an answer redirects to (RFC 9110, section 15.4).
fn location(response: &Response) -> Option<&str> {
    let redirects = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    response.headers().get(LOCATION).filter(|_| redirects)?.to_str().ok()
}

fn follow(url: &RemoteUrl, at: &RemoteUrl, location: &str) -> Result<RemoteUrl, FetchError> {
    let to = at.join(location).map_err(|source| {
        let to = at.describe(location);
        FetchError::Redirect { url: url.clone(), to, source }
    })?;
    if at.is_https() && !to.is_https() {
        return Err(FetchError::Downgrade { url: url.clone(), to: at.describe(location) });
    }
    Ok(to)
}
