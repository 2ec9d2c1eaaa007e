use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener as Plain, TcpStream as PlainStream};
use std::os::unix::net::UnixListener as PlainUnix;
use std::sync::Mutex as Guard;
use std::thread;
use std::time::Instant;

use box_contract::wire::{
    Frames, GuestNetwork, HostNetwork, LookUp, MAX_STREAM_DATA, NetworkHello, OpenOut, OpenSocket,
    STREAM_WINDOW, StreamCredit, StreamData, StreamId, Way,
};
use box_contract::{NetworkLimits, NetworkPlan, PeerPlan, Scope};
use egress_rules::{Local, Rules};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::runtime::Builder;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinHandle;

use super::*;
use crate::streams::log::Logs;

/// The guest's end of a connection, and the results of the host's end.
struct Guest {
    stream: UnixStream,
    frames: Frames,
    served: JoinHandle<std::io::Result<()>>,
    visitors: Sender<Visitor>,
    decisions: Arc<Guard<Vec<Decision>>>,
}

impl Guest {
    /// Serves a guest whose box may connect to a port of 127.0.0.1, by address or by a name.
    fn new(port: u16) -> Self {
        Self::with(port, HostSockets::new(Vec::new(), 1, Logs::nowhere().network()))
    }

    /// Serves the agent of a box that also has sockets of the host.
    fn with(port: u16, sockets: HostSockets) -> Self {
        let allow = ["good.test.example", "127.0.0.1"]
            .map(|peer| PeerPlan { peer: peer.to_owned(), port: Some(port) });
        let plan = NetworkPlan { allow: allow.to_vec(), ..NetworkPlan::default() };
        let resolver = Resolver::new(async |_| Ok(vec![Ipv4Addr::LOCALHOST.into()]));
        let decisions = Arc::new(Guard::new(Vec::new()));
        let kept = Arc::clone(&decisions);
        let limits = NetworkLimits::default();
        let local = Local::parse("127.0.0.1").into_iter().collect();
        let rules = Rules { local, ..Rules::try_from(&plan).unwrap() };
        let filter = Filter::new(rules, limits, resolver, move |it| kept.lock().unwrap().push(it));
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        let (visitors, mut receiver) = channel(4);
        let served = tokio::spawn(async move {
            let greeting = link::greeting(&mut theirs).await?;
            let (services, sockets) = (Arc::default(), Arc::new(sockets));
            let ways = Ways { filter: Some(filter), services, sockets };
            link::serve(theirs, greeting, ways, &mut receiver).await
        });
        Self { stream, frames: Frames::default(), served, visitors, decisions }
    }

    async fn say(&mut self, message: GuestNetwork) {
        let mut frame = Vec::new();
        message.write(&mut frame).unwrap();
        // Ignore an error: if the host has hung up, the test checks its result.
        drop(self.stream.write_all(&frame).await);
    }

    async fn greet(&mut self) {
        let hello = NetworkHello { component: ComponentName::Agent };
        self.say(GuestNetwork::Hello(hello)).await;
    }

    async fn open(&mut self, stream: u32, name: &str, port: u16) {
        let way = Way::Direct { name: name.to_owned(), port };
        self.say(GuestNetwork::Open(OpenOut { stream, way })).await;
    }

    async fn open_socket(&mut self, stream: u32, socket: u16) {
        self.say(GuestNetwork::OpenSocket(OpenSocket { stream, socket })).await;
    }

    async fn send(&mut self, stream: u32, data: &[u8]) {
        self.say(GuestNetwork::Data(StreamData { stream, data: data.to_vec() })).await;
    }

    /// Returns the next message; `None` if the host has hung up.
    async fn hear(&mut self) -> Option<HostNetwork> {
        loop {
            if let Some(message) = self.frames.next(|rest| HostNetwork::read(rest)).unwrap() {
                return Some(message);
            }
            let mut chunk = vec![0; 1 << 16];
            match self.stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.frames.push(&chunk[..length]),
            }
        }
    }

    /// Returns the next message that is not [`HostNetwork::Credit`].
    async fn hear_more(&mut self) -> Option<HostNetwork> {
        loop {
            match self.hear().await {
                Some(HostNetwork::Credit(_)) => {}
                other => return other,
            }
        }
    }

    /// Returns why the host has hung up.
    async fn error(self) -> String {
        self.served.await.unwrap().unwrap_err().to_string()
    }
}

