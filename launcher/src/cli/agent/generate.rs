//! `boxlaunch agent generate`: sends a prompt, and prints the answer while it arrives.

use std::io::{self, Read as _};

use box_contract::{ErrorCode, exit};
use boxlaunch::agent::messages::{ToolCall, ToolResult};
use boxlaunch::agent::{AgentClient, Generated, MAX_PROMPT, Piece};
use boxlaunch::streams::StreamError;
use safe_text::{clipped, shown, shown_json, shown_lines};

use super::{CommonArgs, GENERATION};
use crate::cli::error::{Failure, usage};
use crate::cli::terminal::{is_quiet, json_line, notice, pass_on, print};

/// A prompt, and how its answer is printed.
#[derive(Debug, clap::Args)]
pub(super) struct PromptArgs {
    /// The prompt; `-` reads it from standard input.
    #[arg(value_name = "PROMPT", allow_hyphen_values = true)]
    prompt: String,
    /// Print one JSON object for each piece of the answer as it arrives, and one at the end.
    #[arg(long, conflicts_with = "json")]
    pub(super) events: bool,
}

/// Sends a prompt in the session `session`, or in one that ends with the answer.
pub(super) fn generate(
    common: &CommonArgs<GENERATION>,
    args: &PromptArgs,
    session: Option<&str>,
) -> Result<u8, Failure> {
    let prompt = prompt(&args.prompt)?;
    let client = common.client()?;
    let generate = match (args.events, common.json) {
        (true, _) => generate_events,
        (false, true) => generate_json,
        (false, false) => generate_text,
    };
    let done = generate(&client, prompt, session)?;
    Ok(if done.failed { exit::FAILED } else { exit::DONE })
}

/// A line of `--events`.
#[derive(serde::Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Line<'a> {
    Text { text: String },
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    End { session: &'a Option<String>, failed: bool },
}

/// Prints each piece of the answer as a JSON object when it arrives, and then the result.
fn generate_events(
    client: &AgentClient,
    prompt: String,
    session: Option<&str>,
) -> Result<Generated, Failure> {
    let mut stdout = io::stdout();
    let done = client.generate(prompt, session, &mut |piece| {
        let line = match piece {
            Piece::Text(text) => Line::Text { text },
            Piece::Tool(call) => Line::ToolCall(call),
            Piece::Result(result) => Line::ToolResult(result),
        };
        let line = serde_json::to_string(&line).map_err(io::Error::from);
        let line = line.map_err(StreamError::Output)?;
        write(&mut stdout, &(shown_json(&line) + "\n"))
    })?;
    let Generated { session, failed } = &done;
    print(&json_line(&Line::End { session, failed: *failed })?)?;
    Ok(done)
}

/// The JSON object that `agent generate --json` prints.
#[derive(serde::Serialize)]
struct Report<'a> {
    failed: bool,
    session: &'a Option<String>,
    text: String,
    tool_calls: Vec<ToolCall>,
}

/// Waits for the whole answer, and prints it as one JSON object.
fn generate_json(
    client: &AgentClient,
    prompt: String,
    session: Option<&str>,
) -> Result<Generated, Failure> {
    let (mut text, mut calls) = (String::new(), Vec::<ToolCall>::new());
    let done = client.generate(prompt, session, &mut |piece| {
        match piece {
            Piece::Text(more) => text += &more,
            Piece::Tool(call) => calls.push(call),
            Piece::Result(_) => {}
        }
        Ok(())
    })?;
    let Generated { session, failed } = &done;
    print(&json_line(&Report { failed: *failed, session, text, tool_calls: calls })?)?;
    Ok(done)
}

/// Prints each piece of the answer when it arrives. Ends an unfinished last line with a line break.
fn generate_text(
    client: &AgentClient,
    prompt: String,
    session: Option<&str>,
) -> Result<Generated, Failure> {
    let mut last = '\n';
    let mut stdout = io::stdout();
    let done = client.generate(prompt, session, &mut |piece| match piece {
        Piece::Text(text) => {
            last = text.chars().last().unwrap_or(last);
            write(&mut stdout, &shown_lines(&text))
        }
        Piece::Tool(call) => {
            if !is_quiet() {
                let line_end = if last == '\n' { "" } else { "\n" };
                let name = shown(&clipped(call.name));
                notice(&format!("{line_end}boxlaunch: the agent calls {name}\n"));
            }
            Ok(())
        }
        Piece::Result(_) => Ok(()),
    });
    if last != '\n' {
        pass_on(&mut stdout, b"\n")?;
    }
    let done = done?;
    if done.failed {
        notice("boxlaunch: the agent reports that it failed\n");
    }
    Ok(done)
}

/// Writes a piece of text, and flushes it.
pub(super) fn write(to: &mut impl io::Write, text: &str) -> Result<(), StreamError> {
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(StreamError::Output)
}

/// Returns the prompt: `word`, or the standard input if `word` is `-`.
fn prompt(word: &str) -> Result<String, Failure> {
    let mut bytes = word.as_bytes().to_vec();
    if word == "-" {
        bytes.clear();
        let mut stdin = io::stdin().lock().take(MAX_PROMPT as u64 + 1);
        stdin.read_to_end(&mut bytes).map_err(StreamError::Input)?;
    }
    if bytes.len() > MAX_PROMPT {
        let help = "give the agent a file of its box: `boxlaunch cp`";
        let message = format!("the prompt is larger than {MAX_PROMPT} bytes");
        return Err(Failure::new((ErrorCode::TooLarge, help), message));
    }
    if bytes.trim_ascii().is_empty() {
        return Err(usage("the prompt is empty", "give the agent some text"));
    }
    String::from_utf8(bytes).map_err(|_| usage("the prompt is not UTF-8", "give it text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_has_some_text() {
        assert_eq!(prompt(" hello ").unwrap(), " hello ");
        for word in ["", " \n"] {
            let error = prompt(word).unwrap_err().text();
            assert!(error.contains("the prompt is empty"), "{error}");
        }
    }
}
