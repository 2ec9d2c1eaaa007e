//! One repository on one server: requests, with credentials where they belong.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use box_image::Digest;
use download::http::{self, Client, HttpError, Refused, RemoteUrl};
use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RANGE};

use super::auth::{self, State};
use super::config::Host;
use super::guard::{Guard, Guards};
use super::retry::Tries;
use super::{Options, Reference, RegistryError, Repository};

/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// How often a mirror is tried, behind which there is another server.
const MIRROR_TRIES: u32 = 2;
/// The kinds of manifest that are understood: indexes and images, of OCI and of docker.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.docker.distribution.manifest.v2+json";

/// One repository on one server, and what the server wants to see for it.
#[derive(Debug)]
pub(super) struct Session<'a> {
    /// The repository as it is called there.
    pub(super) repository: Repository,
    /// `https://HOST/`, or `http://HOST/` where the configuration says so.
    pub(super) base: RemoteUrl,
    /// What the configuration says about the server.
    pub(super) host: Host,
    /// Whether another server is asked where this one cannot help.
    pub(super) is_mirror: bool,
    pub(super) client: Arc<Client>,
    pub(super) options: Arc<Options<'a>>,
    pub(super) guards: Guards,
    /// How the server was convinced so far.
    pub(super) state: Mutex<State>,
}

/// What is asked for.
#[derive(Debug)]
pub(super) struct Ask {
    /// In words, for messages.
    pub(super) what: String,
    /// Behind the repository's name.
    path: String,
    headers: HeaderMap,
}

/// The last answer behind all redirects.
#[derive(Debug)]
pub(super) struct Answer {
    /// Where it came from.
    pub(super) url: RemoteUrl,
    /// Whether every redirect stayed on the registry's own origin.
    own: bool,
    pub(super) response: Response,
}

impl Session<'_> {
    /// Asks for a manifest.
    pub(super) fn manifest(&self, reference: &Reference) -> Ask {
        let mark = if matches!(reference, Reference::Tag(_)) { ':' } else { '@' };
        let what = format!("the manifest of {}{mark}{reference}", self.repository);
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(MANIFESTS))]);
        Ask { what, path: format!("manifests/{reference}"), headers }
    }

    /// Asks for a blob, from a byte on.
    pub(super) fn blob(&self, digest: &Digest, from: u64) -> Ask {
        let what = format!("the blob {digest} of {}", self.repository);
        let range = HeaderValue::from_str(&format!("bytes={from}-")).ok();
        let range = range.filter(|_| from > 0).map(|range| (RANGE, range));
        Ask { what, path: format!("blobs/{digest}"), headers: range.into_iter().collect() }
    }

    /// Starts counting tries.
    pub(super) fn tries(&self) -> Tries {
        let tries = Tries::new(&self.options);
        if self.is_mirror { tries.at_most(MIRROR_TRIES) } else { tries }
    }

    /// Sends a request, and once more with credentials where the registry asks for some.
    pub(super) fn send(&self, ask: &Ask) -> Result<Answer, RegistryError> {
        let sent = self.state().authorization.clone();
        let answer = self.follow(ask, sent.as_ref())?;
        if !answer.wants_credentials() {
            return Ok(answer);
        }
        let (renewed, has_credentials) = {
            // One thread asks for the token; the others wait for it here.
            let mut state = self.state();
            if state.authorization == sent {
                auth::renew(self, &mut state, ask, answer.response.headers())?;
            }
            (state.authorization.clone(), state.has_credentials())
        };
        let answer = self.follow(ask, renewed.as_ref())?;
        if answer.wants_credentials() {
            return Err(self.unauthorized(ask, has_credentials));
        }
        Ok(answer)
    }

    /// Returns the error of a server that is not convinced.
    pub(super) fn unauthorized(&self, ask: &Ask, has_credentials: bool) -> RegistryError {
        let (what, host) = (ask.what.clone(), self.repository.host().to_owned());
        if has_credentials {
            RegistryError::Unauthorized { what, host }
        } else {
            RegistryError::NoCredentials { what, host }
        }
    }

    fn not_tls(&self) -> RegistryError {
        RegistryError::NotTls { host: self.repository.host().to_owned() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and follows redirects. The credentials go along only as long as no redirect
    /// has left the registry's own origin: who comes back to it was sent by somebody else.
    fn follow(&self, ask: &Ask, auth: Option<&HeaderValue>) -> Result<Answer, RegistryError> {
        let mut at = self.url(&ask.path)?;
        let mut own = true;
        for _ in 0..=REDIRECTS {
            own = own && at.same_origin(&self.base);
            let mut headers = ask.headers.clone();
            if let Some(auth) = auth.filter(|_| own || !self.guards.hold(Guard::OwnOrigin)) {
                headers.insert(AUTHORIZATION, auth.clone());
            }
            let response = self.client.get(&at, headers).map_err(|error| match error {
                HttpError::NotTls { .. } if own => self.not_tls(),
                error => error.into(),
            })?;
            match http::location(&response) {
                None => return Ok(Answer { url: at, own, response }),
                Some(location) => at = self.redirected(ask, &at, location)?,
            }
        }
        Err(RegistryError::TooManyRedirects { what: ask.what.clone(), limit: REDIRECTS })
    }

    fn redirected(
        &self,
        ask: &Ask,
        at: &RemoteUrl,
        location: &str,
    ) -> Result<RemoteUrl, RegistryError> {
        http::next(at, location).or_else(|refused| {
            let (what, to) = (ask.what.clone(), at.describe_server(location));
            match refused {
                Refused::Target(_) => Err(RegistryError::Redirect { what, to }),
                Refused::Downgrade(url) if !self.guards.hold(Guard::Downgrade) => Ok(url),
                Refused::Downgrade(_) => Err(RegistryError::Downgrade { what, to }),
            }
        })
    }

    fn url(&self, path: &str) -> Result<RemoteUrl, RegistryError> {
        let path = format!("/v2/{}/{path}", self.repository.name());
        // Names, tags and digests are checked, so that this does not fail.
        let why = "it makes no URL";
        self.base.join(&path).map_err(|_| RegistryError::Name { text: path, why })
    }
}

impl Answer {
    /// Whether the registry itself asks for credentials. Whoever else does gets none.
    fn wants_credentials(&self) -> bool {
        self.own && self.response.status() == StatusCode::UNAUTHORIZED
    }
}