fn run(test: impl Future<Output = ()>) {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// Starts a server that echoes its input; returns its port.
fn echo() -> u16 {
    let listener = Plain::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut got = Vec::new();
                stream.read_to_end(&mut got).unwrap();
                stream.write_all(&got)
            });
        }
    });
    port
}

const STREAM: StreamId = StreamId { stream: 0 };

#[test]
fn bytes_and_ends_are_carried_as_far_as_each_side_takes_them() {
    run(async {
        let port = echo();
        let mut guest = Guest::new(port);
        guest.greet().await;
        guest.open(0, "good.test.example", port).await;
        let sent: Vec<u8> = (0..4 * STREAM_WINDOW).map(|it| it.to_le_bytes()[0]).collect();
        let mut window = STREAM_WINDOW as usize;
        for chunk in sent.chunks(MAX_STREAM_DATA) {
            while window < chunk.len() {
                let Some(HostNetwork::Credit(credit)) = guest.hear().await else { panic!() };
                window += credit.bytes as usize;
            }
            window -= chunk.len();
            guest.send(0, chunk).await;
        }
        guest.say(GuestNetwork::End(STREAM)).await;
        let mut got = Vec::new();
        loop {
            match guest.hear_more().await.unwrap() {
                HostNetwork::Data(data) => {
                    got.extend(data.data);
                    // The host sends only as much as the guest permits.
                    if got.len().is_multiple_of(STREAM_WINDOW as usize) {
                        let bytes = STREAM_WINDOW;
                        guest.say(GuestNetwork::Credit(StreamCredit { stream: 0, bytes })).await;
                    }
                }
                HostNetwork::End(_) => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(got == sent);
        assert_eq!(guest.hear_more().await, Some(HostNetwork::Close(STREAM)));
        let decision = guest.decisions.lock().unwrap().pop().unwrap();
        assert_eq!(decision.to_string().split(' ').nth(1), Some("allowed,"));
        assert_eq!((decision.sent, decision.received), (sent.len() as u64, sent.len() as u64));
    });
}

#[test]
fn a_host_that_is_denied_is_reset_and_its_name_has_no_ports() {
    run(async {
        let mut guest = Guest::new(80);
        guest.greet().await;
        guest.open(0, "evil.test.example", 80).await;
        let closed = Some(HostNetwork::Close(STREAM));
        assert_eq!(guest.hear_more().await, closed, "without an end, so it is reset");
        guest.open(2, "not a name", 80).await;
        assert_eq!(guest.hear_more().await, Some(HostNetwork::Close(StreamId { stream: 2 })));
        for (id, name, expected) in
            [(1, "good.test.example", vec![80]), (2, "evil.test.example", vec![]), (3, "", vec![])]
        {
            guest.say(GuestNetwork::LookUp(LookUp { id, name: name.to_owned() })).await;
            let Some(HostNetwork::Found(found)) = guest.hear_more().await else { panic!() };
            assert_eq!((found.id, found.ports), (id, expected));
        }
    });
}

#[test]
fn a_client_of_a_published_port_reaches_the_component() {
    run(async {
        let mut guest = Guest::new(80);
        guest.greet().await;
        let listener = Plain::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut outside = PlainStream::connect(listener.local_addr().unwrap()).unwrap();
        let (inside, _) = listener.accept().unwrap();
        inside.set_nonblocking(true).unwrap();
        let client = tokio::net::TcpStream::from_std(inside).unwrap();
        guest
            .visitors
            .send(Visitor { client, port: 8000, since: Instant::now(), connected: Arc::default() })
            .await
            .unwrap();
        let Some(HostNetwork::Open(open)) = guest.hear().await else { panic!() };
        assert_eq!((open.stream, open.port), (1, 8000));
        outside.write_all(b"request").unwrap();
        let Some(HostNetwork::Data(data)) = guest.hear().await else { panic!() };
        assert_eq!(data.data, b"request");
        guest.send(1, b"answer").await;
        guest.say(GuestNetwork::End(StreamId { stream: 1 })).await;
        let answer = thread::spawn(move || {
            let mut answer = String::new();
            outside.read_to_string(&mut answer).unwrap();
            answer
        });
        let closed = Some(HostNetwork::Close(StreamId { stream: 1 }));
        while guest.hear().await != closed {}
        assert_eq!(answer.join().unwrap(), "answer");
    });
}

/// Sockets of the host in a directory: those of both components, of the agent and of the business component.
fn sockets(directory: &std::path::Path) -> (HostSockets, Vec<PlainUnix>) {
    let real = directory.canonicalize().unwrap();
    let scopes = [Scope::Both, Scope::Agent, Scope::Business];
    let both = scopes.into_iter().enumerate().map(|(at, scope)| {
        let path = real.join(at.to_string());
        let listener = PlainUnix::bind(&path).unwrap();
        (SharedSocket::new(path, "/run/s", scope).unwrap(), listener)
    });
    let (sockets, listeners) = both.unzip();
    let logs = Logs::create(directory, box_contract::LogsPlan::default()).unwrap();
    (HostSockets::new(sockets, 2, logs.network()), listeners)
}

#[test]
fn a_program_exchanges_bytes_and_ends_with_a_socket_of_the_host() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (sockets, listeners) = sockets(dir.path());
        let mut guest = Guest::with(80, sockets);
        guest.greet().await;
        guest.open_socket(0, 1).await;
        let length = 40 * STREAM_WINDOW as usize;
        // The server answers after the end of what the program has sent.
        let server = thread::spawn(move || {
            let mut client = listeners[1].accept().unwrap().0;
            let mut got = Vec::new();
            client.read_to_end(&mut got).unwrap();
            client.write_all(&vec![9; length]).unwrap();
            got
        });
        guest.send(0, b"request").await;
        guest.say(GuestNetwork::End(STREAM)).await;
        let mut got = 0;
        loop {
            match guest.hear_more().await.unwrap() {
                HostNetwork::Data(data) => {
                    got += data.data.len();
                    let bytes = u32::try_from(data.data.len()).unwrap();
                    guest.say(GuestNetwork::Credit(StreamCredit { stream: 0, bytes })).await;
                }
                HostNetwork::End(_) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(guest.hear_more().await, Some(HostNetwork::Close(STREAM)));
        assert_eq!((got, server.join().unwrap()), (length, b"request".to_vec()));
    });
}

#[test]
fn the_last_bytes_for_a_socket_of_the_host_arrive_after_an_abort() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (sockets, listeners) = sockets(dir.path());
        let mut guest = Guest::with(80, sockets);
        guest.greet().await;
        guest.open_socket(0, 0).await;
        let sent = vec![7; MAX_STREAM_DATA];
        guest.send(0, &sent).await;
        guest.send(0, &sent).await;
        guest.say(GuestNetwork::Close(STREAM)).await;
        assert_eq!(guest.hear_more().await, Some(HostNetwork::Close(STREAM)));
        let mut got = Vec::new();
        listeners[0].accept().unwrap().0.read_to_end(&mut got).unwrap();
        assert_eq!(got.len(), 2 * sent.len());
    });
}

