//! Checks the keys of an agent definition, in the form of Claude Code's subagents
//! (<https://code.claude.com/docs/en/sub-agents>).
//!
//! ```text
//! name: reviewer                     # required: the name of the file without `.md`
//! description: Reviews a change.     # required
//! tools: Read, Grep                  # or a list
//! model: opus
//! ```
//!
//! Other keys are the agent's concern.

use box_contract::AgentDefinitionPlan;
use box_contract::rules::{MAX_AGENT_DESCRIPTION, MAX_AGENT_TOOLS, MAX_AGENT_WORD, is_name};
use diagnostics::names::name_error;
use diagnostics::suggest::{did_you_mean, misspelt_tool};
use diagnostics::{Diagnostic, Sink, Spanned};
use safe_text::quote;

use super::about::line;
use super::keys::{Data, Frontmatter, Mapping, Tool, Value};
use super::manifest::Checker;

/// The keys of Claude Code's subagents.
const KEYS: &str = "name description tools disallowedTools model permissionMode maxTurns skills mcpServers hooks \
     memory background effort isolation color initialPrompt";
/// The beginning of the names of tools that an MCP server has.
const MCP_TOOL: &str = "mcp__";

/// The result of parsing an agent definition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedAgent {
    /// The valid parts of the definition. It is complete if there are no errors.
    pub plan: AgentDefinitionPlan,
    /// The errors, sorted by position, at most [`MAX_KEPT`](diagnostics::MAX_KEPT).
    pub errors: Vec<Diagnostic>,
    /// Warnings, for example about tools that are probably misspelt.
    pub warnings: Vec<Diagnostic>,
}

/// Checks the keys of the definition in the file `NAME.md`. `text` is the content of the file.
pub(super) fn check(text: &str, frontmatter: &Value<Frontmatter>, name: &str) -> ParsedAgent {
    let checker = Checker { text, errors: Sink::default(), warnings: Sink::default() };
    let plan = checker.agent(frontmatter, name);
    let mut warnings = checker.warnings.into_found();
    warnings.sort_by_key(Diagnostic::span);
    ParsedAgent { plan, errors: checker.errors.into_found(), warnings }
}

impl Checker<'_> {
    fn agent(&self, frontmatter: &Value<Frontmatter>, name: &str) -> AgentDefinitionPlan {
        let mut plan = AgentDefinitionPlan { name: name.to_owned(), ..Default::default() };
        let without_keys = Mapping::default();
        let mapping = match frontmatter.data {
            Data::Absent => &without_keys,
            _ => match self.mapping("the frontmatter", frontmatter) {
                Some(mapping) => mapping,
                None => return plan,
            },
        };
        self.report_unknown("the frontmatter", mapping, KEYS);
        let keys = &mapping.value;
        let help = format!("write `name: {name}`, the name of the file without `.md`");
        if let Some(written) = self.required("name", &keys.name, &help) {
            self.errors.check(check_name(written, name));
        }
        let help = "write `description: …`: what the agent does, and when to use it";
        let written = self.required("description", &keys.description, help);
        let description = written.and_then(|it| self.errors.check(description(it)));
        plan.description = description.unwrap_or_default();
        plan.tools = self.agent_tools(&keys.tools);
        plan.model = self.recorded("`model`", &keys.model, MAX_AGENT_WORD);
        plan
    }

    /// Returns the names of the tools: one text with commas, or a list. Warns of names that are probably misspelt.
    fn agent_tools(&self, tools: &Value<Tool>) -> Vec<String> {
        let named: Vec<Spanned<&str>> = match &tools.data {
            Data::Absent | Data::Null => Vec::new(),
            Data::Text(text) => {
                let names = text.split(',').map(str::trim).filter(|it| !it.is_empty());
                names.map(|value| Spanned { value, span: tools.place }).collect()
            }
            Data::List(items) => {
                items.iter().filter_map(|it| self.text("an item of `tools`", it)).collect()
            }
            Data::Mapping(_) | Data::Other => {
                let help = "write it as `Read, Grep`, or as a list";
                self.wrong::<_, ()>("`tools`", "a list", tools, help);
                Vec::new()
            }
        };
        if let Some(further) = named.get(MAX_AGENT_TOOLS) {
            let message = format!("the definition has more than {MAX_AGENT_TOOLS} tools");
            let error = Diagnostic::new(message, further.span, "one too many");
            self.errors.report(error.with_help("leave `tools` out: the agent then has all tools"));
        }
        let named = named.into_iter().take(MAX_AGENT_TOOLS);
        named.filter_map(|tool| self.errors.check(self.agent_tool(tool))).collect()
    }

    fn agent_tool(&self, Spanned { value, span }: Spanned<&str>) -> Result<String, Diagnostic> {
        if value.chars().count() > MAX_AGENT_WORD || value.contains(char::is_control) {
            let error = Diagnostic::new("a tool has no valid name", span, "not a name");
            return Err(
                error.with_help(format!("write one line of at most {MAX_AGENT_WORD} characters"))
            );
        }
        // A rule such as `Bash(git diff:*)` begins with the name of the tool.
        let name = value.split('(').next().unwrap_or_default();
        let meant = misspelt_tool(name).filter(|_| !name.starts_with(MCP_TOOL));
        if let Some(meant) = meant {
            let message = format!("{} is probably not the name of a tool", quote(name));
            let warning = Diagnostic::warning(message, span, "agents may not have this");
            self.warnings.report(warning.with_help(did_you_mean(meant)));
        }
        Ok(value.to_owned())
    }
}

fn check_name(Spanned { value, span }: Spanned<&str>, file: &str) -> Result<(), Diagnostic> {
    if value == file {
        return Ok(());
    }
    if !is_name(value) {
        return Err(name_error(value, span, |intended| format!("`name: {intended}`")));
    }
    let message =
        format!("the agent's name {} differs from its file's, {}", quote(value), quote(file));
    Err(Diagnostic::new(message, span, "not the file's name")
        .with_help(format!("write `name: {file}`, or rename the file to `{value}.md`")))
}

/// Returns a description as one line.
fn description(Spanned { value, span }: Spanned<&str>) -> Result<String, Diagnostic> {
    let (message, help) = match value.chars().count() {
        _ if value.trim().is_empty() => {
            ("the description is empty".to_owned(), "write what the agent does, and when to use it")
        }
        0..=MAX_AGENT_DESCRIPTION => return line("the description", value, span),
        count => (
            format!(
                "the description has {count} characters, which is more than {MAX_AGENT_DESCRIPTION}"
            ),
            "shorten it, and move the details below the frontmatter",
        ),
    };
    Err(Diagnostic::new(message, span, "the agent is chosen by it").with_help(help))
}
