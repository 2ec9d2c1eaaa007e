//! Tests the filter between clients and servers on the loopback device. Servers that must not be reached are real, and
//! count their connections.

mod good;
mod http;
mod limits;
mod proxy;
mod reload;
mod resolve;
mod service;
mod socks;
mod targets;
mod time;
mod tls;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use box_contract::{ComponentName, NetworkLimits};
use egress_rules::{Local, Peer, Rule, Rules};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::decision::{Decision, Verdict};
use crate::filter::ClientKind;
use crate::resolver::Resolver;
use crate::state::{Filter, Settings};

/// Names that are allowed at the port of the server, and that resolve to 127.0.0.1.
pub(crate) const GOOD: &str = "good.test.example";
pub(crate) const OTHER: &str = "other.test.example";
/// Longer than any operation on the loopback device takes.
const LONG: Duration = Duration::from_secs(5);

/// The behaviour of a server.
#[derive(Clone)]
pub(crate) enum Does {
    /// Sends the received bytes back.
    Echo,
    /// Sends the second field whenever the received bytes end with the first.
    Answer(&'static str, Vec<u8>),
    /// Does not read or write.
    Nothing,
    /// Hangs up after it has received bytes.
    HangUp,
    /// Sends these bytes again and again.
    Flood(Vec<u8>),
}

/// A server that records the bytes that it receives.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    visits: Arc<AtomicUsize>,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Server {
    pub(crate) async fn start(address: &str, does: Does) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            visits: Arc::default(),
            got: Arc::default(),
        };
        let (visits, got) = (Arc::clone(&server.visits), Arc::clone(&server.got));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                visits.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(visit(stream, does.clone(), Arc::clone(&got)));
            }
        });
        server
    }

    pub(crate) fn visits(&self) -> usize {
        self.visits.load(Ordering::Relaxed)
    }

    /// Returns all bytes that the server received, on all connections.
    pub(crate) fn got(&self) -> String {
        String::from_utf8_lossy(&self.got.lock().unwrap()).into_owned()
    }
}

async fn visit(mut stream: TcpStream, does: Does, got: Arc<Mutex<Vec<u8>>>) {
    if let Does::Flood(bytes) = &does {
        while stream.write_all(bytes).await.is_ok() {}
        return;
    }
    let (mut own, mut buffer) = (Vec::new(), [0; 8192]);
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        got.lock().unwrap().extend(&buffer[..count]);
        own.extend(&buffer[..count]);
        let answer = match &does {
            Does::HangUp => return,
            Does::Echo => buffer[..count].to_vec(),
            Does::Answer(end, answer) if own.ends_with(end.as_bytes()) => answer.clone(),
            _ => continue,
        };
        if stream.write_all(&answer).await.is_err() {
            break;
        }
    }
}

/// A filter, the server that clients may reach, and decoys: servers that they must not reach.
pub(crate) struct World {
    pub(crate) filter: Arc<Filter>,
    pub(crate) server: Server,
    /// Servers at 127.0.0.2 and ::1 with the server's port, and at 127.0.0.1 with another port.
    decoys: Vec<Server>,
    decisions: Arc<Mutex<Vec<Decision>>>,
    pub(crate) lookups: Arc<AtomicUsize>,
}

/// The settings of a test.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) does: Does,
    pub(crate) limits: NetworkLimits,
    pub(crate) settings: Settings,
    /// Whether clients must ask for names in TLS at the server's port.
    pub(crate) is_tls: bool,
}

impl Default for Setup {
    fn default() -> Self {
        let short = Duration::from_millis(300);
        let settings = Settings {
            request: short,
            resolve: short,
            connect: short,
            hello: short,
            ..Settings::default()
        };
        Self { does: Does::Echo, limits: NetworkLimits::default(), settings, is_tls: false }
    }
}

impl Setup {
    pub(crate) fn that(does: Does) -> Self {
        Self { does, ..Self::default() }
    }

    /// A server that sends the same answer to each request.
    pub(crate) fn http() -> Self {
        Self::that(Does::Answer("\r\n\r\n", ok("ok")))
    }

    /// Starts the servers and the filter. Every name resolves to the address of the server.
    pub(crate) async fn start(self) -> World {
        self.resolving(async |_, _| Ok(vec!["127.0.0.1".parse().unwrap()])).await
    }

    /// Starts the servers and the filter. `resolve` gets a name, and how many names were resolved before.
    pub(crate) async fn resolving<F, A>(mut self, resolve: F) -> World
    where
        F: Fn(String, usize) -> A + Send + Sync + 'static,
        A: Future<Output = std::io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        let (server, decoys) = servers(self.does.clone()).await;
        let port = server.address.port();
        if self.is_tls {
            self.settings.tls_port = port;
        }
        let (decisions, lookups) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicUsize>::default());
        let (reported, asked) = (Arc::clone(&decisions), Arc::clone(&lookups));
        let resolver =
            Resolver::new(move |name| resolve(name, asked.fetch_add(1, Ordering::Relaxed)));
        let tell = move |decision| reported.lock().unwrap().push(decision);
        let filter = Filter::with(rules(port), self.limits, resolver, tell, self.settings);
        World { filter, server, decoys, decisions, lookups }
    }
}

/// Starts a server at 127.0.0.1 and its decoys.
async fn servers(does: Does) -> (Server, Vec<Server>) {
    let nearby = Server::start("127.0.0.1:0", Does::Echo).await;
    loop {
        let server = Server::start("127.0.0.1:0", does.clone()).await;
        let port = server.address.port();
        let others = [format!("127.0.0.2:{port}"), format!("[::1]:{port}")];
        // Take another port if another test uses this one at one of these addresses.
        if others.iter().any(|it| std::net::TcpListener::bind(it).is_err_and(|why| is_used(&why))) {
            continue;
        }
        let mut decoys = vec![nearby];
        for address in others {
            if std::net::TcpListener::bind(&address).is_ok() {
                decoys.push(Server::start(&address, Does::Echo).await);
            }
        }
        return (server, decoys);
    }
}

