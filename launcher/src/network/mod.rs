//! The network of a running box: a filter for the connections of its components, HTTP APIs, published ports, and sockets of the
//! host.
//!
//! ```text
//! component ── init ══ vsock ══ Network ── Filter ── hosts that the rules allow
//!                                  ├────── services ── HTTP APIs, with the credential
//!                                  ├────── published ports ── clients on the host
//!                                  ├────── Unix sockets of the host
//!                                  └────── ssh_agent ── the SSH agent of the user, with the keys
//! ```
//!
//! The network runs in the supervisor's runtime, outside the VMM process, whose jail has no network. Both ends of a
//! component's connection always read, see [`box_contract::wire`]. The host closes a connection that carries something
//! our init never sends, and our init then ends its box.

pub(crate) mod decisions;
mod error;
pub mod given;
mod link;
pub(crate) mod passt;
mod pipe;
pub(crate) mod ports;
mod publish;
pub(crate) mod services;
mod sockets;
mod ssh_agent;
mod stream;

use std::collections::BTreeMap;
use std::future::pending;
use std::net::TcpListener;
use std::sync::Arc;

use box_contract::wire::Secret;
use box_contract::{ComponentName, NetworkMode, RunPlan};
use egress_proxy::{Decision, Filter, Resolver};
use egress_rules::Rules;
use host_fs::OsError;
use tokio::net::UnixListener;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::host::raise_limit_of_files;
use crate::mounts::sockets::SharedSocket;
use crate::streams::control::{Listener, check_peer};
use crate::streams::log::NetworkLog;
use link::{Visitor, Ways};
use ports::{MAX_WAITING, PAUSE, Port, Ports};
use services::Services;
use sockets::HostSockets;
use vmm::NETWORK_SOCKET;
use vmm::runtime_dir::RuntimeDir;

pub use error::NetworkError;
pub use given::Given;
pub use passt::why_no_network;
pub use publish::Published;

/// The network of a box, which ends on drop.
#[derive(Debug)]
pub(crate) struct Network {
    /// Removes the socket's file on drop.
    _listener: Listener,
    /// Decides about the connections of components. `None` if the plan's network is not filtered.
    pub(crate) filter: Option<Arc<Filter>>,
    /// The HTTP APIs of the box.
    pub(crate) services: Arc<Services>,
    /// Receives the filter's denials.
    denied: Receiver<Decision>,
    /// The published ports. A host port that was 0 is the one that the kernel chose.
    pub(crate) published: Vec<Published>,
    /// The sockets of the published ports.
    pub(crate) ports: Ports,
    /// The queues of the components, for clients of their published ports.
    queues: BTreeMap<ComponentName, Sender<Visitor>>,
    _tasks: JoinSet<()>,
}

/// The sockets of a network that does not run yet.
#[derive(Debug)]
pub(crate) struct Sockets {
    listener: Listener,
    ports: Vec<Port>,
    /// The sockets of the host to which components can connect.
    of_host: Vec<SharedSocket>,
    /// Whether another box still accepts the clients of the ports.
    are_handed: bool,
}

impl Sockets {
    /// Creates the socket for the guest's connections and the sockets of published ports. `of_host` are sockets of the host to
    /// which components can connect. Returns `None` if the box needs no network. If another box has handed its sockets over, uses those of the same addresses, and drops the others.
    ///
    /// # Errors
    /// If a socket cannot be created, for example because another program uses the port.
    pub(crate) fn make(
        runtime: &RuntimeDir,
        plan: &RunPlan,
        (published, handed): (&[Published], Option<Vec<TcpListener>>),
        of_host: &[SharedSocket],
    ) -> Result<Option<Self>, NetworkError> {
        let is_empty = published.is_empty() && of_host.is_empty() && plan.services.is_empty();
        if plan.network.mode != NetworkMode::Filtered && is_empty {
            return Ok(None);
        }
        let (are_handed, mut handed) = (handed.is_some(), handed.unwrap_or_default());
        let ports: Result<_, _> =
            published.iter().map(|it| Port::handed(&mut handed, it)).collect();
        let (ports, listener) = (ports?, Listener::bind(runtime.vmm_socket(NETWORK_SOCKET)?)?);
        Ok(Some(Self { listener, ports, of_host: of_host.to_vec(), are_handed }))
    }
}

