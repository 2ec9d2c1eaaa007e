//! A stream's end in the component: a program's connection.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use box_contract::wire::{
    GuestNetwork, MAX_STREAM_DATA, STREAM_WINDOW, StreamCredit, StreamData, StreamId,
};
use nix::libc;
use nix::poll::PollFlags;
use nix::sys::socket::{Shutdown, setsockopt, shutdown, sockopt};

use crate::wait::is_temporary;

/// A program's connection.
#[derive(Debug)]
pub(super) struct Stream {
    number: u32,
    socket: File,
    /// The bytes that the host has sent and the program has not read.
    waiting: Vec<u8>,
    /// How many bytes may be sent to the host now.
    credit: u32,
    /// Whether the program has closed its direction.
    has_ended: bool,
    /// Whether the program reads no more. Its own last bytes may still be unread.
    is_deaf: bool,
    /// Whether a program that has closed the whole connection causes an event: on a Unix socket.
    shows_hang_up: bool,
    /// Whether the host has closed its direction.
    host_has_ended: bool,
    /// Whether the stream is over once `waiting` is written.
    is_closing: bool,
}

impl Stream {
    /// Wraps a program's connection over TCP and makes it non-blocking.
    pub(super) fn tcp(number: u32, socket: TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // Nagle's algorithm would delay bytes that the sender has already grouped.
        socket.set_nodelay(true)?;
        Ok(Self::new(number, socket.into(), false))
    }

