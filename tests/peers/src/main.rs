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
//! credential. It answers `/v1/echo` with the request's head, and any other path with the request's body.
//!
//! `peers --search PID TEXT…` prints which texts are in the memory of a process.
//!
//! `peers --serve-socket PATH` listens at a Unix socket, and sends back what a client has sent, once that has ended.
//! `peers --socket PATH` runs in a box. It sends its standard input to the socket, ends that, and prints the answer.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for tests")]

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use test_server::{Identity, Reply, Request, Server, file, length, redirect, reply};

const SERVERS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// A public address of the virtual host, with a server that no box may reach.
const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);
/// A public address that the virtual host cannot reach. `far.test.example` resolves to it.
const FAR: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 35);
/// The address and the port of the proxy.
const PROXY: (Ipv4Addr, u16) = (Ipv4Addr::new(127, 0, 0, 4), 3128);
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
