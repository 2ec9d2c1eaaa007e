use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use box_contract::NetworkLimits;
use box_contract::wire::{
    Found, HostNetwork, OpenIn, OpenOut, OpenService, OpenSocket, StreamCredit, StreamData,
    StreamId, Way,
};

use super::*;
use crate::sockets;

/// The host's end of a component's network.
struct Host {
    stream: UnixStream,
    http: SocketAddr,
    dns: SocketAddr,
    served: JoinHandle<i32>,
}

impl Host {
    fn new(connections: u32) -> Self {
        Self::with(connections, Doors::default())
    }

    /// Returns the end of a component that has a filter and these doors.
    fn with(connections: u32, doors: Doors) -> Self {
        let at = (Ipv4Addr::LOCALHOST, 0);
        let dns = UdpSocket::bind(at).unwrap();
        dns.set_nonblocking(true).unwrap();
        let filter = Listeners { http: listen(at).unwrap(), socks: listen(at).unwrap(), dns };
        let (http, dns) = (filter.http.local_addr().unwrap(), filter.dns.local_addr().unwrap());
        let (stream, theirs) = UnixStream::pair().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let limits = NetworkLimits { connections, ..NetworkLimits::default() };
        let host = File::from(OwnedFd::from(theirs));
        let doors = Doors { filter: Some(filter), ..doors };
        let server = server::Server::new(host, ComponentName::Agent, doors, limits);
        Self { stream, http, dns, served: thread::spawn(|| server.run()) }
    }

    fn hear(&mut self) -> GuestNetwork {
        GuestNetwork::read(&mut self.stream).unwrap().unwrap()
    }

    fn say(&mut self, message: HostNetwork) {
        message.write(&mut self.stream).unwrap();
    }
}

#[test]
fn a_program_and_the_host_exchange_bytes_and_ends() {
    let mut host = Host::new(8);
    let mut program = TcpStream::connect(host.http).unwrap();
    assert_eq!(host.hear(), GuestNetwork::Open(OpenOut { stream: 0, way: Way::Http }));
    program.write_all(b"request").unwrap();
    program.shutdown(std::net::Shutdown::Write).unwrap();
    let data = StreamData { stream: 0, data: b"request".to_vec() };
    assert_eq!(host.hear(), GuestNetwork::Data(data));
    assert_eq!(host.hear(), GuestNetwork::End(StreamId { stream: 0 }));
    host.say(HostNetwork::Data(StreamData { stream: 0, data: b"answer".to_vec() }));
    host.say(HostNetwork::End(StreamId { stream: 0 }));
    let mut answer = String::new();
    program.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
    assert_eq!(host.hear(), GuestNetwork::Credit(StreamCredit { stream: 0, bytes: 6 }));
    // Data for a stream that is over is dropped.
    host.say(HostNetwork::Data(StreamData { stream: 0, data: b"late".to_vec() }));
    drop(TcpStream::connect(host.http).unwrap());
    assert_eq!(host.hear(), GuestNetwork::Open(OpenOut { stream: 2, way: Way::Http }));
    drop(host.stream);
    assert_eq!(host.served.join().unwrap(), 0);
}

#[test]
fn a_program_waits_where_there_are_too_many_connections() {
    let mut host = Host::new(1);
    let first = TcpStream::connect(host.http).unwrap();
    assert_eq!(host.hear(), GuestNetwork::Open(OpenOut { stream: 0, way: Way::Http }));
    let _second = TcpStream::connect(host.http).unwrap();
    drop(first);
    // The second connection is accepted only after the first has closed.
    assert_eq!(host.hear(), GuestNetwork::End(StreamId { stream: 0 }));
    host.say(HostNetwork::Close(StreamId { stream: 0 }));
    assert_eq!(host.hear(), GuestNetwork::Open(OpenOut { stream: 2, way: Way::Http }));
}

