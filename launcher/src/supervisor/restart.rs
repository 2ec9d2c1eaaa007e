//! Which ends of a box lead to another start of it, and how long that start waits.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Supervisor;
use crate::boxes::{Record, Restarted, since_epoch};

/// A box that has been ready for this long, in milliseconds, begins a new row of restarts.
const STABLE_MS: u64 = 60_000;
/// The longest wait before a start.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// The help for a text that is no [`Restart`].
const FORM: &str = "write on-failure, unhealthy, on-failure:N or unhealthy:N";
/// The policies of docker that have no counterpart: a box whose agent ends with status 0 has done its work.
const OF_DOCKER: [&str; 2] = ["always", "unless-stopped"];
/// The error for these.
const NEVER_ALWAYS: &str = "a box is not started again when its agent ends with status 0 or it is stopped; write on-failure";

/// When a box is started again: `on-failure` or `unhealthy`, and how often in a row, as in `on-failure:5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    /// Whether a box whose agent is unhealthy is stopped and started again.
    pub unhealthy: bool,
    /// The most restarts in a row. `None` means any number.
    most: Option<u32>,
}

impl FromStr for Restart {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (when, most) = match text.split_once(':') {
            Some((when, most)) => (when, Some(most.parse().map_err(|_| FORM)?)),
            None => (text, None),
        };
        match when {
            "on-failure" => Ok(Self { unhealthy: false, most }),
            "unhealthy" => Ok(Self { unhealthy: true, most }),
            _ if OF_DOCKER.contains(&when) => Err(NEVER_ALWAYS),
            _ => Err(FORM),
        }
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.unhealthy { "unhealthy" } else { "on-failure" })?;
        self.most.map_or(Ok(()), |most| write!(f, ":{most}"))
    }
}

impl Restart {
    /// Returns what to record about the next restart of a box that has failed because of `reason`. `None` if it was restarted
    /// often enough.
    pub fn next(self, record: &Record, reason: &str) -> Option<Restarted> {
        let time_ms = since_epoch();
        let is_stable =
            record.ready_ms.is_some_and(|ready| time_ms.saturating_sub(ready) >= STABLE_MS);
        let before = record.restarted.as_ref();
        let in_row = before.filter(|_| !is_stable).map_or(0, |it| it.in_row).saturating_add(1);
        let count = before.map_or(0, |it| it.count).saturating_add(1);
        let reason = reason.to_owned();
        let is_next = self.most.is_none_or(|most| in_row <= most);
        is_next.then_some(Restarted { count, in_row, time_ms, reason })
    }
}

/// Returns how long to wait before the restart with this number in a row, which begins with 1: one second, and each time twice
/// as long, up to a minute.
pub fn delay(in_row: u32) -> Duration {
    Duration::from_secs(1 << in_row.saturating_sub(1).min(6)).min(MAX_DELAY)
}

impl Supervisor {
    /// Returns what to record about the restart that follows the end of the box. `None` if the box is not started again.
    /// `failure` is why the run failed, if that was no end of the agent.
    pub(super) fn next_restart(&self, failure: Option<&str>) -> Option<Restarted> {
        let policy = self.terms.restart.filter(|_| !self.was_asked)?;
        let of_agent = || {
            let status = self.status.filter(|it| *it != 0)?;
            Some(format!("its agent ended with status {status}"))
        };
        policy.next(&self.entry.record, &failure.map(str::to_owned).or_else(of_agent)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_as_it_is_written() {
        for text in ["on-failure", "unhealthy", "on-failure:5", "unhealthy:0"] {
            assert_eq!(text.parse::<Restart>().unwrap().to_string(), text);
        }
        for text in ["", "on-failure:", "on-failure:-1", "unhealthy:x", "unhealthy:5:5"] {
            assert_eq!(text.parse::<Restart>(), Err(FORM), "{text}");
        }
        assert_eq!("always".parse::<Restart>(), Err(NEVER_ALWAYS));
    }

    #[test]
    fn delays_grow_up_to_a_minute() {
        let seconds = [1, 2, 3, 6, 7, 8, u32::MAX].map(|it| delay(it).as_secs());
        assert_eq!(seconds, [1, 2, 4, 32, 60, 60, 60]);
    }
}
