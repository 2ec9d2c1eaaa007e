//! A web server on the loopback device that has one file.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A running server; it ends with the test program.
pub(crate) struct Server {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server that answers every request with these bytes.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                // A client that breaks off is its own affair.
                answer(stream, &bytes).ok();
            }
        });
        Self { port, requests }
    }

    /// Returns the URL of a path on this server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns how many requests there were.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn answer(mut stream: TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let length = bytes.len();
    write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")?;
    stream.write_all(bytes)
}