impl Network {
    /// Serves the network that a box gets (`given`) in the current runtime. Only the process `vmm` may connect, for its
    /// guest. `secrets` are the credentials of services. All decisions are logged to `log`. If another box has handed its
    /// ports over, no client is accepted until [`Ports::open`].
    ///
    /// # Errors
    /// If the plan has a malformed rule, if the root certificates cannot be read, or if the kernel refuses.
    pub(crate) fn serve(
        Sockets { listener, ports, of_host, are_handed }: Sockets,
        (plan, given, secrets): (&RunPlan, &Given, &[Secret]),
        vmm: u32,
        log: NetworkLog,
    ) -> Result<Self, NetworkError> {
        // Each connection is an open file.
        raise_limit_of_files();
        let sockets =
            Arc::new(HostSockets::new(of_host, plan.network.limits.connections, log.clone()));
        let (take, denied) = decisions::kept(log);
        let is_filtered = plan.network.mode == NetworkMode::Filtered;
        let rules = if is_filtered { given.rules(&plan.network)? } else { Rules::closed() };
        let (proxy, limits) = (given.proxy.clone(), plan.network.limits);
        let filter = Filter::behind(proxy, rules, limits, Resolver::host(), take);
        let services = Arc::new(Services::new((plan, given), secrets, &filter)?);
        let filter = is_filtered.then_some(filter);
        let mut tasks = JoinSet::new();
        let (mut queues, mut visitors) = (BTreeMap::new(), BTreeMap::new());
        for (component, _) in plan.components() {
            let (sender, receiver) = channel(MAX_WAITING);
            queues.insert(component, sender);
            visitors.insert(component, Arc::new(Mutex::new(receiver)));
        }
        let published = ports.iter().map(|it| it.published).collect();
        let queue = |port: &Port| queues[&port.published.component].clone();
        let ports = ports.into_iter().map(|port| (queue(&port), port));
        let mut ports = Ports::new(ports.map(|(queue, port)| (port, queue)).collect());
        if !are_handed {
            ports.open()?;
        }
        let watched = listener.watched().map_err(OsError::file("watch", listener.path()))?;
        tasks.spawn(accept(
            watched,
            vmm,
            Ways { filter: filter.clone(), services: Arc::clone(&services), sockets },
            visitors,
        ));
        let _listener = listener;
        Ok(Self { _listener, filter, services, denied, published, ports, queues, _tasks: tasks })
    }

    /// Listens at a further port of the host, in the current runtime, and returns it. A host port that was 0 is the one that the kernel
    /// has chosen.
    ///
    /// # Errors
    /// If the box has no such component, if it publishes the port already, or if the kernel refuses.
    pub(crate) fn publish(&mut self, wanted: &Published) -> Result<Published, NetworkError> {
        let queue = self.queues.get(&wanted.component);
        let queue = queue.ok_or(NetworkError::NoComponent(wanted.component))?.clone();
        let port = Port::bind(wanted)?;
        let published = port.published;
        self.ports.add(port, queue)?;
        self.published.push(published);
        Ok(published)
    }

    /// Waits for the filter's next denial. Never returns if there is no filter.
    pub(crate) async fn next_denied(&mut self) -> Decision {
        match self.denied.recv().await {
            Some(decision) => decision,
            None => pending().await,
        }
    }
}

/// The queue of clients of a component's ports. Only one connection of the component serves the queue at a time.
type Visitors = Arc<Mutex<Receiver<Visitor>>>;

/// Accepts the connections of a guest, one for each component.
async fn accept(
    listener: UnixListener,
    vmm: u32,
    ways: Ways,
    visitors: BTreeMap<ComponentName, Visitors>,
) {
    let mut links = JoinSet::new();
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        while links.try_join_next().is_some() {}
        // An honest guest has one connection for each component. Hang up on further ones.
        if links.len() >= 2 * ComponentName::ALL.len() || check_peer(&stream, vmm).is_err() {
            continue;
        }
        let (ways, visitors) = (ways.clone(), visitors.clone());
        links.spawn(async move {
            let Ok(greeting) = link::greeting(&mut stream).await else { return };
            let Some(visitors) = visitors.get(&greeting.0) else { return };
            // Hang up if an earlier connection of this component is still open.
            let Ok(mut visitors) = visitors.try_lock() else { return };
            // After an error of the guest, the connection is only closed.
            drop(link::serve(stream, greeting, ways, &mut visitors).await);
        });
    }
}

#[cfg(test)]
mod tests;
