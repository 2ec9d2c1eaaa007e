//! Takes a box from the store, if all of it is there and undamaged.
//!
//! A blob's name does not prove its content: a disk may damage it, or a program that writes to an
//! exported box, whose files are hard links into the store. So each blob is hashed before it is
//! served again. For the rootfs of a large box this would take longer than all else, so a blob
//! above [`ALWAYS_HASHED`] is hashed only when its file has changed since it was hashed last, see
//! [`host_fs::stamp`], and when that was [`VOUCHED_FOR`] ago. Damage by a disk, which changes no time of
//! a file, is therefore found in a large blob within that time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use box_cache::{ActionKey, Store, StoreError};
use box_digest::Digest;
use host_fs::stamp::Stamp;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::resolved::Build;
use crate::compose::merged::Unused;
use crate::{BuildError, Sealed};

/// Up to this size in bytes a blob is hashed each time: some 40 ms on one core.
const ALWAYS_HASHED: u64 = 64 << 20;

/// How long a large blob is not hashed again. A disk can damage it in this time: a week, as a box of 1 GiB
/// that is built each day then costs 0.6 s a week.
const VOUCHED_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A box, and the stamps of its blobs in the same order.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    sealed: Sealed,
    /// For large blobs, the second since 1970 in which they were hashed, a space, and the line of [`Stamp::record`].
    stamps: Vec<Option<String>>,
    /// The warnings of its build.
    unused: Vec<Unused>,
}

/// Records a box whose blobs were written or verified just now. They have no stamps before they
/// are recalled: their files changed a moment ago, and exporting them changes them again.
pub(super) fn record(
    store: &Store,
    key: &ActionKey,
    sealed: &Sealed,
    unused: &[Unused],
) -> Result<(), BuildError> {
    let stamps = vec![None; sealed.blobs.len()];
    write(store, key, &Record { sealed: sealed.clone(), stamps, unused: unused.to_vec() })
}

fn write(store: &Store, key: &ActionKey, record: &Record) -> Result<(), BuildError> {
    Ok(store.record_action(key, &serde_json::to_vec(record)?)?)
}

/// Returns the box that an earlier build made of the same inputs, and what that warned of. Returns
/// `None` also where a blob of it is missing or damaged: building it again mends the store.
pub(super) fn recall(store: &Store, key: &ActionKey) -> Result<Option<Build>, BuildError> {
    let record = store.action(key)?;
    let record: Option<Record> = record.and_then(|it| serde_json::from_slice(&it).ok());
    let Some(mut record) = record else { return Ok(None) };
    let blobs = record.sealed.blobs.par_iter();
    let checked: Result<Vec<_>, StoreError> = blobs
        .zip(&record.stamps)
        .map(|((digest, size), stamp)| {
            check(store, digest, stamp.as_deref(), *size <= ALWAYS_HASHED, SystemTime::now())
        })
        .collect();
    let Ok(now) = checked else { return Ok(None) };
    if now != record.stamps {
        record.stamps = now;
        write(store, key, &record)?;
    }
    let Record { sealed, unused, .. } = record;
    Ok(Some(Build { sealed, cached: true, unused }))
}

/// Checks a blob and returns the stamp to record, which is taken before the blob is hashed.
fn check(
    store: &Store,
    blob: &Digest,
    recorded: Option<&str>,
    small: bool,
    now: SystemTime,
) -> Result<Option<String>, StoreError> {
    if small {
        return store.verify(blob).map(|_| None);
    }
    let file = store.open_blob(blob)?;
    let stamp = Stamp::of(&file).ok();
    let unchanged = |line: &&str| {
        let Some((hashed, line)) = line.split_once(' ') else { return false };
        is_recent(hashed, now) && stamp.as_ref().is_some_and(|it| it.is_recorded(line))
    };
    if let Some(line) = recorded.filter(unchanged) {
        return Ok(Some(line.to_owned()));
    }
    store.verify(blob)?;
    let line = stamp.and_then(|stamp| stamp.record(&file, now));
    Ok(line.map(|line| format!("{} {line}", seconds(now))))
}

