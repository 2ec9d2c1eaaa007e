//! Requests, and the redirects that answer them.

use reqwest::blocking::Response;
use reqwest::header::{HeaderMap, HeaderValue, IF_RANGE, RANGE};

use super::{FetchError, FetchOptions, RemoteUrl};
use crate::http::{self, ClientOptions, Refused};

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// An HTTP client for one download.
#[derive(Debug)]
pub(super) struct Client(http::Client);

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
        let client = http::Client::new(&ClientOptions {
            patience: options.patience,
            proxy: options.proxy,
            roots: options.roots,
            more_roots: None,
            // The next try must not meet a connection that broke.
            idle: 0,
        });
        Ok(Self(client?))
    }

    /// Asks for a file, or for the rest of it, and follows redirects.
    pub(super) fn get(
        &self,
        url: &RemoteUrl,
        resume: Option<Resume<'_>>,
    ) -> Result<Answer, FetchError> {
        let mut at = url.clone();
        for _ in 0..=REDIRECTS {
            let response = self.0.get(&at, headers(resume))?;
            match http::location(&response) {
                None => return Ok(Answer { url: at, response }),
                Some(location) => at = follow(url, &at, location)?,
            }
        }
        Err(FetchError::TooManyRedirects { url: url.clone(), limit: REDIRECTS })
    }

    /// Returns the error of a server that has fallen silent.
    pub(super) fn stalled(&self, at: &RemoteUrl) -> FetchError {
        self.0.stalled(at.host()).into()
    }
}

fn headers(resume: Option<Resume<'_>>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(Resume { from, tag }) = resume
        && let Ok(range) = HeaderValue::from_str(&format!("bytes={from}-"))
    {
        headers.insert(RANGE, range);
        headers.insert(IF_RANGE, tag.clone());
    }
    headers
}

fn follow(url: &RemoteUrl, at: &RemoteUrl, location: &str) -> Result<RemoteUrl, FetchError> {
    http::next(at, location).map_err(|refused| {
        let (url, to) = (url.clone(), at.describe(location));
        match refused {
            Refused::Target(source) => FetchError::Redirect { url, to, source },
            Refused::Downgrade(_) => FetchError::Downgrade { url, to },
        }
    })
}
