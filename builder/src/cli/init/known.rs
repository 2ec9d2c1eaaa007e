//! The Boxfiles of agents that people use: those of examples/agents.

use box_contract::{ComponentName, ErrorCode};
use clap::ValueEnum;
use diagnostics::Source;
use serde_json::json;

use super::First;
use crate::cli::failure::Failure;

/// An agent that people use. Its name on the command line is also the name of its box, and of its directory in examples/agents.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Known {
    /// OpenAI's Codex
    Codex,
    /// Anthropic's Claude Code
    ClaudeCode,
    /// Google's Gemini CLI
    GeminiCli,
    /// The agent of opencode.ai, with OpenAI's models
    Opencode,
    /// A3S Code, with OpenAI's models and the interface of `boxlaunch agent`
    #[value(name = "a3s-code", alias = "a3s_code")]
    A3sCode,
}

impl Known {
    const fn boxfile(self) -> &'static str {
        match self {
            Self::Codex => include_str!("../../../../examples/agents/codex/Boxfile"),
            Self::ClaudeCode => include_str!("../../../../examples/agents/claude-code/Boxfile"),
            Self::GeminiCli => include_str!("../../../../examples/agents/gemini-cli/Boxfile"),
            Self::Opencode => include_str!("../../../../examples/agents/opencode/Boxfile"),
            Self::A3sCode => include_str!("../../../../examples/agents/a3s-code/Boxfile"),
        }
    }

    /// Returns the name and the text of the program that the Boxfile adds to the image. `None` if the image has all programs.
    const fn program(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Codex | Self::ClaudeCode | Self::GeminiCli | Self::Opencode => None,
            Self::A3sCode => {
                let text = include_str!("../../../../examples/agents/a3s-code/a3s-code");
                Some(("a3s-code", text))
            }
        }
    }

    /// Returns the agent's Boxfile, and the report with its name and its image.
    pub(super) fn first(self) -> Result<First, Failure> {
        let text = self.boxfile();
        let read = boxfile_spec::read(Source::new("Boxfile", text), None, |_| Err(String::new()));
        let invalid =
            || Failure::of_diagnostics(ErrorCode::BoxfileInvalid, &read.found, &read.sources);
        let boxfile = read.boxfile.as_ref().ok_or_else(invalid)?;
        let image = boxfile.agent.component.image.as_ref().map(|it| it.value.to_string());
        let images = json!([{ "component": ComponentName::Agent, "image": image }]);
        Ok(First {
            text: text.to_owned(),
            program: self.program(),
            report: json!({ "name": boxfile.name, "images": images }),
            next: "run the commands in the first comment of the Boxfile, which make the image, and then `boxbuild build`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_the_name_of_its_box() {
        for known in Known::value_variants() {
            let name = known.to_possible_value().unwrap().get_name().to_owned();
            assert_eq!(known.first().unwrap().report["name"], name);
        }
    }
}
