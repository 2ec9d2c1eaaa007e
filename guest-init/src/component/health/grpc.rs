//! The standard health check of gRPC, as a client: one call of `grpc.health.v1.Health/Check` without encryption.
//!
//! Of HTTP/2 (RFC 9113) it knows what one call needs. It reads no header of an answer: the status is in the message
//! itself, and a server that fails sends none.

use std::fmt;
use std::io::{self, Error, ErrorKind, Read, Write};

/// The preface of a client (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The path of the call.
const PATH: &str = "/grpc.health.v1.Health/Check";
/// The stream of the call, the first one of a client.
const STREAM: u32 = 1;
/// The default limit of a frame's payload (section 4.2).
const MAX_FRAME: u32 = 1 << 14;
/// How many frames an answer may take.
const MAX_FRAMES: usize = 64;
/// How long the message of an answer may be: it has one number.
const MAX_MESSAGE: usize = 64;
/// The prefix of a message in gRPC: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// The types of frames (section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// Their flags.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// `HealthCheckResponse.ServingStatus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServingStatus(u64);

impl ServingStatus {
    pub(super) const SERVING: Self = Self(1);
}

impl fmt::Display for ServingStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("UNKNOWN"),
            1 => f.write_str("SERVING"),
            2 => f.write_str("NOT_SERVING"),
            3 => f.write_str("SERVICE_UNKNOWN"),
            other => write!(f, "{other}"),
        }
    }
}

/// Asks for the status of a service; of the whole server where the name is empty.
///
/// # Errors
/// The connection's, and where the answer is something else.
pub(super) fn check(stream: &mut (impl Read + Write), service: &str) -> io::Result<ServingStatus> {
    let request = [
        PREFACE,
        &frame(SETTINGS, 0, 0, &[]),
        &frame(HEADERS, END_HEADERS, STREAM, &headers()),
        &frame(DATA, END_STREAM, STREAM, &message(service)),
    ];
    stream.write_all(&request.concat())?;
    let mut answer = Vec::new();
    for _ in 0..MAX_FRAMES {
        let is_last = take(stream, &mut answer)?;
        if let Some(status) = status(&answer)? {
            return Ok(status);
        }
        if is_last {
            return Err(odd("it answers the call without a status"));
        }
    }
    Err(odd("it does not answer the call"))
}

fn odd(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns the header of the call (RFC 7541): what its static table has by its number there, the rest as text.
fn headers() -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap_or(0)], text.as_bytes()].concat();
    // `:method: POST`, `:scheme: http`; then the names `:path`, `:authority` and `content-type`, and one of our own.
    [
        &[0x83, 0x86, 0x04],
        text(PATH).as_slice(),
        &[0x01],
        &text("localhost"),
        &[0x0f, 31 - 15],
        &text("application/grpc"),
        &[0x00],
        &text("te"),
        &text("trailers"),
    ]
    .concat()
}

/// Returns a `HealthCheckRequest` as a call carries it; its first field is the service.
fn message(service: &str) -> Vec<u8> {
    let length = u8::try_from(service.len()).unwrap_or(u8::MAX);
    let field = [&[0x0a, length], service.as_bytes()].concat();
    let field = if service.is_empty() { [].as_slice() } else { &field };
    let length = u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0], length.as_slice(), field].concat()
}

/// Reads one frame, answers it where it asks for that, and adds what it has of the message. Returns whether the call has
/// ended with it.
fn take(stream: &mut (impl Read + Write), answer: &mut Vec<u8>) -> io::Result<bool> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let [a, b, c, kind, flags, id @ ..] = head;
    let length = u32::from_be_bytes([0, a, b, c]);
    if length > MAX_FRAME {
        return Err(odd("it does not speak gRPC"));
    }
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload)?;
    // The first bit means nothing.
    let is_calls = u32::from_be_bytes(id) << 1 == STREAM << 1;
    match kind {
        SETTINGS if flags & ACK == 0 => stream.write_all(&frame(SETTINGS, ACK, 0, &[]))?,
        PING if flags & ACK == 0 => stream.write_all(&frame(PING, ACK, 0, &payload))?,
        GOAWAY => return Err(odd("it hangs up")),
        RST_STREAM if is_calls => return Err(odd("it refuses the call")),
        DATA if is_calls => answer.extend_from_slice(unpadded(&payload, flags)?),
        _ => {}
    }
    if answer.len() > PREFIX + MAX_MESSAGE {
        return Err(odd("its answer is too long"));
    }
    Ok(is_calls && matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0)
}

