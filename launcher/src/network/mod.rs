//! The network of a running box: a filter for what its components connect to, and published ports.
//!
//! ```text
//! component ── init ══ vsock ══ Network ── Filter ── hosts that the rules allow
//!                                  └────── published ports ── clients on the host
//! ```
//!
//! It runs in the supervisor's runtime, outside of the VMM process and of its jail, which has no network. Both ends of a
//! component's connection always read, see [`box_contract::wire`]; what no init of ours sends ends the connection,
//! and an init of ours ends its box then.

pub(crate) mod decisions;
mod error;
pub mod given;
mod link;
pub(crate) mod passt;
mod publish;
mod stream;

use std::collections::BTreeMap;
use std::future::pending;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use box_contract::{ComponentName, NetworkMode, NetworkPlan, RunPlan};
use egress_proxy::{Decision, Filter, Resolver};
use host_fs::OsError;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::streams::control::{Listener, check_peer};
use crate::streams::log::NetworkLog;
use link::Visitor;
use vmm::NETWORK_SOCKET;
use vmm::runtime_dir::RuntimeDir;

pub use error::NetworkError;
pub use given::Given;
pub use passt::why_no_network;
pub use publish::Published;

/// How many clients of a component's published ports wait for it.
const MAX_WAITING: usize = 64;
/// The pause after a connection that cannot be accepted, as where files are short.
const PAUSE: Duration = Duration::from_millis(100);

/// The network of a box, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Network {
    /// Removes the file.
    _listener: Listener,
    /// Decides what components connect to, where they may at all.
    pub(crate) filter: Option<Arc<Filter>>,
    /// Its denials.
    denied: Receiver<Decision>,
    /// The published ports, as they are.
    pub(crate) published: Vec<Published>,
    _tasks: JoinSet<()>,
}

/// The sockets of a network that does not run yet.
#[derive(Debug)]
pub(crate) struct Sockets {
    listener: Listener,
    ports: Vec<(std::net::TcpListener, Published)>,
}

impl Sockets {
    /// Makes the sockets that a box needs, if it needs any: that of its guest, and those of published ports.
    ///
    /// # Errors
    /// When one cannot be made, such as where another program has the port.
    pub(crate) fn make(
        runtime: &RuntimeDir,
        plan: &NetworkPlan,
        published: &[Published],
    ) -> Result<Option<Self>, NetworkError> {
        if plan.mode != NetworkMode::Filtered && published.is_empty() {
            return Ok(None);
        }
        let ports = published.iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Some(Self { listener: Listener::bind(runtime.vmm_socket(NETWORK_SOCKET)?)?, ports }))
    }
}

/// Listens at a port of the host.
fn bind(wanted: &Published) -> Result<(std::net::TcpListener, Published), NetworkError> {
    let refused = |source| NetworkError::Port { at: wanted.host, source };
    let listener = std::net::TcpListener::bind(wanted.host).map_err(refused)?;
    let host: SocketAddr = listener.local_addr().map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    Ok((listener, Published { host, ..*wanted }))
}

impl Network {
    /// Serves a box in the current runtime, which gets what is given of the network that it declares; only the process `vmm` may connect for its guest. The decisions of
    /// its filter are kept in `log`.
    ///
    /// # Errors
    /// When the plan has a malformed rule, or the kernel refuses.
    pub(crate) fn serve(
        Sockets { listener, ports }: Sockets,
        (plan, given): (&RunPlan, &Given),
        vmm: u32,
        log: NetworkLog,
    ) -> Result<Self, NetworkError> {
        raise_limit_of_files();
        let (take, denied) = decisions::kept(log);
        let filter = match plan.network.mode {
            NetworkMode::Filtered => {
                let rules = given.rules(&plan.network).map_err(NetworkError::Peer)?;
                Some(Filter::new(rules, plan.network.limits, Resolver::host(), take))
            }
            _ => None,
        };
        let mut tasks = JoinSet::new();
        let (mut doors, mut visitors) = (BTreeMap::new(), BTreeMap::new());
        for (component, _) in plan.components() {
            let (sender, receiver) = channel(MAX_WAITING);
            doors.insert(component, sender);
            visitors.insert(component, Arc::new(Mutex::new(receiver)));
        }
        let published = ports.iter().map(|(_, published)| *published).collect();
        for (port, published) in ports {
            let port = TcpListener::from_std(port);
            let port = port.map_err(OsError::system("listen at a published port"))?;
            let door = doors[&published.component].clone();
            tasks.spawn(welcome(port, published.guest, door));
        }
        let watched = listener.watched().map_err(OsError::file("watch", listener.path()))?;
        tasks.spawn(accept(watched, vmm, filter.clone(), visitors));
        Ok(Self { _listener: listener, filter, denied, published, _tasks: tasks })
    }

    /// Waits for the next thing that the filter denies; for ever, where there is no filter.
    pub(crate) async fn next_denied(&mut self) -> Decision {
        match self.denied.recv().await {
            Some(decision) => decision,
            None => pending().await,
        }
    }
}

/// Lets this process have as many files open as it may: each connection is one.
fn raise_limit_of_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // With fewer, fewer connections come about.
        let _fewer = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Where the clients of a component's ports wait for it; one connection at a time takes them.
type Visitors = Arc<Mutex<Receiver<Visitor>>>;

/// Accepts the connections of a guest, one for each component.
async fn accept(
    listener: UnixListener,
    vmm: u32,
    filter: Option<Arc<Filter>>,
    visitors: BTreeMap<ComponentName, Visitors>,
) {
    let mut links = JoinSet::new();
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        while links.try_join_next().is_some() {}
        // A guest has one for each component; whatever else connects is hung up on.
        if links.len() >= 2 * ComponentName::ALL.len() || check_peer(&stream, vmm).is_err() {
            continue;
        }
        let (filter, visitors) = (filter.clone(), visitors.clone());
        links.spawn(async move {
            let Ok(greeting) = link::greeting(&mut stream).await else { return };
            let Some(visitors) = visitors.get(&greeting.0) else { return };
            // One that is there already keeps them.
            let Ok(mut visitors) = visitors.try_lock() else { return };
            // What the guest did wrong, it has paid for with its connection.
            drop(link::serve(stream, greeting, filter, &mut visitors).await);
        });
    }
}

/// Accepts the clients of a published port.
async fn welcome(listener: TcpListener, port: u16, door: Sender<Visitor>) {
    let mut waiting = JoinSet::new();
    loop {
        while waiting.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((client, _)) if waiting.len() < MAX_WAITING => {
                // It is half of a connection: the other half decides how bytes are put together.
                drop(client.set_nodelay(true));
                // One that has vanished shall not stay for ever.
                let _unsupported = setsockopt(&client, sockopt::KeepAlive, &true);
                let door = door.clone();
                let visitor = Visitor { client, port, since: Instant::now() };
                // A component that does not come is as one at whose port nobody listens.
                waiting.spawn(async move { drop(door.send(visitor).await) });
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(_) => sleep(PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests;
