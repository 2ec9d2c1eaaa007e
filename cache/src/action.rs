//! Records of actions: a small value, with references to blobs and to other records.
//!
//! ```text
//! checksum   32 bytes: sha256 of the line "boxbuild record 2\n" and of all bytes after the checksum
//! blobs      the number of referenced blobs (64-bit, little-endian), then 32 bytes for each digest
//! actions    the number of referenced records (64-bit, little-endian), then 32 bytes for each key
//! value      all other bytes
//! ```
//!
//! A [collection](crate::collect) reads the references. While a record exists, the blobs to which it refers are kept. Each use of
//! a record is also a use of the records to which it refers. A record of an earlier format does not match its checksum, and so is
//! treated as absent.

use std::fs;
use std::io;
use std::path::Path;

use box_digest::{Digest, Hasher, Sha256};
use host_fs::read::read_open;
use host_fs::trust::is_private;

use crate::error::IoContext;
use crate::store::{open_existing, write_whole};
use crate::{ActionKey, KeyHasher, Store, StoreError};

/// The size limit of a record in bytes. The index of a layer with a million entries takes a tenth of the limit.
const MAX_RECORD_BYTES: u64 = 1 << 30;
/// The first bytes of the hashed text, so that a record of another format has another checksum.
const FORMAT: &[u8] = b"boxbuild record 2\n";

/// The blobs and records to which a record refers. The record's value is useless without them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Refers<'a> {
    /// Blobs, which stay in the store while the record exists.
    pub blobs: &'a [Digest],
    /// Other records that the action used. Each use of this record is also a use of them.
    pub actions: &'a [ActionKey],
}

impl<'a> Refers<'a> {
    /// No references: the value is useful by itself.
    pub const NOTHING: Self = Self { blobs: &[], actions: &[] };

    /// Creates references to blobs only.
    pub const fn to(blobs: &'a [Digest]) -> Self {
        Self { blobs, actions: &[] }
    }
}

/// A decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) blobs: Vec<Digest>,
    pub(crate) actions: Vec<ActionKey>,
    pub(crate) value: Vec<u8>,
}

impl Record {
    /// Reads the record in an open file. Returns `None` if it is damaged, has another format, or another user can change it.
    pub(crate) fn read(file: &fs::File, path: &Path) -> Result<Option<Self>, StoreError> {
        if !is_private(file).context("examine", path)? {
            return Ok(None);
        }
        let record = read_open(file, MAX_RECORD_BYTES).map_err(io::Error::from);
        Ok(Self::decode(&record.context("read", path)?))
    }

    fn decode(record: &[u8]) -> Option<Self> {
        let (checksum, rest) = record.split_at_checked(32)?;
        if checksum_of(rest).as_bytes() != checksum {
            return None;
        }
        let (blobs, rest) = digests(rest)?;
        let (actions, value) = digests(rest)?;
        let actions = actions.into_iter().map(ActionKey::from_digest).collect();
        Some(Self { blobs, actions, value: value.to_vec() })
    }

    pub(crate) fn encode(value: &[u8], refers: &Refers<'_>) -> Vec<u8> {
        let mut rest = Vec::new();
        let mut list = |digests: &mut dyn ExactSizeIterator<Item = Digest>| {
            rest.extend((digests.len() as u64).to_le_bytes());
            digests.for_each(|it| rest.extend(it.as_bytes()));
        };
        list(&mut refers.blobs.iter().copied());
        list(&mut refers.actions.iter().map(ActionKey::digest));
        rest.extend(value);
        [checksum_of(&rest).as_bytes(), rest.as_slice()].concat()
    }
}

/// Splits off a list of digests, and returns it with the bytes after it.
fn digests(bytes: &[u8]) -> Option<(Vec<Digest>, &[u8])> {
    let (count, rest) = bytes.split_first_chunk()?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    let (digests, rest) = rest.split_at_checked(count.checked_mul(32)?)?;
    Some((digests.as_chunks().0.iter().copied().map(Digest::from_bytes).collect(), rest))
}

fn checksum_of(rest: &[u8]) -> Digest {
    let mut hasher = Hasher::<Sha256>::default();
    hasher.update(FORMAT);
    hasher.update(rest);
    hasher.digest()
}

