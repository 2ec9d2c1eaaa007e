//! One attempt to reach a host.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use box_contract::ComponentName;
use egress_rules::{Denial, Host, Rules, Target};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::decision::{ApiRequest, Channel, Decision, Verdict, printable};
use crate::meter::Count;
use crate::own::check_address;
use crate::proxy::{Proxy, ProxyFailure};
use crate::refusal::Refusal;
use crate::state::Filter;
use crate::upstream::{Upstream, Watch};

/// How many of a name's addresses are tried at most.
const MAX_ADDRESSES: usize = 8;

/// One attempt to reach a host. It is reported when it is dropped.
pub(crate) struct Attempt {
    filter: Arc<Filter>,
    decision: Option<Decision>,
    count: Arc<Count>,
    started: Instant,
}

impl Attempt {
    pub(crate) fn new(filter: &Arc<Filter>, component: ComponentName, way: Channel) -> Self {
        let decision = Decision {
            component,
            way,
            host: None,
            port: None,
            address: None,
            request: None,
            purpose: None,
            verdict: Refusal::Gone.verdict(None),
            sent: 0,
            received: 0,
            milliseconds: 0,
        };
        let (filter, count) = (Arc::clone(filter), Arc::default());
        Self { filter, decision: Some(decision), count, started: Instant::now() }
    }

    /// Records the host and port as the client wrote them.
    pub(crate) fn asks(&mut self, host: &str, port: Option<u16>) {
        if let Some(decision) = &mut self.decision {
            decision.host = Some(printable(host));
            decision.port = port;
        }
    }

    /// Records a request to a service.
    pub(crate) fn requests(&mut self, request: ApiRequest) {
        if let Some(decision) = &mut self.decision {
            decision.request = Some(request);
        }
    }

    /// Records the status of the answer to a request to a service.
    pub(crate) fn answered(&mut self, status: u16) {
        if let Some(request) = self.decision.as_mut().and_then(|it| it.request.as_mut()) {
            request.status = Some(status);
        }
    }

    /// Records the verdict.
    fn decide(&mut self, verdict: Verdict) {
        if let Some(decision) = &mut self.decision {
            decision.verdict = verdict;
        }
    }

    /// Records why an allowed connection ended. Only the first reason is recorded, because it causes the others.
    pub(crate) fn ends(&mut self, reason: &Refusal) {
        let is_open = |it: &&mut Decision| it.verdict == Verdict::Allowed;
        if let Some(decision) = self.decision.as_mut().filter(is_open) {
            decision.verdict = reason.verdict(None);
        }
    }

    /// Records why a client is not served.
    pub(crate) fn refuse(&mut self, reason: &Refusal) {
        self.decide(reason.verdict(None));
    }

    /// Returns the allowed ports of a name. An allowed lookup is not reported.
    pub(crate) fn look_up(mut self, name: &str) -> Result<Vec<u16>, Refusal> {
        let ports = self.ports(name);
        match &ports {
            Ok(_) => self.decision = None,
            Err(refusal) => {
                let target = Target::parse(&format!("{name}:443")).ok();
                self.decide(refusal.verdict(target.as_ref()));
            }
        }
        ports
    }

    fn ports(&self, name: &str) -> Result<Vec<u16>, Refusal> {
        let Host::Name(name) = Host::parse(name)? else {
            return Err(Refusal::Request("an address is no name"));
        };
        let rules = self.filter.rules();
        let ports = rules.ports(&name);
        if ports.is_empty() {
            let target = Target { host: Host::Name(name), port: 443 };
            rules.check(&target)?;
            return Err(Denial::NotAllowed.into());
        }
        self.ask(&name)?;
        Ok(ports)
    }

    fn ask(&self, name: &str) -> Result<(), Refusal> {
        let is_asked = self.filter.names.ask(name);
        is_asked.then_some(()).ok_or(Refusal::Names(self.filter.limits.names_per_minute))
    }

    /// Connects to a target, if the rules allow it.
    ///
    /// # Errors
    /// Why there is no connection, which is also recorded as the verdict.
    pub(crate) async fn connect(&mut self, target: &Target) -> Result<Upstream, Refusal> {
        self.asks(&target.host.to_string(), Some(target.port));
        let result = self.try_connect(target).await;
        self.decide(match &result {
            Ok(_) => Verdict::Allowed,
            Err(refusal) => refusal.verdict(Some(target)),
        });
        result
    }

