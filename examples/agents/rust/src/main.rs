//! An example agent with the interface `a3s.code.agent.v1`. It repeats each prompt, word by word.
//!
//! gRPC is HTTP/2 with messages in its bodies, so hyper and prost are enough; with tonic, this file would be a `build.rs` and an
//! `impl`. The interface is defined in `launcher/proto/code_agent.proto`.
#![forbid(unsafe_code)]

mod grpc;
mod messages;

use std::io;
use std::net::Ipv4Addr;

use grpc::{Reply, Status, reply};
use messages::*;
use prost::Message as _;
use tokio::net::TcpListener;

/// The port on which a box expects its agent, unless the Boxfile declares another one.
const PORT: u16 = 4088;
/// This agent remembers nothing, so one session that never ends is enough.
const SESSION: &str = "only";

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    grpc::serve(TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await?, call).await
}

/// Returns the response to a call of a method.
fn call(method: &str, request: &[u8]) -> Result<Reply, Status> {
    match method {
        "HealthCheck" => {
            let message = "ready to echo".to_owned();
            reply(&HealthCheckResponse { status: HEALTHY, message })
        }
        "GetCapabilities" => reply(&capabilities()),
        "ListSkills" => reply(&ListSkillsResponse { skills: vec![skill()] }),
        "CreateSession" => reply(&CreateSessionResponse { session_id: SESSION.to_owned() }),
        "DestroySession" => reply(&DestroySessionResponse { success: true }),
        "ListSessions" => {
            let session = Session { session_id: SESSION.to_owned(), state: ACTIVE };
            reply(&ListSessionsResponse { sessions: vec![session] })
        }
        "Generate" => {
            let content = prompt(request)?;
            let message = Some(Message { role: ASSISTANT, content });
            reply(&GenerateResponse { message, finish_reason: STOP })
        }
        "StreamGenerate" => stream(&prompt(request)?),
        _ => Err(Status::unimplemented(method)),
    }
}

fn capabilities() -> GetCapabilitiesResponse {
    let text = str::to_owned;
    let info = AgentInfo {
        name: text("echo"),
        version: text(env!("CARGO_PKG_VERSION")),
        description: text("says what it is told"),
    };
    GetCapabilitiesResponse { info: Some(info), features: vec![text("streaming")] }
}

fn skill() -> Skill {
    Skill { name: "echo".to_owned(), description: "Says it again".to_owned() }
}

/// Returns the text of the last message of a request.
fn prompt(request: &[u8]) -> Result<String, Status> {
    let request = GenerateRequest::decode(request).map_err(|error| Status::invalid(&error))?;
    if request.session_id != SESSION {
        return Err(Status::not_found("there is no such session"));
    }
    request
        .messages
        .into_iter()
        .next_back()
        .map(|it| it.content)
        .ok_or(Status::not_found("there is no message"))
}

/// Returns the prompt as one chunk for each word. A real agent would send each chunk when its model has generated it.
fn stream(prompt: &str) -> Result<Reply, Status> {
    let mut reply = Reply::default();
    for word in prompt.split_inclusive(' ') {
        reply.add(&GenerateChunk { kind: CONTENT, content: word.to_owned() });
    }
    reply.add(&GenerateChunk { kind: DONE, content: String::new() });
    Ok(reply)
}
