//! Carries frames between a guest and passt, each after its length, as both sides do.
//!
//! A guest can send to any address, and passt connects to it as a program of the host does: at 127.0.0.1, or at 0.0.0.0,
//! which Linux takes for the same, that would be a program of the host's own that trusts its loopback. A kernel sends
//! nothing there by itself, but a guest need not have an honest one, and a program of root may open a raw socket. So
//! each frame is looked at, and what must not reach passt is dropped.

use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use box_image::network::{DNS_PORT, SHARED_RESOLVER, is_in_shared};

/// The size of a frame's length, which is big-endian.
pub(super) const LENGTH: usize = size_of::<u32>();
/// The longest frame, in bytes: nothing that IPv4 carries is longer.
const MAX_FRAME: usize = 65_535 + ETHERNET;
/// Room for the longest frame and for many ordinary ones.
const BUFFER: usize = 128 << 10;
/// The size of the header of Ethernet: two addresses and a type.
const ETHERNET: usize = 14;
/// The type of frames with IPv4.
const IPV4: [u8; 2] = [0x08, 0x00];
/// The type of frames with a question for a hardware address, or its answer.
const ARP: [u8; 2] = [0x08, 0x06];
/// The protocols with ports.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Starts a thread that carries what comes from one socket to another, until one of them is hung up.
///
/// # Errors
/// The kernel's.
pub(super) fn start(
    name: &str,
    from: &UnixStream,
    to: &UnixStream,
    carry: fn(UnixStream, UnixStream) -> io::Result<()>,
) -> io::Result<JoinHandle<()>> {
    let (from, to) = (from.try_clone()?, to.try_clone()?);
    // However it ends, the guest has no network then: the sockets stay open, so that its device waits.
    thread::Builder::new().name(name.to_owned()).spawn(move || drop(carry(from, to)))
}

/// Carries what passt sends.
pub(super) fn to_guest(mut from: UnixStream, mut to: UnixStream) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => to.write_all(&buffer[..length])?,
        }
    }
}

/// Carries those frames of a guest that may leave it.
pub(super) fn to_host(mut from: UnixStream, mut to: UnixStream) -> io::Result<()> {
    let (mut buffer, mut filled) = (vec![0; BUFFER], 0);
    loop {
        match from.read(&mut buffer[filled..])? {
            0 => return Ok(()),
            length => filled += length,
        }
        let Sorted { kept, read } = sort(&mut buffer[..filled])?;
        to.write_all(&buffer[..kept])?;
        buffer.copy_within(read..filled, 0);
        filled -= read;
    }
}

/// What of a buffer is to be passed on, and how much of it has been looked at.
struct Sorted {
    kept: usize,
    read: usize,
}

/// Moves the whole frames that may pass to the start of a buffer.
fn sort(buffer: &mut [u8]) -> io::Result<Sorted> {
    let mut done = Sorted { kept: 0, read: 0 };
    while let Some((length, rest)) = buffer[done.read..].split_first_chunk::<LENGTH>() {
        let length = u32::from_be_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(frame) = rest.get(..length) else { break };
        let (whole, may_pass) = (LENGTH + length, may_pass(frame));
        if may_pass {
            buffer.copy_within(done.read..done.read + whole, done.kept);
            done.kept += whole;
        }
        done.read += whole;
    }
    Ok(done)
}

/// Returns whether a frame may leave its guest.
fn may_pass(frame: &[u8]) -> bool {
    let Some((header, packet)) = frame.split_at_checked(ETHERNET) else { return false };
    match [header[12], header[13]] {
        // Only passt itself answers these.
        ARP => true,
        IPV4 => may_reach(packet),
        _ => false,
    }
}

/// Returns whether a packet of IPv4 may leave its guest: to another host, or to the resolver with a question.
fn may_reach(packet: &[u8]) -> bool {
    let Some(header) = packet.first_chunk::<20>() else { return false };
    let [.., a, b, c, d] = *header;
    let to = Ipv4Addr::new(a, b, c, d);
    if is_in_shared(to) {
        let ports = usize::from(header[0] & 0xf) * 4;
        let port = packet.get(ports + 2..ports + 4);
        let is_question = port == Some(&DNS_PORT.to_be_bytes()) && matches!(header[9], TCP | UDP);
        return to == SHARED_RESOLVER && is_question;
    }
    // Not this host as 127.0.0.1 or as 0.0.0.0, and not many hosts at once.
    a != 0 && a != 127 && a < 224
}

