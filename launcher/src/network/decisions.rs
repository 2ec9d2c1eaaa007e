//! The way of a filter's decisions to the box's log, and of its denials to the box's user.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use box_contract::pace::Pace;
use egress_proxy::{Decision, Verdict};
use tokio::sync::mpsc::{Receiver, channel};

use crate::streams::log::NetworkLog;

/// How many denials are kept in a second: a program that tries more shall not drive out what was kept before.
const MAX_DENIALS: u32 = 100;
/// How many denials wait to be told.
const MAX_DENIED: usize = 64;

/// Returns what takes the decisions of a filter and keeps them in a log, and the denials among them.
pub(crate) fn kept(
    log: NetworkLog,
) -> (impl Fn(Decision) + Send + Sync + 'static, Receiver<Decision>) {
    let (denials, denied) = channel(MAX_DENIED);
    let pace = Mutex::new(Pace::new(MAX_DENIALS, Instant::now()));
    let take = move |decision: Decision| {
        let is_denial = matches!(decision.verdict, Verdict::Denied { .. });
        let mut pace = pace.lock().unwrap_or_else(PoisonError::into_inner);
        if is_denial && !pace.take(Instant::now()) {
            return;
        }
        log.note(&decision);
        if is_denial {
            // Of too many at once, the log has the others.
            drop(denials.try_send(decision));
        }
    };
    (take, denied)
}
