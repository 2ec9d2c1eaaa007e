//! The host's end of the sockets of a box: connects to a socket of the host for each stream that asks for it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use box_contract::ComponentName;
use box_contract::pace::Pace;
use egress_proxy::{Channel, Decision, Verdict};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::pipe::Far;
use super::ssh_agent::{self, MAX_CONNECTIONS, MAX_LISTS, MAX_SIGNATURES, Signatures};
use crate::mounts::sockets::SharedSocket;
use crate::streams::log::NetworkLog;

/// How long a program waits for a connection to the SSH agent while its component has as many as it may have.
const PATIENCE: Duration = Duration::from_secs(10);

/// The sockets of a box, in the order that init knows.
#[derive(Debug)]
pub(super) struct HostSockets {
    sockets: Vec<SharedSocket>,
    /// How many connections a component may have.
    most: usize,
    log: NetworkLog,
    /// The failures that are in the log. A program that tries again and again must not push older entries out of it.
    noted: Mutex<BTreeSet<(ComponentName, u16, String)>>,
    /// The rate of the signatures of the SSH agent.
    signatures: Mutex<Pace>,
    /// The rate of its lists of keys.
    lists: Mutex<Pace>,
    /// The connections to the SSH agent that each component may still make.
    seats: BTreeMap<ComponentName, Semaphore>,
}

impl HostSockets {
    /// Returns the sockets, whose failures are written to `log`. Init permits a component `connections` of them.
    pub(super) fn new(sockets: Vec<SharedSocket>, connections: u32, log: NetworkLog) -> Self {
        // Init may know sooner than the host that a stream has ended.
        let most = connections.saturating_mul(2) as usize;
        let [signatures, lists] =
            [MAX_SIGNATURES, MAX_LISTS].map(|it| Mutex::new(Pace::new(it, Instant::now())));
        let seats = ComponentName::ALL.map(|it| (it, Semaphore::new(MAX_CONNECTIONS)));
        Self {
            sockets,
            most,
            log,
            noted: Mutex::new(BTreeSet::new()),
            signatures,
            lists,
            seats: seats.into(),
        }
    }

    /// Returns how many connections to sockets a component may have.
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    /// Returns the socket with this number, if the component has it.
    fn find(&self, component: ComponentName, number: u16) -> Option<&SharedSocket> {
        self.sockets.get(usize::from(number)).filter(|it| it.is_for(component))
    }

    /// Returns whether a component has the socket with this number.
    pub(super) fn has(&self, component: ComponentName, number: u16) -> bool {
        self.find(component, number).is_some()
    }

    /// Returns whether the socket with this number is that of the SSH agent. Its connections need [`Self::serve_agent`].
    pub(super) fn is_ssh_agent(&self, number: u16) -> bool {
        self.sockets.get(usize::from(number)).is_some_and(SharedSocket::is_ssh_agent)
    }

    /// Waits until a component may have a further connection to the socket with this number, and returns its permit, which ends after
    /// the connection. Only the SSH agent needs one.
    ///
    /// # Errors
    /// If the component's other connections last too long.
    pub(super) async fn seat(
        &self,
        component: ComponentName,
        number: u16,
    ) -> Result<Option<SemaphorePermit<'_>>, Elapsed> {
        match self.seats.get(&component).filter(|_| self.is_ssh_agent(number)) {
            // Nobody closes the semaphore, so it gives a permit.
            Some(seats) => timeout(PATIENCE, seats.acquire()).await.map(Result::ok),
            None => Ok(None),
        }
    }

    /// Serves the connection `guest` of a component to the SSH agent, to which `agent` is connected.
    pub(super) async fn serve_agent(
        &self,
        component: ComponentName,
        guest: Far,
        agent: UnixStream,
    ) {
        let note = |decision: &Decision| self.log.note(decision);
        let (pace, lists) = (&self.signatures, &self.lists);
        let signatures = Signatures { component, pace, lists, note: &note };
        ssh_agent::serve(guest, agent, &signatures).await;
    }

    /// Connects to a socket for a component. Returns `None` and writes the reason to the log if that fails.
    pub(super) async fn connect(
        &self,
        component: ComponentName,
        number: u16,
    ) -> Option<UnixStream> {
        let (socket, started) = (self.find(component, number)?, Instant::now());
        let error = match socket.connect().await {
            Ok(connected) => return Some(connected),
            Err(error) => error,
        };
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.insert((component, number, error.to_string())) {
            self.log.note(&failed(component, socket, &error, started));
        }
        None
    }
}

/// Returns the entry of the log for a connection that has failed.
fn failed(
    component: ComponentName,
    socket: &SharedSocket,
    error: &io::Error,
    started: Instant,
) -> Decision {
    Decision {
        component,
        way: Channel::Socket,
        host: Some(socket.guest().to_owned()),
        port: None,
        address: None,
        request: None,
        purpose: None,
        verdict: Verdict::Failed { reason: error.to_string() },
        sent: 0,
        received: 0,
        milliseconds: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}
