//! The configuration that the agent reads: MCP servers, agent definitions and hooks.
//!
//! The box only carries the configuration. The agent starts the servers, and runs the hooks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CredentialPlan, RunPlan, SecretDelivery};
use crate::named_enum;
use crate::rules::{MAX_AGENT_DESCRIPTION, MAX_AGENT_TOOLS, MAX_AGENT_WORD, is_name};

/// The file of the agent's root with the configuration, as JSON. Without such declarations the box has no file.
pub const AGENT_CONFIG_PATH: &str = "/a3s/config/agent.json";
/// The environment variable of the agent with [`AGENT_CONFIG_PATH`], if the box has the file.
pub const AGENT_CONFIG_VARIABLE: &str = "A3S_AGENT_CONFIG";
/// The directory of the agent's root with the agent definitions, each of which is a file `NAME.md`.
pub const AGENTS_PATH: &str = "/a3s/agents";
/// The end of the name of an agent definition.
pub const AGENT_SUFFIX: &str = ".md";

/// The version of the JSON.
const VERSION: u32 = 1;
/// The end of the name of the variable with the path of a secret's file.
const FILE_SUFFIX: &str = "_FILE";

/// A server of the Model Context Protocol that the agent uses: a program that the agent starts, or a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct McpPlan {
    /// The server's name.
    pub name: String,
    /// The program and its arguments. Empty for a remote server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The URL of a remote server ([`McpUrl`](crate::rules::McpUrl)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The variables of the program: `NAME=value`, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The names of the secrets that the program gets, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The header lines of requests to a remote server, sorted by name. Their secrets are variables of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<CredentialPlan>,
}

/// An agent definition, whose file is in [`AGENTS_PATH`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AgentDefinitionPlan {
    /// The name, which is also the name of the file without its suffix.
    pub name: String,
    /// The purpose, and when to use the agent, in one line.
    pub description: String,
    /// The names of the tools that the definition has, in its order. Empty means that it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The model that the definition has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl AgentDefinitionPlan {
    /// Returns whether the name is valid, and the texts could be from a checked definition: they are short and have no
    /// control characters.
    pub fn is_sound(&self) -> bool {
        let is_text =
            |text: &str, most| text.chars().count() <= most && !text.contains(char::is_control);
        is_name(&self.name)
            && !self.description.is_empty()
            && is_text(&self.description, MAX_AGENT_DESCRIPTION)
            && self.tools.len() <= MAX_AGENT_TOOLS
            && self.tools.iter().chain(&self.model).all(|it| is_text(it, MAX_AGENT_WORD))
    }

    /// Returns the path of the definition in the agent's root.
    pub fn path(&self) -> String {
        format!("{AGENTS_PATH}/{}{AGENT_SUFFIX}", self.name)
    }
}

/// A program that the agent runs at an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HookPlan {
    /// The event.
    pub event: HookEvent,
    /// The program and its arguments.
    pub argv: Vec<String>,
}

named_enum! {
    /// An event of the agent.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum HookEvent {
        /// A session begins.
        SessionStart "session-start",
        /// A session ends.
        SessionEnd "session-end",
        /// A tool is about to be used.
        BeforeTool "before-tool",
        /// A tool was used.
        AfterTool "after-tool",
        /// A command is about to run.
        BeforeCommand "before-command",
        /// A command has ended.
        AfterCommand "after-command",
        /// The agent is about to report that its work is done.
        BeforeCompleted "before-completed",
    }
}

/// The JSON of [`AGENT_CONFIG_PATH`].
#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<&'a str, Server<'a>>,
    agents: Vec<Definition<'a>>,
    hooks: &'a [HookPlan],
}

/// A server in the form of Claude Code's `.mcp.json` (<https://code.claude.com/docs/en/mcp>).
#[derive(Serialize)]
#[serde(untagged)]
enum Server<'a> {
    Program {
        command: &'a str,
        args: &'a [String],
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    Remote {
        #[serde(rename = "type")]
        kind: &'static str,
        url: &'a str,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<&'a str, String>,
    },
}

