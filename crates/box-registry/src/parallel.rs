//! Parallel work on several blobs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

/// Calls `work` with each item, on at most `threads` threads, and returns the results in the order of the items.
///
/// # Errors
/// The first error. Calls that have begun are completed, and no others begin.
pub fn each<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, failure) = (Mutex::new(BTreeMap::new()), Mutex::new(None));
    let run = || {
        while !is_over.load(Ordering::Relaxed)
            && let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(at)
        {
            match work(item) {
                Ok(result) => drop(lock(&done).insert(at, result)),
                Err(error) => {
                    lock(&failure).get_or_insert(error);
                    is_over.store(true, Ordering::Relaxed);
                }
            }
        }
    };
    thread::scope(|scope| {
        // If a thread cannot be started, the other threads do its work.
        let more = threads.clamp(1, items.len().max(1)) - 1;
        (0..more).for_each(|_| drop(Builder::new().spawn_scoped(scope, run)));
        run();
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => {
            let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
            Ok(done.into_values().collect())
        }
    }
}

fn lock<T>(held: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_an_error_ends_the_work() {
        for threads in [0, 1, 3, 100] {
            let items: Vec<u32> = (0..50).collect();
            let doubled = each(&items, threads, |it| Ok::<_, ()>(it * 2)).unwrap();
            assert_eq!(doubled, items.iter().map(|it| it * 2).collect::<Vec<_>>());
            let calls = AtomicUsize::new(0);
            let failed = each(&items, threads, |item| {
                calls.fetch_add(1, Ordering::Relaxed);
                if *item == 3 { Err(*item) } else { Ok(()) }
            });
            assert_eq!(failed, Err(3));
            assert!(calls.into_inner() >= 4);
        }
        assert_eq!(each(&[], 4, |it: &u32| Ok::<_, ()>(*it)), Ok(Vec::new()));
    }
}
