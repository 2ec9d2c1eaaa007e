//! The peers of the boxes in tests: a DNS resolver for the tests' names, and servers on loopback.
//!
//! `peers DIRECTORY` resolves names at 127.0.0.1, and serves DIRECTORY by HTTP and HTTPS at 127.0.0.2, to which names such as
//! `a.test.example` and `api.example.com` resolve. It prints each query and each request. At 127.0.0.1, and at a public address
//! that the host must have, it runs servers that no box may reach. At 127.0.0.4, it is an HTTP proxy that knows CONNECT, and connects
//! to the servers at 127.0.0.2 for every name. It prints `ready` when it listens.
//!
//! `peers --attempts N PROXY` runs in a box. It asks the proxy for N different denied hosts, and prints how many the proxy
//! denied.
//!
//! `peers --serve-api PORT` is an HTTP API with TLS at 127.0.0.1. It prints each request line, and whether the request has a
//! credential. It answers `/v1/echo` with the request's head, `/v1/messages/stream` with two events and a pause between them, and any
//! other path with the request's body.
//!
//! `peers --search PID TEXT…` prints which texts are in the memory of a process.
//!
//! `peers --serve-socket PATH` listens at a Unix socket, and sends back what a client has sent, once that has ended.
//! `peers --socket PATH` runs in a box. It sends its standard input to the socket, ends that, and prints the answer.
//!
//! `peers --serve-agent PATH` is an SSH agent with one key. It prints what it is asked for, and refuses to sign the data `no`.
//! `peers --ask-agent` runs in a box. It asks the agent of `SSH_AUTH_SOCK` for its keys and for signatures, and to remove all keys, and
//! prints the answers.
//!
//! `peers --serve-models PORT` has the APIs of models with TLS at 127.0.0.1. It prints each request line, and the keys that the
//! request has.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for tests")]

mod models;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use test_server::{Identity, Reply, Request, Server, Step, file, length, redirect, reply};

const SERVERS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// A public address of the virtual host, with a server that no box may reach.
const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);
/// A public address that the virtual host cannot reach. `far.test.example` resolves to it.
const FAR: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 35);
/// The address and the port of the proxy.
const PROXY: (Ipv4Addr, u16) = (Ipv4Addr::new(127, 0, 0, 4), 3128);
/// The pause of an answer. A program of a box has to do something meanwhile.
const PAUSE: Duration = Duration::from_secs(8);
/// The domain of names with special addresses, such as `rebind.test.example`.
const DOMAIN: &str = ".test.example";
/// How much memory is searched at once, in bytes.
const CHUNK: u64 = 64 << 10;
/// The DNS response code NXDOMAIN.
const NO_SUCH_NAME: u8 = 3;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [option, count, proxy] if option == "--attempts" => attempt(count.parse().unwrap(), proxy),
        [option, port] if option == "--serve-api" => serve_api(port.parse().unwrap()),
        [option, pid, texts @ ..] if option == "--search" => search(pid, texts),
        [option, path] if option == "--serve-socket" => echo_at(path),
        [option, path] if option == "--socket" => exchange(path),
        [option, path] if option == "--serve-agent" => serve_agent(path),
        [option] if option == "--ask-agent" => ask_agent(),
        [option, port] if option == "--serve-models" => models::serve(port.parse().unwrap()),
        [directory] => serve(Path::new(directory)),
        other => panic!("{other:?}"),
    }
}

