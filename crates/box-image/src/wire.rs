//! The control channel between `boxlaunch` and `box-init`.
//!
//! One vsock connection, made by init before any workload runs. Each frame is
//!
//! ```text
//! length: u32 little-endian   of everything after it, 1 to MAX_FRAME
//! kind:   u8                  which message
//! body:   JSON, but for Output: source u8, stream u8, then the bytes as they are
//! ```
//!
//! The guest is hostile from the moment that it runs: a frame that is too long, of an unknown
//! kind or malformed is an error, after which the reader hangs up. Guest → host frames carry data
//! only, never a path or a command.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ComponentName;

/// The version of this protocol; a host refuses an init of another.
pub const PROTOCOL: u32 = 1;
/// The text in box-init by which `boxbuild` knows it from other programs: the versions of this
/// protocol and of the format ([`FORMAT_EPOCH`](crate::manifest::FORMAT_EPOCH)) that it is for.
pub const INIT_MARK: &str = "boxbuild box-init for protocol 1 and format epoch 2";
/// The greatest length of a frame after its length field, in bytes.
pub const MAX_FRAME: usize = 64 * 1024;
/// The greatest number of bytes that one [`GuestMessage::Output`] carries.
pub const MAX_OUTPUT: usize = 32 * 1024;
/// The `id` under which the agent's own end is reported; commands have ids from 1.
pub const AGENT_ID: u32 = 0;

/// Declares the messages of one direction: the kind of each one's frame, and its body.
macro_rules! messages {
    (
        $(#[$about:meta])*
        pub enum $enum:ident { $($(#[$meaning:meta])* $kind:literal => $message:ident($body:ty),)+ }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $enum {
            $($(#[$meaning])* $message($body),)+
        }

        impl $enum {
            /// Writes the message as one frame.
            ///
            /// # Errors
            /// The writer's own, or `InvalidInput` where the message does not fit a frame.
            pub fn write(&self, writer: &mut impl Write) -> io::Result<()> {
                match self {
                    $(Self::$message(body) => write_frame(writer, $kind, &body.encode()?),)+
                }
            }

            /// Reads one frame; returns `None` at the end of the stream.
            ///
            /// # Errors
            /// The reader's own, `UnexpectedEof` in the middle of a frame, `InvalidData` for a
            /// frame of any other kind.
            pub fn read(reader: &mut impl Read) -> io::Result<Option<Self>> {
                let Some((kind, body)) = read_frame(reader)? else { return Ok(None) };
                Ok(Some(match kind {
                    $($kind => Self::$message(Body::decode(body)?),)+
                    other => return Err(invalid(&format!("a frame of the unknown kind {other}"))),
                }))
            }
        }
    };
}

messages! {
    /// The messages from init to the launcher.
    pub enum GuestMessage {
        /// The first frame of a connection, by which init names its protocol.
        1 => Hello(Hello),
        /// The agent's health check has passed.
        2 => Ready(Timing),
        /// Bytes that a program wrote.
        3 => Output(Output),
        /// A program has ended.
        4 => Exited(Exited),
        /// The start, or a request, failed at a named step.
        5 => Failed(Failed),
    }
}

/// Proves that init is the init of this boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The nonce that the launcher gave to this boot, as text.
    pub nonce: String,
}

/// When things happened in the guest, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// The virtual CPU started → init's first instruction, by the guest's time stamp counter,
    /// which starts at zero.
    pub kernel_ns: u64,
    /// Init's first instruction → the agent's program is executed.
    pub init_ns: u64,
    /// → the health check has passed.
    pub ready_ns: u64,
    /// → this message is sent.
    pub sent_ns: u64,
}

/// Bytes that a program wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Whose: [`AGENT_ID`] or the id of a command.
    pub id: u8,
    /// Where it wrote them.
    pub stream: Stream,
    /// At most [`MAX_OUTPUT`] bytes.
    pub data: Vec<u8>,
}

/// A standard stream of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// File descriptor 1 of the program.
    Stdout,
    /// File descriptor 2 of the program.
    Stderr,
}

/// The end of a program, by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exited {
    /// [`AGENT_ID`] or the id of a command.
    pub id: u32,
    /// The exit status, or 128 + the signal's number; 126 where the program could not be
    /// executed and 127 where it was not found.
    pub status: u8,
    /// Whether the kernel's out-of-memory killer ended something in the component so far.
    pub oom_killed: bool,
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// The step that init was at, such as `mount the rootfs`.
    pub step: String,
    /// The error and its causes, for people.
    pub message: String,
}

messages! {
    /// The requests from the launcher to init.
    pub enum HostMessage {
        /// Run a command in a component.
        65 => Exec(Exec),
        /// Send a signal to the agent or to a command.
        66 => Signal(Signal),
        /// End everything and power off.
        67 => Shutdown(Shutdown),
    }
}

/// A command to run in a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// From 1; [`Output`] and [`Exited`] name it.
    pub id: u8,
    /// The component in whose namespaces and limits it runs.
    pub component: ComponentName,
    /// The program and its arguments. The environment, user and working directory are the
    /// component's.
    pub argv: Vec<String>,
}

/// A signal for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// [`AGENT_ID`] or the id of a command.
    pub id: u32,
    /// The signal's number on Linux.
    pub signal: i32,
}

