//! The HTTP APIs of a box, whose credentials are here and not in the guest.

use std::sync::Arc;

use box_contract::wire::Secret;
use box_contract::{ComponentName, PeerPlan, RunPlan, SecretDelivery, ServicePlan};
use egress_proxy::{Filter, Service};
use egress_rules::PeerError;
use rustls::ClientConfig;

use super::{Given, NetworkError};

/// The services of a box, in the order of the plan.
#[derive(Debug, Default)]
pub(crate) struct Services {
    all: Vec<(ServicePlan, Arc<Filter>, Arc<Service>)>,
    given: Given,
}

impl Services {
    /// Returns the services of a plan. `secrets` are the values of their credentials. The limits of `filter` hold for the services
    /// and its clients together.
    ///
    /// # Errors
    /// If the root certificates cannot be read, or a service is malformed.
    pub(super) fn new(
        (plan, given): (&RunPlan, &Given),
        secrets: &[Secret],
        filter: &Filter,
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
        let deny = given.plan(&plan.network).deny;
        let all = plan.services.iter().map(|it| {
            let filter = filter.beside(given.rules_of(it, &deny)?);
            let service = Service::new(it, value, Arc::clone(&filter), Arc::clone(&tls))?;
            Ok::<_, NetworkError>((it.clone(), filter, Arc::new(service)))
        });
        Ok(Self { all: all.collect::<Result<_, _>>()?, given: given.clone() })
    }

    /// Returns the service with this number, if the component has it.
    pub(super) fn find(&self, component: ComponentName, number: u16) -> Option<Arc<Service>> {
        let (plan, _, service) = self.all.get(usize::from(number))?;
        (plan.component == component).then(|| Arc::clone(service))
    }

    /// Denies the services these hosts and no others, and ends their connections.
    ///
    /// # Errors
    /// [`PeerError`] if a host is malformed.
    pub(crate) fn deny(&self, deny: &[PeerPlan]) -> Result<(), PeerError> {
        for (plan, filter, _) in &self.all {
            filter.reload(self.given.rules_of(plan, deny)?);
        }
        Ok(())
    }
}

/// Returns the settings of the TLS connections to services.
fn client(given: &Given) -> Result<Arc<ClientConfig>, NetworkError> {
    let roots = tls_roots::load(given.certificates.as_deref(), None)?;
    if roots.is_empty() {
        return Err(NetworkError::NoRoots);
    }
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