fn is_used(why: &std::io::Error) -> bool {
    why.kind() == std::io::ErrorKind::AddrInUse
}

/// Returns rules that allow two names, all names below a third, and two addresses, at the server's port.
pub(crate) fn rules(port: u16) -> Rules {
    let rule = |peer: &str, port| Rule { peer: Peer::parse(peer).unwrap(), port };
    let allow = [GOOD, OTHER, "*.wild.example", "127.0.0.1", "192.0.2.1"];
    Rules {
        allow: allow.map(|peer| rule(peer, Some(port))).to_vec(),
        deny: vec![rule("denied.wild.example", None), rule("203.0.113.0/24", None)],
        local: ["127.0.0.1", "192.0.2.1", "::1"].iter().filter_map(|it| Local::parse(it)).collect(),
        ..Rules::default()
    }
}

/// Returns an HTTP answer with this body.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

impl World {
    pub(crate) fn port(&self) -> u16 {
        self.server.address.port()
    }

    /// Replaces `{port}` and `{decoy}` in a text with the ports of the server and of a decoy.
    pub(crate) fn text(&self, text: &str) -> String {
        let decoy = self.decoys[0].address.port().to_string();
        text.replace("{port}", &self.port().to_string()).replace("{decoy}", &decoy)
    }

    /// Serves a client, and returns the client's end of the connection.
    pub(crate) fn open(&self, way: ClientKind) -> DuplexStream {
        let (client, served) = duplex(64 << 10);
        tokio::spawn(Arc::clone(&self.filter).serve(ComponentName::Agent, way, served));
        client
    }

    /// Sends bytes as a client, and returns the whole answer.
    pub(crate) async fn exchange(&self, way: ClientKind, bytes: &[u8]) -> String {
        let mut client = self.open(way);
        // The filter may end the connection before all bytes were sent.
        let _ended = timeout(LONG, client.write_all(bytes)).await.expect("the filter reads");
        rest(&mut client).await
    }

    /// Sends an HTTP request, in which [`Self::text`] replaces the ports, and returns the whole answer.
    pub(crate) async fn request(&self, request: &str) -> String {
        self.exchange(ClientKind::Http, self.text(request).as_bytes()).await
    }

    /// Opens a tunnel with CONNECT.
    pub(crate) async fn tunnel(&self, host: &str) -> DuplexStream {
        let mut client = self.open(ClientKind::Http);
        let request = format!("CONNECT {host}:{} HTTP/1.1\r\n\r\n", self.port());
        client.write_all(request.as_bytes()).await.unwrap();
        let expected = b"HTTP/1.1 200 OK\r\n\r\n";
        let mut answer = vec![0; expected.len()];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, expected);
        client
    }

    /// Waits for this number of decisions, and returns them.
    pub(crate) async fn decisions(&self, count: usize) -> Vec<Decision> {
        eventually(|| self.decisions.lock().unwrap().len() >= count).await;
        let decisions = self.decisions.lock().unwrap().clone();
        assert_eq!(decisions.len(), count, "{decisions:#?}");
        decisions
    }

    /// Returns the reason of the only decision, which must be a denial.
    pub(crate) async fn denied(&self) -> String {
        match self.decisions(1).await.remove(0).verdict {
            Verdict::Denied { reason, .. } => reason,
            verdict => panic!("{verdict:?}"),
        }
    }

    /// Checks that neither the server nor a decoy was reached.
    #[track_caller]
    pub(crate) fn reached_nobody(&self, what: &str) {
        assert_eq!(self.server.visits(), 0, "{what:?} reached the server");
        self.reached_no_decoy(what);
    }

    #[track_caller]
    pub(crate) fn reached_no_decoy(&self, what: &str) {
        for decoy in &self.decoys {
            assert_eq!(decoy.visits(), 0, "{what:?} reached {}", decoy.address);
        }
    }

    /// Checks that an honest client is served.
    pub(crate) async fn serves(&self) {
        let mut client = self.tunnel(GOOD).await;
        echoes(&mut client, b"still here").await;
    }
}

pub(crate) async fn echoes(client: &mut DuplexStream, bytes: &[u8]) {
    client.write_all(bytes).await.unwrap();
    let mut back = vec![0; bytes.len()];
    timeout(LONG, client.read_exact(&mut back)).await.expect("an echo").unwrap();
    assert_eq!(back, bytes);
}

/// Returns the bytes until the end of the connection, which must end.
pub(crate) async fn rest(client: &mut DuplexStream) -> String {
    let mut answer = Vec::new();
    let ended = timeout(LONG, client.read_to_end(&mut answer)).await;
    // An error also ends the connection.
    let _broken = ended.expect("the filter ends the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Runs a test for each row, 16 at a time, because most tests wait for a time limit.
pub(crate) async fn at_once<T, A>(rows: impl IntoIterator<Item = T>, test: impl Fn(T) -> A)
where
    A: Future<Output = ()> + Send + 'static,
{
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let tests: Vec<_> = rows.by_ref().take(16).map(|row| tokio::spawn(test(row))).collect();
        for test in tests {
            test.await.unwrap();
        }
    }
}

pub(crate) async fn eventually(is_so: impl Fn() -> bool) {
    let looking = async {
        while !is_so() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LONG, looking).await.expect("it is so in time");
}
