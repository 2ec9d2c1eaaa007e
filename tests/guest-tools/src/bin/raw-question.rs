//! Sends a DNS query in a hand-made Ethernet frame, past the guest kernel's routing and filters: `raw-question DEVICE ADDRESS
//! NAME`.
//!
//! A program with `CAP_NET_RAW` and a hostile guest kernel can both do this.
#![expect(clippy::unwrap_used, reason = "a program for tests")]

use std::net::Ipv4Addr;
use std::os::fd::AsRawFd as _;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, sendto, socket};

/// The MAC address at which passt receives packets to all hosts.
const PASST: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OWN: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 2);
const PORT: u16 = 5000;
const DNS: u16 = 53;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [device, to, name] = arguments.as_slice() else { panic!("{arguments:?}") };
    let mut devices = getifaddrs().unwrap().filter(|it| it.interface_name == *device);
    let device: LinkAddr = devices.find_map(|it| it.address?.as_link_addr().copied()).unwrap();
    let kind = (AddressFamily::Packet, SockType::Raw);
    let socket = socket(kind.0, kind.1, SockFlag::empty(), None).unwrap();
    let mut frame = [&PASST[..], &device.addr().unwrap(), &[8, 0]].concat();
    frame.extend(packet(to.parse().unwrap(), &question(name)));
    sendto(socket.as_raw_fd(), &frame, &device, MsgFlags::empty()).unwrap();
}

/// Returns a DNS query for the A records of `name`.
fn question(name: &str) -> Vec<u8> {
    let mut question = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend(label.bytes());
    }
    question.extend([0, 0, 1, 0, 1]);
    question
}

/// Returns an IPv4 packet with a UDP datagram that contains `data`.
fn packet(to: Ipv4Addr, data: &[u8]) -> Vec<u8> {
    let size = |more: usize| u16::try_from(data.len() + more).unwrap().to_be_bytes();
    let mut header = [&[0x45, 0][..], &size(28), &[0, 1, 0, 0, 64, 17, 0, 0]].concat();
    header.extend([OWN.octets(), to.octets()].concat());
    let sum: u32 = header.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum();
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    // A checksum of 0 means that the sender computed none (RFC 768).
    let datagram = [&PORT.to_be_bytes()[..], &DNS.to_be_bytes(), &size(8), &[0, 0], data].concat();
    [header, datagram].concat()
}