#[test]
fn a_program_reaches_an_http_api_by_its_number() {
    let listener = listen((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    let services = vec![ServiceDoor { number: 5, listener }];
    let mut host = Host::with(1, Doors { services, ..Doors::default() });
    let mut program = TcpStream::connect(at).unwrap();
    assert_eq!(host.hear(), GuestNetwork::OpenService(OpenService { stream: 0, service: 5 }));
    // The limit is that of all connections of the component.
    let _waits = TcpStream::connect(at).unwrap();
    program.write_all(b"request").unwrap();
    let data = StreamData { stream: 0, data: b"request".to_vec() };
    assert_eq!(host.hear(), GuestNetwork::Data(data));
    host.say(HostNetwork::Close(StreamId { stream: 0 }));
    assert_eq!(host.hear(), GuestNetwork::OpenService(OpenService { stream: 2, service: 5 }));
}

#[test]
fn a_program_reaches_a_socket_of_the_host_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let door = |number: u16| {
        let listener = sockets::listen_at(&dir.path().join(number.to_string())).unwrap();
        SocketDoor { component: ComponentName::Agent, number, listener }
    };
    let mut host = Host::with(1, Doors { sockets: vec![door(3), door(7)], ..Doors::default() });
    let path = |number: u16| dir.path().join(number.to_string());
    let mode = std::fs::metadata(path(7)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666, "each user of the component may connect");
    let mut program = UnixStream::connect(path(7)).unwrap();
    assert_eq!(host.hear(), GuestNetwork::OpenSocket(OpenSocket { stream: 0, socket: 7 }));
    // The limit is that of all connections of the component.
    let _waits = UnixStream::connect(path(3)).unwrap();
    let _waits_too = TcpStream::connect(host.http).unwrap();
    program.write_all(b"request").unwrap();
    program.shutdown(std::net::Shutdown::Write).unwrap();
    let data = StreamData { stream: 0, data: b"request".to_vec() };
    assert_eq!(host.hear(), GuestNetwork::Data(data));
    assert_eq!(host.hear(), GuestNetwork::End(StreamId { stream: 0 }));
    host.say(HostNetwork::Data(StreamData { stream: 0, data: b"answer".to_vec() }));
    host.say(HostNetwork::End(StreamId { stream: 0 }));
    let mut answer = String::new();
    program.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
    assert_eq!(host.hear(), GuestNetwork::Credit(StreamCredit { stream: 0, bytes: 6 }));
    let next = [
        GuestNetwork::OpenSocket(OpenSocket { stream: 2, socket: 3 }),
        GuestNetwork::Open(OpenOut { stream: 2, way: Way::Http }),
    ];
    assert!(next.contains(&host.hear()));
}

#[test]
fn a_client_of_the_host_reaches_what_listens_inside() {
    let mut host = Host::new(8);
    let inside = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = inside.local_addr().unwrap().port();
    host.say(HostNetwork::Open(OpenIn { stream: 1, port }));
    host.say(HostNetwork::Data(StreamData { stream: 1, data: b"request".to_vec() }));
    let (mut program, _) = inside.accept().unwrap();
    let mut got = [0; 7];
    program.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"request");
    drop(inside);
    host.say(HostNetwork::Open(OpenIn { stream: 3, port }));
    let mut heard = host.hear();
    while matches!(heard, GuestNetwork::Credit(_)) {
        heard = host.hear();
    }
    assert_eq!(heard, GuestNetwork::Close(StreamId { stream: 3 }), "nobody listens");
}

#[test]
fn names_are_the_hosts_to_allow() {
    let mut host = Host::new(8);
    let program = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    program.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let ask = |name: &[u8]| {
        let head = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        program.send_to(&[&head, name, &[0, 0, 1, 0, 1]].concat(), host.dns).unwrap();
    };
    let answer = || {
        let mut answer = [0; 512];
        let length = program.recv(&mut answer).unwrap();
        answer[..length].to_vec()
    };
    ask(b"\x03Api\x04test");
    let GuestNetwork::LookUp(asked) = GuestNetwork::read(&mut &host.stream).unwrap().unwrap()
    else {
        panic!()
    };
    assert_eq!(asked.name, "api.test");
    let found = |ports| HostNetwork::Found(Found { id: asked.id, ports });
    found(vec![443]).write(&mut &host.stream).unwrap();
    let found = answer();
    assert_eq!((found[3] & 15, &found[found.len() - 4..]), (0, &[198, 18, 0, 2][..]));
    // The host is not queried again so soon.
    ask(b"\x03api\x04test");
    assert_eq!(answer()[3] & 15, 0);
    ask(b"\x04evil\x04test");
    let GuestNetwork::LookUp(asked) = host.hear() else { panic!() };
    host.say(HostNetwork::Found(Found { id: asked.id, ports: Vec::new() }));
    assert_eq!(answer()[3] & 15, 3, "there is no such name");
}
