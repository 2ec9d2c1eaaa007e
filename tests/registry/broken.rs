//! Tests with a connection to the registry that breaks in the middle of a layer.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use oci_registry::{Options, Registry, RegistryConfig, Repository};

use crate::pushed::{NAME, Pushed, TAG, parts, tagged};

/// The number of bytes that the first connection forwards before it breaks.
const THROUGH: u64 = 300_000;

/// A proxy for a registry. Its first connection breaks.
struct Line {
    host: String,
    /// The first request of each connection.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Line {
    fn to(registry: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            let limits = std::iter::once(THROUGH).chain(std::iter::repeat(u64::MAX));
            for (stream, limit) in listener.incoming().flatten().zip(limits) {
                let (registry, log) = (registry.clone(), Arc::clone(&log));
                // Errors are expected, because connections break.
                thread::spawn(move || pass(stream, &registry, limit, &log).ok());
            }
        });
        Self { host, asked }
    }
}

fn pass(
    mut client: TcpStream,
    registry: &str,
    limit: u64,
    log: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut server = TcpStream::connect(registry)?;
    let mut request = vec![0; 64 << 10];
    let length = client.read(&mut request)?;
    log.lock().unwrap().push(String::from_utf8_lossy(&request[..length]).to_lowercase());
    server.write_all(&request[..length])?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || io::copy(&mut from, &mut to));
    io::copy(&mut server.take(limit), &mut client)?;
    client.shutdown(std::net::Shutdown::Both)
}

#[test]
fn an_interrupted_layer_is_resumed() {
    let pushed = Pushed::open();
    let manifest = Registry::new(pushed.options());
    let manifest = manifest.manifest(&pushed.repository(), &tagged(TAG)).unwrap();
    let layer = parts(&manifest).1[0];
    assert!(layer.1 > THROUGH, "the connection breaks in the middle of it");

    let line = Line::to(pushed.registry.host());
    let config = format!("[registry.\"{}\"]\nplain-http = true", line.host);
    let config = RegistryConfig::parse(&config).unwrap();
    let registry = Registry::new(Options { config, ..pushed.options() });
    let repository = Repository::new(&line.host, NAME).unwrap();
    registry.fetch_blobs(&repository, &[layer], &pushed.store).unwrap();

    let stored = pushed.store.read(&layer.0).unwrap();
    assert!(stored == pushed.blob(&layer.0));
    let asked = line.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert!(
        !asked[0].contains("\r\nrange:") && asked[1].contains("\r\nrange: bytes="),
        "{asked:?}"
    );
}
