//! The sockets of published ports. A box can hand them over to the box that replaces it, without a moment in which a client
//! is refused: clients that connect meanwhile wait in the kernel's queue of the socket, which both boxes have open.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener as Socket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use host_fs::OsError;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::link::Visitor;
use super::{NetworkError, Published};

/// How many clients may wait for room in the queue of a component, at each published port.
pub(super) const MAX_WAITING: usize = 64;
/// The pause after a failure to accept a connection, for example because too many files are open.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// The interval between two looks at whether clients are connected.
const LOOK: Duration = Duration::from_millis(20);

/// The action in an error about a socket.
const LISTEN: &str = "listen at a published port";

/// A published port, and its socket.
#[derive(Debug)]
pub(crate) struct Port {
    socket: Socket,
    pub(super) published: Published,
}

impl Port {
    /// Listens at a port of the host. If the port is 0, the kernel chooses one.
    pub(super) fn bind(wanted: &Published) -> Result<Self, NetworkError> {
        let refused = |source| NetworkError::Port { at: wanted.host, source };
        let socket = Socket::bind(wanted.host).map_err(refused)?;
        Self::of(socket, wanted).map_err(refused)
    }

    /// Returns the port `wanted` with its socket, if another box has handed that over, and else listens at it. The sockets that no
    /// port wants are for ports that the other box has declared, and this one does not.
    pub(super) fn handed(
        sockets: &mut Vec<Socket>,
        wanted: &Published,
    ) -> Result<Self, NetworkError> {
        let is_wanted = |it: &Socket| it.local_addr().is_ok_and(|at| at == wanted.host);
        match sockets.iter().position(is_wanted) {
            Some(at) => Self::of(sockets.swap_remove(at), wanted)
                .map_err(|source| NetworkError::Port { at: wanted.host, source }),
            None => Self::bind(wanted),
        }
    }

    fn of(socket: Socket, wanted: &Published) -> io::Result<Self> {
        let host: SocketAddr = socket.local_addr()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, published: Published { host, ..*wanted } })
    }
}

/// The published ports of a box that runs.
#[derive(Debug)]
pub(crate) struct Ports {
    ports: Vec<(Port, Sender<Visitor>)>,
    welcoming: JoinSet<()>,
    closing: watch::Sender<bool>,
    /// Has a clone for each client that is connected.
    clients: Arc<()>,
}

impl Ports {
    /// Returns the ports, with the queues of their components. No client is accepted yet.
    pub(super) fn new(ports: Vec<(Port, Sender<Visitor>)>) -> Self {
        let (closing, clients) = (watch::Sender::new(false), Arc::new(()));
        Self { ports, welcoming: JoinSet::new(), closing, clients }
    }

    /// Begins to accept clients, in the current runtime.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn open(&mut self) -> Result<(), OsError> {
        for (port, queue) in &self.ports {
            let door = Door::of(port, queue, &self.clients).map_err(OsError::system(LISTEN))?;
            self.welcoming.spawn(door.welcome(self.closing.subscribe()));
        }
        Ok(())
    }

    /// Begins to accept the clients of a further port, in the current runtime. The others must be open.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn add(&mut self, port: Port, queue: Sender<Visitor>) -> Result<(), OsError> {
        let door = Door::of(&port, &queue, &self.clients).map_err(OsError::system(LISTEN))?;
        self.welcoming.spawn(door.welcome(self.closing.subscribe()));
        self.ports.push((port, queue));
        Ok(())
    }

    /// Returns copies of the sockets, for another box.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        self.ports.iter().map(|(port, _)| Ok(port.socket.try_clone()?.into())).collect()
    }

    /// Returns whether a client is connected.
    pub(crate) fn has_clients(&self) -> bool {
        // `Self` and each door have a clone, too.
        Arc::strong_count(&self.clients) > 1 + self.welcoming.len()
    }

    /// Accepts no more clients, and closes this box's copies of the sockets. Clients that are connected stay connected.
    pub(crate) fn close(&mut self) -> Draining {
        self.closing.send_replace(true);
        self.ports.clear();
        Draining { clients: Arc::downgrade(&std::mem::take(&mut self.clients)) }
    }
}

/// The clients that are still connected after [`Ports::close`].
#[derive(Debug)]
pub(crate) struct Draining {
    clients: Weak<()>,
}

impl Draining {
    /// Waits until no client is connected, or until a time. Cancel-safe.
    pub(crate) async fn ended(&self, until: Instant) {
        while self.clients.strong_count() > 0 && Instant::now() < until {
            sleep(LOOK).await;
        }
    }
}

/// A port at which clients are accepted.
struct Door {
    socket: TcpListener,
    port: u16,
    queue: Sender<Visitor>,
    clients: Arc<()>,
}

