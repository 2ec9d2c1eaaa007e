#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test that uses it")]

pub mod likes;
pub mod registry;
mod reply;
mod storage;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub use reply::{Reply, Step, file, length, redirect, reply};

/// The certificate that a server presents.
#[derive(Debug, Clone, Copy)]
pub enum Identity {
    /// No certificate: plain HTTP.
    None,
    /// `tls/server.pem`, a certificate for 127.0.0.1 that is valid from 2020 to 2119. It was made for these tests, so its private
    /// key is no secret. The key of the root certificate was destroyed.
    Valid,
    /// A certificate that was valid in 2020 only.
    Expired,
    /// A self-signed certificate.
    SelfSigned,
}

/// A request from a client.
#[derive(Debug, Clone)]
pub struct Request {
    /// The request line and the headers.
    pub head: String,
    /// The body as text. Bytes that are not UTF-8 are replaced.
    pub body: String,
    /// The body's bytes.
    pub bytes: Vec<u8>,
}

/// An answer that is sent before the end of the body.
#[derive(Debug, Clone)]
pub struct Early {
    /// The number of bytes of the body that are read before the answer.
    pub after: usize,
    /// The answer. After it, the server waits until the client closes the connection. If the answer has no steps, the server
    /// closes the connection.
    pub reply: Reply,
}

impl Request {
    /// Returns the method.
    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// Returns the path, with the query.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns a header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|line| line.0.eq_ignore_ascii_case(name)).map(|line| line.1)
    }
}

/// A running server. It answers one request for each connection.
#[derive(Debug)]
pub struct Server {
    scheme: &'static str,
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    log: Arc<Mutex<Vec<Request>>>,
}

trait Stream: Read + Write {
    /// Tells the client that the answer is complete, if the protocol has a message for that: the close_notify of TLS
    /// ([RFC 8446, section 6.1](https://www.rfc-editor.org/rfc/rfc8446#section-6.1)).
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for TcpStream {}

impl Stream for StreamOwned<ServerConnection, TcpStream> {
    fn finish(&mut self) -> io::Result<()> {
        self.conn.send_close_notify();
        self.flush()
    }
}

type Handler = Box<dyn Fn(&Request) -> Reply + Send + Sync>;
type Hasty = Box<dyn Fn(&Request) -> Option<Early> + Send + Sync>;

/// The functions that answer requests.
struct Answers {
    /// Called first, when only the head of the request has been read.
    early: Hasty,
    handler: Handler,
}

impl Server {
    /// Starts a server at a free port of 127.0.0.1. `handler` gets the port and returns the function that answers
    /// each request.
    pub fn start<H>(identity: Identity, handler: impl FnOnce(u16) -> H) -> Self
    where
        H: Fn(&Request) -> Reply + Send + Sync + 'static,
    {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), identity, handler)
    }

    /// Starts a server that may also answer, or close the connection, before it has read a request's body. `early` is called
    /// after the head was read, and decides this.
    pub fn start_hasty<E, H>(identity: Identity, early: E, handler: impl FnOnce(u16) -> H) -> Self
    where
        E: Fn(&Request) -> Option<Early> + Send + Sync + 'static,
        H: Fn(&Request) -> Reply + Send + Sync + 'static,
    {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::run(address, identity, Box::new(early), |port| Box::new(handler(port)))
    }

    /// Starts a server at an address.
    pub fn start_at<H>(
        address: SocketAddr,
        identity: Identity,
        handler: impl FnOnce(u16) -> H,
    ) -> Self
    where
        H: Fn(&Request) -> Reply + Send + Sync + 'static,
    {
        Self::run(address, identity, Box::new(|_| None), |port| Box::new(handler(port)))
    }

    fn run(
        address: SocketAddr,
        identity: Identity,
        early: Hasty,
        handler: impl FnOnce(u16) -> Handler,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let answers = Arc::new(Answers { early, handler: handler(address.port()) });
        let (stop, log) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let server = Self { scheme: scheme(identity), address, stop, log };
        let (stop, log) = (Arc::clone(&server.stop), Arc::clone(&server.log));
        let tls = tls(identity);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let (tls, answers, log) = (tls.clone(), Arc::clone(&answers), Arc::clone(&log));
                // A client that closes the connection early is part of some tests.
                thread::spawn(move || serve(wrap(stream, tls), &answers, &log).ok());
            }
        });
        server
    }

    /// Returns the URL of a path on this server.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.host())
    }

    /// Returns the server's host and port.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the server's thread, which waits for a connection, so that it ends.
        drop(TcpStream::connect(self.address));
    }
}

/// Returns the path of a file with the roots of the valid and of the expired certificate.
pub fn roots() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls/ca.pem")
}

const fn scheme(identity: Identity) -> &'static str {
    if matches!(identity, Identity::None) { "http" } else { "https" }
}

fn tls(identity: Identity) -> Option<Arc<ServerConfig>> {
    let (certificate, key): (&[u8], &[u8]) = match identity {
        Identity::None => return None,
        Identity::Valid => (include_bytes!("tls/server.pem"), include_bytes!("tls/server.key")),
        Identity::Expired => (include_bytes!("tls/expired.pem"), include_bytes!("tls/expired.key")),
        Identity::SelfSigned => {
            (include_bytes!("tls/self-signed.pem"), include_bytes!("tls/self-signed.key"))
        }
    };
    let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    Some(Arc::new(config))
}

fn wrap(stream: TcpStream, tls: Option<Arc<ServerConfig>>) -> Box<dyn Stream> {
    match tls {
        None => Box::new(stream),
        Some(tls) => Box::new(StreamOwned::new(ServerConnection::new(tls).unwrap(), stream)),
    }
}

/// Reads, records and answers a request.
fn serve(
    mut stream: Box<dyn Stream>,
    answers: &Answers,
    log: &Mutex<Vec<Request>>,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut request = Request { head, body: String::new(), bytes: Vec::new() };
    let early = (answers.early)(&request);
    let length = request.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    let length = early.as_ref().map_or(length, |early| early.after.min(length));
    request.bytes = vec![0; length];
    stream.read_exact(&mut request.bytes)?;
    request.body = String::from_utf8_lossy(&request.bytes).into_owned();
    log.lock().unwrap().push(request.clone());
    let Some(Early { mut reply, .. }) = early else {
        return play(&mut stream, (answers.handler)(&request));
    };
    if !reply.is_empty() {
        // The server waits for the client, because closing a connection with unread bytes resets it, and the answer may be lost.
        reply.push(Step::Hang);
    }
    play(&mut stream, reply)
}

fn play(stream: &mut Box<dyn Stream>, reply: Reply) -> io::Result<()> {
    for step in reply {
        match step {
            Step::Send(bytes) => stream.write_all(&bytes)?,
            Step::Flood(bytes) => loop {
                stream.write_all(&bytes)?;
            },
            Step::Pause(pause) => thread::sleep(pause),
            Step::Break => return Ok(()),
            Step::Hang => while stream.read(&mut [0; 64])? > 0 {},
        }
        stream.flush()?;
    }
    stream.finish()
}