impl Store {
    /// Returns the recorded value of an action. Returns `None` if there is no record, the record is damaged, or another user can
    /// change it.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn action(&self, key: &ActionKey) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.action_path(key);
        self.session().use_record(key, &path);
        let own = match open_existing(&path)? {
            Some(file) => Record::read(&file, &path)?,
            None => None,
        };
        let found = own.or_else(|| {
            let path = self.base()?.action_path(key);
            Record::read(&open_existing(&path).ok()??, &path).ok()?
        });
        Ok(found.map(|record| record.value))
    }

    /// Records the result of an action with its references. An existing record is replaced.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`]. The store is then unchanged.
    pub fn record_action(
        &self,
        key: &ActionKey,
        value: &[u8],
        refers: &Refers<'_>,
    ) -> Result<(), StoreError> {
        write_whole(self.root(), &self.action_path(key), &Record::encode(value, refers))
    }

    /// Notes the use of a blob that no action made, for example a file from the network. A collection then treats the blob like
    /// the result of an action.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`].
    pub fn note_fetched(&self, blob: &Digest) -> Result<(), StoreError> {
        let key = KeyHasher::new("fetched", 1).part(blob.as_bytes()).finish();
        if self.action(&key)?.is_some() {
            return Ok(());
        }
        self.record_action(&key, &[], &Refers::to(&[*blob]))
    }

    /// Removes the record of an action, if there is one, so that the action runs again. The data of the action stays, because
    /// other processes may be reading it. The next run of the action replaces the data.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn forget(&self, key: &ActionKey) -> Result<(), StoreError> {
        remove(&self.action_path(key))
    }
}

/// Removes a file of the store. A missing file is no error.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context("remove", path),
        _ => Ok(()),
    }
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
        store.record_action(&key, b"one", &Refers::NOTHING).unwrap();
        store.record_action(&key, b"two", &Refers::NOTHING).unwrap();
        assert_eq!(store.action(&key).unwrap().as_deref(), Some(b"two".as_slice()));
    }

    #[test]
    fn a_forgotten_action_has_no_record() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        store.record_action(&key, b"one", &Refers::NOTHING).unwrap();
        store.forget(&key).unwrap();
        assert_eq!(store.action(&key).unwrap(), None);
        store.forget(&key).unwrap();
    }

    #[test]
    fn a_record_that_another_user_can_change_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        store.record_action(&key, b"one", &Refers::NOTHING).unwrap();
        let path = store.action_path(&key);
        for (mode, counts) in [(0o620, false), (0o602, false), (0o644, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(store.action(&key).unwrap().is_some(), counts, "{mode:o}");
        }
        // Only root can change the owner of a file.
        if chown(&path, Some(1), None).is_ok() {
            assert_eq!(store.action(&key).unwrap(), None);
        }
    }

    #[test]
    fn a_damaged_record_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        let earlier = [Digest::of(b"value").as_bytes().as_slice(), b"value"].concat();
        for damaged in [b"".to_vec(), vec![0; 31], vec![7; 40], earlier] {
            fs::write(store.action_path(&key), damaged).unwrap();
            assert_eq!(store.action(&key).unwrap(), None);
        }
    }

    #[test]
    fn a_record_has_what_it_refers_to() {
        let keys = [1, 2].map(|epoch| KeyHasher::new("test", epoch).finish());
        let blobs = [1, 2, 3].map(|it| Digest::from_bytes([it; 32]));
        let bytes = Record::encode(b"value", &Refers { blobs: &blobs, actions: &keys });
        let read = Record::decode(&bytes).unwrap();
        let expected =
            Record { blobs: blobs.to_vec(), actions: keys.to_vec(), value: b"value".to_vec() };
        assert_eq!(read, expected);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Record::decode(&damaged), None);
            assert_eq!(Record::decode(&bytes[..at]), None);
        }
        // A valid checksum over malformed lists.
        let rest = [u64::MAX.to_le_bytes(), [0; 8]].concat();
        let wrong = [checksum_of(&rest).as_bytes(), rest.as_slice()].concat();
        assert_eq!(Record::decode(&wrong), None);
    }

    #[test]
    fn a_record_is_as_young_as_its_use() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        store.record_action(&key, b"one", &Refers::NOTHING).unwrap();
        let path = store.action_path(&key);
        let used = || fs::metadata(&path).unwrap().modified().unwrap();
        fs::File::open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        store.action(&key).unwrap();
        assert!(used().elapsed().unwrap().as_secs() < 60);
    }
}