/// Returns the frame, with its length, that asks who has an address.
pub(super) fn question(hardware: [u8; 6], from: Ipv4Addr, wanted: Ipv4Addr) -> Vec<u8> {
    let everybody = [0xff; 6];
    // Ethernet and IPv4, with addresses of 6 and 4 bytes; a question is 1.
    let kind = [0, 1, 8, 0, 6, 4, 0, 1];
    let (from, wanted) = (from.octets(), wanted.octets());
    let frame =
        [&everybody[..], &hardware, &ARP, &kind, &hardware, &from, &[0; 6], &wanted].concat();
    [&u32::try_from(frame.len()).unwrap_or(0).to_be_bytes()[..], &frame].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_image::network::SHARED_GATEWAY;

    /// Returns a frame of IPv4 to an address and a port.
    fn packet(to: [u8; 4], protocol: u8, port: u16) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET + 28];
        frame[12..14].copy_from_slice(&IPV4);
        frame[ETHERNET] = 0x45;
        frame[ETHERNET + 9] = protocol;
        frame[ETHERNET + 16..ETHERNET + 20].copy_from_slice(&to);
        frame[ETHERNET + 22..ETHERNET + 24].copy_from_slice(&port.to_be_bytes());
        frame
    }

    fn framed(frames: &[&[u8]]) -> Vec<u8> {
        let one = |frame: &&[u8]| {
            [&u32::try_from(frame.len()).unwrap().to_be_bytes()[..], frame].concat()
        };
        frames.iter().flat_map(one).collect()
    }

    #[test]
    fn only_other_hosts_and_the_resolver_are_reached() {
        for to in
            [[192, 0, 2, 1], [10, 0, 2, 2], [1, 1, 1, 1], [223, 255, 255, 255], [128, 0, 0, 1]]
        {
            assert!(may_pass(&packet(to, TCP, 80)), "{to:?}");
        }
        for to in [
            [127, 0, 0, 1],
            [127, 255, 255, 254],
            [0, 0, 0, 0],
            [0, 1, 2, 3],
            [224, 0, 0, 251],
            [255, 255, 255, 255],
            [198, 19, 255, 1],
            [198, 19, 255, 2],
            [198, 19, 255, 53],
        ] {
            assert!(!may_pass(&packet(to, TCP, 80)), "{to:?}");
            assert!(!may_pass(&packet(to, 1, 53)), "{to:?}");
        }
        let resolver = SHARED_RESOLVER.octets();
        assert!(may_pass(&packet(resolver, UDP, 53)) && may_pass(&packet(resolver, TCP, 53)));
        assert!(!may_pass(&packet(SHARED_GATEWAY.octets(), UDP, 53)));
    }

    #[test]
    fn the_port_is_where_the_header_says() {
        let mut frame = packet(SHARED_RESOLVER.octets(), UDP, 53);
        frame[ETHERNET] = 0x46;
        assert!(!may_pass(&frame), "these are bytes of an option");
        frame[ETHERNET] = 0x4f;
        assert!(!may_pass(&frame), "there is no port");
    }

    #[test]
    fn what_is_neither_ipv4_nor_its_question_is_dropped() {
        let mut frame = packet([1, 1, 1, 1], TCP, 80);
        for kind in [[0x86, 0xdd], [0x81, 0x00], [0x88, 0xa8], [0, 0]] {
            frame[12..14].copy_from_slice(&kind);
            assert!(!may_pass(&frame), "{kind:?}");
        }
        for length in 0..ETHERNET + 20 {
            assert!(!may_pass(&packet([1, 1, 1, 1], TCP, 80)[..length]), "{length}");
        }
        let asked = question([2; 6], SHARED_RESOLVER, SHARED_GATEWAY);
        assert_eq!(asked.len(), LENGTH + 42);
        assert!(may_pass(&asked[LENGTH..]));
    }

    #[test]
    fn frames_are_sorted_however_they_come() {
        let (good, bad) = (packet([1, 1, 1, 1], TCP, 80), packet([127, 0, 0, 1], TCP, 80));
        let sent = framed(&[&bad, &good, &[], &bad, &good, &good, &bad]);
        let expected = framed(&[&good, &good, &good]);
        for size in [1, 3, 50, sent.len()] {
            let (mut guest, from) = UnixStream::pair().unwrap();
            let (to, mut host) = UnixStream::pair().unwrap();
            let thread = start("test", &from, &to, to_host).unwrap();
            sent.chunks(size).for_each(|part| guest.write_all(part).unwrap());
            let mut came = vec![0; expected.len()];
            host.read_exact(&mut came).unwrap();
            assert_eq!(came, expected, "{size}");
            drop(guest);
            thread.join().unwrap();
            drop(to);
            assert_eq!(host.read(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn the_longest_frame_passes_and_a_longer_one_ends_it() {
        let mut longest = packet([1, 1, 1, 1], TCP, 80);
        longest.resize(MAX_FRAME, 7);
        let mut sent = framed(&[&longest]);
        let done = sort(&mut sent).unwrap();
        assert_eq!((done.kept, done.read), (sent.len(), sent.len()));
        assert!(sent.len() <= BUFFER);
        longest.push(7);
        assert!(sort(&mut framed(&[&longest])).is_err());
    }
}
