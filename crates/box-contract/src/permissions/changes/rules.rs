//! The changes of rules that the list of permissions does not show one by one: the policy for commands, and the agent's tools.

use std::mem::take;

use super::{Effect, PermissionChange};
use crate::RunPlan;
use crate::plan::SandboxPlan;

/// Returns the changes of the rules that both boxes have, and of the tools that the agent may see.
pub(super) fn changes(a: &RunPlan, b: &RunPlan) -> Vec<PermissionChange> {
    let policies = a.sandbox.as_ref().zip(b.sandbox.as_ref());
    let policies = policies.map(|(a, b)| policy(a, b)).unwrap_or_default();
    policies.into_iter().chain(tools(&a.tools, &b.tools)).collect()
}

/// A list of a policy, and what another entry of it does.
type List = (&'static str, fn(&mut SandboxPlan) -> &mut Vec<String>, Effect);

/// A command that matches no list is decided by the preset, so a question can allow more or less than before.
const LISTS: [List; 6] = [
    ("writable", |it| &mut it.writable, Effect::More),
    ("allow", |it| &mut it.allow, Effect::More),
    ("ask", |it| &mut it.ask, Effect::Other),
    ("deny-read", |it| &mut it.deny_read, Effect::Less),
    ("deny-write", |it| &mut it.deny_write, Effect::Less),
    ("forbid", |it| &mut it.forbid, Effect::Less),
];

fn policy(a: &SandboxPlan, b: &SandboxPlan) -> Vec<PermissionChange> {
    let (mut a, mut b) = (a.clone(), b.clone());
    let mut all = Vec::new();
    for (name, list, effect) in LISTS {
        let [before, after] = [take(list(&mut a)), take(list(&mut b))];
        all.extend(entries(&format!("sandbox {name}"), [&before, &after], effect));
    }
    if a != b {
        let [a, b] = ["a policy for commands", "one with another preset or other limits"];
        all.push(change("sandbox", Effect::Other, [Some(a), Some(b)]));
    }
    all
}

/// Returns a change for each entry that one list has and the other has not.
fn entries(field: &str, [a, b]: [&[String]; 2], effect: Effect) -> Vec<PermissionChange> {
    let gone = a.iter().filter(|it| !b.contains(it));
    let gone = gone.map(|it| change(field, effect.reversed(), [Some(it), None]));
    let new = b.iter().filter(|it| !a.contains(it));
    gone.chain(new.map(|it| change(field, effect, [None, Some(it)]))).collect()
}

/// Returns the changes of the agent's tools. An empty list means all tools.
fn tools(a: &[String], b: &[String]) -> Vec<PermissionChange> {
    match (a, b) {
        ([], []) => Vec::new(),
        (_, []) => vec![change("tools", Effect::More, [Some(&a.join(", ")), Some("all")])],
        ([], _) => vec![change("tools", Effect::Less, [Some("all"), Some(&b.join(", "))])],
        _ => entries("tools", [a, b], Effect::More),
    }
}

fn change(field: &str, effect: Effect, values: [Option<&str>; 2]) -> PermissionChange {
    let [a, b] = values.map(|it| it.map(safe_text::shown));
    PermissionChange { field: field.to_owned(), effect, a, b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::grown;

    /// Returns the effects of a change of the policy, and those of its reversal.
    fn effects(change: impl Fn(&mut RunPlan)) -> [Vec<(String, Effect)>; 2] {
        let mut a = grown("{}");
        a.tools = vec!["read".to_owned()];
        a.sandbox = Some(SandboxPlan::default());
        let mut b = a.clone();
        change(&mut b);
        let effects = |a: &RunPlan, b: &RunPlan| {
            a.permission_changes(b).into_iter().map(|it| (it.field, it.effect)).collect()
        };
        [effects(&a, &b), effects(&b, &a)]
    }

    fn of(field: &str, effect: Effect) -> Vec<(String, Effect)> {
        vec![(field.to_owned(), effect)]
    }

    #[test]
    fn a_looser_policy_for_commands_allows_more() {
        for (name, list, effect) in LISTS {
            let entry = |plan: &mut RunPlan| {
                list(plan.sandbox.as_mut().unwrap()).push("/entry".to_owned());
            };
            let field = format!("sandbox {name}");
            assert_eq!(effects(entry), [of(&field, effect), of(&field, effect.reversed())]);
        }
        let limit = |plan: &mut RunPlan| plan.sandbox.as_mut().unwrap().ask_timeout_seconds += 1;
        assert_eq!(effects(limit), [of("sandbox", Effect::Other), of("sandbox", Effect::Other)]);
    }

    #[test]
    fn more_tools_allow_more() {
        let more = |plan: &mut RunPlan| plan.tools.push("write".to_owned());
        assert_eq!(effects(more), [of("tools", Effect::More), of("tools", Effect::Less)]);
        let all = |plan: &mut RunPlan| plan.tools.clear();
        assert_eq!(effects(all), [of("tools", Effect::More), of("tools", Effect::Less)]);
    }
}
