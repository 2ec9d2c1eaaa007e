//! Takes a box from the store, if all of it is there and undamaged.
//!
//! A blob's name does not prove its content: a disk may damage it, or a program that writes to an
//! exported box, whose files are hard links into the store. So each blob is hashed before it is
//! served again. For the rootfs of a large box this would take longer than all else, so a blob
//! above [`ALWAYS_HASHED`] is hashed only when its file has changed since it was hashed last; see
//! [`host_fs::stamp`]. Damage by a disk is therefore found in small blobs only.

use std::time::SystemTime;

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

/// A box, and the stamps of its blobs in the same order.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    sealed: Sealed,
    /// The lines of [`Stamp::record`] for large blobs that were hashed.
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
            check(store, digest, stamp.as_deref(), *size <= ALWAYS_HASHED)
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
) -> Result<Option<String>, StoreError> {
    if small {
        return store.verify(blob).map(|_| None);
    }
    let file = store.open_blob(blob)?;
    let stamp = Stamp::of(&file).ok();
    let unchanged = recorded.filter(|line| stamp.as_ref().is_some_and(|it| it.is_recorded(line)));
    if let Some(line) = unchanged {
        return Ok(Some(line.to_owned()));
    }
    let began = SystemTime::now();
    store.verify(blob)?;
    Ok(stamp.and_then(|stamp| stamp.record(&file, began)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

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
        assert_eq!(check(&store, &blob, Some("another"), false).unwrap(), first);
        let link = dir.path().join("link");
        fs::hard_link(dir.path().join("blobs").join(blob.hex()), &link).unwrap();
        fs::set_permissions(&link, Permissions::from_mode(0o644)).unwrap();
        fs::write(&link, "c0ntent").unwrap();
        let error = check(&store, &blob, Some(line), false).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(check(&store, &blob, None, true).is_err());
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
