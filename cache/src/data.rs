//! The data of an action: bytes that belong to the action's record, and that each reader has to verify.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use host_fs::publish::FileDraft;

use crate::action::remove;
use crate::error::{IoContext, io_within};
use crate::reserve::Reserve;
use crate::store::{draft, file_mode, open_existing};
use crate::{ActionKey, Store, StoreError};

/// Writes the data of an action. Without a commit, the bytes are removed.
#[derive(Debug)]
pub struct DataWriter<'store> {
    store: &'store Store,
    draft: FileDraft,
    reserve: Reserve,
}

impl Store {
    /// Starts the data of an action.
    ///
    /// Unlike a blob, data is neither hashed nor flushed to the disk. It may be wrong after a crash,
    /// so readers must compare each part of it with the part's hash.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn data_writer(&self) -> Result<DataWriter<'_>, StoreError> {
        let draft = draft(self.root(), file_mode(self.root()))?;
        Ok(DataWriter { store: self, draft, reserve: Reserve::default() })
    }

    /// Opens the data of an action.
    ///
    /// # Errors
    /// [`StoreError::File`], also if there is no data.
    pub fn open_data(&self, key: &ActionKey) -> Result<File, StoreError> {
        let path = self.data_path(key);
        let absent = || io::Error::from(io::ErrorKind::NotFound);
        let own = open_existing(&path)?;
        let base = self.base().filter(|_| own.is_none());
        let file = own.or_else(|| open_existing(&base?.data_path(key)).ok()?);
        file.ok_or_else(absent).context("open", &path)
    }

    /// Removes the data of an action, if there is any. Processes that have the file open can still read it.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn remove_data(&self, key: &ActionKey) -> Result<(), StoreError> {
        remove(&self.data_path(key))
    }

    fn data_path(&self, key: &ActionKey) -> PathBuf {
        self.root().join("data").join(key.hex())
    }
}

impl DataWriter<'_> {
    /// Publishes the data as the data of the action `key`. Earlier data of the action is replaced.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`]. The store is then unchanged.
    pub fn commit(self, key: &ActionKey) -> Result<(), StoreError> {
        let path = self.store.data_path(key);
        self.store.note_added(self.draft.file().metadata().map_or(0, |it| it.len()));
        let written = self.draft.finish_over_unflushed(&path).context("write", &path);
        written.map_err(|error| error.within(self.store.root()))
    }
}

impl Write for DataWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.reserve.write(self.draft.file(), bytes);
        written.map_err(io_within(self.store.root()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.draft.file().flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::KeyHasher;

    #[test]
    fn data_reads_back_and_the_newest_wins() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        assert!(store.open_data(&key).is_err());
        for text in ["one", "two"] {
            let mut writer = store.data_writer().unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            writer.commit(&key).unwrap();
            let mut read = String::new();
            store.open_data(&key).unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
    }

    #[test]
    fn removed_data_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        store.data_writer().unwrap().commit(&key).unwrap();
        let mut open = store.open_data(&key).unwrap();
        store.remove_data(&key).unwrap();
        assert!(store.open_data(&key).is_err());
        assert_eq!(open.read_to_end(&mut Vec::new()).unwrap(), 0);
        store.remove_data(&key).unwrap();
    }

    #[test]
    fn abandoned_data_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let mut writer = store.data_writer().unwrap();
        writer.write_all(b"half").unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(store.root().join("tmp")).unwrap().count(), 0);
    }
}
