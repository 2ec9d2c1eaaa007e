//! The store's directory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::blob::{BlobWriter, export};
use crate::error::IoContext;
use crate::{ActionKey, BlobId, StoreError};

const VERSION: &str = "boxbuild store 1\n";
/// Everything that a store has; `version` is made last.
const PARTS: [&str; 4] = ["blobs", "actions", "tmp", "lock"];

/// An open store. While it is open, nobody collects garbage in it.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    /// Shared lock, held as long as the store is open.
    _lock: File,
}

impl Store {
    /// Opens the store in a directory; makes it where there is none.
    ///
    /// # Errors
    /// [`StoreError::Io`], or [`StoreError::NotAStore`] where the directory holds something else.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        check_new(root)?;
        for directory in [root.join("blobs"), root.join("actions"), root.join("tmp")] {
            fs::create_dir_all(&directory).context("make the directory", &directory)?;
        }
        let lock_path = root.join("lock");
        let lock = File::create(&lock_path).context("open", &lock_path)?;
        lock.lock_shared().context("lock", &lock_path)?;
        check_version(root)?;
        Ok(Self { root: root.to_owned(), _lock: lock })
    }

    /// Starts a blob.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn writer(&self) -> Result<BlobWriter<'_>, StoreError> {
        BlobWriter::new(self)
    }

    /// Writes bytes as a blob; does nothing where the store holds them.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn put(&self, bytes: &[u8]) -> Result<BlobId, StoreError> {
        let blob = BlobId::of(bytes);
        if self.size(&blob).is_none() {
            let mut writer = self.writer()?;
            io::Write::write_all(&mut writer, bytes).context("write a blob in", &self.tmp())?;
            writer.commit()?;
        }
        Ok(blob)
    }

    /// Returns the size in bytes of a blob that the store holds.
    pub fn size(&self, blob: &BlobId) -> Option<u64> {
        fs::metadata(self.blob_path(blob)).ok().map(|metadata| metadata.len())
    }

    /// Opens a blob. Its bytes are not verified: whoever reads parts of it checks them.
    ///
    /// # Errors
    /// [`StoreError::Missing`] or [`StoreError::Io`].
    pub fn open_blob(&self, blob: &BlobId) -> Result<File, StoreError> {
        let path = self.blob_path(blob);
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::Missing(*blob))
            }
            opened => opened.context("open", &path),
        }
    }

    /// Reads a blob whole and verifies it.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Damaged`] or [`StoreError::Io`].
    pub fn read(&self, blob: &BlobId) -> Result<Vec<u8>, StoreError> {
        let path = self.blob_path(blob);
        let mut bytes = Vec::new();
        self.open_blob(blob)?.read_to_end(&mut bytes).context("read", &path)?;
        if BlobId::of(&bytes) != *blob {
            return Err(StoreError::Damaged { blob: *blob, path });
        }
        Ok(bytes)
    }

    /// Gives a blob's bytes another name: a hard link where possible, else a copy.
    ///
    /// # Errors
    /// [`StoreError::Io`], also where `to` exists.
    pub fn export(&self, blob: &BlobId, to: &Path) -> Result<(), StoreError> {
        export(&self.blob_path(blob), to)
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    pub(crate) fn blob_path(&self, blob: &BlobId) -> PathBuf {
        self.root.join("blobs").join(blob.hex())
    }

    pub(crate) fn actions(&self) -> PathBuf {
        self.root.join("actions")
    }

    pub(crate) fn action_path(&self, key: &ActionKey) -> PathBuf {
        self.actions().join(key.hex())
    }
}

/// Refuses a directory that has something else in it than a store, also a half-made one.
fn check_new(root: &Path) -> Result<(), StoreError> {
    if root.join("version").exists() || !root.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(root).context("read", root)? {
        let name = entry.context("read", root)?.file_name();
        if !PARTS.iter().any(|part| name == *part) {
            let found = format!("nothing; the directory holds {}", name.display());
            return Err(StoreError::NotAStore { path: root.to_owned(), found });
        }
    }
    Ok(())
}

