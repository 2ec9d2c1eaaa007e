//! Describes what a box wants of its host: directories, disks and secrets.

use box_image::text::readable;
use box_image::{Access, RunPlan, Scope, ScratchPlan, SecretDelivery, SecretPlan, SharePlan};

/// Returns a line for each.
pub(crate) fn lines(plan: &RunPlan) -> impl Iterator<Item = String> {
    let shares = plan.shares.iter().map(share);
    shares.chain(plan.scratch.iter().map(scratch)).chain(plan.secrets.iter().map(secret))
}

fn share(SharePlan { name, guest, access, scope, host }: &SharePlan) -> String {
    let access = match access {
        Access::ReadOnly => "read",
        Access::ReadWrite => "read and write",
    };
    let host = host.as_ref().map_or_else(String::new, |it| format!(", proposes {it:?}"));
    format!("share       {name} at {guest}, to {access}, {}{host}", components(*scope))
}

fn scratch(ScratchPlan { name, guest, size_bytes, scope }: &ScratchPlan) -> String {
    let size = readable(*size_bytes);
    format!("scratch     {name} at {guest}, {size}, {}", components(*scope))
}

fn secret(SecretPlan { name, scope, delivery }: &SecretPlan) -> String {
    let place = match delivery {
        SecretDelivery::Env => "as a variable".to_owned(),
        SecretDelivery::File { path } => format!("at {path}"),
    };
    format!("secret      {name} {place}, {}", components(*scope))
}

const fn components(scope: Scope) -> &'static str {
    match scope {
        Scope::Agent => "for the agent",
        Scope::Business => "for the business component",
        Scope::Both => "for both components",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_what_it_is_where_and_for_whom() {
        let mut plan = testkit::test_box::config().plan;
        let share = |name: &str, access, host: Option<&str>| SharePlan {
            name: name.to_owned(),
            guest: "/data".to_owned(),
            access,
            scope: Scope::Business,
            host: host.map(str::to_owned),
        };
        plan.shares = vec![
            share("input", Access::ReadOnly, Some("./project")),
            share("output", Access::ReadWrite, None),
        ];
        plan.scratch = vec![ScratchPlan {
            name: "work".to_owned(),
            guest: "/var/work".to_owned(),
            size_bytes: 64 << 20,
            scope: Scope::Both,
        }];
        let secret = |name: &str, delivery| SecretPlan {
            name: name.to_owned(),
            scope: Scope::Agent,
            delivery,
        };
        let file = SecretDelivery::File { path: "/run/secrets/cert".to_owned() };
        plan.secrets = vec![secret("API_KEY", SecretDelivery::Env), secret("CERT", file)];
        let expected = [
            "share       input at /data, to read, for the business component, proposes \"./project\"",
            "share       output at /data, to read and write, for the business component",
            "scratch     work at /var/work, 64.0 MiB, for both components",
            "secret      API_KEY as a variable, for the agent",
            "secret      CERT at /run/secrets/cert, for the agent",
        ];
        assert_eq!(lines(&plan).collect::<Vec<_>>(), expected);
    }
}
