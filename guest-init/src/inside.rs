//! Connections to the programs of a component that listen on loopback.
//!
//! A program that listens at `localhost` may be at ::1 alone: `/etc/hosts` has both addresses, and
//! [getaddrinfo(3)](https://man7.org/linux/man-pages/man3/getaddrinfo.3.html) returns ::1 first.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Connects to the program that listens on `port`: at 127.0.0.1, or at ::1 if none listens there. `connect` makes one
/// connection.
///
/// # Errors
/// The error of the connection to 127.0.0.1, if both fail.
pub(crate) fn connect<T>(
    port: u16,
    connect: impl Fn(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    match connect((Ipv4Addr::LOCALHOST, port).into()) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            connect((Ipv6Addr::LOCALHOST, port).into()).map_err(|_| error)
        }
        connected => connected,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_program_at_either_address_is_reached() {
        for address in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), (Ipv6Addr::LOCALHOST, 0).into()]
        {
            let listener = TcpListener::bind(address).unwrap();
            let at = listener.local_addr().unwrap();
            let stream = connect(at.port(), TcpStream::connect).unwrap();
            assert_eq!(stream.peer_addr().unwrap(), at);
        }
    }

    #[test]
    fn the_first_error_is_returned() {
        let refused = connect(1, |to| {
            let kind =
                if to.is_ipv4() { ErrorKind::ConnectionRefused } else { ErrorKind::TimedOut };
            Err::<(), _>(kind.into())
        });
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let other = connect(1, |to| {
            assert!(to.is_ipv4(), "only a refused connection is tried again");
            Err::<(), _>(ErrorKind::OutOfMemory.into())
        });
        assert_eq!(other.unwrap_err().kind(), ErrorKind::OutOfMemory);
    }
}
