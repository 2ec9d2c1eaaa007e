//! Sends a prompt in a session, and receives the generated answer piece by piece.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::channel::{Channel, decoded};
use super::error::AgentError;
use super::frames::framed;
use super::messages::{
    ChunkType, CreateSessionRequest, CreateSessionResponse, DestroySessionRequest,
    DestroySessionResponse, FinishReason, GenerateChunk, GenerateRequest, GenerateResponse,
    Message, Role, ToolCall, ToolResult,
};
use crate::streams::StreamError;

/// How long an agent may take to end a temporary session.
const GOODBYE: Duration = Duration::from_secs(2);
pub(super) const CREATE: &str = "CreateSession";
pub(super) const DESTROY: &str = "DestroySession";
const STREAM: &str = "StreamGenerate";

/// A piece of a generated answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The next piece of text, not safe for a terminal.
    Text(String),
    /// A call of a tool.
    Tool(ToolCall),
    /// The result of a tool.
    Result(ToolResult),
}

/// The result of a generation that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The session of the generation. `None` if it was a temporary session, which has ended.
    pub session: Option<String>,
    /// Whether the agent reports that the generation failed.
    pub failed: bool,
}

/// A closure that receives the pieces of a generation.
pub(super) type Taker<'a> = dyn FnMut(Piece) -> Result<(), StreamError> + 'a;

/// The deadline for an agent's answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// Returns the deadline `limit` from now. Must be called in the runtime.
    pub(super) fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }

    /// Runs `part`, a part of a call, and stops it at the deadline with [`AgentError::Timeout`].
    pub(super) async fn hold<T>(
        self,
        method: &'static str,
        part: impl Future<Output = Result<T, AgentError>>,
    ) -> Result<T, AgentError> {
        let seconds = self.limit.as_secs();
        let ended = timeout_at(self.at, part).await;
        ended.unwrap_or_else(|_| Err(AgentError::Timeout { method, seconds }))
    }
}

/// Sends `prompt` over a new connection, in `session` or in a temporary session. Ends the temporary session even if the
/// agent misses the deadline.
pub(super) async fn generation(
    socket: &Path,
    prompt: String,
    session: Option<&str>,
    deadline: Deadline,
    taker: &mut Taker<'_>,
) -> Result<Generated, AgentError> {
    let first = if session.is_some() { STREAM } else { CREATE };
    let (mut channel, id) = deadline.hold(first, begin(socket, first, session)).await?;
    let request = request(id.clone(), prompt);
    let failed = deadline.hold(STREAM, generate(&mut channel, &request, taker)).await;
    if session.is_none() {
        // If the agent fails to end the session, the result of the generation is returned nevertheless.
        let _ = timeout(GOODBYE, end_session(&mut channel, id)).await;
    }
    Ok(Generated { session: session.map(str::to_owned), failed: failed? })
}

/// Connects to the agent. Returns the connection, and the id of `session` or of a new session.
async fn begin(
    socket: &Path,
    first: &'static str,
    session: Option<&str>,
) -> Result<(Channel, String), AgentError> {
    let mut channel = Channel::connect(socket, first).await?;
    let id = match session {
        Some(id) => id.to_owned(),
        None => new_session(&mut channel).await?,
    };
    Ok((channel, id))
}

fn request(session_id: String, content: String) -> GenerateRequest {
    let message = Message { role: Role::User.into(), content };
    GenerateRequest { session_id, messages: vec![message] }
}

async fn new_session(channel: &mut Channel) -> Result<String, AgentError> {
    let made: CreateSessionResponse =
        channel.call(CREATE, &CreateSessionRequest::default()).await?;
    Ok(made.session_id)
}

async fn end_session(channel: &mut Channel, session_id: String) {
    let request = DestroySessionRequest { session_id };
    let ended: Result<DestroySessionResponse, _> = channel.call(DESTROY, &request).await;
    drop(ended);
}

/// Receives a generation piece by piece, or at once if the agent does not implement [`STREAM`]. Returns whether the
/// agent reports a failure.
async fn generate(
    channel: &mut Channel,
    request: &GenerateRequest,
    taker: &mut Taker<'_>,
) -> Result<bool, AgentError> {
    let mut had_any = false;
    let mut noting = |piece| {
        had_any = true;
        taker(piece)
    };
    match stream(channel, request, &mut noting).await {
        Err(error) if error.is_unimplemented() && !had_any => {
            at_once(channel, request, taker).await
        }
        ended => ended.map(|()| false),
    }
}

async fn stream(
    channel: &mut Channel,
    request: &GenerateRequest,
    taker: &mut Taker<'_>,
) -> Result<(), AgentError> {
    let mut answers = channel.stream(STREAM, framed(request)).await?;
    while let Some(message) = answers.next().await? {
        let chunk: GenerateChunk = decoded(STREAM, &message)?;
        // Skips a chunk whose type this client does not know, because it may not be part of the answer.
        if let Some(piece) = piece(chunk) {
            taker(piece)?;
        }
    }
    Ok(())
}

/// Returns the piece of the answer that a chunk has, if any.
fn piece(chunk: GenerateChunk) -> Option<Piece> {
    match ChunkType::try_from(chunk.r#type).ok()? {
        ChunkType::Content | ChunkType::Unknown if !chunk.content.is_empty() => {
            Some(Piece::Text(chunk.content))
        }
        ChunkType::ToolCall => chunk.tool_call.map(Piece::Tool),
        ChunkType::ToolResult => chunk.tool_result.map(Piece::Result),
        ChunkType::Content | ChunkType::Unknown | ChunkType::Metadata | ChunkType::Done => None,
    }
}

async fn at_once(
    channel: &mut Channel,
    request: &GenerateRequest,
    taker: &mut Taker<'_>,
) -> Result<bool, AgentError> {
    let answer: GenerateResponse = channel.call("Generate", request).await?;
    let failed = answer.finish_reason() == FinishReason::Error;
    answer.tool_calls.into_iter().try_for_each(|call| taker(Piece::Tool(call)))?;
    let text = answer.message.unwrap_or_default().content;
    taker(Piece::Text(text))?;
    Ok(failed)
}
