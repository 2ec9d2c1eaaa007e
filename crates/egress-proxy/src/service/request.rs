//! Checks a request to a service, and adds the credential to it.

use box_contract::rules::{RequestRule, is_plain_path};
use egress_rules::TargetError;
use hyper::header::{ACCEPT_ENCODING, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri, Version};

use super::{Service, names};
use crate::decision::{ApiRequest, printable};
use crate::http::head::{OTHER_CODING, asks_for_websocket, is_framed, remove_hop};
use crate::percent::decoded;
use crate::refusal::Refusal;

/// The port of TLS that a Host header leaves out.
const HTTPS: u16 = 443;

const WHOLE_URL: &str = "the request is for a proxy, and this is a service: send the path alone";
const AMBIGUOUS: &str = "servers could read the path in two ways: it has `;`, an empty part, `.`, `..`, or one of them or a slash as %XX";
const OTHER_METHOD: &str = "some servers take another method from the query";
const MALFORMED: &str = "a parameter's name has a `%` without two digits after it";
const WEBSOCKET: &str = "a service carries no WebSocket";

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
        if asks_for_websocket(request.headers()) {
            return Err(Refusal::Request(WEBSOCKET));
        }
        let is_reading = [Method::GET, Method::HEAD].contains(request.method());
        self.check_query(is_reading, uri.query().unwrap_or_default())?;
        self.check_rules(request.method().as_str(), uri.path())?;
        *request.uri_mut() = self.uri(uri)?;
        *request.version_mut() = Version::HTTP_11;
        self.write_headers(request.headers_mut())?;
        Ok(request)
    }

    /// Returns whether a header of a component's request is for the API. Some servers take `_` in a name for `-`.
    fn passes(&self, name: &str) -> bool {
        let is_own = |own: &HeaderName| own.as_str().replace('_', "-") == name.replace('_', "-");
        names::is_header(name, &self.pass) && !self.headers.iter().any(|(own, _)| is_own(own))
    }

    /// Checks that no parameter of the query is a credential, which the host adds, or changes the method.
    fn check_query(&self, is_reading: bool, query: &str) -> Result<(), Refusal> {
        let names = query.split(['&', ';']).map(|it| it.split('=').next().unwrap_or_default());
        for name in names {
            // Some servers read more than `%XX`, such as `%u0061`.
            let name = decoded(&name.replace('+', " ")).ok_or(Refusal::Request(MALFORMED))?;
            let name = String::from_utf8_lossy(&name).into_owned();
            if names::is_method(&name) {
                return Err(Refusal::Request(OTHER_METHOD));
            }
            let passes = || names::is_parameter(&name, is_reading, &self.pass);
            if !self.headers.is_empty() && !passes() {
                return Err(Refusal::Parameter(printable(&name.to_lowercase())));
            }
        }
        Ok(())
    }

    fn check_rules(&self, method: &str, path: &str) -> Result<(), Refusal> {
        let allows =
            |rule: &String| RequestRule::parse(rule).is_some_and(|it| it.allows(method, path));
        if self.allow.is_empty() || self.allow.iter().any(allows) {
            return Ok(());
        }
        let request = format!("{} {}", printable(method), printable(path));
        // A request could be a rule that allows more than itself.
        let is_exact = RequestRule::parse(&request).is_some() && !request.contains('*');
        let allow = is_exact.then(|| request.clone());
        Err(Refusal::NotOffered { service: self.name.clone(), request, allow })
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
        let stays_here = |it: &&HeaderName| !self.passes(it.as_str());
        let removed: Vec<_> = headers.keys().filter(stays_here).cloned().collect();
        for name in removed {
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
