//! `boxlaunch agent session`: conversations with an agent that outlive a call.

use std::io;
use std::time::Duration;

use box_contract::exit;
use boxlaunch::agent::messages::{AgentEvent, ConfirmToolExecutionRequest, Session};
use clap::Subcommand;
use safe_text::{shown, shown_json};
use serde_json::{Value, json};

use super::generate::{PromptArgs, generate, write};
use super::{ANSWER, CommonArgs, GENERATION, client};
use crate::cli::error::Failure;
use crate::cli::run::seconds;
use crate::cli::terminal::{aligned, json_line, print};

/// Makes and uses sessions of the agent: conversations in which it remembers earlier prompts.
#[derive(Debug, clap::Args)]
pub(super) struct SessionArgs {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    Create(CreateArgs),
    #[command(alias = "ls")]
    List(ListArgs),
    Send(SendArgs),
    Events(EventsArgs),
    Confirm(ConfirmArgs),
    Cancel(CancelArgs),
    Close(CloseArgs),
}

/// Makes a session, and prints its ID. It lasts until it is closed or the agent ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch agent session create coder
  session=$(boxlaunch agent session create coder --session review)")]
struct CreateArgs {
    #[command(flatten)]
    common: CommonArgs<ANSWER>,
    /// The ID of the new session [default: the agent chooses one].
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

/// Lists the sessions that the agent has.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch agent session list coder")]
struct ListArgs {
    #[command(flatten)]
    common: CommonArgs<ANSWER>,
}

/// Sends a prompt in a session, and prints the answer as it arrives.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch agent session send coder review 'Explain main.rs'
  git diff | boxlaunch agent session send coder review - --events")]
struct SendArgs {
    #[command(flatten)]
    common: CommonArgs<GENERATION>,
    /// The ID of the session.
    #[arg(value_name = "SESSION")]
    session: String,
    #[command(flatten)]
    prompt: PromptArgs,
}

/// Prints the events of the agent as they happen, until the agent ends the stream.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch agent session events coder review
  boxlaunch agent session events coder --json | jq 'select(.event == \"confirmation-required\")'")]
struct EventsArgs {
    /// The box's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// The ID of the session [default: the events of all sessions].
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// End after this time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds(1), allow_negative_numbers = true)]
    timeout: Option<u32>,
    /// Print one JSON object for each event.
    #[arg(long)]
    json: bool,
}

/// Allows or denies a tool that the agent wants to run. The event `confirmation-required` has the tool's ID.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch agent session confirm coder review tool-1
  boxlaunch agent session confirm coder review tool-1 --deny --reason 'not on main'")]
struct ConfirmArgs {
    #[command(flatten)]
    common: CommonArgs<ANSWER>,
    /// The ID of the session.
    #[arg(value_name = "SESSION")]
    session: String,
    /// The ID of the tool's call.
    #[arg(value_name = "TOOL")]
    tool: String,
    /// Deny the tool. Without this option, it is allowed.
    #[arg(long)]
    deny: bool,
    /// The reason, which the agent gets.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Ends what runs in a session. The session stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch agent session cancel coder review")]
struct CancelArgs {
    #[command(flatten)]
    common: CommonArgs<ANSWER>,
    /// The ID of the session.
    #[arg(value_name = "SESSION")]
    session: String,
    /// End only the operation with this ID.
    #[arg(long, value_name = "ID")]
    operation: Option<String>,
}

/// Closes a session. The agent forgets what was said in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch agent session close coder review")]
struct CloseArgs {
    #[command(flatten)]
    common: CommonArgs<ANSWER>,
    /// The ID of the session.
    #[arg(value_name = "SESSION")]
    session: String,
}

/// How long events are watched without `--timeout`: practically forever. A longer time could overflow the clock.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl SessionArgs {
    /// Returns whether the command reports as JSON.
    pub(super) const fn is_json(&self) -> bool {
        match &self.command {
            SessionCommand::Create(args) => args.common.json,
            SessionCommand::List(args) => args.common.json,
            SessionCommand::Send(args) => args.common.json || args.prompt.events,
            SessionCommand::Events(args) => args.json,
            SessionCommand::Confirm(args) => args.common.json,
            SessionCommand::Cancel(args) => args.common.json,
            SessionCommand::Close(args) => args.common.json,
        }
    }
}

pub(super) fn session(args: &SessionArgs) -> Result<u8, Failure> {
    match &args.command {
        SessionCommand::Create(args) => {
            let made = args.common.client()?.create_session(args.session.as_deref())?;
            named(args.common.json, &made)
        }
        SessionCommand::List(args) => list(args),
        SessionCommand::Send(args) => generate(&args.common, &args.prompt, Some(&args.session)),
        SessionCommand::Events(args) => events(args),
        SessionCommand::Confirm(args) => confirm(args),
        SessionCommand::Cancel(args) => {
            args.common.client()?.cancel(&args.session, args.operation.as_deref())?;
            named(args.common.json, &args.session)
        }
        SessionCommand::Close(args) => {
            args.common.client()?.close_session(&args.session)?;
            named(args.common.json, &args.session)
        }
    }
}

/// Prints the ID of the session with which a command has succeeded.
fn named(as_json: bool, session: &str) -> Result<u8, Failure> {
    let text = || format!("{}\n", shown(session));
    print(&if as_json { json_line(&json!({ "session": session }))? } else { text() })?;
    Ok(exit::DONE)
}

fn list(args: &ListArgs) -> Result<u8, Failure> {
    let sessions = args.common.client()?.sessions()?;
    print(&if args.common.json {
        let sessions: Vec<_> = sessions.iter().map(object).collect();
        json_line(&json!({ "sessions": sessions }))?
    } else {
        table(&sessions)
    })?;
    Ok(exit::DONE)
}

fn name_of(session: &Session) -> &str {
    session.config.as_ref().map_or("", |it| it.name.as_str())
}

fn object(session: &Session) -> Value {
    let usage = session.context_usage.unwrap_or_default();
    json!({
        "session": session.session_id,
        "name": name_of(session),
        "state": session.state().name(),
        "messages": usage.message_count,
        "tokens": usage.total_tokens,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
    })
}

/// Returns the table of sessions.
fn table(sessions: &[Session]) -> String {
    let head = ["SESSION", "STATE", "MESSAGES", "NAME"].map(str::to_owned);
    let row = |it: &Session| {
        let messages = it.context_usage.unwrap_or_default().message_count;
        let state = it.state().name().to_owned();
        [shown(&it.session_id), state, messages.to_string(), shown(name_of(it))]
    };
    aligned(&std::iter::once(head).chain(sessions.iter().map(row)).collect::<Vec<_>>())
}

fn confirm(args: &ConfirmArgs) -> Result<u8, Failure> {
    let request = ConfirmToolExecutionRequest {
        session_id: args.session.clone(),
        tool_id: args.tool.clone(),
        approved: !args.deny,
        reason: args.reason.clone(),
    };
    args.common.client()?.confirm(&request)?;
    named(args.common.json, &args.session)
}

fn events(args: &EventsArgs) -> Result<u8, Failure> {
    let limit = args.timeout.map_or(FOREVER, |it| Duration::from_secs(it.into()));
    let mut stdout = io::stdout();
    client(&args.name, limit)?.events(args.session.as_deref(), &mut |event| {
        let line = if args.json { shown_json(&line(&event).to_string()) } else { text(&event) };
        write(&mut stdout, &(line + "\n"))
    })?;
    Ok(exit::DONE)
}

/// Returns an event as JSON.
fn line(event: &AgentEvent) -> Value {
    json!({
        "event": event.r#type().name(),
        "session": event.session_id,
        "timestamp": event.timestamp,
        "message": event.message,
        "data": event.data,
    })
}

/// Returns an event as a line for a terminal, without its end.
fn text(event: &AgentEvent) -> String {
    let session = event.session_id.iter().map(|it| format!(" {}", shown(it)));
    let data = event.data.iter().map(|(name, value)| format!(" {}={}", shown(name), shown(value)));
    let message = Some(&event.message).filter(|it| !it.is_empty());
    let message = message.map(|it| format!(": {}", shown(it)));
    let rest = session.chain(data).chain(message).collect::<String>();
    event.r#type().name().to_owned() + &rest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use boxlaunch::agent::messages::{EventType, SessionConfig};

    use super::*;

    #[test]
    fn what_an_agent_says_of_a_session_does_not_move_the_cursor() {
        let evil = || "a\u{1b}[2J\nb".to_owned();
        let config = Some(SessionConfig { name: evil() });
        let session = Session { session_id: evil(), config, ..Session::default() };
        insta::assert_snapshot!(table(&[session]), @"
        SESSION   STATE     MESSAGES   NAME
        a�[2J�b   unknown   0          a�[2J�b
        ");
        let event = AgentEvent {
            r#type: EventType::ToolCalled.into(),
            session_id: Some(evil()),
            message: evil(),
            data: BTreeMap::from([(evil(), evil())]),
            ..AgentEvent::default()
        };
        assert_eq!(text(&event), "tool-called a�[2J�b a�[2J�b=a�[2J�b: a�[2J�b");
        let line = line(&event);
        assert_eq!((&line["event"], &line["timestamp"]), (&json!("tool-called"), &json!(0)));
    }
}
