//! The messages of the agent interface that this client uses. `proto/code_agent.proto` defines them, and a test
//! compares the two files. Other fields of an agent's messages are skipped.
#![allow(missing_docs, reason = "the proto describes each")]

use std::collections::BTreeMap;

use prost::{Enumeration, Message as ProtoMessage};
use serde::Serialize;

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct HealthCheckRequest {}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct HealthCheckResponse {
    #[prost(enumeration = "Status", tag = "1")]
    pub status: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub details: BTreeMap<String, String>,
}

/// The health that an agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub enum Status {
    Unknown = 0,
    Healthy = 1,
    Degraded = 2,
    Unhealthy = 3,
}

impl Status {
    /// Returns the name of the status in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
        }
    }
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct GetCapabilitiesRequest {}

#[derive(Clone, PartialEq, Eq, ProtoMessage, Serialize)]
pub struct GetCapabilitiesResponse {
    #[prost(message, optional, tag = "1")]
    pub info: Option<AgentInfo>,
    #[prost(string, repeated, tag = "2")]
    pub features: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub tools: Vec<ToolCapability>,
    #[prost(message, repeated, tag = "4")]
    pub models: Vec<ModelCapability>,
    #[prost(message, optional, tag = "5")]
    pub limits: Option<ResourceLimits>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage, Serialize)]
pub struct AgentInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(string, tag = "3")]
    pub description: String,
    #[prost(string, tag = "4")]
    pub author: String,
    #[prost(string, tag = "5")]
    pub license: String,
    #[prost(string, tag = "6")]
    pub homepage: String,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage, Serialize)]
pub struct ToolCapability {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(string, repeated, tag = "3")]
    pub parameters: Vec<String>,
    #[prost(bool, tag = "4")]
    pub r#async: bool,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage, Serialize)]
pub struct ModelCapability {
    #[prost(string, tag = "1")]
    pub provider: String,
    #[prost(string, tag = "2")]
    pub model: String,
    #[prost(string, repeated, tag = "3")]
    pub features: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ProtoMessage, Serialize)]