fn unpadded(payload: &[u8], flags: u8) -> io::Result<&[u8]> {
    if flags & PADDED == 0 {
        return Ok(payload);
    }
    let data = payload
        .split_first()
        .and_then(|(padding, rest)| rest.get(..rest.len().checked_sub(usize::from(*padding))?));
    data.ok_or_else(|| odd("a frame has more padding than bytes"))
}

/// Returns the status in an answer, once that is complete. Of the message only its first field is known, which a server
/// leaves out where it is zero.
fn status(answer: &[u8]) -> io::Result<Option<ServingStatus>> {
    let Some((&[compressed, a, b, c, d], rest)) = answer.split_first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 || length > MAX_MESSAGE {
        return Err(odd("its answer is no status"));
    }
    match rest.get(..length) {
        None => Ok(None),
        Some([]) => Ok(Some(ServingStatus(0))),
        Some([0x08, status]) if *status < 0x80 => Ok(Some(ServingStatus((*status).into()))),
        Some(_) => Err(odd("its answer is no status")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives what a server sends; what the client sends is kept.
    #[derive(Default)]
    struct Server {
        sends: io::Cursor<Vec<u8>>,
        got: Vec<u8>,
    }

    impl Read for Server {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.sends.read(to)
        }
    }

    impl Write for Server {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.got.write(data)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answered(frames: &[Vec<u8>]) -> (Result<ServingStatus, String>, Vec<u8>) {
        let mut server = Server { sends: io::Cursor::new(frames.concat()), ..Server::default() };
        let status = check(&mut server, "a.B").map_err(|error| error.to_string());
        (status, server.got)
    }

    fn data(flags: u8, payload: &[u8]) -> Vec<u8> {
        frame(DATA, flags, 1, payload)
    }

    const SERVES: [u8; 7] = [0, 0, 0, 0, 2, 8, 1];

    #[test]
    fn a_status_is_read_whatever_comes_around_it_and_in_which_pieces() {
        let around = [
            frame(SETTINGS, 0, 0, &[0; 6]),
            frame(SETTINGS, ACK, 0, &[]),
            frame(PING, 0, 0, b"12345678"),
            frame(8, 0, 0, &[0, 0, 1, 0]),
            frame(HEADERS, END_HEADERS, 1, &[0x88]),
            data(0, &SERVES[..3]),
            data(PADDED, &[&[2], &SERVES[3..], b"xx"].concat()),
        ];
        let (status, got) = answered(&around);
        assert_eq!(status, Ok(ServingStatus::SERVING));
        assert!(got.starts_with(PREFACE));
        assert!(got.windows(10).any(|it| it == [0, 0, 0, 0, 5, 0x0a, 3, b'a', b'.', b'B']));
        assert!(got.ends_with(&frame(PING, ACK, 0, b"12345678")), "a ping is answered");
        let not_serving = answered(&[data(0, &[0, 0, 0, 0, 2, 8, 2])]).0.unwrap();
        assert_eq!(not_serving.to_string(), "NOT_SERVING");
        assert_eq!(answered(&[data(0, &[0; 5])]).0.unwrap().to_string(), "UNKNOWN");
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x88]);
        for (frames, why) in [
            (vec![trailers], "it answers the call without a status"),
            (vec![frame(GOAWAY, 0, 0, &[0; 8])], "it hangs up"),
            (vec![frame(RST_STREAM, 0, 1, &[0; 4])], "it refuses the call"),
            (vec![b"HTTP/1.1 400 Bad Request\r\n".to_vec()], "it does not speak gRPC"),
            (vec![data(0, &[1, 0, 0, 0, 2, 8, 1])], "its answer is no status"),
            (vec![data(0, &[0, 0, 0, 1, 0])], "its answer is no status"),
            (vec![data(PADDED, &[9, 1])], "a frame has more padding than bytes"),
            (vec![data(0, &[0; 100])], "its answer is too long"),
            (vec![frame(8, 0, 0, &[0; 4]); 64], "it does not answer the call"),
            (vec![], "failed to fill whole buffer"),
        ] {
            assert_eq!(answered(&frames).0, Err(why.to_owned()));
        }
    }
}
