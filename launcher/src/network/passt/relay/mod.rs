//! Relays frames between a guest and passt. In both directions, each frame's length precedes the frame.
//!
//! A guest can send to any address, and passt connects to it like any program of the host. At 127.0.0.1 or 0.0.0.0,
//! which are the same for Linux, the guest would reach programs of the host that trust its loopback. An honest kernel
//! sends no such packet, but the guest's kernel may be compromised, and a program of root in the guest may open a raw
//! socket. So the relay checks each frame, and drops a frame that must not reach passt.
//!
//! In the other direction, the relay makes up for three weaknesses of passt. passt accepts a datagram from any sender
//! to a port from which the guest has sent one, so the relay passes only answers to the guest. passt passes on frames
//! that do not fit into the guest's device, so the relay drops them. passt loses its position in the stream if a socket
//! is full or contains an incomplete frame, so the relay writes each frame with one call, and always reads from passt.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};

use box_contract::network::{DNS_PORT, SHARED_GATEWAY, SHARED_RESOLVER, is_in_shared};

/// The size of a frame's length, which is big-endian.
pub(super) const LENGTH: usize = size_of::<u32>();
/// The size of the Ethernet header: two addresses and a type.
const ETHERNET: usize = 14;
/// The longest frame that is passed on, in bytes: a longer one does not fit into the guest's device.
pub(super) const MAX_FRAME: usize = 1_500 + ETHERNET;
/// The longest possible frame, in bytes. A greater length is malformed, and the start of the next frame is then
/// unknown.
const MAX_LEN: usize = 65_535 + ETHERNET;
/// How much is read at a time, in bytes.
const BUFFER: usize = 128 << 10;
/// The most frames that wait for a guest that does not read them. As on any network, further frames are lost.
const MAX_WAITING: usize = 4096;
/// The number of datagram flows that are stored. A new flow then replaces the oldest one.
const MAX_FLOWS: usize = 4096;
/// The type of IPv4 frames.
const IPV4: [u8; 2] = [0x08, 0x00];
/// The type of ARP frames ([RFC 826](https://www.rfc-editor.org/rfc/rfc826)).
const ARP: [u8; 2] = [0x08, 0x06];
/// Protocol numbers of IPv4.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A frame, after its length.
type Frame = Vec<u8>;

/// The flows of the datagrams that a guest has sent. Only these flows may have answers.
#[derive(Debug, Default)]
pub(super) struct Flows(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    flows: BTreeSet<Flow>,
    /// The same flows, the oldest first.
    order: VecDeque<Flow>,
}

/// The address and the port of the other host, and the guest's port.
type Flow = (Ipv4Addr, u16, u16);

impl Flows {
    fn note(&self, flow: Flow) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.flows.insert(flow) {
            return;
        }
        known.order.push_back(flow);
        if known.order.len() > MAX_FLOWS
            && let Some(oldest) = known.order.pop_front()
        {
            known.flows.remove(&oldest);
        }
    }

    fn has(&self, flow: Flow) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flows.contains(&flow)
    }
}

/// Relays the guest's frames that may leave it, each with one write. `names` is whether the host has a resolver.
pub(super) fn to_host(
    from: impl Read,
    mut to: impl Write,
    flows: &Flows,
    names: bool,
) -> io::Result<()> {
    let mut from = BufReader::with_capacity(BUFFER, from);
    while let Some(frame) = next_frame(&mut from)? {
        if may_leave(&frame[LENGTH..], flows, names) {
            to.write_all(&frame)?;
        }
    }
    Ok(())
}

