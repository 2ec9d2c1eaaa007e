//! Compares where two boxes send the secrets of services. The user gave them for the first one.

use std::collections::BTreeSet;

use box_contract::{CredentialPlan, ErrorCode, RunPlan, SecretDelivery, ServicePlan};
use egress_rules::with_port;
use safe_text::shown;

use super::error::Failure;

/// The way of a secret: its name, the host and port, the header, and the text before the secret.
type Way = [String; 4];

/// Refuses a box to which the secrets of the old box's services would go by another way: to another host, in another header, or into
/// the box itself. `help` is what the user of the box `name` can do.
pub(super) fn check(
    (name, old): (&str, &[ServicePlan]),
    new: &RunPlan,
    help: &str,
) -> Result<(), Failure> {
    let Some((secret, way)) = other_way(old, new) else { return Ok(()) };
    let message = format!(
        "{name} was not updated: the new box has the secret {secret} sent {way}, and the old one has not"
    );
    Err(Failure::new((ErrorCode::NotUpdated, help.to_owned()), shown(&message)))
}

/// Returns the first secret of the old services that goes by another way, and that way.
fn other_way(old: &[ServicePlan], new: &RunPlan) -> Option<(String, String)> {
    let (before, now) = (ways(old), ways(&new.services));
    let is_of_old = |secret: &str| before.iter().any(|it| it[0] == secret);
    let other = now.difference(&before).find(|it| is_of_old(&it[0]));
    let other = other
        .map(|[secret, to, header, _]| (secret.clone(), format!("to {to} in the header {header}")));
    let inside = || {
        let inside = new.secrets.iter().filter(|it| it.delivery != SecretDelivery::Host);
        let name = inside.map(|it| &it.name).find(|it| is_of_old(it))?;
        Some((name.clone(), "into the box".to_owned()))
    };
    other.or_else(inside)
}

fn ways(services: &[ServicePlan]) -> BTreeSet<Way> {
    let of = |service: &ServicePlan| -> Vec<Way> {
        let to = service.peer().map(|it| with_port(&it.peer, it.port)).unwrap_or_default();
        let way = |CredentialPlan { name, secret, prefix }: &CredentialPlan| {
            [secret.clone(), to.clone(), name.clone(), prefix.clone()]
        };
        service.headers.iter().map(way).collect()
    };
    services.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use box_contract::{ComponentName, Scope, SecretPlan};

    use super::*;

    fn service(to: &str, header: &str, secret: &str) -> ServicePlan {
        let (name, secret, prefix) = (header.to_owned(), secret.to_owned(), String::new());
        ServicePlan {
            name: "model".to_owned(),
            to: to.to_owned(),
            component: ComponentName::Agent,
            headers: vec![CredentialPlan { name, secret, prefix }],
            allow: Vec::new(),
            pass: Vec::new(),
            timeout_ms: 1000,
            env: None,
        }
    }

    #[test]
    fn a_secret_goes_where_it_went_before() {
        let old = [service("https://a.example/v1", "x-key", "KEY")];
        let way = |services: &[ServicePlan], delivered: Option<&str>| {
            let mut plan = testkit::test_box::config().plan;
            plan.services = services.to_vec();
            plan.secrets.extend(delivered.map(|name| SecretPlan {
                name: name.to_owned(),
                scope: Scope::Agent,
                delivery: SecretDelivery::Env,
            }));
            other_way(&old, &plan).map(|it| it.1)
        };
        assert_eq!(way(&old, None), None);
        assert_eq!(way(&[service("https://a.example/v2", "x-key", "KEY")], Some("OTHER")), None);
        assert_eq!(way(&[service("https://b.example", "x-key", "OTHER")], None), None);
        let elsewhere = way(&[service("https://b.example", "x-key", "KEY")], None);
        assert_eq!(elsewhere.as_deref(), Some("to b.example:443 in the header x-key"));
        assert!(way(&[service("https://a.example", "x-other", "KEY")], None).is_some());
        assert_eq!(way(&[], Some("KEY")).as_deref(), Some("into the box"));
    }
}
