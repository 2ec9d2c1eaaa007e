//! Runs a component's health check once, in the running component: the command, and the meaning of its result.

use std::time::Duration;

use box_contract::ComponentName;
use box_contract::wire::{Builtin, Exec, Exited};
use safe_text::shown;

use crate::streams::output::Route;

/// The maximum number of bytes of a check's output that are shown.
const MAX_REASON: usize = 4096;

/// Returns the command that runs a component's check. Init kills the check after `limit`.
pub fn check(component: ComponentName, limit: Duration) -> Exec {
    let timeout_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    let exec = Exec::new(component, vec!["health".to_owned()]);
    Exec { builtin: Some(Builtin::Check), timeout_ms, ..exec }
}

/// Returns a route that captures the check's output.
pub fn answer() -> Route {
    Route::capture_within(MAX_REASON)
}

/// Returns why a check failed, as one line that is safe for a terminal; `None` if it passed. `answer` has the check's
/// output.
pub fn reason(exit: Exited, answer: &Route, limit: Duration) -> Option<String> {
    let captured = answer.captured();
    let output = [captured.stderr(), captured.stdout()].map(|text| shown(text.trim_end()));
    match (exit.status, output) {
        _ if exit.timed_out => {
            Some(format!("the check took longer than {} s", limit.as_secs_f64()))
        }
        (0, _) => None,
        (_, [text, _] | [_, text]) if !text.is_empty() => Some(text),
        (status, _) => Some(format!("the check ended with status {status}")),
    }
}

#[cfg(test)]
mod tests {
    use box_contract::wire::{ProgramId, Stream};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    fn reason_of(status: u8, timed_out: bool, output: &[(Stream, &str)]) -> Option<String> {
        let mut answer = answer();
        output.iter().for_each(|(stream, text)| answer.write(*stream, text.as_bytes()).unwrap());
        reason(
            Exited {
                id: ProgramId::COMMAND,
                status,
                oom_killed: false,
                disk_full: false,
                timed_out,
                fenced: None,
            },
            &answer,
            LIMIT,
        )
    }

    #[test]
    fn a_check_is_explained_by_what_it_says_or_by_its_end() {
        let (out, err) = ((Stream::Stdout, "out\n"), (Stream::Stderr, "err\n"));
        assert_eq!(reason_of(0, false, &[out, err]), None);
        assert_eq!(reason_of(3, false, &[out, err]).unwrap(), "err");
        assert_eq!(reason_of(3, false, &[out]).unwrap(), "out");
        assert_eq!(reason_of(3, false, &[]).unwrap(), "the check ended with status 3");
        assert_eq!(reason_of(137, true, &[out]).unwrap(), "the check took longer than 1 s");
        let exit = Exited {
            id: ProgramId::COMMAND,
            status: 137,
            oom_killed: false,
            disk_full: false,
            timed_out: true,
            fenced: None,
        };
        let short = reason(exit, &answer(), Duration::from_millis(600)).unwrap();
        assert_eq!(short, "the check took longer than 0.6 s");
    }

    #[test]
    fn what_a_guest_says_is_short_and_safe() {
        let flood = "\u{1b}[2J\n".repeat(10_000);
        let reason = reason_of(1, false, &[(Stream::Stderr, &flood)]).unwrap();
        assert!(reason.chars().count() < MAX_REASON + 99, "{}", reason.len());
        assert!(!reason.contains(['\u{1b}', '\n']), "{reason}");
    }
}
