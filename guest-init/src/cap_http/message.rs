//! The texts of requests and answers: in files, and on a connection
//! ([RFC 9112](https://www.rfc-editor.org/rfc/rfc9112)).
//!
//! ```text
//! POST /messages?beta=true          200
//! content-type: application/json    content-type: application/json
//!
//! the body of the request           the body of the answer, without the coding of the transfer
//! ```

use std::io::{self, BufRead, ErrorKind, Read as _, Write};
use std::net::SocketAddr;

/// The greatest length of a head, in bytes.
pub const MAX_HEAD: usize = 64 << 10;
/// The greatest length of the line before a chunk, in bytes.
const MAX_CHUNK_LINE: u64 = 1 << 10;
/// The headers of a request about the connection, which this process sets itself.
const OF_CONNECTION: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// The headers of an answer about the connection, which are not in its file.
const OF_TRANSFER: [&str; 4] = ["connection", "keep-alive", "trailer", "transfer-encoding"];
/// The methods whose requests have a length even without a body
/// ([RFC 9110, section 8.6](https://www.rfc-editor.org/rfc/rfc9110#section-8.6)).
const WITH_BODY: [&str; 3] = ["PATCH", "POST", "PUT"];

const NO_REQUEST: &str = "its first line is not METHOD PATH, such as: GET /models";
const NO_HEADER: &str =
    "a line after the first is not NAME: VALUE; an empty line precedes the body";
const LONG: &str = "its lines before the body have more than 64 KiB";

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    method: String,
    path: String,
    /// The header lines, as HTTP sends them.
    headers: Vec<u8>,
    /// The length of the head in the file. The body follows.
    pub length: usize,
}

impl Request {
    /// Parses the beginning of a file: up to the first empty line, or everything if `is_all` and there is none.
    ///
    /// # Errors
    /// The fault, as a text for the author of the file.
    pub fn parse(start: &[u8], is_all: bool) -> Result<Self, &'static str> {
        let length = match head_length(start) {
            Some(length) => length,
            None if is_all => start.len(),
            None => return Err(LONG),
        };
        let mut lines = lines(&start[..length]);
        let (method, path) = lines.next().and_then(request_line).ok_or(NO_REQUEST)?;
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = header(line).ok_or(NO_HEADER)?;
            if !is_listed(name, &OF_CONNECTION) {
                headers.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
            }
        }
        Ok(Self { method: method.to_owned(), path: path.to_owned(), headers, length })
    }

    /// Returns whether the answer has no body, whatever its head is.
    pub fn asks_for_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Returns the head as HTTP sends it, before a body of `body` bytes.
    pub fn encoded(&self, to: SocketAddr, body: u64) -> Vec<u8> {
        let Self { method, path, headers, length: _ } = self;
        let line = format!("{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n");
        let has_length = body > 0 || WITH_BODY.contains(&method.as_str());
        let length = if has_length { format!("content-length: {body}\r\n") } else { String::new() };
        [line.as_bytes(), headers, length.as_bytes(), b"\r\n"].concat()
    }
}

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code, from 100.
    pub status: u16,
    /// The head as the file has it.
    pub text: Vec<u8>,
    /// How the end of the body is found.
    pub framing: Framing,
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    Empty,
    /// The body has so many bytes.
    Length(u64),
    /// The body is in chunks, each after its length.
    Chunked,
    /// The end of the connection is the end of the body.
    Rest,
}

impl Answer {
    /// Parses a head. `asks_for_head` is that of the request. Returns `None` for a malformed head.
    pub fn parse(head: &[u8], asks_for_head: bool) -> Option<Self> {
        let mut lines = lines(head);
        let status = status(lines.next()?)?;
        let mut text = format!("{status}\n").into_bytes();
        let (mut is_chunked, mut length) = (false, None);
        for line in lines {
            let (name, value) = header(line)?;
            if name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = value.eq_ignore_ascii_case(b"chunked");
                is_chunked.then_some(())?;
            } else if name.eq_ignore_ascii_case("content-length") {
                length = Some(decimal(value)?);
            }
            if !is_listed(name, &OF_TRANSFER) {
                text.extend([name.as_bytes(), b": ", value, b"\n"].concat());
            }
        }
        text.push(b'\n');
        let framing = match length {
            _ if asks_for_head || matches!(status, 100..200 | 204 | 304) => Framing::Empty,
            _ if is_chunked => Framing::Chunked,
            Some(length) => Framing::Length(length),
            None => Framing::Rest,
        };
        Some(Self { status, text, framing })
    }

    /// Returns whether another answer follows.
    pub const fn is_interim(&self) -> bool {
        self.status < 200
    }
}

