//! Why an agent is not ready in time: what its health check says then.

use std::time::{Duration, Instant};

use box_contract::ComponentName;
use box_contract::wire::{Exec, GuestMessage, HostMessage, ProgramId};

use super::events::{Event, WatchedSignals};
use super::{Machine, MachineError, STARTING};
use crate::machine::health;
use crate::streams::StreamError;
use crate::streams::output::Route;

/// The number of the command that makes the check. A supervisor, which comes later, gives the small ones first.
const CHECK: ProgramId = ProgramId(254);
/// How long the check may take.
const LIMIT: Duration = Duration::from_millis(600);
/// How long the guest's answer is waited for: a box over its budget is stopped within a second.
const ANSWER: Duration = Duration::from_millis(800);
/// The reason where a check passes, but too late.
const TOO_LATE: &str = "it passes by now";

impl Machine {
    /// Makes the agent's health check once more; returns why it does not pass, if the guest answers in time. Until then
    /// nothing of this is asked for, so that a start which succeeds does not pay for it.
    pub(super) async fn why_unready(
        &mut self,
        output: &mut Route,
        signals: &WatchedSignals<'_>,
    ) -> Result<Option<String>, MachineError> {
        let check = Exec { id: CHECK, ..health::check(ComponentName::Agent, LIMIT) };
        let can_be_asked = self.has_check && self.events.protocol().is_some();
        // An init of the protocol before knows no such command.
        if !can_be_asked || self.events.send(&HostMessage::Exec(check)).is_err() {
            return Ok(None);
        }
        let (mut answer, deadline) = (health::answer(), Instant::now() + ANSWER);
        loop {
            match self.events.next(Some(deadline), Some(signals)).await? {
                Event::Message(GuestMessage::Output(output)) if output.id == CHECK => {
                    answer.write(output.stream, &output.data).map_err(StreamError::Output)?;
                    self.grant(CHECK, output.cost());
                }
                Event::Message(GuestMessage::Exited(exit)) if exit.id == CHECK => {
                    let reason = health::reason(exit, &answer, LIMIT);
                    return Ok(Some(reason.unwrap_or_else(|| TOO_LATE.to_owned())));
                }
                Event::Message(message) => self.starting(message, output, signals.signals)?,
                Event::Deadline => return Ok(None),
                event => return Err(self.ended(event, STARTING, output).await),
            }
        }
    }
}
