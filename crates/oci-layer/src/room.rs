//! Reserves memory for temporary work, such as the window of a zstd frame. Other work waits until enough memory is free.

use std::sync::{Condvar, Mutex, PoisonError};

/// The memory for all decoders at one time, in bytes, however many layers are read: one of zstd's largest windows and four
/// windows of `zstd -19`. A decoder that does not fit waits until another one ends.
pub(crate) const ROOM: u64 = 160 << 20;

/// The memory that the work of all threads shares.
#[derive(Debug, Default)]
pub(crate) struct Room {
    reserved: Mutex<u64>,
    given_back: Condvar,
}

impl Room {
    /// Returns a room without reservations.
    pub(crate) const fn new() -> Self {
        Self { reserved: Mutex::new(0), given_back: Condvar::new() }
    }

    /// Waits until `bytes` are free. A caller must not wait while it holds a reservation, or two callers could deadlock.
    pub(crate) fn take(&self, bytes: u64) -> Reservation<'_> {
        let bytes = bytes.min(ROOM);
        let reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let no_room = |reserved: &mut u64| *reserved + bytes > ROOM;
        let reserved = self.given_back.wait_while(reserved, no_room);
        *reserved.unwrap_or_else(PoisonError::into_inner) += bytes;
        Reservation { room: self, bytes }
    }

    /// Returns the number of reserved bytes.
    #[cfg(test)]
    pub(crate) fn reserved(&self) -> u64 {
        *self.reserved.lock().unwrap()
    }
}

/// Reserved memory, which is released on drop.
#[derive(Debug)]
pub(crate) struct Reservation<'r> {
    room: &'r Room,
    bytes: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        *self.room.reserved.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.room.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn work_waits_for_room() {
        let room = Room::default();
        let (held, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let reserved = room.take(128 << 20);
                    let now = held.fetch_add(reserved.bytes, Ordering::SeqCst) + reserved.bytes;
                    most.fetch_max(now, Ordering::SeqCst);
                    std::thread::yield_now();
                    held.fetch_sub(reserved.bytes, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(most.into_inner(), 128 << 20);
        assert_eq!(room.reserved(), 0);
    }
}