/// Asks the proxy for denied hosts, and prints how many it denied.
fn attempt(count: usize, proxy: &str) {
    let denied = (0..count).filter(|number| {
        let mut stream = TcpStream::connect(proxy).unwrap();
        let host = format!("n{number}.evil.example:443");
        write!(stream, "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer));
        answer.starts_with("HTTP/1.1 403 ")
    });
    println!("denied {}", denied.count());
}

/// Serves an API until the process is killed.
fn serve_api(port: u16) {
    let handler = |request: &Request| {
        let credential = request.header("authorization").map_or("no", |_| "a");
        println!("{}, {credential} credential", request.head.lines().next().unwrap_or_default());
        if request.path() == "/v1/messages/stream" {
            return stream();
        }
        let is_echo = request.path().starts_with("/v1/echo");
        file(if is_echo { request.head.as_bytes() } else { request.body.as_bytes() })
    };
    let _server =
        Server::start_at((Ipv4Addr::LOCALHOST, port).into(), Identity::Valid, |_| handler);
    println!("ready");
    loop {
        thread::park();
    }
}

/// Returns an answer with two events and a pause between them, in chunks.
fn stream() -> Reply {
    let chunk = |event: &str| format!("{:x}\r\n{event}\r\n", event.len());
    let headers = ["Content-Type: text/event-stream", "Transfer-Encoding: chunked"];
    let mut steps = reply("200 OK", &headers, chunk("data: one\n\n").as_bytes());
    let rest = format!("{}0\r\n\r\n", chunk("data: two\n\n"));
    steps.extend([Step::Pause(PAUSE), Step::Send(rest.into_bytes())]);
    steps
}

/// Prints which texts are in the writable memory of a process.
fn search(pid: &str, texts: &[String]) {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut found = vec![false; texts.len()];
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').unwrap();
        if rest.starts_with("rw") {
            let (from, to) = range.split_once('-').unwrap();
            let [from, to] = [from, to].map(|it| u64::from_str_radix(it, 16).unwrap());
            search_in(&memory, from..to, texts, &mut found);
        }
    }
    for (text, found) in texts.iter().zip(found) {
        println!("{text}: {}", if found { "found" } else { "not found" });
    }
}

fn search_in(memory: &fs::File, range: Range<u64>, texts: &[String], found: &mut [bool]) {
    let longest = texts.iter().map(String::len).max().unwrap_or_default();
    let (mut at, mut held) = (range.start, Vec::<u8>::new());
    while at < range.end {
        let mut chunk = vec![0; usize::try_from(CHUNK.min(range.end - at)).unwrap()];
        // A part of a mapping, for example of a device, may have no memory.
        let Ok(length @ 1..) = memory.read_at(&mut chunk, at) else { return };
        at += length as u64;
        // Most of a guest's memory is empty.
        if chunk[..length].iter().all(|byte| *byte == 0) {
            held.clear();
            continue;
        }
        held.extend(&chunk[..length]);
        for (found, text) in found.iter_mut().zip(texts) {
            *found = *found || held.windows(text.len()).any(|it| it == text.as_bytes());
        }
        held.drain(..held.len().saturating_sub(longest));
    }
}

/// Echoes what the clients of a Unix socket send.
fn echo_at(path: &str) {
    for client in UnixListener::bind(path).unwrap().incoming() {
        let mut client = client.unwrap();
        thread::spawn(move || {
            let mut got = Vec::new();
            client.read_to_end(&mut got).unwrap();
            client.write_all(&got).unwrap();
        });
    }
}

/// Sends the standard input to a Unix socket, and prints the answer. A server that hangs up has no answer.
fn exchange(path: &str) {
    let mut server = UnixStream::connect(path).unwrap();
    let mut sent = Vec::new();
    io::stdin().read_to_end(&mut sent).unwrap();
    drop(server.write_all(&sent).and_then(|()| server.shutdown(Shutdown::Write)));
    let mut got = Vec::new();
    drop(server.read_to_end(&mut got));
    io::stdout().write_all(&got).unwrap();
}

/// The messages of an SSH agent
/// ([draft-ietf-sshm-ssh-agent](https://datatracker.ietf.org/doc/draft-ietf-sshm-ssh-agent/)).
const FAILURE: u8 = 5;
const SUCCESS: u8 = 6;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
const REMOVE_ALL_IDENTITIES: u8 = 19;
/// The data that the agent refuses to sign.
const UNSIGNED: &[u8] = b"no";

