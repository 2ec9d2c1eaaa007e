//! `boxlaunch agent`: calls the gRPC interface of the agent in a running box.

mod answer;
mod generate;
mod session;

use std::time::Duration;

use box_contract::exit;
use boxlaunch::agent::AgentClient;
use boxlaunch::agent::messages::Status;
use boxlaunch::boxes::{Boxes, State};
use boxlaunch::client::ClientError;
use clap::Subcommand;
use serde_json::json;

use super::error::Failure;
use super::paths;
use super::run::seconds;
use super::terminal::{is_quiet, json_line, print};
use crate::cli::launch_error::LaunchError;

/// Calls the agent of a running box through the interface `a3s.code.agent.v1`.
///
/// The agent must serve this interface: docs/agents.md.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    command: AgentCommand,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    Health(HealthArgs),
    Capabilities(CapabilitiesArgs),
    Skills(SkillsArgs),
    Generate(GenerateArgs),
    Session(session::SessionArgs),
}

/// Asks the agent for its health. Exits with 0 if it answers that it is healthy, else with 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch agent health coder
  boxlaunch agent health coder --json | jq -r .status")]
struct HealthArgs {
    #[command(flatten)]
    common: CommonArgs<ANSWER>,
}

/// Shows the name, version and capabilities that the agent reports.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch agent capabilities coder
  boxlaunch agent capabilities coder --json | jq -r '.tools[].name'")]
struct CapabilitiesArgs {
    #[command(flatten)]
    common: CommonArgs<ANSWER>,
}

/// Lists the skills that the agent reports. `boxlaunch skills` lists the skills of the box.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch agent skills coder")]
struct SkillsArgs {
    #[command(flatten)]
    common: CommonArgs<ANSWER>,
    /// List the skills of this session of the agent.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

/// Sends the agent a prompt, and prints its answer as it arrives.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch agent generate coder 'Explain main.rs'
  git diff | boxlaunch agent generate coder - --timeout 1800")]
struct GenerateArgs {
    #[command(flatten)]
    common: CommonArgs<GENERATION>,
    #[command(flatten)]
    prompt: generate::PromptArgs,
    /// Use this session of the agent, instead of a new one for this prompt.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

/// The options of all commands. `SECONDS` is the default time limit.
#[derive(Debug, clap::Args)]
struct CommonArgs<const SECONDS: u32> {
    /// The box's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// How long the agent may take.
    #[arg(long, value_name = "SECONDS", default_value_t = SECONDS)]
    #[arg(value_parser = seconds(1), allow_negative_numbers = true)]
    timeout: u32,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The default time limit of `health`, `capabilities` and `skills`, in seconds.
const ANSWER: u32 = 10;
/// The default time limit of `generate`, in seconds.
const GENERATION: u32 = 600;

impl AgentArgs {
    /// Returns whether the command has `--json`.
    pub(crate) const fn is_json(&self) -> bool {
        self.command.is_json()
    }
}

impl AgentCommand {
    const fn is_json(&self) -> bool {
        match self {
            Self::Health(args) => args.common.json,
            Self::Capabilities(args) => args.common.json,
            Self::Skills(args) => args.common.json,
            Self::Generate(args) => args.common.json || args.prompt.events,
            Self::Session(args) => args.is_json(),
        }
    }
}

impl<const SECONDS: u32> CommonArgs<SECONDS> {
    /// Connects a client to the agent of the box.
    fn client(&self) -> Result<AgentClient, Failure> {
        client(&self.name, Duration::from_secs(self.timeout.into()))
    }
}

/// Connects a client to the agent of the box `name`. Each of its calls may take `limit`.
fn client(name: &str, limit: Duration) -> Result<AgentClient, Failure> {
    let record = Boxes::new(&paths::state()?).find(name)?;
    let socket = match (record.state, &record.agent_socket) {
        (State::Ended, _) => Err(ClientError::NotRunning(record.name).into()),
        // Until the box runs, the file at this path may not be the socket of its agent.
        (State::Starting, _) => Err(LaunchError::StillStarting(record.name)),
        (State::Running, Some(socket)) => Ok(socket),
        (State::Running, None) => Err(LaunchError::NoPort(record.name)),
    };
    Ok(AgentClient::new(socket?, limit)?)
}

pub(crate) fn agent(args: &AgentArgs) -> Result<u8, Failure> {
    match &args.command {
        AgentCommand::Health(args) => health(args),
        AgentCommand::Capabilities(args) => {
            let answer = args.common.client()?.capabilities()?;
            tell(args.common.json, &answer, answer::capabilities).map(|()| exit::DONE)
        }
        AgentCommand::Skills(args) => {
            let answer = args.common.client()?.skills(args.session.as_deref())?;
            tell(args.common.json, &answer, |it| answer::skills(&it.skills)).map(|()| exit::DONE)
        }
        AgentCommand::Generate(args) => {
            generate::generate(&args.common, &args.prompt, args.session.as_deref())
        }
        AgentCommand::Session(args) => session::session(args),
    }
}

/// Prints an answer as JSON or as text.
fn tell<T: serde::Serialize>(
    as_json: bool,
    answer: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    print(&if as_json { json_line(answer)? } else { text(answer) })
}

fn health(args: &HealthArgs) -> Result<u8, Failure> {
    let answer = args.common.client()?.health()?;
    let status = answer.status();
    if args.common.json {
        let (message, details) = (&answer.message, &answer.details);
        let fields = json!({ "status": status.name(), "message": message, "details": details });
        print(&json_line(&fields)?)?;
    } else if !is_quiet() {
        print(&answer::health(&answer))?;
    }
    Ok(if status == Status::Healthy { exit::DONE } else { exit::FAILED })
}
