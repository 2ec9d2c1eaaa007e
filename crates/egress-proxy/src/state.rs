//! The state that all clients of a filter share: the rules, the limits and the resolver.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use box_contract::NetworkLimits;
use egress_rules::{Host, Rules, Target};
use tokio::sync::{Semaphore, watch};

use crate::decision::Decision;
use crate::limits::{ByteRate, Names};
use crate::proxy::{ProxiedLookups, Proxy};
use crate::resolver::Resolver;

/// The greatest number of simultaneous lookups. Each blocks a thread of the runtime's blocking pool in getaddrinfo(3).
pub const LOOKUPS: usize = 16;
/// How many clients may be served in addition to the limit of connections: clients that have not sent a request, or
/// that are being refused.
const SPARE_CLIENTS: usize = 64;

/// The filter of a box's network: carries each connection that the rules allow, and reports each attempt.
///
/// All clients of a box share one filter and its limits. A filter uses at most some 100 KiB of memory for each
/// connection.
pub struct Filter {
    pub(crate) rules: watch::Sender<Arc<Rules>>,
    pub(crate) limits: NetworkLimits,
    pub(crate) settings: Settings,
    pub(crate) resolver: Resolver,
    pub(crate) lookups: Arc<Semaphore>,
    /// The lookups for connections through the proxy.
    pub(crate) proxied: Arc<ProxiedLookups>,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) names: Arc<Names>,
    pub(crate) pace: Arc<ByteRate>,
    pub(crate) clients: Arc<Semaphore>,
    decisions: Arc<dyn Fn(Decision) + Send + Sync>,
}

/// Settings that only tests change, except the proxy.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The port at which a client's first message must be TLS and ask for the name of its target.
    pub(crate) tls_port: u16,
    /// How long a client may take for each step of its request.
    pub(crate) request: Duration,
    /// How long a name may take to be resolved.
    pub(crate) resolve: Duration,
    /// How long connecting may take, for all addresses of a name together.
    pub(crate) connect: Duration,
    /// How long a client may take for its first TLS message.
    pub(crate) hello: Duration,
    /// The proxy of the host for connections to hosts that the user has not consented to by their addresses.
    pub(crate) proxy: Option<Proxy>,
}

impl Default for Settings {
    fn default() -> Self {
        let time = Duration::from_secs(10);
        Self {
            tls_port: 443,
            request: time,
            resolve: time,
            connect: time,
            hello: time,
            proxy: None,
        }
    }
}

impl Filter {
    /// Returns a filter that passes each decision to `decisions`. This closure runs on the threads that serve clients,
    /// so it must not block.
    pub fn new(
        rules: Rules,
        limits: NetworkLimits,
        resolver: Resolver,
        decisions: impl Fn(Decision) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::with(rules, limits, resolver, decisions, Settings::default())
    }

    /// Returns a filter like [`Self::new`], whose connections go through a proxy of the host.
    pub fn behind(
        proxy: Option<Proxy>,
        rules: Rules,
        limits: NetworkLimits,
        resolver: Resolver,
        decisions: impl Fn(Decision) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let settings = Settings { proxy, ..Settings::default() };
        Self::with(rules, limits, resolver, decisions, settings)
    }

    pub(crate) fn with(
        rules: Rules,
        limits: NetworkLimits,
        resolver: Resolver,
        decisions: impl Fn(Decision) + Send + Sync + 'static,
        settings: Settings,
    ) -> Arc<Self> {
        let connections = limits.connections as usize;
        Arc::new(Self {
            rules: watch::Sender::new(Arc::new(rules)),
            limits,
            settings,
            resolver,
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
            proxied: Arc::default(),
            connections: Arc::new(Semaphore::new(connections)),
            names: Arc::new(Names::new(limits.names_per_minute)),
            pace: Arc::new(ByteRate::new(limits.bytes_per_second)),
            clients: Arc::new(Semaphore::new(connections + SPARE_CLIENTS)),
            decisions: Arc::new(decisions),
        })
    }

    /// Returns a filter with other rules that shares everything else with this one: the limits hold for both together.
    #[must_use]
    pub fn beside(&self, rules: Rules) -> Arc<Self> {
        Arc::new(Self {
            rules: watch::Sender::new(Arc::new(rules)),
            limits: self.limits,
            settings: self.settings.clone(),
            resolver: self.resolver.clone(),
            lookups: Arc::clone(&self.lookups),
            proxied: Arc::clone(&self.proxied),
            connections: Arc::clone(&self.connections),
            names: Arc::clone(&self.names),
            pace: Arc::clone(&self.pace),
            clients: Arc::clone(&self.clients),
            decisions: Arc::clone(&self.decisions),
        })
    }

    /// Replaces the rules. Ends open connections whose target or address the new rules do not allow.
    pub fn reload(&self, rules: Rules) {
        drop(self.rules.send_replace(Arc::new(rules)));
    }

    /// Returns the current rules.
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.borrow())
    }

    pub(crate) fn report(&self, decision: Decision) {
        (self.decisions)(decision);
    }

    /// Returns whether a client must ask for the name of this target in TLS.
    ///
    /// The client of an address need not, because TLS has no names for addresses ([RFC 6066, section
    /// 3](https://www.rfc-editor.org/rfc/rfc6066#section-3)).
    pub(crate) fn is_tls(settings: &Settings, target: &Target) -> bool {
        target.port == settings.tls_port && matches!(target.host, Host::Name(_))
    }
}

impl Debug for Filter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { rules, limits, .. } = self;
        f.debug_struct("Filter").field("rules", rules).field("limits", limits).finish()
    }
}
