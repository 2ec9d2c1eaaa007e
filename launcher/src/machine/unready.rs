//! Finds out why an agent is not ready in time, by running its health check once more.

use std::time::{Duration, Instant};

use box_contract::ComponentName;
use box_contract::wire::{Exec, GuestMessage, HostMessage, ProgramId};

use super::events::{Event, WatchedSignals};
use super::{Machine, MachineError, STARTING};
use crate::machine::health;
use crate::streams::StreamError;
use crate::streams::output::Route;

/// The id of the command that runs the check. The supervisor starts later and assigns small ids first, so late messages
/// about the check do not match its commands.
const CHECK: ProgramId = ProgramId(254);
/// The time limit of the check.
const LIMIT: Duration = Duration::from_millis(600);
/// The time limit of the guest's answer: a box over its budget is stopped within a second.
const ANSWER: Duration = Duration::from_millis(800);
/// The reason if this last check passes.
const TOO_LATE: &str = "it passes by now";

impl Machine {
    /// Runs the agent's health check once more, and returns why it fails, if the guest answers within [`ANSWER`]. The
    /// result is requested only now, so that it costs a successful start nothing.
    pub(super) async fn why_unready(
        &mut self,
        output: &mut Route,
        signals: &WatchedSignals<'_>,
    ) -> Result<Option<String>, MachineError> {
        let check = Exec { id: CHECK, ..health::check(ComponentName::Agent, LIMIT) };
        let can_be_asked = self.has_check && self.events.protocol().is_some();
        // An init with a protocol that is too old does not support this command.
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
