//! Compares a later box with the one that a user has permitted. `up` and `update` stop before they start one that asks for more.

use box_contract::RunPlan;
use box_contract::permissions::{Effect, PermissionChange};

/// The permissions in which a later box differs from an earlier one. The size of the VM has limits of its own.
#[derive(Debug)]
pub(super) struct Differences(Vec<PermissionChange>);

impl Differences {
    /// Compares two boxes.
    pub(super) fn between(before: &RunPlan, now: &RunPlan) -> Self {
        let changes = before.permission_changes(now).into_iter();
        Self(changes.filter(|it| it.field != "vm").collect())
    }

    /// Lists what the later box asks for and the earlier one does not, one on each line. `None` if it asks for nothing more.
    pub(super) fn more(&self) -> Option<String> {
        let more = self.0.iter().filter(|it| it.effect != Effect::Less);
        let text: String = more.map(line).collect();
        (!text.is_empty()).then_some(text)
    }

    /// Lists all differences, one on each line. `None` if there are none.
    pub(super) fn all(&self) -> Option<String> {
        let line = |it| format!("{} ({})", line(it), it.effect.text());
        (!self.0.is_empty()).then(|| self.0.iter().map(line).collect())
    }
}

fn line(PermissionChange { field, a, b, .. }: &PermissionChange) -> String {
    let [a, b] = [a, b].map(|it| it.as_deref().unwrap_or("-"));
    format!("\n  {field}: {a} → {b}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the plan of a test box with these fields.
    fn plan(more: &Value) -> RunPlan {
        let mut plan = serde_json::to_value(testkit::test_box::config().plan).unwrap();
        for (field, value) in more.as_object().unwrap() {
            plan[field] = value.clone();
        }
        serde_json::from_value(plan).unwrap()
    }

    /// Each kind of right: a box that gets it asks for more, and one that loses it does not.
    #[test]
    fn each_right_that_is_new_is_asked_for() {
        let rights = [
            (
                "network allow",
                json!({ "network": { "mode": "filtered", "allow": [{ "peer": "a.example" }] } }),
            ),
            (
                "publish 80",
                json!({ "publish": [{ "component": "agent", "guest": 80, "host": 0 }] }),
            ),
            (
                "volume data",
                json!({ "volumes": [{ "name": "data", "guest": "/data", "scope": "agent" }] }),
            ),
            (
                "secret KEY",
                json!({ "secrets": [{ "name": "KEY", "scope": "agent", "delivery": "env" }] }),
            ),
            (
                "share src",
                json!({ "shares": [{ "name": "src", "guest": "/src", "access": "rw", "scope": "agent" }] }),
            ),
        ];
        for (field, more) in rights {
            let (bare, full) = (plan(&json!({})), plan(&more));
            let gained = Differences::between(&bare, &full);
            assert!(gained.more().is_some_and(|it| it.contains(field)), "{field}: {gained:?}");
            let lost = Differences::between(&full, &bare);
            assert_eq!(lost.more(), None, "{field}");
            assert!(lost.all().is_some_and(|it| it.contains(field)), "{field}");
        }
    }

    #[test]
    fn the_size_of_the_vm_is_no_question() {
        let (a, mut b) = (plan(&json!({})), plan(&json!({})));
        b.vm.cpus += 1;
        assert_eq!(Differences::between(&a, &b).all(), None);
    }
}