/// The reason why a body was not copied.
#[derive(Debug)]
pub enum CopyFault {
    /// The body could not be read.
    Source(io::Error),
    /// The copy could not be written.
    Target(io::Error),
}

/// Reads a head, including its empty line.
///
/// # Errors
/// The error of the connection. `InvalidData` if the head is too long or has no end.
pub fn read_head(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    loop {
        let line = read_line(from, (MAX_HEAD - head.len()) as u64)?;
        head.extend_from_slice(&line);
        if is_empty_line(&line) {
            return Ok(head);
        }
    }
}

/// Copies a body.
///
/// # Errors
/// [`CopyFault`]. An incomplete body is a fault of its source.
pub fn copy_body(
    from: &mut impl BufRead,
    framing: Framing,
    to: &mut impl Write,
) -> Result<(), CopyFault> {
    match framing {
        Framing::Empty => Ok(()),
        Framing::Length(length) => copy(from, length, to),
        Framing::Chunked => copy_chunks(from, to),
        Framing::Rest => {
            while copy_some(from, u64::MAX, to)? > 0 {}
            Ok(())
        }
    }
}

/// Copies the chunks of a body
/// ([RFC 9112, section 7.1](https://www.rfc-editor.org/rfc/rfc9112#section-7.1)).
fn copy_chunks(from: &mut impl BufRead, to: &mut impl Write) -> Result<(), CopyFault> {
    loop {
        let line = read_line(from, MAX_CHUNK_LINE).map_err(CopyFault::Source)?;
        match chunk_size(&line).ok_or_else(malformed).map_err(CopyFault::Source)? {
            // The trailer is like a head without its first line.
            0 => return read_head(from).map(drop).map_err(CopyFault::Source),
            size => copy(from, size, to)?,
        }
        let end = read_line(from, 2).map_err(CopyFault::Source)?;
        if !is_empty_line(&end) {
            return Err(CopyFault::Source(malformed()));
        }
    }
}

/// Copies `left` bytes.
fn copy(from: &mut impl BufRead, mut left: u64, to: &mut impl Write) -> Result<(), CopyFault> {
    while left > 0 {
        match copy_some(from, left, to)? {
            0 => return Err(CopyFault::Source(ErrorKind::UnexpectedEof.into())),
            length => left -= length,
        }
    }
    Ok(())
}

/// Copies the available bytes, at most `most`. Returns their number, which is 0 at the end.
fn copy_some(from: &mut impl BufRead, most: u64, to: &mut impl Write) -> Result<u64, CopyFault> {
    let available = from.fill_buf().map_err(CopyFault::Source)?;
    let length = available.len().min(usize::try_from(most).unwrap_or(usize::MAX));
    to.write_all(&available[..length]).map_err(CopyFault::Target)?;
    from.consume(length);
    Ok(length as u64)
}

/// Reads a line of at most `most` bytes, including its end.
fn read_line(from: &mut impl BufRead, most: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.by_ref().take(most).read_until(b'\n', &mut line)?;
    if line.ends_with(b"\n") { Ok(line) } else { Err(malformed()) }
}

fn malformed() -> io::Error {
    ErrorKind::InvalidData.into()
}

/// Returns the length of a head, including its empty line. `None` without an empty line.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    bytes.split_inclusive(|it| *it == b'\n').find_map(|line| {
        length += line.len();
        is_empty_line(line).then_some(length)
    })
}

/// Returns the lines of a head, without their ends and without the empty line. The first line can be empty.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = head.split(|it| *it == b'\n').map(|it| it.strip_suffix(b"\r").unwrap_or(it));
    lines.enumerate().filter(|(at, line)| *at == 0 || !line.is_empty()).map(|(_, line)| line)
}

fn is_empty_line(line: &[u8]) -> bool {
    matches!(line, b"\n" | b"\r\n")
}

fn is_listed(name: &str, list: &[&str]) -> bool {
    list.iter().any(|it| name.eq_ignore_ascii_case(it))
}

