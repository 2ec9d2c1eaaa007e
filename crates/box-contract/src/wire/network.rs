//! A component's network streams, multiplexed over one vsock connection to the host.
//!
//! Init has a process for the component's end of the network. The process connects to
//! [`NETWORK_PORT`](crate::network::NETWORK_PORT) and first sends the component's name. After that, both ends can open
//! streams. The guest opens a stream if a program connects to the filter's proxy, to an address that init has assigned
//! to a name, to an HTTP API ([`ServicePlan`](crate::ServicePlan)), or to a socket of the host ([`HostSocket`](super::HostSocket)). The host opens a stream if a client connects to a published port.
//!
//! The VMM's loop stops if one of its sockets is full. So all streams use one connection, which both ends always read, and
//! each stream has a window of [`STREAM_WINDOW`] bytes in each direction. The receiver grants more bytes ([`StreamCredit`])
//! as it passes data on.
//!
//! The guest's streams have even numbers and the host's streams odd numbers. Numbers increase and are not reused.
//! Messages for a closed stream are dropped, because their sender may not know yet that the stream is closed.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::frame::{Body, invalid, put, read_frame, write_frame};
use crate::ComponentName;

/// The number of bytes that may be sent in one direction of a stream before the receiver grants more.
pub const STREAM_WINDOW: u32 = 32 << 10;
/// The maximum number of data bytes in a frame.
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
        /// The sender's direction of a stream has ended.
        4 => End(StreamId),
        /// A stream has broken off.
        5 => Close(StreamId),
        /// Grants more bytes of a stream.
        6 => Credit(StreamCredit),
        /// A program resolves a name.
        7 => LookUp(LookUp),
        /// A program has connected to a socket of the host.
        8 => OpenSocket(OpenSocket),
        /// A program has connected to an HTTP API that it reaches through the host.
        9 => OpenService(OpenService),
    }
}

messages! {
    /// The messages to a component's end of the network.
    pub enum HostNetwork {
        /// A client has connected to a published port.
        65 => Open(OpenIn),
        /// Bytes of a stream.
        66 => Data(StreamData),
        /// The sender's direction of a stream has ended.
        67 => End(StreamId),
        /// A stream has closed in both directions. Data that was sent before must still be passed on.
        68 => Close(StreamId),
        /// Grants more bytes of a stream.
        69 => Credit(StreamCredit),
        /// The answer to [`GuestNetwork::LookUp`].
        70 => Found(Found),
    }
}

/// Identifies the connection's component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkHello {
    /// The component.
    pub component: ComponentName,
}

/// A stream opened by the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenOut {
    /// The stream's number, which is even.
    pub stream: u32,
    /// The endpoint that the program connected to.
    pub way: Way,
}

/// The endpoint that a program connected to in order to reach a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Way {
    /// The HTTP proxy.
    Http,
    /// The SOCKS5 proxy.
    Socks,
    /// An address that init has assigned to a name.
    Direct {
        /// The name, as the program resolved it.
        name: String,
        /// The TCP port.
        port: u16,
    },
}

/// A stream opened by the guest that leads to a socket of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenSocket {
    /// The stream's number, which is even.
    pub stream: u32,
    /// The position of the socket in [`Mounts::sockets`](super::Mounts::sockets).
    pub socket: u16,
}

/// A stream opened by the guest that leads to an HTTP API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenService {
    /// The stream's number, which is even.
    pub stream: u32,
    /// The number of the API ([`RunPlan::services`](crate::RunPlan::services)).
    pub service: u16,
}

/// A stream opened by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenIn {
    /// The stream's number, which is odd.
    pub stream: u32,
    /// The TCP port on the component's loopback.
    pub port: u16,
}

/// Identifies a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamId {
    /// The stream's number.
    pub stream: u32,
}

/// A grant to send more bytes of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamCredit {
    /// The stream's number.
    pub stream: u32,
    /// The number of additional bytes.
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

/// A query for the ports of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookUp {
    /// The query's number, which the answer repeats.
    pub id: u32,
    /// The name, as the program resolves it.
    pub name: String,
}

/// The ports of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// The query's number.
    pub id: u32,
    /// The ports to which the filter allows connections under this name. Empty if the name is denied.
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
