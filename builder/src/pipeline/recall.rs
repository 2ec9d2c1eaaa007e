//! Taking a box from the store, if all of it is there and undamaged.
//!
//! A blob's name does not prove its content: a disk may damage it, or a program that writes to an
//! exported box, whose files are hard links into the store. So each blob is hashed before it is
//! served again. For the rootfs of a large box this would take longer than all else, so a blob
//! above [`ALWAYS_HASHED`] is hashed only when its stamp is not the one that the record keeps:
//! `write(2)` changes a file's times. Damage that leaves the stamp as it was, by a disk or through a
//! page that was mapped for writing and dirty before, is therefore found in small blobs only.

use std::os::unix::fs::MetadataExt;

use box_cache::{ActionKey, BlobId, Store, StoreError};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::compose::merged::Unused;
use crate::{BuildError, Sealed};

/// Up to this size in bytes a blob is hashed each time: some 40 ms on one core.
const ALWAYS_HASHED: u64 = 64 << 20;

/// What a file's metadata say of it; differs when its content was written to. A further hard link
/// changes it, too, but only costs a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

impl Stamp {
    /// Returns a blob's stamp; nothing where the file system does not give it.
    fn of(store: &Store, blob: &BlobId) -> Option<Self> {
        let metadata = store.open_blob(blob).ok()?.metadata().ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// A box, and the stamps of its large blobs in the same order.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    sealed: Sealed,
    stamps: Vec<Option<Stamp>>,
    /// What its build warned of.
    unused: Vec<Unused>,
}

/// A box, and the policies of its Boxfile that decided nothing.
type Recalled = (Sealed, Vec<Unused>);

/// Records a box whose blobs were written or verified just now.
pub(super) fn record(
    store: &Store,
    key: &ActionKey,
    sealed: &Sealed,
    unused: &[Unused],
) -> Result<(), BuildError> {
    let stamp = |(digest, size): &(box_image::Digest, u64)| {
        let large = *size > ALWAYS_HASHED;
        large.then(|| Stamp::of(store, &BlobId(*digest.as_bytes()))).flatten()
    };
    let stamps = sealed.blobs.iter().map(stamp).collect();
    write(store, key, &Record { sealed: sealed.clone(), stamps, unused: unused.to_vec() })
}

fn write(store: &Store, key: &ActionKey, record: &Record) -> Result<(), BuildError> {
    Ok(store.record_action(key, &serde_json::to_vec(record)?)?)
}

/// Returns the box that an earlier build made of the same inputs, and what that warned of. Where a blob of it is missing or
/// damaged there is none: building it again mends the store.
pub(super) fn recall(store: &Store, key: &ActionKey) -> Result<Option<Recalled>, BuildError> {
    let record = store.action(key)?;
    let Some(Record { sealed, stamps, unused }) =
        record.and_then(|it| serde_json::from_slice(&it).ok())
    else {
        return Ok(None);
    };
    let checked: Result<Vec<_>, StoreError> = sealed
        .blobs
        .par_iter()
        .zip(&stamps)
        .map(|((digest, size), stamp)| {
            check(store, &BlobId(*digest.as_bytes()), *stamp, *size <= ALWAYS_HASHED)
        })
        .collect();
    let Ok(now) = checked else { return Ok(None) };
    if now == stamps {
        return Ok(Some((sealed, unused)));
    }
    let record = Record { sealed, stamps: now, unused };
    write(store, key, &record)?;
    Ok(Some((record.sealed, record.unused)))
}

/// Checks a blob and returns the stamp to record, which was taken before the blob was hashed.
fn check(
    store: &Store,
    blob: &BlobId,
    recorded: Option<Stamp>,
    small: bool,
) -> Result<Option<Stamp>, StoreError> {
    let stamp = if small { None } else { Stamp::of(store, blob) };
    if stamp.is_none() || stamp != recorded {
        store.verify(blob)?;
    }
    Ok(stamp)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_large_blob_is_hashed_when_its_stamp_differs() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let blob = store.put(b"content").unwrap();
        let first = check(&store, &blob, None, false).unwrap();
        assert_eq!(check(&store, &blob, first, false).unwrap(), first);
        let link = dir.path().join("link");
        fs::hard_link(dir.path().join("blobs").join(blob.hex()), &link).unwrap();
        let linked = Stamp { inode: 0, ..first.unwrap() };
        assert_eq!(check(&store, &blob, Some(linked), false).unwrap(), Stamp::of(&store, &blob));
        fs::set_permissions(&link, Permissions::from_mode(0o644)).unwrap();
        fs::write(&link, "c0ntent").unwrap();
        // The clock of the file system's times may be coarser than this test is fast.
        fs::File::open(&link).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let error = check(&store, &blob, first, false).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(check(&store, &blob, None, true).is_err());
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