    async fn try_connect(&mut self, target: &Target) -> Result<Upstream, Refusal> {
        let filter = Arc::clone(&self.filter);
        // Subscribe before the check, so that no later change of the rules is missed.
        let mut changes = filter.rules.subscribe();
        let rules = Arc::clone(&changes.borrow_and_update());
        rules.check(target)?;
        let permit = Arc::clone(&filter.connections).try_acquire_owned();
        let permit = permit.map_err(|_| Refusal::Connections(filter.limits.connections))?;
        let proxy = filter.settings.proxy.as_ref().filter(|it| it.is_for(target));
        let is_local = |it: &IpAddr| rules.is_consented(*it, target.port);
        let found = match (&target.host, proxy) {
            (Host::Address(address), _) => Some(vec![*address]),
            (Host::Name(name), None) => Some(self.resolve(name).await?),
            (Host::Name(name), Some(_)) => self.resolve_proxied(name, is_local).await?,
        };
        // What the host resolves must be allowed even if the proxy resolves the name again.
        let addresses = found.map_or(Ok(Vec::new()), |it| allowed(&rules, target, it))?;
        let proxy = proxy.filter(|_| !addresses.iter().any(is_local));
        let (stream, address) = match proxy {
            Some(proxy) => (filter.ask_proxy(proxy, target).await?, None),
            None => {
                let (stream, address) = filter.dial(&addresses, target.port).await?;
                (stream, Some(address))
            }
        };
        if let Some(decision) = &mut self.decision {
            decision.address = address;
        }
        let known = address.or_else(|| addresses.first().copied());
        let watch = Watch::new(changes, target.clone(), known, permit);
        Ok(Upstream::new(stream, Arc::clone(&self.count), Arc::clone(&filter.pace), watch))
    }

    /// Resolves a name.
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, Refusal> {
        self.ask(name)?;
        let found = timeout(self.filter.settings.resolve, self.filter.ask_resolver(name)).await;
        found.map_err(|_| Refusal::Timeout("resolving its name"))?.map_err(Refusal::Unresolved)
    }

    /// Resolves a name that the proxy resolves, too. `None` if this host resolves no such names.
    ///
    /// The name servers of an allowed name can fail for this host, and send the proxy to an address that the rules forbid. So a
    /// name that cannot be resolved is refused if this host has resolved another one, and so has name servers for it.
    async fn resolve_proxied(
        &self,
        name: &str,
        is_local: impl Fn(&IpAddr) -> bool,
    ) -> Result<Option<Vec<IpAddr>>, Refusal> {
        let lookups = &self.filter.proxied;
        if lookups.is_in_vain(name, Instant::now()) {
            return self.ask(name).map(|()| None);
        }
        match self.resolve(name).await {
            Ok(found) => {
                // A host may resolve the names of its own network, but not those of the internet.
                if !found.iter().any(is_local) {
                    lookups.succeeded();
                }
                Ok(Some(found))
            }
            Err(Refusal::Unresolved(_)) if lookups.failed(name, Instant::now()) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }
}

impl Filter {
    /// Asks the resolver for a name. If the caller stops waiting, getaddrinfo(3) may still run in its thread, so the lookup keeps
    /// its permit until getaddrinfo returns.
    async fn ask_resolver(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let answer = self.resolver.resolve(name);
        let permit = Arc::clone(&self.lookups).acquire_owned().await;
        let looked_up = tokio::spawn(async move {
            let _permit = permit;
            answer.await
        });
        looked_up.await.unwrap_or_else(|reason| Err(reason.into()))
    }

    /// Opens a connection to a target through the proxy of the host.
    async fn ask_proxy(&self, proxy: &Proxy, target: &Target) -> Result<TcpStream, Refusal> {
        let connecting = async {
            let addresses = self.addresses(proxy).await.map_err(ProxyFailure::Unreachable)?;
            proxy.connect(&addresses, target).await
        };
        let connected = timeout(self.settings.connect, connecting).await;
        Ok(connected
            .map_err(|_| Refusal::Timeout("connecting through the proxy of this host"))??)
    }

    /// Returns the addresses of a proxy. Its name may get other ones during a run.
    async fn addresses(&self, proxy: &Proxy) -> io::Result<Vec<SocketAddr>> {
        let Target { host, port } = proxy.address();
        let found = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.ask_resolver(name).await?,
        };
        let found = found.into_iter().take(MAX_ADDRESSES);
        Ok(found.map(|it| SocketAddr::new(it, *port)).collect())
    }

    /// Connects to the first of the addresses that accepts the connection. Each address has an equal share of the timeout.
    async fn dial(&self, addresses: &[IpAddr], port: u16) -> Result<(TcpStream, IpAddr), Refusal> {
        let count = u32::try_from(addresses.len()).unwrap_or(1).max(1);
        let share = self.settings.connect / count;
        let mut last = Refusal::NoAddress;
        for address in addresses {
            let to = SocketAddr::new(*address, port);
            match timeout(share, TcpStream::connect(to)).await {
                Ok(Ok(stream)) => return Ok((stream, *address)),
                Ok(Err(reason)) => last = Refusal::Unreachable(reason),
                Err(_) => last = Refusal::Timeout("connecting"),
            }
        }
        Err(last)
    }
}

/// Returns the addresses of a target to which the box may connect, at most [`MAX_ADDRESSES`].
fn allowed(rules: &Rules, target: &Target, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Refusal> {
    let mut reason = Refusal::NoAddress;
    let is_allowed = |address: &IpAddr| match check_address(rules, target, *address) {
        Ok(()) => true,
        Err(denial) => {
            reason = denial.into();
            false
        }
    };
    let allowed: Vec<_> = found.into_iter().filter(is_allowed).take(MAX_ADDRESSES).collect();
    if allowed.is_empty() { Err(reason) } else { Ok(allowed) }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let Some(mut decision) = self.decision.take() else { return };
        decision.sent = self.count.written.load(Ordering::Relaxed);
        decision.received = self.count.read.load(Ordering::Relaxed);
        decision.milliseconds = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(0);
        self.filter.report(decision);
    }
}