#[test]
fn the_ssh_agent_of_the_host_gets_only_what_it_may_be_asked_for() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("agent");
        let listener = PlainUnix::bind(&path).unwrap();
        let agent = SharedSocket::new(path, "/run/ssh-agent.sock", Scope::Agent).unwrap();
        let sockets = HostSockets::new(vec![agent.of_ssh_agent()], 2, Logs::nowhere().network());
        let mut guest = Guest::with(80, sockets);
        guest.greet().await;
        guest.open_socket(0, 0).await;
        let server = thread::spawn(move || {
            let mut client = listener.accept().unwrap().0;
            let (mut got, mut rest) = ([0; 5], Vec::new());
            client.read_exact(&mut got).unwrap();
            client.write_all(&[0, 0, 0, 5, 12, 0, 0, 0, 0]).unwrap();
            client.read_to_end(&mut rest).unwrap();
            (got, rest)
        });
        // A request to remove all keys, and one to list them.
        guest.send(0, &[0, 0, 0, 1, 19, 0, 0, 0, 1, 11]).await;
        guest.say(GuestNetwork::End(STREAM)).await;
        let mut got = Vec::new();
        while let Some(HostNetwork::Data(data)) = guest.hear_more().await {
            got.extend(data.data);
        }
        assert_eq!(got, [0, 0, 0, 1, 5, 0, 0, 0, 5, 12, 0, 0, 0, 0]);
        assert_eq!(server.join().unwrap(), ([0, 0, 0, 1, 11], Vec::new()));
    });
}