/// Answers the clients of an SSH agent.
fn serve_agent(path: &str) {
    for client in UnixListener::bind(path).unwrap().incoming() {
        let mut client = client.unwrap();
        while let Some(asked) = receive(&mut client) {
            let (name, answer) = match asked[0] {
                REQUEST_IDENTITIES => ("the keys", keys()),
                SIGN_REQUEST if asked == sign(UNSIGNED) => ("a signature", vec![FAILURE]),
                SIGN_REQUEST => ("a signature", [vec![SIGN_RESPONSE], string(b"made")].concat()),
                REMOVE_ALL_IDENTITIES => ("to remove all keys", vec![SUCCESS]),
                _ => ("something else", vec![FAILURE]),
            };
            println!("asked for {name}");
            send(&mut client, &answer);
        }
    }
}

/// Asks the SSH agent of the environment, and prints its answers.
fn ask_agent() {
    let mut agent = UnixStream::connect(std::env::var_os("SSH_AUTH_SOCK").unwrap()).unwrap();
    let names = [&b"git"[..], b"ssh-connection", b"publickey"].map(string).concat();
    let keys = [string(b"ssh-ed25519"), key()].concat();
    let login = [string(b"session"), vec![50], names, vec![1], keys].concat();
    let commit = [b"SSHSIG".to_vec(), string(b"git")].concat();
    for (name, asked) in [
        ("keys", vec![REQUEST_IDENTITIES]),
        ("login", sign(&login)),
        ("commit", sign(&commit)),
        ("other data", sign(UNSIGNED)),
        ("remove all keys", vec![REMOVE_ALL_IDENTITIES]),
    ] {
        send(&mut agent, &asked);
        let answer = match receive(&mut agent).unwrap()[0] {
            FAILURE => "refused",
            SUCCESS => "done",
            IDENTITIES_ANSWER => "listed",
            SIGN_RESPONSE => "signed",
            _ => "something else",
        };
        println!("{name}: {answer}");
    }
}

/// Returns the agent's key, with its length.
fn key() -> Vec<u8> {
    string(&[string(b"ssh-ed25519"), string(&[7; 32])].concat())
}

/// Returns the list of the agent's keys.
fn keys() -> Vec<u8> {
    [vec![IDENTITIES_ANSWER, 0, 0, 0, 1], key(), string(b"test")].concat()
}

/// Returns the request to sign `data`.
fn sign(data: &[u8]) -> Vec<u8> {
    [vec![SIGN_REQUEST], key(), string(data), vec![0; 4]].concat()
}

/// Returns bytes after their length.
fn string(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

fn send(peer: &mut UnixStream, message: &[u8]) {
    peer.write_all(&string(message)).unwrap();
}

/// Returns the next message. `None` if the peer has hung up.
fn receive(peer: &mut UnixStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    peer.read_exact(&mut length).ok()?;
    let mut message = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    peer.read_exact(&mut message).ok()?;
    Some(message)
}

fn serve(directory: &Path) {
    let directory = directory.to_owned();
    let resolver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53)).unwrap();
    let start = |address: Ipv4Addr, port: u16, identity| {
        let (directory, at) = (directory.clone(), address);
        let handler = move |request: &Request| {
            let host = request.header("host").unwrap_or_default();
            println!("{at}:{port} {} host {host}", request.head.lines().next().unwrap_or_default());
            answer(&directory, request)
        };
        Server::start_at((IpAddr::V4(address), port).into(), identity, |_| handler)
    };
    let _servers = [
        start(SERVERS, 80, Identity::None),
        start(SERVERS, 443, Identity::SelfSigned),
        start(Ipv4Addr::LOCALHOST, 80, Identity::None),
        start(Ipv4Addr::LOCALHOST, 443, Identity::SelfSigned),
        start(PUBLIC, 80, Identity::None),
    ];
    let listener = TcpListener::bind(PROXY).unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || drop(connect(client)));
        }
    });
    println!("ready");
    let asked = AtomicUsize::new(0);
    loop {
        let mut message = [0; 512];
        let (length, by) = resolver.recv_from(&mut message).unwrap();
        if let Some(answer) = resolve(&message[..length], &asked) {
            drop(resolver.send_to(&answer, by));
        }
    }
}