/// The order to end all programs and power off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shutdown {
    /// Milliseconds between SIGTERM and SIGKILL.
    pub grace_ms: u32,
}

/// The body of a frame, after its kind.
trait Body: Sized {
    fn encode(&self) -> io::Result<Vec<u8>>;
    fn decode(body: Vec<u8>) -> io::Result<Self>;
}

impl<T: Serialize + DeserializeOwned> Body for T {
    fn encode(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    fn decode(body: Vec<u8>) -> io::Result<Self> {
        // Not as serde_json converts it: JSON that ends early is not the end of the stream.
        serde_json::from_slice(&body).map_err(|error| invalid(&error.to_string()))
    }
}

impl Body for Output {
    fn encode(&self) -> io::Result<Vec<u8>> {
        let stream = match self.stream {
            Stream::Stdout => 1,
            Stream::Stderr => 2,
        };
        Ok([&[self.id, stream], self.data.as_slice()].concat())
    }

    fn decode(mut body: Vec<u8>) -> io::Result<Self> {
        let &[id, stream, ..] = body.as_slice() else {
            return Err(invalid("an output frame without its source"));
        };
        let stream = match stream {
            1 => Stream::Stdout,
            2 => Stream::Stderr,
            _ => return Err(invalid("an output frame of an unknown stream")),
        };
        body.drain(..2);
        Ok(Self { id, stream, data: body })
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Writes a frame with one call, so that a packet carries it whole.
fn write_frame(writer: &mut impl Write, kind: u8, body: &[u8]) -> io::Result<()> {
    let length = body.len() + 1;
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "the message is too long");
    if length > MAX_FRAME {
        return Err(too_long());
    }
    let prefix = u32::try_from(length).map_err(|_| too_long())?.to_le_bytes();
    writer.write_all(&[prefix.as_slice(), &[kind], body].concat())
}

fn read_frame(reader: &mut impl Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let Some(prefix) = read_prefix(reader)? else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(prefix)).unwrap_or(usize::MAX);
    if length == 0 || length > MAX_FRAME {
        return Err(invalid(&format!("a frame of {length} bytes")));
    }
    let mut frame = vec![0; length];
    reader.read_exact(&mut frame)?;
    Ok(Some((frame[0], frame.split_off(1))))
}

/// Reads the length field, or nothing where the stream ends before its first byte.
fn read_prefix(reader: &mut impl Read) -> io::Result<Option<[u8; 4]>> {
    let mut prefix = Vec::new();
    reader.take(4).read_to_end(&mut prefix)?;
    match <[u8; 4]>::try_from(prefix) {
        Ok(prefix) => Ok(Some(prefix)),
        Err(prefix) if prefix.is_empty() => Ok(None),
        Err(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(message: &GuestMessage) -> GuestMessage {
        let mut bytes = Vec::new();
        message.write(&mut bytes).unwrap();
        GuestMessage::read(&mut bytes.as_slice()).unwrap().unwrap()
    }

    #[test]
    fn the_mark_of_box_init_names_the_versions() {
        let epoch = crate::manifest::FORMAT_EPOCH;
        let mark = format!("boxbuild box-init for protocol {PROTOCOL} and format epoch {epoch}");
        assert_eq!(INIT_MARK, mark);
    }

    #[test]
    fn guest_messages_read_back() {
        let timing = Timing { kernel_ns: 1, init_ns: 2, ready_ns: 3, sent_ns: 4 };
        for message in [
            GuestMessage::Hello(Hello { protocol: PROTOCOL, nonce: "n".into() }),
            GuestMessage::Ready(timing),
            GuestMessage::Output(Output { id: 3, stream: Stream::Stderr, data: vec![0, 255] }),
            GuestMessage::Exited(Exited { id: 1, status: 137, oom_killed: true }),
            GuestMessage::Failed(Failed { step: "mount".into(), message: "no".into() }),
        ] {
            assert_eq!(round_trip(&message), message);
        }
    }

    #[test]
    fn host_messages_read_back() {
        let argv = vec!["sh".to_owned(), "-c".to_owned(), "exit 3".to_owned()];
        for message in [
            HostMessage::Exec(Exec { id: 1, component: ComponentName::Business, argv }),
            HostMessage::Signal(Signal { id: AGENT_ID, signal: 15 }),
            HostMessage::Shutdown(Shutdown { grace_ms: 2000 }),
        ] {
            let mut bytes = Vec::new();
            message.write(&mut bytes).unwrap();
            assert_eq!(HostMessage::read(&mut bytes.as_slice()).unwrap(), Some(message));
        }
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_before_it_is_read() {
        let huge = u32::MAX.to_le_bytes();
        let error = GuestMessage::read(&mut huge.as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let data = vec![0; MAX_FRAME];
        let message = GuestMessage::Output(Output { id: 0, stream: Stream::Stdout, data });
        let error = message.write(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn the_largest_output_fits() {
        let data = vec![7; MAX_OUTPUT];
        let message = GuestMessage::Output(Output { id: 0, stream: Stream::Stdout, data });
        assert_eq!(round_trip(&message), message);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(GuestMessage::read(&mut bytes.as_slice()));
            drop(HostMessage::read(&mut bytes.as_slice()));
        }
    }
}