/// Parses `METHOD PATH`. A version after it, such as `HTTP/1.1`, is ignored.
fn request_line(line: &[u8]) -> Option<(&str, &str)> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let is_version = words.next().is_none_or(|it| it.starts_with("HTTP/"));
    let is_path = path.starts_with('/') && path.bytes().all(|it| it.is_ascii_graphic());
    let is_whole = is_token(method) && is_path && is_version && words.next().is_none();
    is_whole.then_some((method, path))
}

/// Parses `NAME: VALUE`.
fn header(line: &[u8]) -> Option<(&str, &[u8])> {
    let at = line.iter().position(|it| *it == b':')?;
    let name = std::str::from_utf8(&line[..at]).ok()?;
    let value = line[at + 1..].trim_ascii();
    let is_text = value.iter().all(|it| *it == b'\t' || !it.is_ascii_control());
    (is_token(name) && is_text).then_some((name, value))
}

/// Returns whether a text can be a method or the name of a header
/// ([RFC 9110, section 5.6.2](https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2)).
fn is_token(text: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
    !text.is_empty() && text.bytes().all(is_part)
}

/// Parses the status of a status line, such as `HTTP/1.1 200 OK`.
fn status(line: &[u8]) -> Option<u16> {
    let rest = line.strip_prefix(b"HTTP/1.")?;
    let (digits, rest) = rest.get(2..)?.split_at_checked(3)?;
    let is_end = rest.is_empty() || rest.starts_with(b" ");
    let status = decimal(digits).filter(|it| *it >= 100 && is_end)?;
    u16::try_from(status).ok()
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// Parses the line before a chunk: its size as a hexadecimal number, and ignored extensions.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|it| *it == b';').next()?.trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    fn sent(file: &[u8]) -> Result<String, &'static str> {
        let request = Request::parse(file, true)?;
        let body = &file[request.length..];
        let head = request.encoded(([198, 18, 0, 1], 8101).into(), body.len() as u64);
        Ok(String::from_utf8([head.as_slice(), body].concat()).unwrap())
    }

    #[test]
    fn a_file_becomes_a_request() {
        let expected = "POST /messages?a=b HTTP/1.1\r\nhost: 198.18.0.1:8101\r\nconnection: close\r\n\
                        content-type: text/plain\r\ncontent-length: 6\r\n\r\na\n\nb\r\n";
        for file in [
            "POST /messages?a=b\ncontent-type: text/plain\n\na\n\nb\r\n",
            "POST /messages?a=b HTTP/1.1\r\nContent-Length: 700\r\nHost: x\r\ncontent-type:text/plain \r\n\r\na\n\nb\r\n",
        ] {
            assert_eq!(sent(file.as_bytes()).as_deref(), Ok(expected));
        }
        for file in ["GET /echo", "GET /echo\n", "GET /echo\n\n"] {
            let all = sent(file.as_bytes()).unwrap();
            assert!(all.ends_with("connection: close\r\n\r\n"), "{all}");
        }
        assert!(sent(b"POST /empty\n").unwrap().contains("content-length: 0\r\n"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for file in ["", "\n", "GET", "GET echo", "GET /a b", "G\0T /a", "GET /\u{e9}", "GET  /a"] {
            assert_eq!(sent(file.as_bytes()), Err(NO_REQUEST), "{file:?}");
        }
        for line in ["no colon", ": v", "a b: v", " folded: v", "a: \u{7}", "a: b\rc: d"] {
            let file = format!("GET /\n{line}\n\n");
            assert_eq!(sent(file.as_bytes()), Err(NO_HEADER), "{line:?}");
        }
        assert_eq!(Request::parse(b"GET /\na: b\n", false), Err(LONG));
    }

    fn parse(head: &str) -> Option<(String, Framing)> {
        let answer = Answer::parse(head.as_bytes(), false)?;
        Some((String::from_utf8(answer.text).unwrap(), answer.framing))
    }

    #[test]
    fn an_answer_becomes_a_file() {
        let some = |text: &str, framing| Some((text.to_owned(), framing));
        for (head, expected) in [
            ("HTTP/1.1 200 OK\r\nA: b\r\n\r\n", some("200\nA: b\n\n", Framing::Rest)),
            ("HTTP/1.1 204\r\nconnection: close\r\n\r\n", some("204\n\n", Framing::Empty)),
            (
                "HTTP/1.1 403 No\r\ncontent-length: 12\r\n\r\n",
                some("403\ncontent-length: 12\n\n", Framing::Length(12)),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\ncontent-length: 1\r\n\r\n",
                some("200\ncontent-length: 1\n\n", Framing::Chunked),
            ),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", None),
            ("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", None),
            ("HTTP/2 200 OK\r\n\r\n", None),
            ("HTTP/1.1 20\r\n\r\n", None),
            ("HTTP/1.1 2000\r\n\r\n", None),
            ("HTTP/1.1 099 No\r\n\r\n", None),
            ("", None),
        ] {
            assert_eq!(parse(head), expected, "{head:?}");
        }
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
        assert_eq!(Answer::parse(head, true).unwrap().framing, Framing::Empty);
        assert!(Answer::parse(b"HTTP/1.1 103 Early Hints\r\n\r\n", false).unwrap().is_interim());
    }

    fn body(bytes: &[u8], framing: Framing) -> Result<Vec<u8>, ErrorKind> {
        let mut all = Vec::new();
        match copy_body(&mut BufReader::with_capacity(3, bytes), framing, &mut all) {
            Ok(()) => Ok(all),
            Err(CopyFault::Source(error) | CopyFault::Target(error)) => Err(error.kind()),
        }
    }

    #[test]
    fn a_body_ends_where_its_head_says() {
        assert_eq!(body(b"abc", Framing::Empty), Ok(Vec::new()));
        assert_eq!(body(b"abcdef", Framing::Length(4)), Ok(b"abcd".to_vec()));
        assert_eq!(body(b"abc", Framing::Length(4)), Err(ErrorKind::UnexpectedEof));
        assert_eq!(body(b"abc", Framing::Rest), Ok(b"abc".to_vec()));
        let chunks = b"3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\nrest";
        assert_eq!(body(chunks, Framing::Chunked), Ok(b"abc0123456789".to_vec()));
        for wrong in ["3\r\nabcd\r\n0\r\n\r\n", "x\r\n", "-1\r\n", "", "3\r\nabc\r\n0\r\n"] {
            let found = body(wrong.as_bytes(), Framing::Chunked);
            assert_eq!(found, Err(ErrorKind::InvalidData), "{wrong:?}");
        }
        let short = body(b"3\r\nab", Framing::Chunked);
        assert_eq!(short, Err(ErrorKind::UnexpectedEof));
        assert_eq!(
            read_head(&mut &b"HTTP/1.1 200\r\na: b"[..]).unwrap_err().kind(),
            ErrorKind::InvalidData
        );
        let endless = vec![b'a'; 2 * MAX_HEAD];
        assert_eq!(read_head(&mut endless.as_slice()).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn no_bytes_break_a_parser(bytes in prop::collection::vec(any::<u8>(), 0..200), is_all: bool) {
            if let Ok(request) = Request::parse(&bytes, is_all) {
                prop_assert!(request.length <= bytes.len());
            }
            drop(Answer::parse(&bytes, is_all));
            for framing in [Framing::Length(9), Framing::Chunked, Framing::Rest] {
                prop_assert!(body(&bytes, framing).map_or(0, |it| it.len()) <= bytes.len());
            }
        }

        /// However a body is cut into chunks, its bytes arrive.
        #[test]
        fn chunks_do_not_matter(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8)) {
            let mut coded = Vec::new();
            for chunk in &chunks {
                coded.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                coded.extend(chunk);
                coded.extend(b"\r\n");
            }
            coded.extend(b"0\r\n\r\n");
            prop_assert_eq!(body(&coded, Framing::Chunked), Ok(chunks.concat()));
        }

        /// Nothing in a file can add a line to the request but a header.
        #[test]
        fn a_request_has_one_head(lines in prop::collection::vec("[a-c:\r \u{1}]{0,6}", 0..5)) {
            let file = format!("GET /\n{}", lines.join("\n"));
            if let Ok(request) = Request::parse(file.as_bytes(), true) {
                let head = request.encoded(([127, 0, 0, 1], 80).into(), 0);
                let text = String::from_utf8(head).unwrap();
                prop_assert!(text.ends_with("\r\n\r\n"));
                prop_assert_eq!(text.find("\r\n\r\n"), Some(text.len() - 4));
                prop_assert!(!text.replace("\r\n", "").contains(['\r', '\n']));
            }
        }
    }
}
