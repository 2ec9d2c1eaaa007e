//! Passes a filter's decisions to the box's log, and its denials to the box's user.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use box_contract::pace::Pace;
use egress_proxy::{Decision, Verdict};
use tokio::sync::mpsc::{Receiver, channel};

use crate::streams::log::NetworkLog;

/// How many denials and failures per second are logged. A program that tries more must not push older entries out of the log.
const MAX_DENIALS: u32 = 100;
/// How many denials may wait until the supervisor reports them to the user.
const MAX_DENIED: usize = 64;

/// Returns a callback that logs the decisions of filters, and a receiver of their denials.
pub(crate) fn kept(
    log: NetworkLog,
) -> (impl Fn(Decision) + Clone + Send + Sync + 'static, Receiver<Decision>) {
    let (denials, denied) = channel(MAX_DENIED);
    let pace = Arc::new(Mutex::new(Pace::new(MAX_DENIALS, Instant::now())));
    let take = move |decision: Decision| {
        let is_denial = matches!(decision.verdict, Verdict::Denied { .. });
        let is_paced = decision.verdict != Verdict::Allowed;
        let mut pace = pace.lock().unwrap_or_else(PoisonError::into_inner);
        if is_paced && !pace.take(Instant::now()) {
            return;
        }
        log.note(&decision);
        if is_denial {
            // If too many denials wait, this one is only in the log.
            drop(denials.try_send(decision));
        }
    };
    (take, denied)
}
