//! Health checks by gRPC: one unencrypted call, either of the standard `grpc.health.v1.Health/Check`
//! ([protocol](https://github.com/grpc/grpc/blob/master/doc/health-checking.md)) or of the health check of agents of
//! A3S.
//!
//! Implements only the parts of HTTP/2 ([RFC 9113](https://www.rfc-editor.org/rfc/rfc9113)) that one call needs. The
//! headers of the answer are ignored: the status is in the message, and a server that fails sends no message.

use std::io::{self, Error, ErrorKind, Read, Write};

use box_contract::plan::A3S_SERVICE;

/// The client's preface ([RFC 9113, section 3.4](https://www.rfc-editor.org/rfc/rfc9113#section-3.4)).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The stream of the call: the first one of a client.
const STREAM: u32 = 1;
/// The default limit of a frame's payload ([RFC 9113, section
/// 4.2](https://www.rfc-editor.org/rfc/rfc9113#section-4.2)).
const MAX_FRAME: u32 = 1 << 14;
/// The greatest number of frames of an answer.
const MAX_FRAMES: usize = 64;
/// The greatest length of an answer's message, in bytes. The message consists of a number, and for A3S also of a text
/// and details. HTTP/2's default window lets a server send twice as much.
const MAX_MESSAGE: usize = 32 << 10;
/// The length of gRPC's message prefix: a flag for compression, and the message's length
/// ([format](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md)).
const PREFIX: usize = 5;

/// The types of frames ([RFC 9113, section 6](https://www.rfc-editor.org/rfc/rfc9113#section-6)).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// The flags of frames.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// A call for a server's status. The first field of the answer is a number, and 1 means healthy.
#[derive(Debug)]
pub(super) struct Check {
    path: String,
    /// The first field of the request, which names the service. It is omitted if it is empty.
    service: String,
    /// The names of the statuses, by number.
    names: [&'static str; 4],
}

impl Check {
    /// The status of a healthy server.
    const WELL: u64 = 1;

    /// Returns the standard check of a service, or of the whole server if `service` is empty.
    pub(super) fn standard(service: &str) -> Self {
        Self {
            path: "/grpc.health.v1.Health/Check".to_owned(),
            service: service.to_owned(),
            names: ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"],
        }
    }

    /// Returns the check of an agent of A3S.
    pub(super) fn a3s() -> Self {
        Self {
            path: format!("/{A3S_SERVICE}/HealthCheck"),
            service: String::new(),
            names: ["UNKNOWN", "HEALTHY", "DEGRADED", "UNHEALTHY"],
        }
    }

    /// Makes the check. Returns `None` if the server is healthy, or else the name or number of its status.
    ///
    /// # Errors
    /// The error of the connection, or that the answer is malformed.
    pub(super) fn make(&self, stream: &mut (impl Read + Write)) -> io::Result<Option<String>> {
        let status = self.ask(stream)?;
        let name = usize::try_from(status).ok().and_then(|it| self.names.get(it));
        let name = name.map_or_else(|| status.to_string(), |&it| it.to_owned());
        Ok((status != Self::WELL).then_some(name))
    }

    /// Makes the call and returns the number in the answer.
    fn ask(&self, stream: &mut (impl Read + Write)) -> io::Result<u64> {
        let request = [
            PREFACE,
            &frame(SETTINGS, 0, 0, &[]),
            &frame(HEADERS, END_HEADERS, STREAM, &headers(&self.path)),
            &frame(DATA, END_STREAM, STREAM, &message(&self.service)),
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
}

fn odd(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns the header block of the call ([RFC 7541](https://www.rfc-editor.org/rfc/rfc7541)). Fields of the static
/// table are referenced by their index, the others are literals.
fn headers(path: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap_or(0)], text.as_bytes()].concat();
    // The bytes stand for `:method: POST`, `:scheme: http`, the names `:path`, `:authority` and `content-type`, and a
    // literal name.
    [
        &[0x83, 0x86, 0x04],
        text(path).as_slice(),
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

/// Returns a `HealthCheckRequest` with gRPC's prefix. The request's first field is the service.
fn message(service: &str) -> Vec<u8> {
    let length = u8::try_from(service.len()).unwrap_or(u8::MAX);
    let field = [&[0x0a, length], service.as_bytes()].concat();
    let field = if service.is_empty() { [].as_slice() } else { &field };
    let length = u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0], length.as_slice(), field].concat()
}

/// Reads one frame, acknowledges it if its type requires that, and appends its data to `answer`. Returns whether the
/// frame ends the call.
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
    // The first bit is reserved.
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

/// Returns the number in an answer, or `None` if the answer is incomplete.
fn status(answer: &[u8]) -> io::Result<Option<u64>> {
    let Some((&[compressed, a, b, c, d], rest)) = answer.split_first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 || length > MAX_MESSAGE {
        return Err(odd("its answer is no status"));
    }
    let Some(message) = rest.get(..length) else { return Ok(None) };
    first_field(message).map(Some).ok_or_else(|| odd("its answer is no status"))
}

/// Returns the integer in field 1 of a [protobuf](https://protobuf.dev/programming-guides/encoding/) message, or zero
/// if the field is omitted. Returns `None` if the message is malformed.
fn first_field(mut message: &[u8]) -> Option<u64> {
    let mut first = 0;
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let skipped = match tag & 7 {
            0 => {
                let value = varint(&mut message)?;
                first = if tag >> 3 == 1 { value } else { first };
                0
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message)?).ok()?,
            5 => 4,
            _ => return None,
        };
        message = message.get(skipped..)?;
    }
    Some(first)
}

/// Removes a varint from the start of a message and returns it.
fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Sends `sends` to the client, and records the client's bytes in `got`.
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

