//! A proxy for a registry that counts the bytes in both directions.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use testbed::{KitError, Result};

use crate::measure::Sample;

/// The number of bytes to the registry that are kept, to find the requests in them.
const KEPT: usize = 64 << 10;

/// The traffic and the cost of one command.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic {
    /// Bytes to the registry, headers included.
    pub(super) up: u64,
    /// Bytes from the registry, headers included.
    pub(super) down: u64,
    /// The methods of the requests in the first [`KEPT`] bytes, in their order.
    pub(super) requests: Vec<String>,
    pub(super) took: Sample,
}

/// A proxy for a registry.
#[derive(Debug)]
pub(super) struct Line {
    /// The address on which the proxy listens, such as `127.0.0.1:40001`.
    pub(super) host: String,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    up: AtomicU64,
    down: AtomicU64,
    sent: Mutex<Vec<u8>>,
}

impl Line {
    /// Starts a proxy for `registry` on the loopback device.
    pub(super) fn to(registry: &str) -> Result<Self> {
        let failed =
            |error: io::Error| KitError::malformed("the loopback device", error.to_string());
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let host = listener.local_addr().map_err(failed)?.to_string();
        let counts = Arc::<Counts>::default();
        let (registry, shared) = (registry.to_owned(), Arc::clone(&counts));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (registry, counts) = (registry.clone(), Arc::clone(&shared));
                // Ignores broken connections, because the measured command reports them.
                thread::spawn(move || pass(client, &registry, &counts).ok());
            }
        });
        Ok(Self { host, counts })
    }

    /// Returns the traffic since the last call.
    pub(super) fn taken(&self) -> Traffic {
        let take = |count: &AtomicU64| count.swap(0, Ordering::SeqCst);
        let sent = &mut *self.counts.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = methods(&std::mem::take(sent));
        let (up, down) = (take(&self.counts.up), take(&self.counts.down));
        Traffic { up, down, requests, took: Sample::default() }
    }
}

/// Returns the methods of the HTTP requests in `sent`.
fn methods(sent: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(sent);
    let heads = text.lines().filter(|line| line.ends_with(" HTTP/1.1"));
    heads.filter_map(|line| line.split(' ').next()).map(ToOwned::to_owned).collect()
}

fn pass(client: TcpStream, registry: &str, counts: &Arc<Counts>) -> io::Result<()> {
    let server = TcpStream::connect(registry)?;
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    let shared = Arc::clone(counts);
    thread::spawn(move || {
        copy(&from, &to, |bytes| {
            shared.up.fetch_add(bytes.len() as u64, Ordering::SeqCst);
            let mut sent = shared.sent.lock().unwrap_or_else(PoisonError::into_inner);
            let room = KEPT.saturating_sub(sent.len()).min(bytes.len());
            sent.extend_from_slice(&bytes[..room]);
        })
        .and_then(|()| to.shutdown(Shutdown::Write))
    });
    copy(&server, &client, |bytes| {
        counts.down.fetch_add(bytes.len() as u64, Ordering::SeqCst);
    })?;
    client.shutdown(Shutdown::Both)
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, count: impl Fn(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => {
                count(&buffer[..length]);
                to.write_all(&buffer[..length])?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_through_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let line = Line::to(&listener.local_addr().unwrap().to_string()).unwrap();
        let mut client = TcpStream::connect(&line.host).unwrap();
        client.write_all(b"GET /a HTTP/1.1\r\n\r\n").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut server = listener.accept().unwrap().0;
        server.read_to_end(&mut Vec::new()).unwrap();
        server.write_all(&[7; 100_000]).unwrap();
        drop(server);
        client.read_to_end(&mut Vec::new()).unwrap();
        let traffic = line.taken();
        assert_eq!(
            (traffic.up, traffic.down, &*traffic.requests),
            (19, 100_000, &["GET".to_owned()][..])
        );
        assert_eq!(line.taken().down, 0);
    }
}
