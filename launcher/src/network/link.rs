//! The host's end of a component's connection, which carries the component's streams and DNS questions.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use box_contract::ComponentName;
use box_contract::pace::Pace;
use box_contract::rules::{MAX_CONNECTIONS, MAX_OPENED, MAX_PORTS};
use box_contract::wire::{
    Found, Frames, GuestNetwork, HostNetwork, LookUp, OpenIn, OpenOut, OpenService, OpenSocket,
    STREAM_WINDOW, StreamId, Way,
};
use egress_proxy::{ClientKind, Filter};
use egress_rules::{Host, Target};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::pipe::pipe;
use super::services::Services;
use super::sockets::HostSockets;
use super::stream::{Carrier, Inlet, stream};
use crate::streams::control::CHUNK;

/// How long a new connection may take to name its component.
const HELLO: Duration = Duration::from_secs(10);
/// How many frames of streams may wait for a component that does not read them. Each frame has at most
/// [`MAX_STREAM_DATA`](box_contract::wire::MAX_STREAM_DATA) bytes.
const MAX_FRAMES: usize = 32;
/// How many short answers may wait for a component that does not read them. Our init never reaches this limit, because
/// it waits for the answer to each of its few questions.
const MAX_ANSWERS: usize = 4096;
/// The size of the buffer between a stream and the filter, in bytes.
const BUFFER: usize = 16 << 10;
/// How long the last bytes of a component may take to a socket of the host after the component has closed the stream.
const LINGER: Duration = Duration::from_secs(10);
/// The most streams to the filter and to sockets of the host that a component may have open. Its init permits programs half as many, and may know
/// sooner than the host that a stream has ended.
const MAX_STREAMS: usize = 2 * MAX_CONNECTIONS as usize;
/// The most clients of a component's published ports that may be connected at a time.
const MAX_VISITORS: usize = 256;
/// How long a client of a published port waits until the component has connected to the host.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of all streams together that may be on their way to the host: as many as our init sends.
const MAX_HELD: usize = (MAX_CONNECTIONS as usize + MAX_VISITORS) * STREAM_WINDOW as usize;

/// A client of a published port.
#[derive(Debug)]
pub(super) struct Visitor {
    /// The client's connection.
    pub(super) client: TcpStream,
    /// The port of the component to which the client is forwarded.
    pub(super) port: u16,
    /// When the client connected.
    pub(super) since: Instant,
    /// Shared by all clients of the box that are connected.
    pub(super) connected: Arc<()>,
}

/// Where the streams of a component lead.
#[derive(Debug, Clone)]
pub(super) struct Ways {
    /// Decides about connections to hosts, if the network is filtered.
    pub(super) filter: Option<Arc<Filter>>,
    /// The HTTP APIs of the box.
    pub(super) services: Arc<Services>,
    /// The box's sockets of the host.
    pub(super) sockets: Arc<HostSockets>,
}

/// The state of a component's connection.
#[derive(Debug)]
struct Link {
    component: ComponentName,
    ways: Ways,
    streams: BTreeMap<u32, Inlet>,
    carriers: JoinSet<u32>,
    /// One for each connection to a socket of the host.
    connected: Arc<()>,
    out: Sender<HostNetwork>,
    answers: Sender<HostNetwork>,
    /// How many bytes of all streams together are on their way to the host.
    held: Arc<AtomicUsize>,
    /// The rate at which the component may open streams and ask DNS questions: twice the rate that its init permits to
    /// programs.
    pace: Pace,
    /// The number of the last stream that the component has opened.
    last: Option<u32>,
    /// The number of the next stream for a client. These numbers are odd, and the component's are even.
    next: u32,
}

/// Waits for the greeting, which has the component's name.
pub(super) async fn greeting(stream: &mut UnixStream) -> io::Result<(ComponentName, Frames)> {
    let (mut frames, mut chunk) = (Frames::default(), [0; CHUNK]);
    let read = async {
        loop {
            let length = stream.read(&mut chunk).await?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            frames.push(&chunk[..length]);
            match frames.next(|rest| GuestNetwork::read(rest))? {
                Some(GuestNetwork::Hello(hello)) => return Ok(hello.component),
                Some(_) => return Err(misuse("another message before the greeting")),
                None => {}
            }
        }
    };
    let component = timeout(HELLO, read).await??;
    Ok((component, frames))
}

