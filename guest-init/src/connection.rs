//! Connections to servers inside the box, with a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A connection with one deadline for connecting and all reads and writes together. A server that sends its answer in small
/// pieces gets no more time. After the deadline, an operation fails with `TimedOut` or `WouldBlock`.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    deadline: Instant,
}

impl Connection {
    /// Connects to a server.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn open(address: SocketAddr, deadline: Instant) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, left(deadline)?)?;
        Ok(Self { stream, deadline })
    }
}

impl Read for Connection {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.deadline)?))?;
        self.stream.read(to)
    }
}

impl Write for Connection {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.deadline)?))?;
        self.stream.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the time until a deadline. It is never zero, which would be no limit.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