    /// Wraps a program's connection to a Unix socket and makes it non-blocking.
    pub(super) fn unix(number: u32, socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self::new(number, socket.into(), true))
    }

    fn new(number: u32, socket: OwnedFd, shows_hang_up: bool) -> Self {
        Self {
            number,
            socket: File::from(socket),
            waiting: Vec::new(),
            credit: STREAM_WINDOW,
            has_ended: false,
            is_deaf: false,
            shows_hang_up,
            host_has_ended: false,
            is_closing: false,
        }
    }

    /// Returns the connection and the events to wait for, or `None` if there are no events to wait for. Without flags, only the end
    /// of a whole connection is an event.
    pub(super) fn wanted(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::POLLIN, !self.has_ended && !self.is_closing && self.credit > 0);
        wanted.set(PollFlags::POLLOUT, !self.waiting.is_empty());
        let may_hang_up = self.shows_hang_up && self.has_ended && !self.is_closing;
        (may_hang_up || !wanted.is_empty()).then(|| (self.socket.as_fd(), wanted))
    }

    /// Returns whether the stream is over in both directions.
    pub(super) const fn is_over(&self) -> bool {
        let is_done = self.has_ended && self.host_has_ended;
        self.waiting.is_empty() && (is_done || self.is_closing)
    }

    /// Reads from the program. Returns the message to send to the host, if there is one.
    pub(super) fn read(&mut self) -> Option<GuestNetwork> {
        if self.has_ended {
            // The program has closed the whole connection.
            return (!self.is_closing).then(|| self.break_off());
        }
        let length = MAX_STREAM_DATA.min(self.credit as usize);
        // A program that has closed its connection causes an event even if no bytes may be sent.
        if length == 0 {
            return None;
        }
        let mut data = vec![0; length];
        match self.socket.read(&mut data) {
            Ok(0) if self.is_deaf => Some(self.break_off()),
            Ok(0) => {
                self.has_ended = true;
                Some(GuestNetwork::End(self.id()))
            }
            Ok(length) => {
                data.truncate(length);
                self.credit -= u32::try_from(length).unwrap_or(self.credit);
                Some(GuestNetwork::Data(StreamData { stream: self.number, data }))
            }
            Err(error) if is_temporary(&error) => None,
            Err(_) => Some(self.break_off()),
        }
    }

    /// Writes to the program without blocking. Returns the message to send to the host, if there is one.
    pub(super) fn write(&mut self) -> Option<GuestNetwork> {
        let written = match self.socket.write(&self.waiting) {
            Ok(length) => length,
            Err(error) if is_temporary(&error) => return None,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && !self.has_ended => {
                self.is_deaf = true;
                let lost = std::mem::take(&mut self.waiting);
                return Some(self.taken(lost.len()));
            }
            Err(_) => return Some(self.break_off()),
        };
        self.waiting.drain(..written);
        self.pass_end_on();
        Some(self.taken(written))
    }

    /// Returns the message that the host may send more bytes.
    fn taken(&self, length: usize) -> GuestNetwork {
        let bytes = u32::try_from(length).unwrap_or(u32::MAX);
        GuestNetwork::Credit(StreamCredit { stream: self.number, bytes })
    }

    /// Adds bytes from the host. If the program reads no more, discards them, so that the host gets to the end of them.
    pub(super) fn push(&mut self, data: &[u8]) -> Option<GuestNetwork> {
        if self.is_deaf {
            return Some(self.taken(data.len()));
        }
        self.waiting.extend_from_slice(data);
        self.write()
    }

    /// Marks the host's direction as closed.
    pub(super) fn end(&mut self) {
        self.host_has_ended = true;
        self.pass_end_on();
    }

    /// Marks the stream as closed by the host. If the host has not ended its direction before, its peer has broken the connection off
    /// or refused it: the program gets a reset, so it does not take what it has got for the whole.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        if !self.host_has_ended {
            let now = libc::linger { l_onoff: 1, l_linger: 0 };
            // A Unix socket has no reset.
            let _unsupported = setsockopt(&self.socket, sockopt::Linger, &now);
        }
    }

    /// Adds to the number of bytes that may be sent to the host.
    pub(super) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes).min(STREAM_WINDOW);
    }

    fn pass_end_on(&self) {
        if self.host_has_ended && self.waiting.is_empty() {
            // An error means that the program has closed the connection.
            let _closed = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
        }
    }

    /// Closes a broken connection and discards its bytes.
    fn break_off(&mut self) -> GuestNetwork {
        self.waiting.clear();
        self.is_closing = true;
        GuestNetwork::Close(self.id())
    }

    const fn id(&self) -> StreamId {
        StreamId { stream: self.number }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Shutdown, TcpListener};

    use super::*;

    /// Returns a stream and the program's end of its connection.
    fn stream() -> (Stream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let program = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Stream::tcp(6, listener.accept().unwrap().0).unwrap(), program)
    }

    fn wanted(stream: &Stream) -> PollFlags {
        stream.wanted().map_or(PollFlags::empty(), |it| it.1)
    }

    /// Reads until there is a message.
    fn read(stream: &mut Stream) -> GuestNetwork {
        loop {
            if let Some(message) = stream.read() {
                return message;
            }
        }
    }

    #[test]
    fn no_more_is_read_than_the_host_takes() {
        let (mut stream, mut program) = stream();
        program.write_all(&vec![7; 2 * STREAM_WINDOW as usize]).unwrap();
        let mut sent = 0;
        while wanted(&stream).contains(PollFlags::POLLIN) {
            let GuestNetwork::Data(data) = read(&mut stream) else { panic!() };
            assert!(data.data.len() <= MAX_STREAM_DATA);
            sent += data.data.len();
        }
        assert_eq!(sent, STREAM_WINDOW as usize);
        stream.grant(5);
        let GuestNetwork::Data(data) = read(&mut stream) else { panic!() };
        assert_eq!(data.data, [7; 5]);
        stream.grant(u32::MAX);
        assert_eq!(stream.credit, STREAM_WINDOW, "a window is never wider");
    }

    #[test]
    fn ends_are_passed_on_after_all_bytes_and_by_themselves() {
        let (mut stream, mut program) = stream();
        let sent = vec![9; STREAM_WINDOW as usize];
        let granted = stream.push(&sent);
        let all = StreamCredit { stream: 6, bytes: STREAM_WINDOW };
        assert_eq!(granted, Some(GuestNetwork::Credit(all)), "a socket holds as much");
        stream.end();
        let mut got = Vec::new();
        program.read_to_end(&mut got).unwrap();
        assert_eq!(got, sent);
        assert!(!stream.is_over(), "the program may still send");
        program.write_all(b"rest").unwrap();
        let GuestNetwork::Data(data) = read(&mut stream) else { panic!() };
        assert_eq!(data.data, b"rest");
        drop(program);
        assert_eq!(read(&mut stream), GuestNetwork::End(StreamId { stream: 6 }));
        assert!(stream.is_over());
    }

    #[test]
    fn what_the_program_does_not_take_waits_and_a_close_waits_for_it() {
        let (mut stream, mut program) = stream();
        let mut pushed = 0;
        while stream.waiting.is_empty() {
            stream.push(&[3; MAX_STREAM_DATA]);
            pushed += MAX_STREAM_DATA;
        }
        stream.end();
        stream.close();
        assert_eq!(wanted(&stream), PollFlags::POLLOUT);
        assert!(!stream.is_over());
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            program.read_to_end(&mut got).map(|_| got.len())
        });
        while !stream.is_over() {
            stream.write();
        }
        drop(stream);
        assert_eq!(reader.join().unwrap().unwrap(), pushed);
    }

    #[test]
    fn what_the_peer_breaks_off_is_reset_and_not_ended() {
        let (mut stream, mut program) = stream();
        stream.push(b"half");
        stream.close();
        assert!(stream.is_over());
        drop(stream);
        let mut got = Vec::new();
        let error = program.read_to_end(&mut got).unwrap_err();
        assert_eq!((error.kind(), got.as_slice()), (io::ErrorKind::ConnectionReset, &b"half"[..]));
    }

    /// A Unix socket passes on what a program has written before it closed, also if the program has left bytes unread.
    #[test]
    fn the_last_bytes_of_a_program_that_reads_no_more_are_sent() {
        let (mut program, theirs) = UnixStream::pair().unwrap();
        let mut stream = Stream::unix(6, theirs).unwrap();
        program.write_all(&vec![7; STREAM_WINDOW as usize + 5]).unwrap();
        program.shutdown(Shutdown::Read).unwrap();
        let taken = GuestNetwork::Credit(StreamCredit { stream: 6, bytes: 9 });
        assert_eq!(stream.push(b"to nobody"), Some(taken.clone()));
        assert_eq!(stream.push(b"to nobody"), Some(taken), "its bytes do not stop the host's");
        let mut sent = 0;
        drop(program);
        loop {
            match stream.read() {
                Some(GuestNetwork::Data(data)) => sent += data.data.len(),
                Some(output) => break assert_eq!(output, GuestNetwork::Close(stream.id())),
                None => {
                    assert!(wanted(&stream).is_empty(), "it does not wait for what is there");
                    stream.grant(5);
                }
            }
        }
        assert_eq!(sent, STREAM_WINDOW as usize + 5);
        assert!(stream.is_over());
    }

    /// The host's server may never answer the end of a request, and a program that waits may end.
    #[test]
    fn a_program_that_hangs_up_after_its_last_byte_closes_the_stream() {
        let (program, theirs) = UnixStream::pair().unwrap();
        let mut stream = Stream::unix(6, theirs).unwrap();
        program.shutdown(Shutdown::Write).unwrap();
        assert_eq!(stream.read(), Some(GuestNetwork::End(stream.id())));
        let polled = |stream: &Stream| {
            let (fd, flags) = stream.wanted().unwrap();
            let mut fds = [nix::poll::PollFd::new(fd, flags)];
            nix::poll::poll(&mut fds, 0_u8).unwrap() > 0
        };
        assert!(!polled(&stream), "it can still read");
        drop(program);
        assert!(polled(&stream));
        assert_eq!(stream.read(), Some(GuestNetwork::Close(stream.id())));
        assert!(stream.is_over() && stream.wanted().is_none());
    }

    #[test]
    fn a_connection_that_breaks_off_is_closed() {
        let (mut stream, program) = stream();
        drop(program);
        let is_closed = |it: Option<GuestNetwork>| matches!(it, Some(GuestNetwork::Close(_)));
        while !(is_closed(stream.push(b"to nobody")) || is_closed(stream.read())) {}
        assert!(stream.is_over() && wanted(&stream).is_empty());
    }
}
