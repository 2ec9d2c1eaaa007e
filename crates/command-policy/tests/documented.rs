//! The page on the policy lists the rules.
#![forbid(unsafe_code)]

use command_policy::{Decision, Relaxed, Rule, rules};

const PAGE: &str = include_str!("../../../docs/command-policy.md");

fn row(rule: &Rule) -> String {
    let decision = match (rule.decision, rule.relaxed) {
        (Decision::Forbid, _) => "forbidden",
        (Decision::Run, _) => "runs",
        (Decision::Ask, Relaxed::No) => "asks",
        (Decision::Ask, Relaxed::Yes) => "asks, except in `development`",
        (Decision::Ask, Relaxed::Reading) => {
            "asks, except `fetch`, `pull` and `clone` in `development`"
        }
    };
    format!("| `{}` | {decision} | {} | {} |", rule.name, rule.commands, rule.reason)
}

#[test]
fn the_page_lists_each_rule() {
    let expected: Vec<String> = rules().iter().map(row).collect();
    let names: Vec<String> = rules().iter().map(|it| format!("| `{}` |", it.name)).collect();
    let is_row = |it: &&str| names.iter().any(|name| it.starts_with(name.as_str()));
    let listed: Vec<&str> = PAGE.lines().filter(is_row).collect();
    assert_eq!(listed, expected);
}