/// Answers a CONNECT request, and passes on bytes until both sides have ended.
fn connect(mut client: TcpStream) -> io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    println!("proxy {} host {target}", head.split(' ').next().unwrap_or_default());
    let port = target.rsplit(':').next().and_then(|it| it.parse().ok()).unwrap_or_default();
    let mut server = TcpStream::connect((SERVERS, port))?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || drop(pass_on(&mut from, &mut to)));
    pass_on(&mut server, &mut client)
}

fn pass_on(from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
    io::copy(from, to)?;
    to.shutdown(Shutdown::Write)
}

/// Answers a request with a file, with N bytes, with the request's body, or with a redirect.
fn answer(directory: &Path, request: &Request) -> Reply {
    let path = request.path().split('?').next().unwrap_or_default();
    if let Some(number) = path.strip_prefix("/bytes/").and_then(|it| it.parse().ok()) {
        return file(&vec![b'x'; number]);
    }
    if let Some(target) = path.strip_prefix("/to/") {
        return redirect(&format!("http://{target}"));
    }
    if path == "/echo" {
        return file(request.body.as_bytes());
    }
    let path = path.trim_start_matches('/');
    if path.split('/').any(|part| part == "..") {
        return reply("400 Bad Request", &["Content-Length: 0"], b"");
    }
    let place = directory.join(path);
    let place = if place.is_dir() { place.join("index.html") } else { place };
    let is_page = place.extension().is_some_and(|it| it == "html");
    match fs::read(place) {
        // pip requires this content type.
        Ok(content) if is_page => {
            reply("200 OK", &["Content-Type: text/html", &length(content.len())], &content)
        }
        Ok(content) => file(&content),
        Err(_) => reply("404 Not Found", &["Content-Length: 0"], b""),
    }
}

/// Answers a DNS query. Only queries for IPv4 addresses get addresses.
fn resolve(question: &[u8], asked: &AtomicUsize) -> Option<Vec<u8>> {
    let (mut name, mut at) = (String::new(), 12);
    while *question.get(at)? > 0 {
        let end = at + 1 + usize::from(question[at]);
        name.push_str(std::str::from_utf8(question.get(at + 1..end)?).ok()?);
        name.push('.');
        at = end;
    }
    let is_for_v4 = question.get(at + 1..at + 3)? == [0, 1];
    let name = name.trim_end_matches('.').to_lowercase();
    if is_for_v4 {
        println!("asked for {name}");
    }
    let addresses = if is_for_v4 { addresses(&name, asked) } else { Vec::new() };
    let mut answer = question[..at + 5].to_vec();
    let code = if is_for_v4 && addresses.is_empty() { NO_SUCH_NAME } else { 0 };
    (answer[2], answer[3]) = (0x81, 0x80 | code);
    answer[4..12].copy_from_slice(&[0, 1, 0, u8::try_from(addresses.len()).ok()?, 0, 0, 0, 0]);
    for address in addresses {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}

/// Returns the IPv4 addresses of a name. `rebind.test.example` resolves to loopback from the second query on.
fn addresses(name: &str, asked: &AtomicUsize) -> Vec<Ipv4Addr> {
    match name.strip_suffix(DOMAIN) {
        Some("rebind") if asked.fetch_add(1, Ordering::Relaxed) > 0 => vec![Ipv4Addr::LOCALHOST],
        Some("inside") => vec![Ipv4Addr::LOCALHOST],
        Some("public") => vec![PUBLIC],
        Some("far") => vec![FAR],
        Some("metadata") => vec![Ipv4Addr::new(169, 254, 169, 254)],
        Some("mixed") => vec![Ipv4Addr::LOCALHOST, SERVERS],
        Some(_) => vec![SERVERS],
        None if name.contains(".example.") => vec![SERVERS],
        None => Vec::new(),
    }
}