/// Reads passt's frames, and queues the frames that may enter the guest for [`deliver`].
pub(super) fn to_guest(from: impl Read, to: &SyncSender<Frame>, flows: &Flows) -> io::Result<()> {
    let mut from = BufReader::with_capacity(BUFFER, from);
    while let Some(frame) = next_frame(&mut from)? {
        if may_enter(&frame[LENGTH..], flows)
            && let Err(TrySendError::Disconnected(_)) = to.try_send(frame)
        {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns the sender and the receiver of the queue of frames for a guest.
pub(super) fn queue() -> (SyncSender<Frame>, Receiver<Frame>) {
    sync_channel(MAX_WAITING)
}

/// Writes the queued frames to the guest.
pub(super) fn deliver(frames: &Receiver<Frame>, mut to: impl Write) -> io::Result<()> {
    frames.iter().try_for_each(|frame| to.write_all(&frame))
}

/// Reads the next frame that is short enough to be passed on. The result begins with the frame's length. `None` at the
/// end.
fn next_frame(from: &mut impl Read) -> io::Result<Option<Frame>> {
    loop {
        let mut length = [0; LENGTH];
        match from.read_exact(&mut length) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let size = u32::from_be_bytes(length) as usize;
        if size > MAX_LEN {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut frame = vec![0; LENGTH + size];
        frame[..LENGTH].copy_from_slice(&length);
        from.read_exact(&mut frame[LENGTH..])?;
        if size <= MAX_FRAME {
            return Ok(Some(frame));
        }
    }
}

/// Returns the packet of an IPv4 frame, and the fixed part of its header.
fn packet(frame: &[u8]) -> Option<(&[u8], &[u8; 20])> {
    let (header, packet) = frame.split_at_checked(ETHERNET)?;
    let is_ipv4 = header[12..] == IPV4;
    is_ipv4.then(|| Some((packet, packet.first_chunk()?))).flatten()
}

fn is_arp(frame: &[u8]) -> bool {
    frame.get(12..ETHERNET) == Some(&ARP)
}

/// Returns the address at an offset of a header.
fn address(header: &[u8; 20], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3])
}

/// Returns the source port and the destination port of a packet, if it has ports.
fn ports(packet: &[u8]) -> Option<(u16, u16)> {
    let start = usize::from(packet.first()? & 0xf) * 4;
    let at = |at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
    Some((at(start)?, at(start + 2)?))
}

/// Returns whether a frame may leave the guest: to another host, or with a question to the resolver.
fn may_leave(frame: &[u8], flows: &Flows, names: bool) -> bool {
    // Only passt itself answers ARP.
    let Some((packet, header)) = packet(frame) else { return is_arp(frame) };
    let to = address(header, 16);
    // passt accepts questions to the resolver only over UDP.
    let is_question = || {
        let port = ports(packet).map(|(_, to)| to);
        names && header[9] == UDP && port == Some(DNS_PORT)
    };
    let may_leave = if is_in_shared(to) {
        to == SHARED_RESOLVER && is_question()
    } else {
        // Refuses 0.0.0.0/8 and 127.0.0.0/8, which lead to this host, and multicast, reserved and broadcast addresses.
        to.octets()[0] != 0 && !to.is_loopback() && to.octets()[0] < 224
    };
    if let (true, UDP, Some((own, port))) = (may_leave, header[9], ports(packet)) {
        flows.note((to, port, own));
    }
    may_leave
}

/// Returns whether a frame may enter the guest: an answer from another host. The gateway's address stands for this
/// host.
fn may_enter(frame: &[u8], flows: &Flows) -> bool {
    let Some((packet, header)) = packet(frame) else { return is_arp(frame) };
    let from = address(header, 12);
    match header[9] {
        _ if from == SHARED_GATEWAY => false,
        // TCP and ICMP frames from passt are answers, because passt listens at no TCP port and sends no pings itself.
        TCP | ICMP => true,
        UDP => ports(packet).is_some_and(|(port, own)| flows.has((from, port, own))),
        _ => false,
    }
}

/// Returns the ARP frame, after its length, that asks for the hardware address of `wanted`.
pub(super) fn question(hardware: [u8; 6], from: Ipv4Addr, wanted: Ipv4Addr) -> Vec<u8> {
    let everybody = [0xff; 6];
    // Ethernet and IPv4, with addresses of 6 and 4 bytes; operation 1 is a request.
    let kind = [0, 1, 8, 0, 6, 4, 0, 1];
    let (from, wanted) = (from.octets(), wanted.octets());
    let frame =
        [&everybody[..], &hardware, &ARP, &kind, &hardware, &from, &[0; 6], &wanted].concat();
    [&u32::try_from(frame.len()).unwrap_or(0).to_be_bytes()[..], &frame].concat()
}

#[cfg(test)]
mod tests;
