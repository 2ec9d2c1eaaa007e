//! The event loop of a component's end of the network.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Instant;

use box_contract::network::own_address;
use box_contract::pace::Pace;
use box_contract::rules::{MAX_CONNECTIONS, MAX_OPENED};
use box_contract::wire::{
    Found, Frames, GuestNetwork, HostNetwork, LookUp, OpenIn, OpenOut, OpenService, OpenSocket,
    StreamId, Way,
};
use box_contract::{ComponentName, NetworkLimits};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

use super::dns::{Code, MAX_MESSAGE, Question};
use super::names::Names;
use super::stream::Stream;
use super::{Doors, Listeners, ServiceDoor, connect_inside};
use crate::sockets::SocketDoor;
use crate::wait::{self, is_temporary};

/// How many bytes are read from the host at a time.
const CHUNK: usize = 64 << 10;
/// The greatest number of queries that wait for the host's answers.
const MAX_QUESTIONS: usize = 64;

/// A component's end of the network.
#[derive(Debug)]
pub(super) struct Server {
    host: File,
    frames: Frames,
    doors: Option<Listeners>,
    services: Vec<ServiceDoor>,
    /// The sockets of the component that stand for sockets of the host.
    sockets: Vec<SocketDoor>,
    names: Names,
    streams: BTreeMap<u32, Stream>,
    /// The id of the next stream that a program opens.
    next: u32,
    /// The greatest number of streams that programs have open.
    most: usize,
    /// The rate at which programs may open streams.
    pace: Pace,
    questions: VecDeque<Asked>,
    /// The id of the next query.
    next_question: u32,
}

/// A query that waits for the host's answer.
#[derive(Debug)]
struct Asked {
    id: u32,
    name: String,
    question: Question,
    by: SocketAddr,
}

/// A source of work.
#[derive(Debug, Clone)]
enum Source {
    Host,
    Door(Way),
    /// The socket at this position of the server's sockets.
    Socket(usize),
    /// The HTTP API at this position of the server's services.
    Service(usize),
    Dns,
    Stream(u32),
}

impl Server {
    /// Returns the server of a component, which has the connection `host` to the host.
    pub(super) fn new(
        host: File,
        component: ComponentName,
        Doors { filter, services, sockets }: Doors,
        limits: NetworkLimits,
    ) -> Self {
        Self {
            host,
            frames: Frames::default(),
            doors: filter,
            services,
            sockets,
            names: Names::new(own_address(component)),
            streams: BTreeMap::new(),
            next: 0,
            most: limits.connections.min(MAX_CONNECTIONS) as usize,
            pace: Pace::new(MAX_OPENED, Instant::now()),
            questions: VecDeque::new(),
            next_question: 0,
        }
    }

    /// Serves until the host hangs up. Returns the exit status.
    pub(super) fn run(mut self) -> i32 {
        loop {
            match self.turn() {
                Ok(true) => {}
                Ok(false) => return 0,
                // The host had hung up before this process sent it a message.
                Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => return 0,
                Err(_) => return 1,
            }
        }
    }