#[test]
fn a_component_has_its_own_sockets_alone() {
    for (number, is_its_own) in [(0, true), (1, true), (2, false), (3, false), (u16::MAX, false)] {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let (sockets, _listeners) = sockets(dir.path());
            let mut guest = Guest::with(80, sockets);
            guest.greet().await;
            guest.open_socket(0, number).await;
            guest.say(GuestNetwork::Close(STREAM)).await;
            assert_eq!(guest.hear().await.is_some(), is_its_own, "{number}");
            if !is_its_own {
                let expected = "the guest sent a socket that its component does not have";
                assert_eq!(guest.error().await, expected);
            }
        });
    }
}

/// Init permits two connections at a time, and may know sooner than the host that one has ended.
#[test]
fn a_component_has_no_more_connections_to_sockets_than_the_box_declares() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (sockets, _listeners) = sockets(dir.path());
        let mut guest = Guest::with(80, sockets);
        guest.greet().await;
        for stream in [0, 2, 4, 6, 8] {
            guest.open_socket(stream, 0).await;
        }
        let closed = HostNetwork::Close(StreamId { stream: 8 });
        assert_eq!(guest.hear_more().await, Some(closed));
    });
}

/// The peer has closed before it has read all, and the component sends its bytes and the end.
#[test]
fn what_a_socket_of_the_host_does_not_take_stops_no_component() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (sockets, listeners) = sockets(dir.path());
        let mut guest = Guest::with(80, sockets);
        guest.greet().await;
        guest.open_socket(0, 0).await;
        let accepted = tokio::task::spawn_blocking(move || listeners[0].accept());
        let client = accepted.await.unwrap().unwrap().0;
        client.shutdown(std::net::Shutdown::Read).unwrap();
        let (mut window, mut sent) = (STREAM_WINDOW as usize, 0);
        while sent < 10 * STREAM_WINDOW as usize {
            while window >= MAX_STREAM_DATA {
                guest.send(0, &[7; MAX_STREAM_DATA]).await;
                (window, sent) = (window - MAX_STREAM_DATA, sent + MAX_STREAM_DATA);
            }
            match guest.hear().await.unwrap() {
                HostNetwork::Credit(credit) => window += credit.bytes as usize,
                other => panic!("{other:?}"),
            }
        }
        drop(client);
        while !matches!(guest.hear_more().await.unwrap(), HostNetwork::Close(_)) {}
    });
}

#[test]
fn a_socket_that_is_gone_closes_the_stream_and_is_named_once_in_the_log() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (sockets, listeners) = sockets(dir.path());
        let mut guest = Guest::with(80, sockets);
        guest.greet().await;
        drop(listeners);
        for stream in [0, 2, 4] {
            guest.open_socket(stream, 0).await;
            assert_eq!(guest.hear_more().await, Some(HostNetwork::Close(StreamId { stream })));
        }
        std::fs::remove_file(dir.path().join("0")).unwrap();
        guest.open_socket(6, 0).await;
        assert_eq!(guest.hear_more().await, Some(HostNetwork::Close(StreamId { stream: 6 })));
        let log = std::fs::read(dir.path().join("network.log")).unwrap();
        let log = String::from_utf8_lossy(&log);
        let start = r#"{"component":"agent","way":"socket","host":"/run/s","verdict":"failed","#;
        assert_eq!(log.matches(start).count(), 2, "{log}");
        assert!(log.contains("Connection refused") && log.contains("No such file"), "{log}");
    });
}