    fn answered(frames: &[Vec<u8>]) -> (Result<Option<String>, String>, Vec<u8>) {
        let mut server = Server { sends: io::Cursor::new(frames.concat()), ..Server::default() };
        let status = Check::standard("a.B").make(&mut server).map_err(|error| error.to_string());
        (status, server.got)
    }

    fn named(status: &str) -> Result<Option<String>, String> {
        Ok(Some(status.to_owned()))
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
        assert_eq!(status, Ok(None));
        assert!(got.starts_with(PREFACE));
        assert!(got.windows(10).any(|it| it == [0, 0, 0, 0, 5, 0x0a, 3, b'a', b'.', b'B']));
        assert!(got.ends_with(&frame(PING, ACK, 0, b"12345678")), "a ping is answered");
        assert_eq!(answered(&[data(0, &[0, 0, 0, 0, 2, 8, 2])]).0, named("NOT_SERVING"));
        assert_eq!(answered(&[data(0, &[0; 5])]).0, named("UNKNOWN"));
        assert_eq!(answered(&[data(0, &[0, 0, 0, 0, 3, 8, 0x80, 4])]).0, named("512"));
    }

    #[test]
    fn an_agent_of_a3s_says_more_than_its_status() {
        let ask = |message: &[u8]| {
            let length = u8::try_from(message.len()).unwrap();
            let answer = data(0, &[&[0, 0, 0, 0, length], message].concat());
            let mut server = Server { sends: io::Cursor::new(answer), ..Server::default() };
            let status = Check::a3s().make(&mut server).map_err(|error| error.to_string());
            (status, String::from_utf8_lossy(&server.got).into_owned())
        };
        let (status, got) = ask(b"\x12\x02ok\x08\x01\x1a\x04\x0a\x00\x12\x00");
        assert_eq!(status, Ok(None), "in any order");
        let numbers = b"\x29\x08\x02\x08\x02\x08\x02\x08\x02\x08\x01\x35\x08\x02\x08\x02";
        assert_eq!(ask(numbers).0, Ok(None), "fields that are not known are skipped");
        assert!(got.contains("/a3s.code.agent.v1.CodeAgentService/HealthCheck"), "{got}");
        assert_eq!(ask(b"\x08\x02\x12\x04slow").0, named("DEGRADED"));
        let wrong = Err("its answer is no status".to_owned());
        for message in [b"\x12\x09ok".as_slice(), b"\x08", b"\x0d\x01\x00\x00", &[0xff; 12]] {
            assert_eq!(ask(message).0, wrong, "{message:?}");
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x88]);
        for (frames, reason) in [
            (vec![trailers], "it answers the call without a status"),
            (vec![frame(GOAWAY, 0, 0, &[0; 8])], "it hangs up"),
            (vec![frame(RST_STREAM, 0, 1, &[0; 4])], "it refuses the call"),
            (vec![b"HTTP/1.1 400 Bad Request\r\n".to_vec()], "it does not speak gRPC"),
            (vec![data(0, &[1, 0, 0, 0, 2, 8, 1])], "its answer is no status"),
            (vec![data(0, &[0, 0, 1, 0, 0])], "its answer is no status"),
            (vec![data(PADDED, &[9, 1])], "a frame has more padding than bytes"),
            (
                vec![
                    data(0, &[0, 0, 0, 0x80, 0]),
                    data(0, &[1; 16000]),
                    data(0, &[1; 16384]),
                    data(0, &[1; 16384]),
                ],
                "its answer is too long",
            ),
            (vec![frame(8, 0, 0, &[0; 4]); 64], "it does not answer the call"),
            (vec![], "failed to fill whole buffer"),
        ] {
            assert_eq!(answered(&frames).0, Err(reason.to_owned()));
        }
    }

    proptest! {
        /// Fails if an answer causes a panic: any program in the box can send it.
        #[test]
        fn every_answer_has_an_end(
            frames in vec((0_u8..10, any::<u8>(), 0_u32..3, vec(any::<u8>(), 0..40)), 0..8),
            start in 0..=5_usize,
            message in vec(any::<u8>(), 0..40),
        ) {
            let frames: Vec<_> = frames.iter().map(|(kind, flags, id, it)| frame(*kind, *flags, *id, it)).collect();
            drop(answered(&[frames, vec![data(0, &[&SERVES[..start], &message].concat())]].concat()));
            let _ = first_field(&message);
        }
    }
}
