//! Connects to vsock ports of the host, thousands at once, because the host never answers on most.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::libc::VMADDR_CID_HOST;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::socket::sockopt::SocketError;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, VsockAddr, connect, getpeername, getsockopt, socket,
};

/// The number of ports that are tried at once.
const BATCH: usize = 2048;
/// The limit of open files: enough for a batch and the program's other files.
const FILES: u64 = 4096;
/// A port at which the host refuses connections from the guest, because the host itself connects to the agent through it.
/// The host handles requests in order, so this refusal arrives after the answers for all earlier ports.
const AGENT_PORT: u32 = 4088;
/// How long to wait for the answer from `AGENT_PORT`, in milliseconds.
const PATIENCE: u16 = 10_000;
/// The number of ports above 65,535 to try.
const HIGH: u32 = 1000;

/// The outcome of connecting to many ports.
#[derive(Debug, Default)]
pub struct Answers {
    tried: usize,
    /// The ports that accepted, with the connections.
    pub connected: Vec<(u32, OwnedFd)>,
    refused: Vec<u32>,
}

impl Answers {
    /// Returns the outcome as one line: `3 ports: connected [1], refused [2]`.
    pub fn line(&self) -> String {
        let connected: Vec<u32> = self.connected.iter().map(|(port, _)| *port).collect();
        format!("{} ports: connected {connected:?}, refused {:?}", self.tried, self.refused)
    }
}

/// Tries ports 0 to 65,535, and `HIGH` of the ports above.
///
/// # Errors
/// If the guest's kernel refuses an attempt, or the host does not answer in time.
pub fn try_many() -> nix::Result<Answers> {
    setrlimit(Resource::RLIMIT_NOFILE, FILES, FILES)?;
    let ports: Vec<u32> = (0..1 << 16).chain((1..=HIGH).map(high)).collect();
    let mut answers = Answers::default();
    for batch in ports.chunks(BATCH) {
        try_batch(batch, &mut answers)?;
    }
    Ok(answers)
}

/// Returns a port above 65,535. Consecutive numbers return ports far from each other.
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

/// Begins to connect to `port` without waiting for the answer.
///
/// # Errors
/// If the guest's kernel refuses.
pub fn begin(port: u32) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Vsock, SockType::Stream, flags, None)?;
    match connect(socket.as_raw_fd(), &VsockAddr::new(VMADDR_CID_HOST, port)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}