pub struct ResourceLimits {
    #[prost(uint64, tag = "1")]
    pub max_context_tokens: u64,
    #[prost(uint32, tag = "2")]
    pub max_concurrent_sessions: u32,
    #[prost(uint32, tag = "3")]
    pub max_tools_per_request: u32,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct CreateSessionRequest {
    #[prost(string, optional, tag = "1")]
    pub session_id: Option<String>,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct CreateSessionResponse {
    #[prost(string, tag = "1")]
    pub session_id: String,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct DestroySessionRequest {
    #[prost(string, tag = "1")]
    pub session_id: String,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct DestroySessionResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct ListSessionsRequest {}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct ListSessionsResponse {
    #[prost(message, repeated, tag = "1")]
    pub sessions: Vec<Session>,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct Session {
    #[prost(string, tag = "1")]
    pub session_id: String,
    #[prost(message, optional, tag = "2")]
    pub config: Option<SessionConfig>,
    #[prost(enumeration = "SessionState", tag = "3")]
    pub state: i32,
    #[prost(message, optional, tag = "4")]
    pub context_usage: Option<ContextUsage>,
    #[prost(int64, tag = "5")]
    pub created_at: i64,
    #[prost(int64, tag = "6")]
    pub updated_at: i64,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct SessionConfig {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ProtoMessage)]
pub struct ContextUsage {
    #[prost(uint32, tag = "1")]
    pub total_tokens: u32,
    #[prost(uint32, tag = "4")]
    pub message_count: u32,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub enum SessionState {
    Unknown = 0,
    Active = 1,
    Paused = 2,
    Completed = 3,
    Error = 4,
}

impl SessionState {
    /// Returns the name of the state in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Error => "error",
        }
    }
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct GenerateRequest {
    #[prost(string, tag = "1")]
    pub session_id: String,
    #[prost(message, repeated, tag = "2")]
    pub messages: Vec<Message>,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct Message {
    #[prost(enumeration = "Role", tag = "1")]
    pub role: i32,
    #[prost(string, tag = "2")]
    pub content: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub enum Role {
    Unknown = 0,
    User = 1,
    Assistant = 2,
    System = 3,
    Tool = 4,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct GenerateResponse {
    #[prost(message, optional, tag = "2")]
    pub message: Option<Message>,
    #[prost(message, repeated, tag = "3")]
    pub tool_calls: Vec<ToolCall>,
    #[prost(enumeration = "FinishReason", tag = "5")]
    pub finish_reason: i32,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage, Serialize)]
pub struct ToolCall {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub arguments: String,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage, Serialize)]
pub struct ToolResult {
    #[prost(bool, tag = "1")]
    pub success: bool,
    #[prost(string, tag = "2")]
    pub output: String,
    #[prost(string, tag = "3")]
    pub error: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub enum FinishReason {
    Unknown = 0,
    Stop = 1,
    Length = 2,
    ToolCalls = 3,
    ContentFilter = 4,
    Error = 5,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct GenerateChunk {
    #[prost(enumeration = "ChunkType", tag = "1")]
    pub r#type: i32,
    #[prost(string, tag = "3")]
    pub content: String,
    #[prost(message, optional, tag = "4")]
    pub tool_call: Option<ToolCall>,
    #[prost(message, optional, tag = "5")]
    pub tool_result: Option<ToolResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub enum ChunkType {
    Unknown = 0,
    Content = 1,
    ToolCall = 2,
    ToolResult = 3,
    Metadata = 4,
    Done = 5,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct SubscribeEventsRequest {
    #[prost(string, optional, tag = "1")]
    pub session_id: Option<String>,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct AgentEvent {
    #[prost(enumeration = "EventType", tag = "1")]
    pub r#type: i32,
    #[prost(string, optional, tag = "2")]
    pub session_id: Option<String>,
    #[prost(int64, tag = "3")]
    pub timestamp: i64,
    #[prost(string, tag = "4")]
    pub message: String,
    #[prost(btree_map = "string, string", tag = "5")]
    pub data: BTreeMap<String, String>,
}

/// What has happened in an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub enum EventType {
    Unknown = 0,
    SessionCreated = 1,
    SessionDestroyed = 2,
    GenerationStarted = 3,
    GenerationCompleted = 4,
    ToolCalled = 5,
    ToolCompleted = 6,
    Error = 7,
    Warning = 8,
    Info = 9,
    ConfirmationRequired = 10,
    ConfirmationReceived = 11,
    ConfirmationTimeout = 12,
}

impl EventType {
    /// Returns the name of the type in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::SessionCreated => "session-created",
            Self::SessionDestroyed => "session-destroyed",
            Self::GenerationStarted => "generation-started",
            Self::GenerationCompleted => "generation-completed",
            Self::ToolCalled => "tool-called",
            Self::ToolCompleted => "tool-completed",
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::ConfirmationRequired => "confirmation-required",
            Self::ConfirmationReceived => "confirmation-received",
            Self::ConfirmationTimeout => "confirmation-timeout",
        }
    }
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct CancelRequest {
    #[prost(string, tag = "1")]
    pub session_id: String,
    #[prost(string, optional, tag = "2")]
    pub operation_id: Option<String>,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct CancelResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct ConfirmToolExecutionRequest {
    #[prost(string, tag = "1")]
    pub session_id: String,
    #[prost(string, tag = "2")]
    pub tool_id: String,
    #[prost(bool, tag = "3")]
    pub approved: bool,
    #[prost(string, optional, tag = "4")]
    pub reason: Option<String>,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct ConfirmToolExecutionResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
    #[prost(string, tag = "2")]
    pub error: String,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage)]
pub struct ListSkillsRequest {
    #[prost(string, optional, tag = "1")]
    pub session_id: Option<String>,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage, Serialize)]
pub struct ListSkillsResponse {
    #[prost(message, repeated, tag = "1")]
    pub skills: Vec<Skill>,
}

#[derive(Clone, PartialEq, Eq, ProtoMessage, Serialize)]
pub struct Skill {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(string, repeated, tag = "3")]
    pub tools: Vec<String>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub metadata: BTreeMap<String, String>,
}
