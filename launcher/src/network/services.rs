//! The HTTP APIs of a box, whose credentials are here and not in the guest.

use std::sync::Arc;

use box_contract::wire::Secret;
use box_contract::{ComponentName, RunPlan, SecretDelivery};
use egress_proxy::{Decision, Filter, Resolver, Service};
use rustls::ClientConfig;

use super::{Given, NetworkError};

/// The services of a box, in the order of the plan.
#[derive(Debug, Default)]
pub(super) struct Services(Vec<Arc<Service>>);

impl Services {
    /// Returns the services of a plan. `secrets` are the values of their credentials, and `take` gets the decision about each
    /// request.
    ///
    /// # Errors
    /// If the root certificates cannot be read, or a service is malformed.
    pub(super) fn new(
        (plan, given): (&RunPlan, &Given),
        secrets: &[Secret],
        take: &(impl Fn(Decision) + Clone + Send + Sync + 'static),
    ) -> Result<Self, NetworkError> {
        if plan.services.is_empty() {
            return Ok(Self::default());
        }
        let tls = client(given)?;
        let value = |name: &str| {
            let at = plan.secrets.iter().position(|it| it.name == name)?;
            let secret = secrets.iter().find(|it| usize::from(it.index) == at)?;
            Some(secret.value.as_slice())
        };
        let services = plan.services.iter().map(|it| {
            let (proxy, rules) = (given.proxy.clone(), given.rules_of(it)?);
            let limits = plan.network.limits;
            let filter = Filter::behind(proxy, rules, limits, Resolver::host(), take.clone());
            Ok(Arc::new(Service::new(it, value, filter, Arc::clone(&tls))?))
        });
        services.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the service with this number, if the component has it.
    pub(super) fn find(&self, component: ComponentName, number: u16) -> Option<Arc<Service>> {
        let service = self.0.get(usize::from(number))?;
        (service.component() == component).then(|| Arc::clone(service))
    }
}

/// Returns the settings of the TLS connections to services.
fn client(given: &Given) -> Result<Arc<ClientConfig>, NetworkError> {
    let roots = tls_roots::load(given.certificates.as_deref(), None)?;
    let mut client = tls_roots::client(roots)?;
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(client))
}

/// Takes the secrets that stay on the host out of those of a box.
pub(crate) fn take_secrets(plan: &RunPlan, secrets: &mut Vec<Secret>) -> Vec<Secret> {
    let stays = |it: &mut Secret| {
        let plan = plan.secrets.get(usize::from(it.index));
        plan.is_some_and(|it| it.delivery == SecretDelivery::Host)
    };
    secrets.extract_if(.., stays).collect()
}
