//! Tests of `Boxfile.lock`: what it pins, when it changes, and when it is refused.

mod damaged;
mod declaration;
mod locked;
mod places;
mod platforms;
mod profiles;
mod update;
mod used;

use crate::checkout::Checkout;

/// The path of the lock, beside the Boxfile.
const LOCK: &str = "Boxfile.lock";

/// Returns the text of each entry in a lock.
fn entries(lock: &str) -> Vec<&str> {
    lock.split("[[entry]]\n").skip(1).collect()
}

/// Returns the names of a lock's entries, in the lock's order.
fn names(lock: &str) -> Vec<&str> {
    entries(lock).iter().map(|entry| entry.split('"').nth(1).unwrap()).collect()
}

/// Writes the lock and returns it.
fn locked(checkout: &Checkout) -> String {
    checkout.result(&["lock"]);
    checkout.read(LOCK)
}
