//! The heads of messages: checks the target of a request, and removes the header lines that are not passed on.

use egress_rules::hello::HelloError;
use egress_rules::{Host, Target, TargetError};
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};

use crate::refusal::Refusal;
use crate::state::{Filter, Settings};

/// The names of header lines that are meant only for the next hop (RFC 9110, section 7.6.1), and Expect, which this
/// proxy answers.
const HOP: [HeaderName; 10] = [
    CONNECTION,
    EXPECT,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
const PLAIN_PORT: u16 = 80;

const NO_PROXY_REQUEST: &str = "this is a proxy, which needs CONNECT or a URI with a host";
const OTHER_SCHEME: &str =
    "the proxy was asked for another URL than http://; a client asks for https:// by CONNECT";
const OTHER_HOST: &str = "the request and its Host header name different servers";
pub(crate) const OTHER_CODING: &str = "the body has a transfer coding other than chunked";
const BODY: &str = "CONNECT has no body";
const WEBSOCKET: &str =
    "a WebSocket through a proxy begins with CONNECT (RFC 6455, section 4.1), also for ws://";

/// Returns the target of a request.
///
/// # Errors
/// The reason why the proxy refuses such a request, whatever the rules allow.
pub(crate) fn target<B>(request: &Request<B>, settings: &Settings) -> Result<Target, Refusal> {
    let (uri, headers) = (request.uri(), request.headers());
    let target = if request.method() == Method::CONNECT {
        has_no_body(headers)?;
        tunnelled(uri)?
    } else {
        let target = absolute(uri)?;
        if Filter::is_tls(settings, &target) {
            return Err(HelloError::NotTls.into());
        }
        target
    };
    if asks_for_websocket(headers) {
        return Err(Refusal::Request(WEBSOCKET));
    }
    let port = if uri.scheme().is_some() { PLAIN_PORT } else { target.port };
    has_host(headers, &target, port)?;
    is_framed(headers).then_some(target).ok_or(Refusal::Request(OTHER_CODING))
}

/// Returns whether a request asks for a WebSocket. Other protocols that a request offers, such as `h2c`, are optional, and are left out.
pub(crate) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let offered = headers.get_all(UPGRADE).iter().filter_map(|it| it.to_str().ok());
    offered.flat_map(|it| it.split(',')).any(|it| it.trim().eq_ignore_ascii_case("websocket"))
}

fn tunnelled(uri: &Uri) -> Result<Target, Refusal> {
    let authority = uri.authority().filter(|_| uri.scheme().is_none());
    let authority = authority.ok_or(Refusal::Request(NO_PROXY_REQUEST))?;
    Ok(Target::parse(authority.as_str())?)
}

fn absolute(uri: &Uri) -> Result<Target, Refusal> {
    let authority = uri.authority().ok_or(Refusal::Request(NO_PROXY_REQUEST))?;
    if uri.scheme() != Some(&Scheme::HTTP) {
        return Err(Refusal::Request(OTHER_SCHEME));
    }
    Ok(named(authority.as_str(), PLAIN_PORT)?)
}

/// Parses a host with an optional port. `port` is the default.
fn named(text: &str, port: u16) -> Result<Target, TargetError> {
    if text.ends_with(']') || !text.contains(':') {
        Ok(Target { host: Host::parse(text)?, port })
    } else {
        Target::parse(text)
    }
}

/// Checks that a Host header, if there is one, names the same server as the request line, because a server could use
/// either.
fn has_host(headers: &HeaderMap, target: &Target, port: u16) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let is_target = |host: &HeaderValue| {
        let host = host.to_str().ok().and_then(|it| named(it, port).ok());
        host.as_ref() == Some(target)
    };
    match (hosts.next(), hosts.next()) {
        (None, _) => Ok(()),
        (Some(host), None) if is_target(host) => Ok(()),
        _ => Err(Refusal::Request(OTHER_HOST)),
    }
}

/// Checks that CONNECT has no body. Some servers would read the body, and others would treat it as data of the tunnel.
fn has_no_body(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_empty = headers.get_all(CONTENT_LENGTH).iter().all(|it| it == "0");
    let is_bodyless = is_empty && !headers.contains_key(TRANSFER_ENCODING);
    is_bodyless.then_some(()).ok_or(Refusal::Request(BODY))
}

/// Returns whether the end of a message's body is unambiguous: the body has a length or is chunked, but not both. From a request
/// with both, hyper has removed the length before (RFC 9112, section 6.1), so the server gets a chunked body.
/// Refuses other transfer codings, because [`remove_hop`] would remove the header line that names them.
pub(crate) fn is_framed(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |it: &HeaderValue| it.as_bytes().eq_ignore_ascii_case(b"chunked");
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => is_chunked(coding) && !headers.contains_key(CONTENT_LENGTH),
        _ => false,
    }
}

/// Converts a request for its server.
pub(crate) fn to_server<B>(
    mut request: Request<B>,
    target: &Target,
) -> Result<Request<B>, Refusal> {
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.unwrap_or_else(|| PathAndQuery::from_static("/")).into();
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    remove_hop(headers);
    let host = match target.port {
        PLAIN_PORT => target.host.to_string(),
        _ => target.to_string(),
    };
    let host = HeaderValue::try_from(host).map_err(|_| TargetError::Host)?;
    headers.insert(HOST, host);
    Ok(request)
}

/// Converts a response for the client.
///
/// # Errors
/// [`Refusal::Answer`] if the end of the response is ambiguous, or if the response switches to another protocol.
pub(crate) fn to_client<B>(mut response: Response<B>) -> Result<Response<B>, Refusal> {
    let is_switch = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if is_switch || !is_framed(response.headers()) {
        return Err(Refusal::Answer);
    }
    *response.version_mut() = Version::HTTP_11;
    // The text after the status would be an extension.
    response.extensions_mut().clear();
    remove_hop(response.headers_mut());
    Ok(response)
}

/// Removes the hop-by-hop header lines ([RFC 9110, section
/// 7.6.1](https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1)): the lines that Connection names, and [`HOP`].
pub(crate) fn remove_hop(headers: &mut HeaderMap) {
    let lines = headers.get_all(CONNECTION).iter().filter_map(|it| it.to_str().ok());
    let names = lines.flat_map(|it| it.split(',')).filter_map(|it| it.trim().parse().ok());
    let named: Vec<HeaderName> = names.collect();
    for name in named.iter().chain(&HOP) {
        headers.remove(name);
    }
}
