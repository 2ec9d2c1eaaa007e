//! The part of HTTP/1.1 ([RFC 9112](https://www.rfc-editor.org/rfc/rfc9112)) that a health check needs.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// The maximum length of a request head, in bytes.
const MAX_HEAD: usize = 4096;
/// The time limit for the whole request head, however slowly its bytes arrive.
const HEAD_PATIENCE: Duration = Duration::from_secs(5);

/// The request line of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The method as it was sent.
    pub(crate) method: String,
    /// The target without its query.
    pub(crate) path: String,
}

/// A response with its whole body. The connection is closed after it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    status: u16,
    reason: &'static str,
    content_type: &'static str,
    body: String,
}

impl Response {
    /// Returns a response with status 200 and JSON.
    pub(crate) fn json(body: &str) -> Self {
        Self::ok("application/json", body)
    }

    /// Returns a response with status 200 and text.
    pub(crate) fn text(body: &str) -> Self {
        Self::ok("text/plain; charset=utf-8", body)
    }

    /// Returns a response with an error status. The body is the reason phrase.
    pub(crate) fn error(status: u16, reason: &'static str) -> Self {
        Self { status, reason, content_type: "text/plain; charset=utf-8", body: reason.to_owned() }
    }

    fn ok(content_type: &'static str, body: &str) -> Self {
        Self { status: 200, reason: "OK", content_type, body: body.to_owned() }
    }

    /// Writes the response in one call.
    pub(crate) fn write_to(&self, client: &mut impl Write) -> io::Result<()> {
        let Self { status, reason, content_type, body } = self;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        client.write_all(answer.as_bytes())
    }
}

/// Reads a request up to the empty line after its head.
///
/// # Errors
/// The request is malformed, too long or too slow. The error is the response to send.
pub(crate) fn read_request(client: &mut impl Read) -> Result<Request, Response> {
    let started = Instant::now();
    let mut head = Vec::new();
    let mut chunk = [0; 512];
    while !ends_head(&head) {
        let count = client.read(&mut chunk).map_err(|_| Response::error(408, "Request Timeout"))?;
        if count == 0 {
            return Err(Response::error(400, "Bad Request"));
        }
        head.extend_from_slice(&chunk[..count]);
        if head.len() > MAX_HEAD {
            return Err(Response::error(431, "Request Header Fields Too Large"));
        }
        if started.elapsed() > HEAD_PATIENCE {
            return Err(Response::error(408, "Request Timeout"));
        }
    }
    parse_request_line(&head).ok_or_else(|| Response::error(400, "Bad Request"))
}

fn ends_head(head: &[u8]) -> bool {
    head.windows(4).any(|window| window == b"\r\n\r\n")
}

fn parse_request_line(head: &[u8]) -> Option<Request> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = str::from_utf8(line).ok()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let well_formed =
        words.next().is_none() && version.starts_with("HTTP/1.") && target.starts_with('/');
    let path = target.split('?').next()?;
    well_formed.then(|| Request { method: method.to_owned(), path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Request, u16> {
        read_request(&mut text.as_bytes()).map_err(|response| response.status)
    }

    #[test]
    fn a_request_line_is_taken_apart() {
        let request = read("GET /health?x=1 HTTP/1.0\r\nHost: a\r\n\r\n").unwrap();
        assert_eq!(request, Request { method: "GET".to_owned(), path: "/health".to_owned() });
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for text in [
            "",
            "\r\n\r\n",
            "GET\r\n\r\n",
            "GET / HTTP/1.1 more\r\n\r\n",
            "GET / FTP/1.1\r\n\r\n",
            "GET http://elsewhere/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nno end",
        ] {
            assert_eq!(read(text), Err(400), "{text:?}");
        }
    }

    #[test]
    fn an_endless_head_is_cut_off() {
        let text = format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(100_000));
        assert_eq!(read(&text), Err(431));
    }
}