/// Returns whether a blob that was hashed in this second need not be hashed again. A second that is still to
/// come says nothing: the clock was changed.
fn is_recent(hashed: &str, now: SystemTime) -> bool {
    let age = hashed.parse().ok().and_then(|hashed| seconds(now).checked_sub(hashed));
    age.is_some_and(|age| age < VOUCHED_FOR.as_secs())
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    fn check(
        store: &Store,
        blob: &Digest,
        recorded: Option<&str>,
        small: bool,
    ) -> Result<Option<String>, StoreError> {
        super::check(store, blob, recorded, small, SystemTime::now())
    }

    /// Longer than a file must have been left alone.
    const A_WHILE: Duration = Duration::from_millis(50);

    #[test]
    fn a_large_blob_is_hashed_when_its_stamp_differs() {
        // Where stamps mean nothing, as on some file systems, no blob would have one.
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = Store::open(dir.path()).unwrap();
        let blob = store.put(b"content").unwrap();
        sleep(A_WHILE);
        let first = check(&store, &blob, None, false).unwrap();
        let line = first.as_deref().unwrap();
        assert_eq!(check(&store, &blob, Some(line), false).unwrap(), first);
        let again = check(&store, &blob, Some("1 another"), false).unwrap().unwrap();
        assert_eq!(again.split_once(' ').unwrap().1, line.split_once(' ').unwrap().1);
        let link = dir.path().join("link");
        fs::hard_link(dir.path().join("blobs").join(blob.hex()), &link).unwrap();
        fs::set_permissions(&link, Permissions::from_mode(0o644)).unwrap();
        fs::write(&link, "c0ntent").unwrap();
        let error = check(&store, &blob, Some(line), false).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(check(&store, &blob, None, true).is_err());
    }

    #[test]
    fn a_large_blob_that_a_disk_damaged_is_found_within_a_week() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = Store::open(dir.path()).unwrap();
        let blob = store.put(b"content").unwrap();
        let path = dir.path().join("blobs").join(blob.hex());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "c0ntent").unwrap();
        sleep(A_WHILE);
        // The damage leaves no trace in the stamp: that of the damaged file stands for the old one.
        let file = store.open_blob(&blob).unwrap();
        let line = Stamp::of(&file).unwrap().record(&file, SystemTime::now()).unwrap();
        let (hashed, day) = (SystemTime::now(), Duration::from_secs(24 * 60 * 60));
        let line = format!("{} {line}", seconds(hashed));
        let at = |now| super::check(&store, &blob, Some(&line), false, now);
        assert_eq!(at(hashed + 6 * day).unwrap().as_deref(), Some(line.as_str()));
        for now in [hashed + 7 * day, hashed - day] {
            assert!(matches!(at(now), Err(StoreError::Damaged { .. })));
        }
    }

    #[test]
    fn a_blob_that_was_just_written_has_no_stamp() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = Store::open(dir.path()).unwrap();
        let blob = Digest::of(b"content");
        // A machine can stop for longer than that between two calls, though not each time.
        let fresh = (0..20).any(|_| {
            store.put(b"content").unwrap();
            check(&store, &blob, None, false).unwrap().is_none()
        });
        assert!(fresh);
    }

    #[test]
    fn a_small_blob_is_hashed_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let blob = store.put(b"content").unwrap();
        assert_eq!(check(&store, &blob, None, true).unwrap(), None);
        let path = dir.path().join("blobs").join(blob.hex());
        fs::remove_file(&path).unwrap();
        assert!(matches!(check(&store, &blob, None, true), Err(StoreError::Missing(_))));
        fs::write(&path, "c0ntent").unwrap();
        assert!(matches!(check(&store, &blob, None, true), Err(StoreError::Damaged { .. })));
    }
}