/// Each case is something that our init never sends.
#[test]
fn a_hostile_guest_loses_its_connection_and_nothing_waits_for_it() {
    let bytes = |stream, length| GuestNetwork::Data(StreamData { stream, data: vec![0; length] });
    let open = |stream| GuestNetwork::Open(OpenOut { stream, way: Way::Socks });
    let credit = |bytes| GuestNetwork::Credit(StreamCredit { stream: 0, bytes });
    let hello = || GuestNetwork::Hello(NetworkHello { component: ComponentName::Agent });
    let end = |stream| GuestNetwork::End(StreamId { stream });
    let too_much =
        || vec![open(0), bytes(0, MAX_STREAM_DATA), bytes(0, MAX_STREAM_DATA), bytes(0, 1)];
    let attacks = [
        (too_much(), "more bytes than it may send"),
        (vec![open(0), bytes(0, 0)], "more bytes than it may send"),
        (vec![open(0), end(0), end(0)], "a second end of a stream"),
        (vec![open(0), end(0), bytes(0, 1)], "more bytes than it may send"),
        (vec![open(0), credit(1)], "more credit than a window has"),
        (vec![open(0), credit(u32::MAX)], "more credit than a window has"),
        (vec![open(0), open(0)], "a stream's number that is not the next"),
        (vec![open(4), open(2)], "a stream's number that is not the next"),
        (vec![open(1)], "a stream's number that is not the next"),
        (vec![hello()], "a second greeting"),
    ];
    run(async {
        for (messages, expected) in attacks {
            let mut guest = Guest::new(80);
            guest.greet().await;
            for message in messages {
                guest.say(message).await;
            }
            assert_eq!(guest.error().await, format!("the guest sent {expected}"));
        }
        let mut guest = Guest::new(80);
        guest.say(open(0)).await;
        assert!(guest.error().await.contains("before the greeting"));
        let mut guest = Guest::new(80);
        guest.stream.write_all(&[255; 16]).await.unwrap();
        assert!(guest.error().await.contains("a frame of"));
    });
}

#[test]
fn streams_that_are_opened_too_fast_are_closed_unheard() {
    run(async {
        let mut guest = Guest::new(80);
        guest.greet().await;
        let count = 4 * box_contract::rules::MAX_OPENED;
        for number in 0..count {
            guest.open(2 * number, "evil.test.example", 80).await;
        }
        let mut closed = 0;
        while closed < count {
            closed += u32::from(matches!(guest.hear().await, Some(HostNetwork::Close(_))));
        }
        let heard = guest.decisions.lock().unwrap().len();
        assert!(heard < count as usize, "{heard}");
        assert!(heard >= 2 * box_contract::rules::MAX_OPENED as usize, "{heard}");
    });
}

#[test]
fn a_guest_that_reads_no_answers_is_given_up_and_one_of_unknown_streams_is_not() {
    run(async {
        let mut guest = Guest::new(80);
        guest.greet().await;
        for _ in 0..100 {
            guest.send(7, b"to nobody").await;
            guest.say(GuestNetwork::End(StreamId { stream: 9 })).await;
            guest.say(GuestNetwork::Credit(StreamCredit { stream: 11, bytes: 1 })).await;
        }
        for id in 0..200_000 {
            guest
                .say(GuestNetwork::LookUp(LookUp { id, name: "good.test.example".to_owned() }))
                .await;
            if guest.served.is_finished() {
                break;
            }
        }
        assert!(guest.error().await.contains("questions whose answers it does not read"));
    });
}

#[test]
fn a_port_that_is_taken_is_an_error_before_the_box_starts() {
    let taken = Plain::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let host = taken.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let published = Published { host, .."0:80".parse().unwrap() };
    let runtime = RuntimeDir::create(directory.path()).unwrap();
    let plan = testkit::test_box::config().plan;
    assert!(Sockets::make(&runtime, &plan, (&[], None), &[]).unwrap().is_none(), "nothing to do");
    let error = Sockets::make(&runtime, &plan, (&[published], None), &[]).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot publish a port at {host}: ")), "{error}");
}
