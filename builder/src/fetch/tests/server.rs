//! A small HTTP server on the loopback device: each connection gets the next reply of a script.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What a reply is made of.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Waits a little.
    Pause(Duration),
    /// Sends nothing more until the client hangs up.
    Hang,
}

/// What one connection gets, after its request was read.
pub(super) type Reply = Vec<Step>;

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    scheme: &'static str,
    port: u16,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl Server {
    /// Starts a server for plain HTTP.
    pub(super) fn http(replies: impl Fn(u16) -> Vec<Reply>) -> Self {
        Self::start("http", replies, |stream| Box::new(stream))
    }

    /// Starts a server for https, with the certificate in `tls/`: made for these tests, for
    /// 127.0.0.1, valid from 2020 to 2119. Its key protects nothing; that of its root is destroyed.
    pub(super) fn https(replies: impl Fn(u16) -> Vec<Reply>) -> Self {
        let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let config = Arc::new(config);
        Self::start("https", replies, move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            Box::new(StreamOwned::new(connection, stream))
        })
    }

    /// `replies` makes the script, which may name the server's port.
    fn start(
        scheme: &'static str,
        replies: impl Fn(u16) -> Vec<Reply>,
        wrap: impl Fn(TcpStream) -> Box<dyn Stream> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies = replies(port);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut requests = Vec::new();
            for reply in replies {
                let mut stream = wrap(listener.accept().unwrap().0);
                match read_request(&mut stream) {
                    Ok(request) => {
                        // A client that breaks off is part of some scripts.
                        play(&mut stream, reply).ok();
                        requests.push(request);
                    }
                    Err(_) if stopped.load(Ordering::Relaxed) => break,
                    Err(_) => {}
                }
            }
            requests
        });
        Self { scheme, port, stop, thread }
    }

    /// Returns the URL of a path on this server.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}://127.0.0.1:{}{path}", self.scheme, self.port)
    }

    /// Ends the script; returns the requests, in lower case.
    pub(super) fn requests(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the server where it waits for one more; it may be gone already.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.thread.join().unwrap()
    }
}

fn read_request(stream: &mut Box<dyn Stream>) -> io::Result<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&request).to_lowercase())
}

fn play(stream: &mut Box<dyn Stream>, reply: Reply) -> io::Result<()> {
    for step in reply {
        match step {
            Step::Send(bytes) => stream.write_all(&bytes)?,
            Step::Pause(pause) => thread::sleep(pause),
            Step::Hang => while stream.read(&mut [0; 64])? > 0 {},
        }
        stream.flush()?;
    }
    Ok(())
}

/// Makes a reply of a status, header lines and a body, which is not measured.
pub(super) fn reply(status: &str, headers: &[&str], body: &[u8]) -> Reply {
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    headers.iter().for_each(|header| head.extend([header, "\r\n"]));
    head.push_str("\r\n");
    vec![Step::Send(head.into_bytes()), Step::Send(body.to_vec())]
}

/// Makes a whole answer: its length and its body.
pub(super) fn file(body: &[u8]) -> Reply {
    reply("200 OK", &[&length(body.len())], body)
}

/// Makes a redirect.
pub(super) fn redirect(location: &str) -> Reply {
    reply("302 Found", &[&format!("Location: {location}"), "Content-Length: 0"], b"")
}

pub(super) fn length(bytes: usize) -> String {
    format!("Content-Length: {bytes}")
}