#[derive(Serialize)]
struct Definition<'a> {
    name: &'a str,
    description: &'a str,
    path: String,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tools: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
}

impl RunPlan {
    /// Returns the text of [`AGENT_CONFIG_PATH`]: one line of JSON. `None` if the plan has no such declaration.
    pub fn agent_config(&self) -> Option<String> {
        if self.mcp.is_empty() && self.agents.is_empty() && self.hooks.is_empty() {
            return None;
        }
        let servers = self.mcp.iter().map(|it| (it.name.as_str(), self.server(it)));
        let document = Document {
            version: VERSION,
            servers: servers.collect(),
            agents: self.agents.iter().map(definition).collect(),
            hooks: &self.hooks,
        };
        // The document has only texts and lists, which are representable in JSON.
        serde_json::to_string(&document).ok().map(|text| text + "\n")
    }

    fn server<'a>(&self, plan: &'a McpPlan) -> Server<'a> {
        if let Some(url) = &plan.url {
            let header = |it: &'a CredentialPlan| {
                (it.name.as_str(), format!("{}{}", it.prefix, expanded(&it.secret)))
            };
            let headers = plan.headers.iter().map(header).collect();
            return Server::Remote { kind: "http", url, headers };
        }
        let own = plan.env.iter().filter_map(|it| it.split_once('='));
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env = own.chain(plan.secrets.iter().map(|it| self.secret_variable(it))).collect();
        let command = plan.argv.first().map_or("", String::as_str);
        let args = plan.argv.get(1..).unwrap_or_default();
        Server::Program { command, args, env }
    }

    /// Returns the variable by which a program gets a secret. For a secret in a file, the variable has the file's path.
    fn secret_variable(&self, name: &str) -> (String, String) {
        let delivery = self.secrets.iter().find(|it| it.name == name).map(|it| &it.delivery);
        match delivery {
            Some(SecretDelivery::File { path }) => (format!("{name}{FILE_SUFFIX}"), path.clone()),
            _ => (name.to_owned(), expanded(name)),
        }
    }
}

fn definition(plan: &AgentDefinitionPlan) -> Definition<'_> {
    let AgentDefinitionPlan { name, description, tools, model } = plan;
    Definition { name, description, path: plan.path(), tools, model: model.as_deref() }
}

/// Returns the text that the agent replaces by the value of its variable.
fn expanded(variable: &str) -> String {
    format!("${{{variable}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::{GROWN, grown};

    #[test]
    fn the_configuration_has_the_form_that_agents_read() {
        let expected = concat!(
            r#"{"version":1,"mcpServers":{"#,
            r#""github":{"command":"/usr/bin/github-mcp","args":["--stdio"],"#,
            r#""env":{"CERT_FILE":"/run/cert","KEY":"${KEY}","LOG_LEVEL":"info"}},"#,
            r#""remote":{"type":"http","url":"https://mcp.example.org/v1","#,
            r#""headers":{"authorization":"Bearer ${KEY}"}}},"#,
            r#""agents":[{"name":"reviewer","description":"Reviews.","path":"/a3s/agents/reviewer.md","#,
            r#""tools":["Read","Grep"],"model":"opus"}],"#,
            r#""hooks":[{"event":"before-command","argv":["/usr/bin/guard","--strict"]}]}"#,
            "\n"
        );
        assert_eq!(grown(GROWN).agent_config().as_deref(), Some(expected));
        assert_eq!(grown("{}").agent_config(), None);
        let hooks = r#"{"hooks": [{"event": "session-end", "argv": ["/a"]}]}"#;
        let expected = "{\"version\":1,\"mcpServers\":{},\"agents\":[],\
                        \"hooks\":[{\"event\":\"session-end\",\"argv\":[\"/a\"]}]}\n";
        assert_eq!(grown(hooks).agent_config().as_deref(), Some(expected));
    }

    #[test]
    fn an_event_has_one_name() {
        for event in HookEvent::ALL {
            assert_eq!(serde_json::to_value(event).unwrap(), event.name());
        }
    }
}
