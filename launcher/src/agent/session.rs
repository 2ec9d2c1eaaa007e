//! The sessions of an agent: conversations that outlive a call, and the control of what happens in them.

use tokio::time::timeout;

use super::channel::{Channel, decoded};
use super::frames::framed;
use super::generation::{CREATE, DESTROY, Deadline};
use super::messages::{
    AgentEvent, CancelRequest, CancelResponse, ConfirmToolExecutionRequest,
    ConfirmToolExecutionResponse, CreateSessionRequest, CreateSessionResponse,
    DestroySessionRequest, DestroySessionResponse, ListSessionsRequest, ListSessionsResponse,
    Session, SubscribeEventsRequest,
};
use super::{AgentClient, AgentError};
use crate::streams::StreamError;

const EVENTS: &str = "SubscribeEvents";
const CANCEL: &str = "Cancel";
const CONFIRM: &str = "ConfirmToolExecution";

/// A closure that receives the events of an agent.
type Watcher<'a> = dyn FnMut(AgentEvent) -> Result<(), StreamError> + 'a;

impl AgentClient {
    /// Makes a session, with the ID `id` or with one that the agent chooses. Returns the ID.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn create_session(&self, id: Option<&str>) -> Result<String, AgentError> {
        let request = CreateSessionRequest { session_id: id.map(str::to_owned) };
        let made: CreateSessionResponse = self.ask(CREATE, &request)?;
        if made.session_id.is_empty() {
            let reason = "it has no ID of a session".to_owned();
            return Err(AgentError::Malformed { method: CREATE, reason });
        }
        Ok(made.session_id)
    }

    /// Lists the sessions that the agent has.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn sessions(&self) -> Result<Vec<Session>, AgentError> {
        let listed: ListSessionsResponse = self.ask("ListSessions", &ListSessionsRequest {})?;
        Ok(listed.sessions)
    }

    /// Ends a session.
    ///
    /// # Errors
    /// [`AgentError::Declined`] if the agent has not ended it, and other errors of the call.
    pub fn close_session(&self, session: &str) -> Result<(), AgentError> {
        let request = DestroySessionRequest { session_id: session.to_owned() };
        let ended: DestroySessionResponse = self.ask(DESTROY, &request)?;
        carried_out(DESTROY, ended.success, String::new())
    }

    /// Ends what runs in a session, or only the operation with the ID `operation`.
    ///
    /// # Errors
    /// [`AgentError::Declined`] if the agent has cancelled nothing, and other errors of the call.
    pub fn cancel(&self, session: &str, operation: Option<&str>) -> Result<(), AgentError> {
        let operation_id = operation.map(str::to_owned);
        let request = CancelRequest { session_id: session.to_owned(), operation_id };
        let cancelled: CancelResponse = self.ask(CANCEL, &request)?;
        carried_out(CANCEL, cancelled.success, String::new())
    }

    /// Allows or denies a tool that waits for it.
    ///
    /// # Errors
    /// [`AgentError::Declined`] if no such tool waits, and other errors of the call.
    pub fn confirm(&self, request: &ConfirmToolExecutionRequest) -> Result<(), AgentError> {
        let confirmed: ConfirmToolExecutionResponse = self.ask(CONFIRM, request)?;
        carried_out(CONFIRM, confirmed.success, safe_text::clipped(confirmed.error))
    }

    /// Passes the events of all sessions or of one to `watcher`, until the agent ends the stream or the client's time limit has passed.
    ///
    /// # Errors
    /// [`AgentError`], and errors of `watcher`.
    pub fn events(
        &self,
        session: Option<&str>,
        watcher: &mut Watcher<'_>,
    ) -> Result<(), AgentError> {
        let request = SubscribeEventsRequest { session_id: session.map(str::to_owned) };
        self.runtime.block_on(async {
            let connect = Channel::connect(&self.socket, EVENTS);
            let mut channel = Deadline::after(self.limit).hold(EVENTS, connect).await?;
            // The time limit is how long to watch, so its end is no error.
            timeout(self.limit, watch(&mut channel, &request, watcher)).await.unwrap_or(Ok(()))
        })
    }
}

/// Passes on the events of a call until it ends.
async fn watch(
    channel: &mut Channel,
    request: &SubscribeEventsRequest,
    watcher: &mut Watcher<'_>,
) -> Result<(), AgentError> {
    let mut answers = channel.stream(EVENTS, framed(request)).await?;
    while let Some(message) = answers.next().await? {
        watcher(decoded(EVENTS, &message)?)?;
        answers.forget();
    }
    Ok(())
}

/// Returns an error if the agent reports that a method had no effect.
fn carried_out(method: &'static str, success: bool, reason: String) -> Result<(), AgentError> {
    if success { Ok(()) } else { Err(AgentError::Declined { method, reason }) }
}
