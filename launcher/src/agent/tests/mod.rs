//! Tests the client with servers that obey the interface, and with servers that violate it.

mod hostile;
mod proto;
mod server;
mod session;

use super::messages::*;
use super::*;
use server::{Answer, client, served};

/// Generates, and returns the text, the tools that were called, and the result.
fn generated(
    client: &AgentClient,
    session: Option<&str>,
) -> (String, Vec<String>, Result<Generated, AgentError>) {
    let (mut text, mut tools) = (String::new(), Vec::new());
    let ended = client.generate("hello".to_owned(), session, &mut |piece| {
        match piece {
            Piece::Text(more) => text += &more,
            Piece::Tool(call) => tools.push(call.name),
            Piece::Result(result) => tools.push(result.output),
        }
        Ok(())
    });
    (text, tools, ended)
}

fn chunk(kind: ChunkType, content: &str) -> GenerateChunk {
    GenerateChunk { r#type: kind.into(), content: content.to_owned(), ..GenerateChunk::default() }
}

#[test]
fn the_page_has_these_bounds() {
    let page = include_str!("../../../../docs/agents.md");
    let (message, all) = (frames::MAX_MESSAGE >> 20, frames::MAX_ALL >> 20);
    for bound in [
        format!(
            "at most {message} MiB, and a whole answer {all} MiB, for which each message counts {} bytes",
            frames::COST
        ),
        format!("The header fields have at most {} KiB", channel::MAX_HEADERS >> 10),
        format!("A prompt has at most {} MiB", MAX_PROMPT >> 20),
    ] {
        assert!(page.replace('\n', " ").contains(&bound), "{bound}");
    }
}

#[test]
fn an_agent_says_how_it_is_and_what_it_can_do() {
    let agent = served(|method, _| match method {
        "HealthCheck" => {
            let (status, message) = (Status::Degraded.into(), "busy".to_owned());
            Answer::of(&[HealthCheckResponse { status, message, ..Default::default() }])
        }
        "GetCapabilities" => {
            let features = vec!["streaming".to_owned()];
            Answer::of(&[GetCapabilitiesResponse { features, ..Default::default() }])
        }
        _ => Answer::of(&[ListSkillsResponse { skills: vec![Skill::default(); 3] }]),
    });
    let client = client(&agent);
    let health = client.health().unwrap();
    assert_eq!((health.status(), health.message.as_str()), (Status::Degraded, "busy"));
    assert_eq!(client.capabilities().unwrap().features, ["streaming"]);
    assert_eq!(client.skills(Some("s1")).unwrap().skills.len(), 3);
    let calls = agent.calls();
    assert_eq!(calls[2], ("ListSkills".to_owned(), b"\x0a\x02s1".to_vec()));
}

#[test]
fn a_generation_makes_a_session_for_itself_and_ends_it() {
    let agent = served(|method, _| match method {
        "CreateSession" => Answer::of(&[CreateSessionResponse { session_id: "s7".to_owned() }]),
        "StreamGenerate" => {
            let call = ToolCall { name: "grep".to_owned(), ..ToolCall::default() };
            let tool = GenerateChunk { tool_call: Some(call), ..chunk(ChunkType::ToolCall, "") };
            let result = ToolResult { output: "found".to_owned(), ..ToolResult::default() };
            let result =
                GenerateChunk { tool_result: Some(result), ..chunk(ChunkType::ToolResult, "") };
            let (first, second) =
                (chunk(ChunkType::Content, "one "), chunk(ChunkType::Content, "two"));
            let later = GenerateChunk { r#type: 6, ..chunk(ChunkType::Content, "not known here") };
            Answer::of(&[first, tool, result, later, second, chunk(ChunkType::Done, "")])
        }
        _ => Answer::of(&[DestroySessionResponse { success: true }]),
    });
    let (text, tools, ended) = generated(&client(&agent), None);
    assert_eq!((text.as_str(), tools), ("one two", vec!["grep".to_owned(), "found".to_owned()]));
    assert_eq!(ended.unwrap(), Generated { session: None, failed: false });
    let calls = agent.calls();
    let names: Vec<_> = calls.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["CreateSession", "StreamGenerate", "DestroySession"]);
    assert_eq!(calls[1].1, b"\x0a\x02s7\x12\x09\x08\x01\x12\x05hello");
    assert_eq!(calls[2].1, b"\x0a\x02s7");
}

#[test]
fn an_agent_that_cannot_stream_answers_at_once_and_keeps_a_session_that_was_named() {
    let agent = served(|method, _| match method {
        "Generate" => {
            let message = Message { role: Role::Assistant.into(), content: "all of it".to_owned() };
            let finish_reason = FinishReason::Error.into();
            Answer::of(&[GenerateResponse {
                message: Some(message),
                tool_calls: vec![],
                finish_reason,
            }])
        }
        _ => Answer::failed("12", "Method%20not%20found%21"),
    });
    let client = client(&agent);
    let (text, _, ended) = generated(&client, Some("mine"));
    assert_eq!(text, "all of it");
    assert_eq!(ended.unwrap(), Generated { session: Some("mine".to_owned()), failed: true });
    let names: Vec<_> = agent.calls().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["StreamGenerate", "Generate"]);
    let error = client.health().unwrap_err().to_string();
    assert_eq!(error, "the agent refused HealthCheck: UNIMPLEMENTED: Method not found!");
}
