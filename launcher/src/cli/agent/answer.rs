//! The agent's answers as text for a terminal.

use std::collections::BTreeMap;

use boxlaunch::agent::messages::{
    GetCapabilitiesResponse, HealthCheckResponse, ModelCapability, ResourceLimits, Skill,
};
use safe_text::shown;

use crate::cli::terminal::aligned;

/// Returns the agent's health and its details as lines of text.
pub(super) fn health(answer: &HealthCheckResponse) -> String {
    let name = answer.status().name();
    let first = match answer.message.as_str() {
        "" => format!("{name}\n"),
        message => format!("{name}: {}\n", shown(message)),
    };
    first + &pairs(&answer.details)
}

/// Returns one indented line for each entry of `map`.
fn pairs(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(name, value)| format!("  {}: {}\n", shown(name), shown(value))).collect()
}

/// Returns a table of the agent's properties and capabilities. Empty fields are omitted.
pub(super) fn capabilities(answer: &GetCapabilitiesResponse) -> String {
    let info = answer.info.clone().unwrap_or_default();
    let tools = answer.tools.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
    let models = answer.models.iter().map(model).collect::<Vec<_>>().join(", ");
    let rows = [
        ("name", info.name),
        ("version", info.version),
        ("description", info.description),
        ("author", info.author),
        ("license", info.license),
        ("homepage", info.homepage),
        ("features", answer.features.join(", ")),
        ("tools", tools),
        ("models", models),
        ("limits", answer.limits.as_ref().map(limits).unwrap_or_default()),
    ];
    let given = rows.iter().filter(|(_, value)| !value.is_empty());
    let text: String = given.map(|(name, value)| format!("{name:<13}{}\n", shown(value))).collect();
    text + &pairs(&answer.metadata)
}

fn model(it: &ModelCapability) -> String {
    if it.provider.is_empty() { it.model.clone() } else { format!("{}/{}", it.provider, it.model) }
}

fn limits(it: &ResourceLimits) -> String {
    let all = [
        (it.max_context_tokens, "tokens of context"),
        (it.max_concurrent_sessions.into(), "sessions"),
        (it.max_tools_per_request.into(), "tools in a request"),
    ];
    let named = all.iter().filter(|(limit, _)| *limit > 0);
    named.map(|(limit, name)| format!("{limit} {name}")).collect::<Vec<_>>().join(", ")
}

/// Returns the table of skills.
pub(super) fn skills(skills: &[Skill]) -> String {
    let head = ["NAME", "TOOLS", "DESCRIPTION"].map(str::to_owned);
    let row = |it: &Skill| {
        let tools = if it.tools.is_empty() { "-".to_owned() } else { shown(&it.tools.join(",")) };
        [shown(&it.name), tools, shown(&it.description)]
    };
    aligned(&std::iter::once(head).chain(skills.iter().map(row)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use boxlaunch::agent::messages::{AgentInfo, Status, ToolCapability};

    use super::*;

    #[test]
    fn a_table_is_not_much_larger_than_what_is_in_it() {
        let wide = Skill { name: "x".repeat(70_000), ..Skill::default() };
        let mut all = vec![wide];
        all.extend(vec![Skill::default(); 100_000]);
        assert!(skills(&all).len() < 1 << 20);
    }

    #[test]
    fn what_an_agent_says_does_not_move_the_cursor() {
        let evil = || "a\u{1b}[2J\nb".to_owned();
        let details = BTreeMap::from([(evil(), evil())]);
        let status = Status::Degraded.into();
        let health = health(&HealthCheckResponse { status, message: evil(), details });
        insta::assert_snapshot!(health, @"
        degraded: a�[2J�b
          a�[2J�b: a�[2J�b
        ");
        let info = AgentInfo { name: evil(), ..AgentInfo::default() };
        let tool = ToolCapability { name: evil(), ..ToolCapability::default() };
        let limits = ResourceLimits { max_context_tokens: 7, ..ResourceLimits::default() };
        let capabilities = capabilities(&GetCapabilitiesResponse {
            info: Some(info),
            features: vec!["streaming".to_owned(), evil()],
            tools: vec![tool],
            limits: Some(limits),
            ..GetCapabilitiesResponse::default()
        });
        insta::assert_snapshot!(capabilities, @"
        name         a�[2J�b
        features     streaming, a�[2J�b
        tools        a�[2J�b
        limits       7 tokens of context
        ");
        let skill = Skill { name: evil(), description: evil(), ..Skill::default() };
        insta::assert_snapshot!(skills(&[skill]), @"
        NAME      TOOLS   DESCRIPTION
        a�[2J�b   -       a�[2J�b
        ");
    }
}