/// Serves a component until it hangs up, or sends something that our init never sends.
pub(super) async fn serve(
    stream: UnixStream,
    (component, mut frames): (ComponentName, Frames),
    ways: Ways,
    visitors: &mut Receiver<Visitor>,
) -> io::Result<()> {
    let (mut reader, writer) = stream.into_split();
    let (out, frames_out) = channel(MAX_FRAMES);
    let (answers, answers_out) = channel(MAX_ANSWERS);
    let mut writing = JoinSet::new();
    writing.spawn(write_all(writer, frames_out, answers_out));
    let mut link = Link::new(component, ways, (out, answers));
    let mut chunk = vec![0; CHUNK];
    loop {
        while let Some(message) = frames.next(|rest| GuestNetwork::read(rest))? {
            link.take(message)?;
        }
        tokio::select! {
            length = reader.read(&mut chunk) => match length? {
                0 => return Ok(()),
                length => frames.push(&chunk[..length]),
            },
            Some(visitor) = visitors.recv() => link.let_in(visitor)?,
            Some(Ok(number)) = link.carriers.join_next() => drop(link.streams.remove(&number)),
            _ = writing.join_next() => return Ok(()),
        }
    }
}

impl Link {
    /// Returns a connection without streams. Its frames and answers for the component are sent to `out` and `answers`.
    fn new(
        component: ComponentName,
        ways: Ways,
        (out, answers): (Sender<HostNetwork>, Sender<HostNetwork>),
    ) -> Self {
        Self {
            component,
            ways,
            streams: BTreeMap::new(),
            carriers: JoinSet::new(),
            connected: Arc::default(),
            out,
            answers,
            held: Arc::default(),
            pace: Pace::new(2 * MAX_OPENED, Instant::now()),
            last: None,
            next: 1,
        }
    }

    /// Handles a message without waiting, because the host must always read from a component, even if the component
    /// does not read.
    fn take(&mut self, message: GuestNetwork) -> io::Result<()> {
        match message {
            GuestNetwork::Hello(_) => return Err(misuse("a second greeting")),
            GuestNetwork::Open(open) => return self.open(open),
            GuestNetwork::OpenService(open) => return self.open_service(open),
            GuestNetwork::OpenSocket(open) => return self.open_socket(open),
            GuestNetwork::LookUp(asked) => return self.look_up(asked),
            GuestNetwork::Data(data) => {
                let inlet = self.streams.get(&data.stream);
                let is_sound = inlet.is_none_or(|it| it.push(&data.data));
                if !is_sound || self.held.load(Ordering::Relaxed) > MAX_HELD {
                    return Err(misuse("more bytes than it may send"));
                }
            }
            GuestNetwork::Credit(credit) => {
                let inlet = self.streams.get(&credit.stream);
                if inlet.is_some_and(|it| !it.grant(credit.bytes)) {
                    return Err(misuse("more credit than a window has"));
                }
            }
            GuestNetwork::End(StreamId { stream }) => {
                if self.streams.get(&stream).is_some_and(|it| !it.end()) {
                    return Err(misuse("a second end of a stream"));
                }
            }
            GuestNetwork::Close(StreamId { stream }) => {
                self.streams.get(&stream).into_iter().for_each(Inlet::close);
            }
        }
        Ok(())
    }

    /// Opens a stream from the component to the filter.
    fn open(&mut self, OpenOut { stream: number, way }: OpenOut) -> io::Result<()> {
        let has_room = self.takes(number)?;
        let filter = self.ways.filter.clone().filter(|_| has_room);
        let (Some(filter), Some(kind)) = (filter, kind_of(way)) else {
            return self.answer(HostNetwork::Close(StreamId { stream: number }));
        };
        let (carrier, component) = (self.carrier(number), self.component);
        self.carriers.spawn(async move {
            let (near, far) = pipe(BUFFER);
            carrier.carry(near, filter.serve(component, kind, far), Duration::ZERO).await;
            number
        });
        Ok(())
    }

    /// Opens a stream from the component to an HTTP API.
    fn open_service(
        &mut self,
        OpenService { stream: number, service }: OpenService,
    ) -> io::Result<()> {
        let has_room = self.takes(number)?;
        let service = self.ways.services.find(self.component, service);
        let service =
            service.ok_or_else(|| misuse("a service that its component does not have"))?;
        if !has_room {
            return self.answer(HostNetwork::Close(StreamId { stream: number }));
        }
        let carrier = self.carrier(number);
        self.carriers.spawn(async move {
            let (near, far) = pipe(BUFFER);
            carrier.carry(near, service.serve(far), Duration::ZERO).await;
            number
        });
        Ok(())
    }

