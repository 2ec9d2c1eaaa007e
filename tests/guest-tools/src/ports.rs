//! Connects to ports of the host: to thousands at once, since most are never answered.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::libc::VMADDR_CID_HOST;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::socket::sockopt::SocketError;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, VsockAddr, connect, getpeername, getsockopt, socket,
};

/// How many connections are tried at once.
const BATCH: usize = 2048;
/// How many files may be open: those, and the few that a program has anyway.
const FILES: u64 = 4096;
/// The agent's port in the box, through which the host connects. It refuses to be connected to there, and handles all
/// requests in their order: with this answer, those to all ports before are there.
const AGENT_PORT: u32 = 4088;
/// How long that answer is waited for, in milliseconds.
const PATIENCE: u16 = 10_000;
/// How many of the ports above the low ones are tried.
const HIGH: u32 = 1000;

/// The outcome of connecting to many ports.
#[derive(Debug, Default)]
pub struct Answers {
    tried: usize,
    /// The ports that answered, and the connections.
    pub connected: Vec<(u32, OwnedFd)>,
    refused: Vec<u32>,
}

impl Answers {
    /// Says it in a line.
    pub fn line(&self) -> String {
        let connected: Vec<u32> = self.connected.iter().map(|(port, _)| *port).collect();
        format!("{} ports: connected {connected:?}, refused {:?}", self.tried, self.refused)
    }
}

/// Tries the 65,536 low ports and some of the others.
///
/// # Errors
/// When the guest's own kernel refuses to try.
pub fn try_many() -> nix::Result<Answers> {
    setrlimit(Resource::RLIMIT_NOFILE, FILES, FILES)?;
    let ports: Vec<u32> = (0..1 << 16).chain((1..=HIGH).map(high)).collect();
    let mut answers = Answers::default();
    for batch in ports.chunks(BATCH) {
        try_batch(batch, &mut answers)?;
    }
    Ok(answers)
}

/// Returns one of the ports above the low ones; consecutive numbers give ports far from each other.
fn high(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b9) | 1 << 16
}

fn try_batch(ports: &[u32], answers: &mut Answers) -> nix::Result<()> {
    let begun: nix::Result<Vec<_>> = ports.iter().map(|port| Ok((*port, begin(*port)?))).collect();
    let last = begin(AGENT_PORT)?;
    if poll(&mut [PollFd::new(last.as_fd(), PollFlags::POLLOUT)], PATIENCE)? == 0 {
        return Err(Errno::ETIMEDOUT);
    }
    for (port, socket) in begun? {
        answers.tried += 1;
        match getsockopt(&socket, SocketError)? {
            0 if getpeername::<VsockAddr>(socket.as_raw_fd()).is_ok() => {
                answers.connected.push((port, socket));
            }
            0 => {}
            _ => answers.refused.push(port),
        }
    }
    Ok(())
}

/// Begins to connect to a port, and waits for nothing.
///
/// # Errors
/// When the guest's own kernel refuses.
pub fn begin(port: u32) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Vsock, SockType::Stream, flags, None)?;
    match connect(socket.as_raw_fd(), &VsockAddr::new(VMADDR_CID_HOST, port)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}
