//! Checks a request to a service, and adds the credential to it.

use box_contract::rules::{RequestRule, is_plain_path};
use egress_rules::TargetError;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue,
};
use hyper::{Request, Uri, Version};

use super::Service;
use crate::decision::{ApiRequest, printable};
use crate::http::head::{OTHER_CODING, is_framed, remove_hop};
use crate::refusal::Refusal;

/// The header lines of a component that could hold a credential of its own, so that the API would act for somebody else.
const CREDENTIALS: [HeaderName; 2] = [AUTHORIZATION, COOKIE];
/// The port of TLS that a Host header leaves out.
const HTTPS: u16 = 443;

const WHOLE_URL: &str = "the request is for a proxy, and this is a service: send the path alone";
const AMBIGUOUS: &str = "servers could read the path in two ways: it has an empty part, `.`, `..`, or one of them or a slash as %XX";

/// Returns the request for the log.
pub(super) fn described<B>(service: &str, request: &Request<B>) -> ApiRequest {
    let (method, path) = (request.method().as_str(), request.uri().path());
    ApiRequest {
        service: service.to_owned(),
        method: printable(method),
        path: printable(path),
        status: None,
    }
}

impl Service {
    /// Checks a component's request, and returns the request for the API.
    ///
    /// # Errors
    /// Why the request is not sent.
    pub(super) fn checked<B>(&self, mut request: Request<B>) -> Result<Request<B>, Refusal> {
        let uri = request.uri();
        if uri.authority().is_some() || uri.scheme().is_some() {
            return Err(Refusal::Request(WHOLE_URL));
        }
        if !is_plain_path(uri.path()) {
            return Err(Refusal::Request(AMBIGUOUS));
        }
        if !is_framed(request.headers()) {
            return Err(Refusal::Request(OTHER_CODING));
        }
        self.check_rules(request.method().as_str(), uri.path())?;
        *request.uri_mut() = self.uri(uri)?;
        *request.version_mut() = Version::HTTP_11;
        self.write_headers(request.headers_mut())?;
        Ok(request)
    }

    fn check_rules(&self, method: &str, path: &str) -> Result<(), Refusal> {
        let allows =
            |rule: &String| RequestRule::parse(rule).is_some_and(|it| it.allows(method, path));
        if self.allow.is_empty() || self.allow.iter().any(allows) {
            return Ok(());
        }
        let request = format!("{} {}", printable(method), printable(path));
        Err(Refusal::NotOffered { service: self.name.clone(), request })
    }

    /// Returns the path and query for the API.
    fn uri(&self, uri: &Uri) -> Result<Uri, Refusal> {
        let rest = uri.path_and_query().map_or("/", |it| it.as_str());
        let whole = format!("{}{rest}", self.path);
        whole.parse().map_err(|_| Refusal::Request(AMBIGUOUS))
    }

    /// Removes the header lines that are not for the API, and adds the credential.
    fn write_headers(&self, headers: &mut HeaderMap) -> Result<(), Refusal> {
        remove_hop(headers);
        for name in &CREDENTIALS {
            headers.remove(name);
        }
        let host = match self.target.port {
            HTTPS => self.target.to_string().trim_end_matches(":443").to_owned(),
            _ => self.target.to_string(),
        };
        let host = HeaderValue::try_from(host).map_err(|_| TargetError::Host)?;
        headers.insert(HOST, host);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        Ok(())
    }
}
