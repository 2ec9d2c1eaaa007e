//! Checks the configuration of the agent: MCP servers, agent definitions and hooks.

use crate::plan::check::PlanError;
use crate::plan::{CredentialPlan, McpPlan, RunPlan, Scope, SecretDelivery};
use crate::rules::{
    MAX_AGENTS, MAX_MCP_SERVERS, McpUrl, NAME_FORM, is_credential_header, is_credential_prefix,
    is_name, is_variable,
};

const NO_SECRET: &str = "one of its secrets is not a secret of the agent";

impl RunPlan {
    /// Finds the first MCP server, agent definition or hook that no Boxfile could have declared.
    pub(super) fn wrong_agent_config(&self) -> Option<PlanError> {
        self.wrong_mcp().or_else(|| self.wrong_definition()).or_else(|| self.wrong_hook())
    }

    fn wrong_mcp(&self) -> Option<PlanError> {
        let mut before: Option<&str> = None;
        let wrong = self.mcp.iter().enumerate().find_map(|(at, server)| {
            let is_sorted = before.replace(&server.name).is_none_or(|it| it < server.name.as_str());
            let reason = if at >= MAX_MCP_SERVERS {
                "a box has at most 64 MCP servers"
            } else if !is_name(&server.name) {
                NAME_FORM
            } else if !is_sorted {
                "the servers are not sorted, or there are two of this name"
            } else {
                self.server_fault(server)?
            };
            Some((format!("mcp {:?}", server.name), reason))
        });
        wrong.map(|(what, reason)| PlanError::AgentConfig { what, reason })
    }