    /// Waits for events and serves them. Returns `false` if the host has hung up.
    fn turn(&mut self) -> io::Result<bool> {
        for (source, events) in self.wait()? {
            if !self.serve(&source, events)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for events.
    fn wait(&self) -> io::Result<Vec<(Source, PollFlags)>> {
        let sources = self.sources();
        let mut fds: Vec<_> =
            sources.iter().map(|(_, fd, wanted)| PollFd::new(*fd, *wanted)).collect();
        let due = self.pace.wait(Instant::now()).map(|it| Instant::now() + it);
        match poll(&mut fds, wait::timeout(due)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = sources.iter().zip(&fds).filter(|(_, fd)| fd.any().unwrap_or(false));
        let events = |fd: &PollFd<'_>| fd.revents().unwrap_or(PollFlags::empty());
        Ok(ready.map(|((source, ..), fd)| (source.clone(), events(fd))).collect())
    }

    fn sources(&self) -> Vec<(Source, BorrowedFd<'_>, PollFlags)> {
        let read = PollFlags::POLLIN;
        let mut sources = vec![(Source::Host, self.host.as_fd(), read)];
        for (number, stream) in &self.streams {
            let wanted = stream.wanted();
            sources.extend(wanted.map(|(fd, wanted)| (Source::Stream(*number), fd, wanted)));
        }
        sources.extend(self.doors.iter().map(|it| (Source::Dns, it.dns.as_fd(), read)));
        // Above the limits on the number and the rate of streams, connections of programs wait to be accepted.
        if !self.has_room() {
            return sources;
        }
        let sockets = self.sockets.iter().enumerate();
        sources.extend(sockets.map(|(at, it)| (Source::Socket(at), it.listener.as_fd(), read)));
        let services = self.services.iter().enumerate();
        sources.extend(services.map(|(at, it)| (Source::Service(at), it.listener.as_fd(), read)));
        if let Some(doors) = &self.doors {
            sources.push((Source::Door(Way::Http), doors.http.as_fd(), read));
            sources.push((Source::Door(Way::Socks), doors.socks.as_fd(), read));
            sources.extend(self.names.listeners().map(|(name, port, listener)| {
                let way = Way::Direct { name: name.to_owned(), port };
                (Source::Door(way), listener.as_fd(), read)
            }));
        }
        sources
    }

    /// Serves an event. Returns `false` if the host has hung up.
    fn serve(&mut self, source: &Source, events: PollFlags) -> io::Result<bool> {
        match source {
            Source::Host => return self.serve_host(),
            Source::Door(way) => self.accept(way)?,
            Source::Socket(at) => self.accept_at_socket(*at)?,
            Source::Service(at) => self.accept_at_service(*at)?,
            Source::Dns => self.ask()?,
            Source::Stream(number) => self.serve_stream(*number, events)?,
        }
        Ok(true)
    }

    fn serve_host(&mut self) -> io::Result<bool> {
        let mut chunk = vec![0; CHUNK];
        match self.host.read(&mut chunk) {
            Ok(0) => return Ok(false),
            Ok(length) => self.frames.push(&chunk[..length]),
            Err(error) if is_temporary(&error) => {}
            Err(error) => return Err(error),
        }
        while let Some(message) = self.frames.next(|rest| HostNetwork::read(rest))? {
            self.take(message)?;
        }
        Ok(true)
    }

    /// Handles a message of the host.
    fn take(&mut self, message: HostNetwork) -> io::Result<()> {
        match message {
            HostNetwork::Open(open) => self.open(open),
            HostNetwork::Found(found) => {
                self.answer(&found);
                Ok(())
            }
            HostNetwork::Data(data) => self.with(data.stream, |stream| stream.push(&data.data)),
            HostNetwork::End(StreamId { stream }) => self.with(stream, |it| {
                it.end();
                None
            }),
            HostNetwork::Close(StreamId { stream }) => self.with(stream, |it| {
                it.close();
                None
            }),
            HostNetwork::Credit(credit) => self.with(credit.stream, |it| {
                it.grant(credit.bytes);
                None
            }),
        }
    }

    fn serve_stream(&mut self, number: u32, events: PollFlags) -> io::Result<()> {
        if events.contains(PollFlags::POLLOUT) {
            self.with(number, Stream::write)?;
        }
        if events.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR) {
            self.with(number, Stream::read)?;
        }
        Ok(())
    }

    /// Calls `work` with a stream, and sends the resulting message to the host. It is a no-op if the stream is closed.
    fn with(
        &mut self,
        number: u32,
        work: impl FnOnce(&mut Stream) -> Option<GuestNetwork>,
    ) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(&number) else { return Ok(()) };
        let output = work(stream);
        if stream.is_over() {
            self.streams.remove(&number);
        }
        output.map_or(Ok(()), |it| it.write(&mut self.host))
    }

    /// Returns whether programs may open another stream now. Streams of the host's clients are not included in the
    /// limit; they have odd ids.
    fn has_room(&self) -> bool {
        let own = self.streams.keys().filter(|number| *number % 2 == 0).count();
        own < self.most && self.pace.wait(Instant::now()).is_none()
    }

    /// Accepts the connection of a program.
    fn accept(&mut self, way: &Way) -> io::Result<()> {
        let Some(doors) = self.doors.as_ref().filter(|_| self.has_room()) else { return Ok(()) };
        let accepted = match way {
            Way::Http => doors.http.accept(),
            Way::Socks => doors.socks.accept(),
            Way::Direct { name, port } => {
                let mut all = self.names.listeners();
                let Some(own) = all.find(|it| (it.0, it.1) == (name, *port)) else { return Ok(()) };
                own.2.accept()
            }
        };
        let accepted = accepted.and_then(|(socket, _)| Stream::tcp(self.next, socket));
        self.admit(accepted, |stream| GuestNetwork::Open(OpenOut { stream, way: way.clone() }))
    }

    /// Accepts the connection of a program to a socket of the host.
    fn accept_at_socket(&mut self, at: usize) -> io::Result<()> {
        let Some(door) = self.sockets.get(at).filter(|_| self.has_room()) else { return Ok(()) };
        let socket = door.number;
        let accepted = door.listener.accept();
        let accepted = accepted.and_then(|(socket, _)| Stream::unix(self.next, socket));
        self.admit(accepted, |stream| GuestNetwork::OpenSocket(OpenSocket { stream, socket }))
    }

    /// Accepts the connection of a program to an HTTP API.
    fn accept_at_service(&mut self, at: usize) -> io::Result<()> {
        let Some(door) = self.services.get(at).filter(|_| self.has_room()) else { return Ok(()) };
        let service = door.number;
        let accepted = door.listener.accept();
        let accepted = accepted.and_then(|(socket, _)| Stream::tcp(self.next, socket));
        self.admit(accepted, |stream| GuestNetwork::OpenService(OpenService { stream, service }))
    }

    /// Opens the stream of an accepted connection. `open` returns the message that tells the host.
    fn admit(
        &mut self,
        accepted: io::Result<Stream>,
        open: impl FnOnce(u32) -> GuestNetwork,
    ) -> io::Result<()> {
        self.pace.take(Instant::now());
        // The program has closed the connection already, or descriptors are exhausted. Other programs are not affected.
        let Ok(stream) = accepted else { return Ok(()) };
        let number = self.next;
        self.next = self.next.checked_add(2).ok_or(io::ErrorKind::QuotaExceeded)?;
        self.streams.insert(number, stream);
        open(number).write(&mut self.host)
    }

    /// Connects to a port that the host has published.
    fn open(&mut self, open: OpenIn) -> io::Result<()> {
        let number = open.stream;
        let stream = connect_inside(open.port);
        match stream.and_then(|socket| Stream::tcp(number, socket)) {
            Ok(stream) => {
                self.streams.insert(number, stream);
                Ok(())
            }
            // No program listens, or the kernel's resources are exhausted.
            Err(_) => GuestNetwork::Close(StreamId { stream: number }).write(&mut self.host),
        }
    }

    /// Answers a program's query, or forwards it to the host.
    fn ask(&mut self) -> io::Result<()> {
        let Some(doors) = &self.doors else { return Ok(()) };
        let mut message = [0; MAX_MESSAGE];
        let Ok((length, by)) = doors.dns.recv_from(&mut message) else { return Ok(()) };
        let question = match Question::parse(&message[..length]) {
            Ok(question) => question,
            Err(answer) => {
                self.reply(by, answer.as_deref());
                return Ok(());
            }
        };
        let Some(name) = question.name.clone() else {
            self.reply(by, Some(&question.failed(Code::Absent)));
            return Ok(());
        };
        if let Some(address) = self.names.known(&name, Instant::now()) {
            self.reply(by, Some(&question.found(address)));
            return Ok(());
        }
        self.ask_host(Asked { id: self.next_question, name, question, by })
    }

    fn ask_host(&mut self, asked: Asked) -> io::Result<()> {
        if self.questions.len() >= MAX_QUESTIONS {
            self.reply(asked.by, Some(&asked.question.failed(Code::Failed)));
            return Ok(());
        }
        self.next_question = self.next_question.wrapping_add(1);
        let ask = LookUp { id: asked.id, name: asked.name.clone() };
        self.questions.push_back(asked);
        GuestNetwork::LookUp(ask).write(&mut self.host)
    }

    /// Forwards the host's answer to the program.
    fn answer(&mut self, found: &Found) {
        let Some(place) = self.questions.iter().position(|it| it.id == found.id) else { return };
        let Some(asked) = self.questions.remove(place) else { return };
        let answer = if found.ports.is_empty() {
            self.names.deny(&asked.name);
            asked.question.failed(Code::Absent)
        } else {
            asked.question.found(self.names.allow(&asked.name, &found.ports, Instant::now()))
        };
        self.reply(asked.by, Some(&answer));
    }

    /// Sends an answer. If it is lost, the program queries again.
    fn reply(&self, to: SocketAddr, answer: Option<&[u8]>) {
        if let (Some(doors), Some(answer)) = (&self.doors, answer) {
            drop(doors.dns.send_to(answer, to));
        }
    }
}
