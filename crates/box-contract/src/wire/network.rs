//! A component's streams to and from the host, all in one vsock connection.
//!
//! The component's end of the network, a process of init's, connects to [`NETWORK_PORT`](crate::network::NETWORK_PORT) and
//! says first whose it is. From then on each side opens streams: the guest where a program connects to the filter's proxy or to an
//! address that stands for a name, the host where a client connects to a published port. One connection for all of
//! them keeps the VMM's loop out of their way, which stops when one of its sockets is full: both ends always read, and each
//! stream has a window of [`STREAM_WINDOW`] bytes in each direction, which the receiver grants again as it passes them on.
//!
//! The numbers of the guest's streams are even and those of the host's are odd; both count up, and no number is used
//! twice. What comes for a stream that is over is dropped: its sender did not know that yet.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::frame::{Body, invalid, put, read_frame, write_frame};
use crate::ComponentName;

/// How many bytes of a stream may be sent in a direction before the receiver has granted more.
pub const STREAM_WINDOW: u32 = 32 << 10;
/// The greatest number of bytes that one frame carries.
pub const MAX_STREAM_DATA: usize = 16 << 10;

messages! {
    /// The messages from a component's end of the network.
    pub enum GuestNetwork {
        /// The first frame of the connection.
        1 => Hello(NetworkHello),
        /// A program has connected.
        2 => Open(OpenOut),
        /// Bytes of a stream.
        3 => Data(StreamData),
        /// No more bytes come of a stream.
        4 => End(StreamId),
        /// A stream has broken off.
        5 => Close(StreamId),
        /// More bytes of a stream may be sent.
        6 => Credit(StreamCredit),
        /// A program asks for the address of a name.
        7 => LookUp(LookUp),
    }
}

messages! {
    /// The messages to a component's end of the network.
    pub enum HostNetwork {
        /// Somebody has connected to a published port.
        65 => Open(OpenIn),
        /// Bytes of a stream.
        66 => Data(StreamData),
        /// No more bytes come of a stream.
        67 => End(StreamId),
        /// A stream is over in both directions; what was sent before is still to be passed on.
        68 => Close(StreamId),
        /// More bytes of a stream may be sent.
        69 => Credit(StreamCredit),
        /// The answer to [`GuestNetwork::LookUp`].
        70 => Found(Found),
    }
}

/// Says whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkHello {
    /// The component.
    pub component: ComponentName,
}

/// A stream that the guest opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenOut {
    /// Its number, which is even.
    pub stream: u32,
    /// Where its program has connected to.
    pub way: Way,
}

/// Where a program has connected to, to reach a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Way {
    /// The proxy for HTTP.
    Http,
    /// The proxy for SOCKS5.
    Socks,
    /// An address that stands for a name.
    Direct {
        /// The name, as the program has asked for it.
        name: String,
        /// The port.
        port: u16,
    },
}

/// A stream that the host opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenIn {
    /// Its number, which is odd.
    pub stream: u32,
    /// The TCP port of the component's loopback.
    pub port: u16,
}

/// Names a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamId {
    /// Its number.
    pub stream: u32,
}

/// More bytes that may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamCredit {
    /// The stream's number.
    pub stream: u32,
    /// How many bytes more than before.
    pub bytes: u32,
}

/// Bytes of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamData {
    /// The stream's number.
    pub stream: u32,
    /// At most [`MAX_STREAM_DATA`] bytes.
    pub data: Vec<u8>,
}

impl Body for StreamData {
    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        put(frame, &self.stream.to_le_bytes(), &self.data);
        Ok(())
    }

    fn decode(mut body: Vec<u8>) -> io::Result<Self> {
        let Some(&stream) = body.first_chunk() else {
            return Err(invalid("a frame of bytes without its stream"));
        };
        body.drain(..size_of::<u32>());
        Ok(Self { stream: u32::from_le_bytes(stream), data: body })
    }
}

/// A question for the ports of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookUp {
    /// Its number, for the answer.
    pub id: u32,
    /// The name, as the program has asked for it.
    pub name: String,
}

/// The ports of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// The question's number.
    pub id: u32,
    /// The ports at which the name may be connected to; none where that is denied.
    pub ports: Vec<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_stream_are_carried_as_they_are() {
        let data = StreamData { stream: 0x0102_0304, data: vec![0, 255, 7] };
        let mut frame = Vec::new();
        HostNetwork::Data(data.clone()).write(&mut frame).unwrap();
        assert_eq!(frame, [8, 0, 0, 0, 66, 4, 3, 2, 1, 0, 255, 7]);
        assert_eq!(HostNetwork::read(&mut &*frame).unwrap(), Some(HostNetwork::Data(data)));
        assert!(GuestNetwork::read(&mut [4_u8, 0, 0, 0, 3, 1, 2, 3].as_slice()).is_err());
        assert!(GuestNetwork::read(&mut &*frame).is_err(), "it is the other direction's");
    }

    #[test]
    fn all_that_may_be_in_one_frame_fits_it() {
        let data = vec![7; MAX_STREAM_DATA];
        GuestNetwork::Data(StreamData { stream: u32::MAX, data }).write(&mut io::sink()).unwrap();
        let found = Found { id: u32::MAX, ports: (1..=u16::MAX).rev().take(1024).collect() };
        HostNetwork::Found(found).write(&mut io::sink()).unwrap();
        let name = "a".repeat(253);
        GuestNetwork::LookUp(LookUp { id: 0, name }).write(&mut io::sink()).unwrap();
    }
}