    /// Returns the fault of a server with a valid name.
    fn server_fault(
        &self,
        McpPlan { name: _, argv, url, env, secrets, headers }: &McpPlan,
    ) -> Option<&'static str> {
        let is_local = env.is_empty() && secrets.is_empty();
        let is_assigned =
            |it: &String| it.split_once('=').is_some_and(|(name, _)| is_variable(name));
        match url {
            Some(_) if !argv.is_empty() => Some("it has both a program and a URL"),
            Some(_) if !is_local => Some("a remote server has no variables"),
            Some(url) if McpUrl::parse(url).is_none_or(|it| !it.is_tls && !it.is_loopback()) => {
                Some("its URL is not https://HOST[:PORT][/PATH], or http:// at the loopback")
            }
            Some(_) => headers.iter().find_map(|it| self.header_fault(it)),
            None if argv.first().is_none_or(String::is_empty) => Some("it has no program"),
            None if !headers.is_empty() => Some("only a remote server has headers"),
            None if !env.iter().all(is_assigned) => Some("one of its variables has no valid name"),
            None => {
                let is_known = |it: &String| self.agent_secret(it).is_some();
                (!secrets.iter().all(is_known)).then_some(NO_SECRET)
            }
        }
    }

    fn header_fault(
        &self,
        CredentialPlan { name, secret, prefix }: &CredentialPlan,
    ) -> Option<&'static str> {
        if !is_credential_header(name) {
            Some("one of its headers is not a lower-case name that can have a credential")
        } else if !is_credential_prefix(prefix) {
            Some("the text before its secret is not printable ASCII")
        } else if self.agent_secret(secret) != Some(&SecretDelivery::Env) {
            Some("the secret of a header is not a variable of the agent")
        } else {
            None
        }
    }

    /// Returns the delivery of a secret that the agent gets.
    fn agent_secret(&self, name: &str) -> Option<&SecretDelivery> {
        let secret = self.secrets.iter().find(|it| it.name == name)?;
        let is_given = secret.scope != Scope::Business && secret.delivery != SecretDelivery::Host;
        is_given.then_some(&secret.delivery)
    }

    fn wrong_definition(&self) -> Option<PlanError> {
        let mut before: Option<&str> = None;
        let wrong = self.agents.iter().enumerate().find_map(|(at, agent)| {
            let is_sorted = before.replace(&agent.name).is_none_or(|it| it < agent.name.as_str());
            let reason = if at >= MAX_AGENTS {
                "a box has at most 64 agent definitions"
            } else if !agent.is_sound() {
                "its name is not valid, or a text of it is too long or not of one line"
            } else if !is_sorted {
                "the definitions are not sorted, or there are two of this name"
            } else {
                return None;
            };
            Some((format!("agent definition {:?}", agent.name), reason))
        });
        wrong.map(|(what, reason)| PlanError::AgentConfig { what, reason })
    }

    fn wrong_hook(&self) -> Option<PlanError> {
        let wrong = self.hooks.iter().enumerate().find_map(|(at, hook)| {
            let reason = if hook.argv.first().is_none_or(String::is_empty) {
                "it has no program"
            } else if self.hooks[..at].iter().any(|it| it.event == hook.event) {
                "there are two of this event"
            } else {
                return None;
            };
            Some((format!("hook {:?}", hook.event.name()), reason))
        });
        wrong.map(|(what, reason)| PlanError::AgentConfig { what, reason })
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::tests::{GROWN, grown};

    fn fault(config: &str) -> Option<String> {
        let secrets = r#""secrets":[{"name":"BUSINESS","scope":"business","delivery":"env"},{"name":"HOST","scope":"agent","delivery":"host"},{"name":"KEY","scope":"both","delivery":"env"},{"name":"FILE","scope":"agent","delivery":{"file":{"path":"/f"}}}]"#;
        grown(&format!("{{{secrets},{config}}}")).wrong_agent_config().map(|it| it.to_string())
    }

    fn server(rest: &str) -> Option<String> {
        fault(&format!(r#""mcp":[{{"name":"a"{rest}}}]"#))
    }

    #[test]
    fn a_server_is_a_program_or_a_url() {
        let wrong = |reason: &str| Some(format!("its mcp \"a\": {reason}"));
        assert_eq!(grown(GROWN).wrong_agent_config(), None);
        for rest in [
            r#","argv":["/a"],"env":["A=1"],"secrets":["KEY","FILE"]"#,
            r#","url":"https://a.example/v1","headers":[{"name":"x-key","secret":"KEY"}]"#,
            r#","url":"http://127.0.0.1:8931/mcp""#,
        ] {
            assert_eq!(server(rest), None, "{rest}");
        }
        let remote = "its URL is not https://HOST[:PORT][/PATH], or http:// at the loopback";
        for (rest, reason) in [
            ("", "it has no program"),
            (r#","argv":[""]"#, "it has no program"),
            (r#","argv":["/a"],"url":"https://a.example""#, "it has both a program and a URL"),
            (r#","url":"https://a.example","env":["A=1"]"#, "a remote server has no variables"),
            (r#","url":"http://a.example""#, remote),
            (r#","url":"a.example""#, remote),
            (r#","argv":["/a"],"env":["=1"]"#, "one of its variables has no valid name"),
            (r#","argv":["/a"],"secrets":["NONE"]"#, super::NO_SECRET),
            (r#","argv":["/a"],"secrets":["BUSINESS"]"#, super::NO_SECRET),
            (r#","argv":["/a"],"secrets":["HOST"]"#, super::NO_SECRET),
            (
                r#","argv":["/a"],"headers":[{"name":"x-key","secret":"KEY"}]"#,
                "only a remote server has headers",
            ),
            (
                r#","url":"https://a.example","headers":[{"name":"x-key","secret":"FILE"}]"#,
                "the secret of a header is not a variable of the agent",
            ),
            (
                r#","url":"https://a.example","headers":[{"name":"host","secret":"KEY"}]"#,
                "one of its headers is not a lower-case name that can have a credential",
            ),
            (
                r#","url":"https://a.example","headers":[{"name":"x-key","secret":"KEY","prefix":"\n"}]"#,
                "the text before its secret is not printable ASCII",
            ),
        ] {
            assert_eq!(server(rest), wrong(reason), "{rest}");
        }
        let two = r#"{"name":"a","argv":["/a"]}"#;
        let twice = "the servers are not sorted, or there are two of this name";
        assert_eq!(fault(&format!(r#""mcp":[{two},{two}]"#)), wrong(twice));
        let many: Vec<String> =
            (100..165).map(|it| format!(r#"{{"name":"s{it}","argv":["/a"]}}"#)).collect();
        let found = fault(&format!(r#""mcp":[{}]"#, many.join(","))).unwrap();
        assert_eq!(found, "its mcp \"s164\": a box has at most 64 MCP servers");
    }

    #[test]
    fn a_definition_and_a_hook_are_those_of_a_boxfile() {
        for (config, reason) in [
            (
                r#""agents":[{"name":"A","description":"x"}]"#,
                "its agent definition \"A\": its name is not valid, or a text of it is too long or not of one line",
            ),
            (
                r#""agents":[{"name":"a","description":"x\ny"}]"#,
                "its agent definition \"a\": its name is not valid, or a text of it is too long or not of one line",
            ),
            (
                r#""agents":[{"name":"b","description":"x"},{"name":"a","description":"x"}]"#,
                "its agent definition \"a\": the definitions are not sorted, or there are two of this name",
            ),
            (
                r#""hooks":[{"event":"after-tool","argv":[]}]"#,
                "its hook \"after-tool\": it has no program",
            ),
            (
                r#""hooks":[{"event":"after-tool","argv":["/a"]},{"event":"after-tool","argv":["/b"]}]"#,
                "its hook \"after-tool\": there are two of this event",
            ),
        ] {
            assert_eq!(fault(config).as_deref(), Some(reason), "{config}");
        }
        let many: Vec<String> =
            (100..165).map(|it| format!(r#"{{"name":"s{it}","description":"x"}}"#)).collect();
        let found = fault(&format!(r#""agents":[{}]"#, many.join(","))).unwrap();
        assert_eq!(found, "its agent definition \"s164\": a box has at most 64 agent definitions");
    }
}
