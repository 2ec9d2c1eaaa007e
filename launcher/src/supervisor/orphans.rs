//! Reaps orphans. A process whose parent has ended becomes a child of process 1, which a supervisor is in a container. If
//! nobody waits for it, its number stays taken after its end.

use std::time::Duration;

use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often orphans are looked for.
const INTERVAL: Duration = Duration::from_secs(1);

/// Reaps orphans if this process is process 1.
#[derive(Debug)]
pub(super) struct Orphans(Option<Interval>);

impl Orphans {
    /// Begins to look for orphans in the current runtime.
    pub(super) fn new() -> Self {
        let is_first = std::process::id() == 1;
        Self(is_first.then(|| {
            let mut interval = interval(INTERVAL);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        }))
    }

    /// Waits until it is time to call [`reap`]. Never returns if this process is not process 1. Cancel-safe.
    pub(super) async fn due(&mut self) {
        match &mut self.0 {
            Some(interval) => drop(interval.tick().await),
            None => std::future::pending().await,
        }
    }
}

/// Reaps the children that have ended, except those that other code of this process waits for. If one of these has ended,
/// the next call reaps the others.
pub(super) fn reap(own: &[Pid]) {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Some(ended) = waitid(Id::All, look).ok().and_then(|it: WaitStatus| it.pid()) {
        if own.contains(&ended) || waitpid(ended, Some(WaitPidFlag::WNOHANG)).is_err() {
            return;
        }
    }
}
