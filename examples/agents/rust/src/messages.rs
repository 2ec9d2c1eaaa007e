//! The parts of `code_agent.proto` that this agent uses. All other fields are neither sent nor read.

use prost::Message as ProtoMessage;

/// Enum values: `STATUS_HEALTHY`, `SESSION_STATE_ACTIVE`, `ROLE_ASSISTANT`, `FINISH_REASON_STOP`, `CHUNK_TYPE_CONTENT` and `CHUNK_TYPE_DONE`.
pub(crate) const HEALTHY: i32 = 1;
pub(crate) const ACTIVE: i32 = 1;
pub(crate) const ASSISTANT: i32 = 2;
pub(crate) const STOP: i32 = 1;
pub(crate) const CONTENT: i32 = 1;
pub(crate) const DONE: i32 = 5;

/// Declares messages from their fields, each with its number.
macro_rules! messages {
    ($($name:ident { $($(#[$kind:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            #[derive(Clone, PartialEq, Eq, ProtoMessage)]
            pub(crate) struct $name { $($(#[$kind])* pub(crate) $field: $type,)* }
        )*
    };
}

messages! {
    HealthCheckResponse {
        #[prost(int32, tag = "1")] status: i32,
        #[prost(string, tag = "2")] message: String,
    }
    AgentInfo {
        #[prost(string, tag = "1")] name: String,
        #[prost(string, tag = "2")] version: String,
        #[prost(string, tag = "3")] description: String,
    }
    GetCapabilitiesResponse {
        #[prost(message, optional, tag = "1")] info: Option<AgentInfo>,
        #[prost(string, repeated, tag = "2")] features: Vec<String>,
    }
    Skill {
        #[prost(string, tag = "1")] name: String,
        #[prost(string, tag = "2")] description: String,
    }
    ListSkillsResponse {
        #[prost(message, repeated, tag = "1")] skills: Vec<Skill>,
    }
    CreateSessionResponse {
        #[prost(string, tag = "1")] session_id: String,
    }
    DestroySessionResponse {
        #[prost(bool, tag = "1")] success: bool,
    }
    Session {
        #[prost(string, tag = "1")] session_id: String,
        #[prost(int32, tag = "3")] state: i32,
    }
    ListSessionsResponse {
        #[prost(message, repeated, tag = "1")] sessions: Vec<Session>,
    }
    Message {
        #[prost(int32, tag = "1")] role: i32,
        #[prost(string, tag = "2")] content: String,
    }
    GenerateRequest {
        #[prost(string, tag = "1")] session_id: String,
        #[prost(message, repeated, tag = "2")] messages: Vec<Message>,
    }
    GenerateResponse {
        #[prost(message, optional, tag = "2")] message: Option<Message>,
        #[prost(int32, tag = "5")] finish_reason: i32,
    }
    GenerateChunk {
        #[prost(int32, tag = "1")] kind: i32,
        #[prost(string, tag = "3")] content: String,
    }
}
