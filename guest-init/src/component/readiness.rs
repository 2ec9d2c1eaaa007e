//! Waits inside a component until the agent is ready, which means that its health check passes.

use std::os::fd::AsFd as _;
use std::thread::sleep;
use std::time::Duration;

use box_contract::Health;
use command_policy::Subject;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use super::health;
use super::spawn::{self, Base, Streams, Workload};
use crate::sys;

/// The pause after the first failed check. Each pause is an eighth longer than the previous one. So an agent that has
/// become ready waits at most about an eighth of its start time for the next check.
const FIRST_PAUSE: Duration = Duration::from_micros(250);
const MAX_PAUSE: Duration = Duration::from_millis(25);
/// The time limit of a check's program, in milliseconds. A program that hangs is killed and started again.
const PROGRAM_TIMEOUT_MS: u16 = 10_000;

/// Repeats the check until it passes.
///
/// There is no time limit here: the launcher has one, and the holder kills this process when the agent ends.
pub(crate) fn wait_until_healthy(check: &Health, base: Base<'_>) {
    let mut pause = FIRST_PAUSE;
    while !passes(check, base) {
        sleep(pause);
        pause = (pause * 9 / 8).min(MAX_PAUSE);
    }
}

fn passes(check: &Health, base: Base<'_>) -> bool {
    match check {
        Health::Exec { argv } => succeeds(argv, base),
        asked => health::ask(asked).is_ok(),
    }
}

fn succeeds(argv: &[String], base: Base<'_>) -> bool {
    let Ok(streams) = Streams::discard(base.null) else { return false };
    // A command can have changed the program of the check.
    let workload = Workload::planned(argv, Some(Subject::Program));
    // `spawned.report` must stay open until the program's end: a write to a closed pipe would kill the process.
    let Ok(spawned) = spawn::spawn(base, workload, &streams) else { return false };
    let is_well = ends_well(spawned.pid, PROGRAM_TIMEOUT_MS, || spawned.tree.kill());
    // A check that has left processes behind keeps its tree.
    spawned.tree.into_name().remove(base.leaf);
    is_well
}

/// Reaps a child. Calls `kill` at the time limit. Returns whether the child has exited with status 0.
fn ends_well(pid: Pid, timeout_ms: u16, kill: impl FnOnce()) -> bool {
    if !ends_within(pid, timeout_ms).unwrap_or(false) {
        kill();
    }
    waitpid(pid, None) == Ok(WaitStatus::Exited(pid, 0))
}

fn ends_within(pid: Pid, timeout_ms: u16) -> nix::Result<bool> {
    let process = sys::open_process(pid)?;
    let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(timeout_ms)).map(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sys::signal::{Signal, kill};

    use super::*;

    /// Starts a program. `ends_well` reaps it.
    #[expect(clippy::zombie_processes, reason = "the code under test reaps it")]
    fn start(program: &str, argument: &str) -> Pid {
        let child = Command::new(program).arg(argument).spawn().unwrap();
        Pid::from_raw(i32::try_from(child.id()).unwrap())
    }

    #[test]
    fn a_program_is_judged_by_its_status_and_has_a_time_limit() {
        let never = || panic!("it ends in time");
        assert!(ends_well(start("true", ""), PROGRAM_TIMEOUT_MS, never));
        assert!(!ends_well(start("false", ""), PROGRAM_TIMEOUT_MS, never));
        let endless = start("sleep", "infinity");
        assert!(!ends_well(endless, 1, || kill(endless, Signal::SIGKILL).unwrap()));
        assert_eq!(waitpid(endless, None), Err(nix::errno::Errno::ECHILD), "it was reaped");
    }
}
