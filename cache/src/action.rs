//! Records of actions: a small value after its checksum.

use std::fs;
use std::io;
use std::path::Path;

use box_digest::Digest;
use host_fs::read::{is_private, read_open};

use crate::error::IoContext;
use crate::store::{open_existing, write_whole};
use crate::{ActionKey, Store, StoreError};

/// The most bytes of a record. The index of a layer with a million entries takes a tenth of it.
const RECORD_BYTES_MAX: u64 = 1 << 30;

impl Store {
    /// Returns what was recorded for an action; nothing where nothing was, or where the record
    /// is damaged or another user can change it.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn action(&self, key: &ActionKey) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.action_path(key);
        let Some(file) = open_existing(&path)? else { return Ok(None) };
        if !is_private(&file).context("examine", &path)? {
            return Ok(None);
        }
        let record = read_open(&file, RECORD_BYTES_MAX).map_err(io::Error::from);
        Ok(checked(&record.context("read", &path)?).map(<[u8]>::to_vec))
    }

    /// Records what an action made. A record that is there already is replaced.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`]; the store is then as it was.
    pub fn record_action(&self, key: &ActionKey, value: &[u8]) -> Result<(), StoreError> {
        let record = [Digest::of(value).as_bytes().as_slice(), value].concat();
        write_whole(self.root(), &self.action_path(key), &record)
    }

    /// Removes the record of an action, if there is one, so that the action runs again. Its data stays
    /// for those who read it at this moment; the next run replaces it.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn forget(&self, key: &ActionKey) -> Result<(), StoreError> {
        remove(&self.action_path(key))
    }
}

/// Removes a file of the store, if there is one.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context("remove", path),
        _ => Ok(()),
    }
}

/// Returns the value of a record whose checksum is right.
fn checked(record: &[u8]) -> Option<&[u8]> {
    let (checksum, value) = record.split_at_checked(32)?;
    (Digest::of(value).as_bytes() == checksum).then_some(value)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;
    use crate::KeyHasher;

    #[test]
    fn a_record_reads_back_and_the_newest_wins() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        assert_eq!(store.action(&key).unwrap(), None);
        store.record_action(&key, b"one").unwrap();
        store.record_action(&key, b"two").unwrap();
        assert_eq!(store.action(&key).unwrap().as_deref(), Some(b"two".as_slice()));
    }

    #[test]
    fn a_forgotten_action_has_no_record() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        store.record_action(&key, b"one").unwrap();
        store.forget(&key).unwrap();
        assert_eq!(store.action(&key).unwrap(), None);
        store.forget(&key).unwrap();
    }

    #[test]
    fn a_record_that_another_user_can_change_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        store.record_action(&key, b"one").unwrap();
        let path = store.action_path(&key);
        for (mode, counts) in [(0o620, false), (0o602, false), (0o644, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(store.action(&key).unwrap().is_some(), counts, "{mode:o}");
        }
        // Only root can give it to another user.
        if chown(&path, Some(1), None).is_ok() {
            assert_eq!(store.action(&key).unwrap(), None);
        }
    }

    #[test]
    fn a_damaged_record_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        for damaged in [b"".to_vec(), vec![0; 31], vec![7; 40]] {
            fs::write(store.action_path(&key), damaged).unwrap();
            assert_eq!(store.action(&key).unwrap(), None);
        }
    }
}