    /// Opens a stream from the component to a socket of the host.
    fn open_socket(&mut self, OpenSocket { stream: number, socket }: OpenSocket) -> io::Result<()> {
        let has_room = self.takes(number)?;
        let component = self.component;
        let sockets = &self.ways.sockets;
        if !sockets.has(component, socket) {
            return Err(misuse("a socket that its component does not have"));
        }
        if !has_room || Arc::strong_count(&self.connected) > sockets.most() {
            return self.answer(HostNetwork::Close(StreamId { stream: number }));
        }
        let sockets = Arc::clone(sockets);
        let carrier = self.carrier(number);
        let connected = Arc::clone(&self.connected);
        self.carriers.spawn(async move {
            let Ok(_seat) = sockets.seat(component, socket).await else {
                carrier.refuse().await;
                return number;
            };
            match sockets.connect(component, socket).await {
                None => carrier.refuse().await,
                Some(agent) if sockets.is_ssh_agent(socket) => {
                    let (near, far) = pipe(BUFFER);
                    let work = sockets.serve_agent(component, far, agent);
                    carrier.carry(near, work, Duration::ZERO).await;
                }
                Some(host) => carrier.carry(host, std::future::pending(), LINGER).await,
            }
            drop(connected);
            number
        });
        Ok(())
    }

    /// Takes the number of a stream that the component opens. Returns whether there is room for the stream.
    fn takes(&mut self, number: u32) -> io::Result<bool> {
        if !number.is_multiple_of(2) || self.last.is_some_and(|last| number <= last) {
            return Err(misuse("a stream's number that is not the next"));
        }
        self.last = Some(number);
        let own = self.streams.keys().filter(|number| *number % 2 == 0).count();
        Ok(own < MAX_STREAMS && self.pace.take(Instant::now()))
    }

    /// Creates the stream `number`. Returns the half that passes its bytes.
    fn carrier(&mut self, number: u32) -> Carrier {
        let (inlet, carrier) = stream(number, self.out.clone(), &self.held);
        self.streams.insert(number, inlet);
        carrier
    }

    /// Opens a stream from a client to a published port of the component.
    fn let_in(&mut self, visitor: Visitor) -> io::Result<()> {
        let visitors = self.streams.keys().filter(|number| *number % 2 == 1).count();
        // Hang up if there are too many clients, or this one has waited for too long.
        if visitors >= MAX_VISITORS || visitor.since.elapsed() > PATIENCE {
            return Ok(());
        }
        let number = self.next;
        self.next = self.next.checked_add(2).ok_or_else(|| misuse("no number for a stream"))?;
        self.answer(HostNetwork::Open(OpenIn { stream: number, port: visitor.port }))?;
        let carrier = self.carrier(number);
        let Visitor { client, connected, .. } = visitor;
        self.carriers.spawn(async move {
            carrier.carry(client, std::future::pending(), Duration::ZERO).await;
            drop(connected);
            number
        });
        Ok(())
    }

    fn look_up(&mut self, LookUp { id, name }: LookUp) -> io::Result<()> {
        let filter = self.ways.filter.as_ref().filter(|_| self.pace.take(Instant::now()));
        let ports = filter.and_then(|it| it.look_up(self.component, &name).ok());
        let mut ports = ports.unwrap_or_default();
        ports.truncate(MAX_PORTS);
        self.answer(HostNetwork::Found(Found { id, ports }))
    }

    fn answer(&self, message: HostNetwork) -> io::Result<()> {
        self.answers
            .try_send(message)
            .map_err(|_| misuse("questions whose answers it does not read"))
    }
}

/// Returns how a client asks the filter for a connection. `None` if the client's host name is invalid.
fn kind_of(way: Way) -> Option<ClientKind> {
    Some(match way {
        Way::Http => ClientKind::Http,
        Way::Socks => ClientKind::Socks,
        Way::Direct { name, port } => {
            ClientKind::Direct(Target { host: Host::parse(&name).ok()?, port })
        }
    })
}

/// Writes `answers` and `frames` to a component, answers first, so that the message that opens a stream precedes the
/// stream's bytes.
async fn write_all(
    mut writer: OwnedWriteHalf,
    mut frames: Receiver<HostNetwork>,
    mut answers: Receiver<HostNetwork>,
) {
    loop {
        let message = tokio::select! {
            biased;
            Some(answer) = answers.recv() => answer,
            Some(frame) = frames.recv() => frame,
            else => return,
        };
        let mut bytes = Vec::new();
        if message.write(&mut bytes).is_err() || writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

fn misuse(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the guest sent {what}"))
}