impl Door {
    fn of(port: &Port, queue: &Sender<Visitor>, clients: &Arc<()>) -> io::Result<Self> {
        let socket = port.socket.try_clone().and_then(TcpListener::from_std)?;
        let (queue, clients) = (queue.clone(), Arc::clone(clients));
        Ok(Self { socket, port: port.published.guest, queue, clients })
    }

    /// Accepts clients until the ports are closed. Then waits until the last of them is in the component's queue.
    async fn welcome(self, mut closing: watch::Receiver<bool>) {
        let mut waiting = JoinSet::new();
        loop {
            while waiting.try_join_next().is_some() {}
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                _ = closing.wait_for(|is_closing| *is_closing) => break,
            };
            match accepted {
                Ok((client, _)) if waiting.len() < MAX_WAITING => {
                    // Do not delay small packets: the client and the component decide how bytes are combined into packets.
                    drop(client.set_nodelay(true));
                    // Without keepalive, a client that has vanished would stay connected forever.
                    let _unsupported = setsockopt(&client, sockopt::KeepAlive, &true);
                    let (queue, port) = (self.queue.clone(), self.port);
                    let connected = Arc::clone(&self.clients);
                    let visitor = Visitor { client, port, since: Instant::now(), connected };
                    // The client waits until the component's queue has room.
                    waiting.spawn(async move { drop(queue.send(visitor).await) });
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => sleep(PAUSE).await,
            }
        }
        // Others accept the clients of this socket now.
        drop(self.socket);
        while waiting.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{IpAddr, Ipv4Addr, TcpStream};

    use box_contract::ComponentName;
    use tokio::runtime::Builder;
    use tokio::sync::mpsc::channel;

    use super::*;

    fn published(port: u16) -> Published {
        let host = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Published { host, guest: 80, component: ComponentName::Agent, declared: false }
    }

    #[test]
    fn clients_wait_while_a_port_changes_hands() {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let port = Port::bind(&published(0)).unwrap();
            let wanted = port.published;
            let (old_queue, mut old) = channel(4);
            let mut ports = Ports::new(vec![(port, old_queue)]);
            ports.open().unwrap();
            let connect = || TcpStream::connect(wanted.host).unwrap();
            let mut first = connect();
            let visitor = old.recv().await.unwrap();

            let handed = ports.sockets().unwrap().into_iter().map(Socket::from);
            let port = Port::handed(&mut handed.collect(), &wanted).unwrap();
            let (new_queue, mut new) = channel(4);
            let mut successor = Ports::new(vec![(port, new_queue)]);
            let draining = ports.close();
            tokio::task::yield_now().await;
            let _second = connect();
            assert!(new.try_recv().is_err() && old.try_recv().is_err(), "it waits");
            successor.open().unwrap();
            assert_eq!(new.recv().await.unwrap().port, 80);
            assert!(old.try_recv().is_err());

            // The old box's client stays connected until it has ended.
            let soon = || Instant::now() + Duration::from_millis(60);
            draining.ended(soon()).await;
            assert!(draining.clients.strong_count() > 0);
            drop(visitor);
            draining.ended(Instant::now() + Duration::from_secs(60)).await;
            assert_eq!(first.read(&mut [0]).unwrap(), 0);
        });
    }

    #[test]
    fn a_port_is_added_while_others_are_open() {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let mut ports = Ports::new(Vec::new());
            ports.open().unwrap();
            let port = Port::bind(&published(0)).unwrap();
            let at = port.published.host;
            let (queue, mut visitors) = channel(4);
            ports.add(port, queue).unwrap();
            let _client = TcpStream::connect(at).unwrap();
            let visitor = visitors.recv().await.unwrap();
            assert_eq!(visitor.port, 80);
            assert!(ports.has_clients() && ports.sockets().unwrap().len() == 1);
            drop(visitor);
            assert!(!ports.has_clients());
        });
    }

    #[test]
    fn sockets_are_found_by_their_addresses_and_the_others_are_closed() {
        let all: Vec<_> = (0..3).map(|_| Port::bind(&published(0)).unwrap()).collect();
        let [first, dropped, last] = [0, 1, 2].map(|at| all[at].published);
        let mut handed: Vec<_> = all.into_iter().map(|it| it.socket).collect();
        // The new box declares a port more, before the others.
        for wanted in [published(0), last, first] {
            let port = Port::handed(&mut handed, &wanted).unwrap().published;
            assert_eq!(port == wanted, wanted.host.port() != 0);
            assert_ne!(port.host, dropped.host);
        }
        let left: Vec<_> = handed.iter().map(|it| it.local_addr().unwrap()).collect();
        assert_eq!(left, [dropped.host]);
        drop(handed);
        TcpStream::connect(dropped.host).unwrap_err();
    }
}