/// Checks the file `version`, or writes it where the store is new.
fn check_version(root: &Path) -> Result<(), StoreError> {
    let path = root.join("version");
    match fs::read_to_string(&path) {
        Ok(found) if found == VERSION => Ok(()),
        Ok(found) => {
            Err(StoreError::NotAStore { path: root.to_owned(), found: format!("{found:?}") })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => write_version(root, &path),
        Err(error) => Err(error).context("read", &path),
    }
}

/// Writes the file `version` at once, so that a second process never sees half of it.
fn write_version(root: &Path, path: &Path) -> Result<(), StoreError> {
    let tmp = root.join("tmp");
    let mut file = tempfile::NamedTempFile::new_in(&tmp).context("make a file in", &tmp)?;
    io::Write::write_all(&mut file, VERSION.as_bytes()).context("write", file.path())?;
    crate::blob::publish(file, path.to_owned())
}

/// Flushes a directory, so that the names in it survive a crash.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|directory| directory.sync_all()).context("flush", path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        (dir, store)
    }

    fn leftovers(store: &Store) -> usize {
        fs::read_dir(store.tmp()).unwrap().count()
    }

    #[test]
    fn a_blob_reads_back_under_its_content() {
        let (_dir, store) = store();
        let blob = store.put(b"content").unwrap();
        assert_eq!(blob, BlobId::of(b"content"));
        assert_eq!(store.read(&blob).unwrap(), b"content");
        assert_eq!(store.put(b"content").unwrap(), blob);
        let mode = fs::metadata(store.blob_path(&blob)).unwrap().permissions().mode();
        assert_eq!(mode & 0o222, 0, "a blob must not be writable");
        assert_eq!(leftovers(&store), 0);
    }

    #[test]
    fn what_is_not_as_promised_leaves_nothing() {
        let (_dir, store) = store();
        let promised = BlobId::of(b"promised");
        let mut writer = store.writer().unwrap();
        writer.write_all(b"something else").unwrap();
        let error = writer.commit_as(promised, 8).unwrap_err();
        assert!(matches!(error, StoreError::Mismatch { found_size: 14, .. }), "{error}");
        assert_eq!(store.size(&promised), None);
        assert_eq!(store.size(&BlobId::of(b"something else")), None);
        assert_eq!(leftovers(&store), 0);
    }

    #[test]
    fn an_abandoned_writer_leaves_nothing() {
        let (_dir, store) = store();
        let mut writer = store.writer().unwrap();
        writer.write_all(b"half").unwrap();
        drop(writer);
        assert_eq!(leftovers(&store), 0);
        assert_eq!(fs::read_dir(store.root.join("blobs")).unwrap().count(), 0);
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let (_dir, store) = store();
        let blob = store.put(b"content").unwrap();
        let path = store.blob_path(&blob);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&path, b"c0ntent").unwrap();
        assert!(matches!(store.read(&blob), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn another_directory_is_not_taken_for_a_store() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("version"), "something").unwrap();
        assert!(matches!(Store::open(dir.path()), Err(StoreError::NotAStore { .. })));
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("passwd"), "something").unwrap();
        assert!(matches!(Store::open(dir.path()), Err(StoreError::NotAStore { .. })));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing may be left there");
    }

    #[test]
    fn a_missing_blob_is_named() {
        let (_dir, store) = store();
        let error = store.read(&BlobId::of(b"nothing")).unwrap_err();
        assert!(matches!(error, StoreError::Missing(_)), "{error}");
    }

    #[test]
    fn an_exported_blob_has_the_same_bytes() {
        let (dir, store) = store();
        let blob = store.put(b"content").unwrap();
        let to = dir.path().join("exported");
        store.export(&blob, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"content");
    }
}
