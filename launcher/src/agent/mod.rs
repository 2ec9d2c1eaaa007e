//! A client of the interface that agents can serve: `a3s.code.agent.v1.CodeAgentService`, gRPC at the agent's socket.
//!
//! Every answer of an agent may be hostile. The size of each message, of all messages and of the header fields is
//! bounded, and so is the time of a call. The caller must make texts safe before it prints them.

mod channel;
mod error;
mod frames;
mod generation;
pub mod messages;
mod opening;
mod session;
mod status;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use host_fs::OsError;
use tokio::runtime::{Builder, Runtime};

pub use error::AgentError;
pub use generation::{Generated, Piece};

use channel::{Channel, decoded};
use frames::framed;
use generation::{Deadline, Taker, generation};
use messages::{
    GetCapabilitiesRequest, GetCapabilitiesResponse, HealthCheckRequest, HealthCheckResponse,
    ListSkillsRequest, ListSkillsResponse,
};

/// The greatest size of a prompt, in bytes. By default, gRPC servers accept messages of four times that size.
pub const MAX_PROMPT: usize = 1 << 20;

/// A client of an agent. Each call uses a new connection.
#[derive(Debug)]
pub struct AgentClient {
    socket: PathBuf,
    limit: Duration,
    runtime: Runtime,
}

impl AgentClient {
    /// Returns a client for the agent at a socket. Each call has the time limit `limit`.
    ///
    /// # Errors
    /// If the runtime cannot be created.
    pub fn new(socket: &Path, limit: Duration) -> Result<Self, AgentError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(OsError::system("wait for the agent"))?;
        Ok(Self { socket: socket.to_owned(), limit, runtime })
    }

    /// Asks the agent whether it can work.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn health(&self) -> Result<HealthCheckResponse, AgentError> {
        self.ask("HealthCheck", &HealthCheckRequest {})
    }

    /// Asks the agent for its identity and its capabilities.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn capabilities(&self) -> Result<GetCapabilitiesResponse, AgentError> {
        self.ask("GetCapabilities", &GetCapabilitiesRequest {})
    }

    /// Asks the agent for its skills, or for the skills of one session.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn skills(&self, session: Option<&str>) -> Result<ListSkillsResponse, AgentError> {
        let request = ListSkillsRequest { session_id: session.map(str::to_owned) };
        self.ask("ListSkills", &request)
    }

    /// Sends a prompt to the agent, and passes each piece of the answer to `taker` as it arrives. Without `session`, a
    /// temporary session is created.
    ///
    /// # Errors
    /// [`AgentError`], and errors of `taker`.
    pub fn generate(
        &self,
        prompt: String,
        session: Option<&str>,
        taker: &mut Taker<'_>,
    ) -> Result<Generated, AgentError> {
        self.runtime.block_on(async {
            let deadline = Deadline::after(self.limit);
            generation(&self.socket, prompt, session, deadline, taker).await
        })
    }

    /// Calls a method that has one answer, over a new connection.
    fn ask<A: prost::Message + Default>(
        &self,
        method: &'static str,
        request: &impl prost::Message,
    ) -> Result<A, AgentError> {
        decoded(method, &self.ask_with(method, framed(request))?)
    }

    fn ask_with(&self, method: &'static str, request: Vec<u8>) -> Result<Vec<u8>, AgentError> {
        let call = async {
            let mut channel = Channel::connect(&self.socket, method).await?;
            channel.call_with(method, request).await
        };
        self.runtime.block_on(async { Deadline::after(self.limit).hold(method, call).await })
    }
}
