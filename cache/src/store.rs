//! The store's directory.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use box_digest::{Digest, Hasher, Sha256};
use host_fs::FileError;
use host_fs::publish::{FileDraft, create_directories};
use host_fs::read::{Links, open_regular, read_open};
use host_fs::trust::is_private;

use crate::action::remove;
use crate::attachments;
use crate::base::Base;
use crate::blob::{BlobWriter, RawBlob};
use crate::collect::free_gone;
use crate::error::IoContext;
use crate::gate::{self, lock_within};
use crate::lock::Waiting;
use crate::session::{self, Session};
use crate::{ActionKey, StoreError, place, reserve};

/// The mode of a blob, in the store and in a box: read-only.
pub(crate) const BLOB_MODE: u32 = 0o444;
/// The file with the format of a store.
const VERSION_FILE: &str = "version";
const VERSION: &str = "boxbuild store 1\n";
/// The size limit of the file `version` in bytes. An error message shows the content of a foreign file.
const MAX_VERSION_BYTES: u64 = 4096;
/// How long to wait for a lock before the wait is reported.
pub(crate) const UNSEEN: Duration = Duration::from_secs(1);
/// The entries of a store. `version` is created last.
const PARTS: [&str; 15] = [
    "blobs", "actions", "data", "tmp", "locks", "boxes", "names", "pulled", "roots", "attached",
    "sessions", "lock", "gate", "turn", "version",
];
/// The only other entry that may be in a new store's directory: the kernel of the virtual host, which may have been written to
/// the user's cache directory before the store was created.
const NEIGHBOUR: &str = "virtual-host";
/// The directories among [`PARTS`].
pub(crate) const DIRECTORIES: [&str; 11] = [
    "blobs",
    "actions",
    "data",
    "tmp",
    "locks",
    "boxes",
    "names",
    "pulled",
    "roots",
    attachments::DIRECTORY,
    session::DIRECTORY,
];

/// The directories that only the store's user needs, even if other users may read the store.
const PRIVATE: [&str; 3] = ["tmp", "locks", session::DIRECTORY];

/// An open store. While it is open, no content that was made or used through it is deleted.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    session: Session,
    /// The number of bytes added as blobs and as data of actions.
    added: AtomicU64,
    /// The shared read-only store.
    base: Option<Base>,
    waiting: Waiting,
    /// The shared lock, held as long as the store is open.
    _lock: File,
}

impl Store {
    /// Opens the store in a directory, and creates it if necessary.
    ///
    /// Files that killed processes left in `tmp/` are removed if no other process uses the store.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if the directory contains foreign files, [`StoreError::Shared`] if another user can change the
    /// content, [`StoreError::Replaceable`] if another user can change a directory above it, [`StoreError::File`] and [`StoreError::Full`].
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        Self::open_waiting(root, || {})
    }

    /// Opens the store like [`Store::open`]. Calls `waiting` once, when the store first waits for another process for more than a
    /// second, here or later in [`Store::lock_action`].
    ///
    /// # Errors
    /// The errors of [`Store::open`].
    pub fn open_waiting(
        root: &Path,
        waiting: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        Self::open_or_create(root, Waiting::new(waiting)).map_err(|error| error.within(root))
    }

    fn open_or_create(root: &Path, waiting: Waiting) -> Result<Self, StoreError> {
        check_new(root)?;
        place::check(root)?;
        make_directories(root)?;
        gate::make(root)?;
        let lock_path = root.join("lock");
        let lock = open_lock(&lock_path)?;
        // No other process uses the store if this process gets the exclusive lock.
        let alone = lock.try_lock().is_ok();
        if !alone {
            share(&lock, || waiting.say()).context("lock", &lock_path)?;
        }
        make_version(root)?;
        if alone {
            free_gone(root);
            sweep(&root.join("tmp"))?;
            sweep(&root.join("locks"))?;
            sweep(&root.join(session::DIRECTORY))?;
            lock.lock_shared().context("lock", &lock_path)?;
        }
        let session = Session::begin(root)?;
        Ok(Self {
            root: root.to_owned(),
            session,
            added: AtomicU64::new(0),
            base: None,
            waiting,
            _lock: lock,
        })
    }

    /// Adds the content of `base` for reading. If `base` is this store, it is ignored.
    #[must_use]
    pub fn with_base(self, base: Option<Base>) -> Self {
        let base = base.filter(|it| !it.is_at(&self.root));
        Self { base, ..self }
    }

    /// Returns the shared read-only store.
    pub const fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    /// Returns the value that reports waiting for other processes.
    pub(crate) const fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Starts a blob.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn writer(&self) -> Result<BlobWriter<'_>, StoreError> {
        BlobWriter::new(self)
    }

    /// Writes bytes as a blob. A no-op if the store has the blob undamaged.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`].
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        self.put_pieces(&[bytes])
    }

    /// Like [`Self::put`], for one blob whose bytes are in several slices.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`].
    pub fn put_pieces(&self, pieces: &[&[u8]]) -> Result<Digest, StoreError> {
        let mut hasher = Hasher::<Sha256>::default();
        pieces.iter().for_each(|piece| hasher.update(piece));
        let blob = hasher.digest();
        if self.verify(&blob).is_err() {
            let mut raw = RawBlob::new(self)?;
            let written = pieces.iter().try_for_each(|piece| raw.write_all(piece));
            written.map_err(|error| self.write_error(error))?;
            raw.publish(&blob)?;
        }
        Ok(blob)
    }

    /// Hashes a blob of the store, and returns its size in bytes.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Damaged`] or [`StoreError::File`].
    pub fn verify(&self, blob: &Digest) -> Result<u64, StoreError> {
        let path = self.blob_path(blob);
        let (found, size) = Digest::of_reader(self.open_blob(blob)?).context("read", &path)?;
        if found == *blob { Ok(size) } else { Err(StoreError::Damaged { blob: *blob, path }) }
    }

    /// Returns the size of a blob in bytes, or `None` if the store does not have it.
    pub fn size(&self, blob: &Digest) -> Option<u64> {
        self.open_blob(blob).ok()?.metadata().ok().map(|metadata| metadata.len())
    }

    /// Opens a blob. Its bytes are not verified: callers have to check the parts that they read.
    ///
    /// # Errors
    /// [`StoreError::Missing`] or [`StoreError::File`].
    pub fn open_blob(&self, blob: &Digest) -> Result<File, StoreError> {
        let path = self.blob_path(blob);
        self.session.use_blob(blob);
        if let Some(file) = open_existing(&path)? {
            return Ok(file);
        }
        let found = self.base.as_ref().and_then(|base| base.open_blob(blob).ok()?);
        found.ok_or(StoreError::Missing(*blob))
    }

    /// Makes an unnamed temporary file on the disk of the store. Its space is free again when it is closed.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`].
    pub fn scratch(&self) -> Result<File, StoreError> {
        // Dropping the draft removes the name.
        draft(&self.root, 0o600)?.file().try_clone().context("open a file in", &self.root)
    }

    /// Reads a whole blob and verifies it.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Damaged`] or [`StoreError::File`].
    pub fn read(&self, blob: &Digest) -> Result<Vec<u8>, StoreError> {
        let path = self.blob_path(blob);
        let mut bytes = Vec::new();
        self.open_blob(blob)?.read_to_end(&mut bytes).context("read", &path)?;
        if Digest::of(&bytes) != *blob {
            return Err(StoreError::Damaged { blob: *blob, path });
        }
        Ok(bytes)
    }

    /// Removes a blob, if it exists. Call it only for a blob that all its readers make again if it is missing.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn remove_blob(&self, blob: &Digest) -> Result<(), StoreError> {
        remove(&self.blob_path(blob))
    }

    /// Converts the I/O error of writing a blob into [`StoreError::Full`] if the disk is full, and into [`StoreError::File`]
    /// otherwise.
    pub fn write_error(&self, error: io::Error) -> StoreError {
        StoreError::from(FileError::of("write a blob in", &self.root)(error)).within(&self.root)
    }

    /// Copies a blob to an empty file, and makes that file read-only. On btrfs and XFS, both files share the bytes on the disk
    /// until one is changed. The file is not flushed to the disk.
    ///
    /// The copy is never a hard link, because a program that can write to the copy, such as a program in a box that shares the
    /// directory, would change the store.
    ///
    /// # Errors
    /// An I/O error. It is [`io::ErrorKind::StorageFull`] if too little space would stay free, and wraps a [`StoreError`] if the
    /// blob is missing or cannot be opened.
    pub fn export(&self, blob: &Digest, to: &File) -> io::Result<()> {
        let from = self.open_blob(blob).map_err(io::Error::other)?;
        reserve::copy(&from, to)?;
        to.set_permissions(Permissions::from_mode(BLOB_MODE))
    }

    /// Returns the directory of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the number of bytes that were added through this value: new blobs and data of actions. Records are not included,
    /// because they are small.
    pub fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    pub(crate) fn note_added(&self, bytes: u64) {
        self.added.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) const fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn blob_path(&self, blob: &Digest) -> PathBuf {
        self.blobs().join(blob.hex())
    }

    pub(crate) fn action_path(&self, key: &ActionKey) -> PathBuf {
        self.root.join("actions").join(key.hex())
    }
}

/// Opens a file of the store without following symbolic links. Returns `None` if it does not exist.
pub(crate) fn open_existing(path: &Path) -> Result<Option<File>, StoreError> {
    match open_regular(path, Links::Refuse) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(io::Error::from(error)).context("open", path),
    }
}

/// Refuses a directory with foreign entries. An incomplete store is accepted, because another process may be creating it at the
/// moment. The content of `version` is checked later, under the lock.
pub(crate) fn check_new(root: &Path) -> Result<(), StoreError> {
    if is_store(root) || !root.exists() {
        return Ok(());
    }
    if !root.is_dir() {
        return Err(StoreError::NotADirectory(root.to_owned()));
    }
    for entry in fs::read_dir(root).context("read", root)? {
        let name = entry.context("read", root)?.file_name();
        if !PARTS.iter().chain([&NEIGHBOUR]).any(|part| name == *part) {
            let found = format!("\"{}\"", name.display());
            return Err(StoreError::NotAStore { path: root.to_owned(), found });
        }
    }
    Ok(())
}

/// Opens the lock file of the store, and creates it if necessary.
fn open_lock(path: &Path) -> Result<File, StoreError> {
    let lock = gate::open_lock(path)?;
    // Earlier versions made the file readable for other users. Fails without harm if the file belongs to another user.
    lock.set_permissions(Permissions::from_mode(0o600)).ok();
    Ok(lock)
}

/// Takes a shared lock. Calls `waiting` if this takes longer than [`UNSEEN`].
fn share(lock: &File, waiting: impl FnOnce()) -> io::Result<()> {
    if lock_within(|| lock.try_lock_shared(), UNSEEN)? {
        return Ok(());
    }
    waiting();
    lock.lock_shared()
}

/// Creates the missing directories of the store. Refuses a directory that another user can change, because records decide the
/// content of boxes. Refuses a symbolic link, because files in the directory are removed.
fn make_directories(root: &Path) -> Result<(), StoreError> {
    for path in [root.to_owned()].into_iter().chain(DIRECTORIES.map(|name| root.join(name))) {
        let is_closed = PRIVATE.iter().any(|name| path == root.join(name));
        let mode = if is_closed { 0o700 } else { directory_mode(root) };
        let is_new = !path.exists();
        create_directories(&path, mode).context("make the directory", &path)?;
        if is_new && mode != 0o700 {
            // The umask must not apply.
            let permissions = Permissions::from_mode(mode);
            fs::set_permissions(&path, permissions).context("make the directory", &path)?;
        }
        if path != *root && path.is_symlink() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory)).context("use", &path);
        }
        let private = File::open(&path).and_then(|directory| is_private(&directory));
        if !private.context("examine", &path)? {
            return Err(StoreError::Shared(path));
        }
    }
    Ok(())
}

/// Returns whether there is a store in the directory `root`, of this format or of another. Opening it tells.
pub fn is_store(root: &Path) -> bool {
    root.join(VERSION_FILE).exists()
}

/// Checks the file `version`, or writes it if the store is new.
fn make_version(root: &Path) -> Result<(), StoreError> {
    if check_version(root)? {
        return Ok(());
    }
    write_whole(root, &root.join(VERSION_FILE), VERSION.as_bytes())
}

/// Checks the file `version`, and returns whether it exists.
pub(crate) fn check_version(root: &Path) -> Result<bool, StoreError> {
    let path = root.join(VERSION_FILE);
    let Some(file) = open_existing(&path)? else { return Ok(false) };
    let found = read_open(&file, MAX_VERSION_BYTES).map_err(io::Error::from);
    let found = found.context("read", &path)?;
    if found == VERSION.as_bytes() {
        return Ok(true);
    }
    let found = format!("a file \"version\" with {:?}", String::from_utf8_lossy(&found).trim_end());
    Err(StoreError::NotAStore { path: root.to_owned(), found })
}

/// Returns the store whose directory contains `path`, whether or not `path` exists.
pub fn store_above(path: &Path) -> Option<PathBuf> {
    let mut above = path.ancestors().skip(1);
    let nearest = above.find_map(|it| Path::new(".").join(it).canonicalize().ok())?;
    let is_store = |it: &&Path| matches!(check_version(it), Ok(true));
    nearest.ancestors().find(is_store).map(Path::to_owned)
}

/// Returns the mode of the store's directories. They are readable for other users if `root` is.
pub(crate) fn directory_mode(root: &Path) -> u32 {
    if is_readable(root) { 0o755 } else { 0o700 }
}

/// Returns the mode of the store's files, by the rule of [`directory_mode`].
pub(crate) fn file_mode(root: &Path) -> u32 {
    if is_readable(root) { 0o644 } else { 0o600 }
}

pub(crate) fn is_readable(root: &Path) -> bool {
    const OTHERS: u32 = 0o005;
    root.metadata().is_ok_and(|it| it.permissions().mode() & OTHERS == OTHERS)
}

/// Starts a file of the store. The file is in `tmp/` until it is finished.
pub(crate) fn draft(root: &Path, mode: u32) -> Result<FileDraft, StoreError> {
    let tmp = root.join("tmp");
    let draft = FileDraft::within(&tmp, mode).context("make a file in", &tmp);
    let draft = draft.map_err(|error| error.within(root))?;
    if is_readable(root) {
        // The umask must not apply.
        let permissions = Permissions::from_mode(mode);
        draft.file().set_permissions(permissions).context("make a file in", &tmp)?;
    }
    Ok(draft)
}

/// Writes a file of the store atomically.
pub(crate) fn write_whole(root: &Path, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let draft = draft(root, file_mode(root))?;
    let written = io::Write::write_all(&mut draft.file(), bytes);
    let written = written.and_then(|()| draft.finish_over(path)).context("write", path);
    written.map_err(|error| error.within(root))
}

/// Removes the files in `directory`. Call it only while no other process uses the store.
fn sweep(directory: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(directory).context("read", directory)? {
        // A file that cannot be removed takes space, but is no reason to refuse the store.
        fs::remove_file(entry.context("read", directory)?.path()).ok();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::process::Command;
    use std::sync::Arc;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        (dir, store)
    }

    fn leftovers(store: &Store) -> usize {
        fs::read_dir(store.root().join("tmp")).unwrap().count()
    }

    #[test]
    fn no_part_of_a_store_is_a_link() {
        for part in ["tmp", "lock"] {
            let (dir, store) = store();
            drop(store);
            let victim = tempfile::tempdir().unwrap();
            let file = victim.path().join("precious");
            fs::write(&file, "content").unwrap();
            let path = dir.path().join(part);
            let target = if part == "tmp" { victim.path() } else { &file };
            fs::rename(&path, dir.path().join("moved")).unwrap();
            std::os::unix::fs::symlink(target, &path).unwrap();
            assert!(matches!(Store::open(dir.path()), Err(StoreError::File(_))), "{part}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "content", "{part}");
        }
    }

    #[test]
    fn a_blob_reads_back_under_its_content() {
        let (_dir, store) = store();
        let blob = store.put(b"content").unwrap();
        assert_eq!(blob, Digest::of(b"content"));
        assert_eq!(store.read(&blob).unwrap(), b"content");
        assert_eq!(store.put(b"content").unwrap(), blob);
        let mode = fs::metadata(store.blob_path(&blob)).unwrap().permissions().mode();
        assert_eq!(mode & 0o222, 0, "a blob must not be writable");
        assert_eq!(leftovers(&store), 0);
    }

    #[test]
    fn a_writer_knows_the_name_before_the_commit() {
        let (_dir, store) = store();
        let mut writer = store.writer().unwrap();
        assert_eq!(writer.id(), Digest::of(b""));
        writer.write_all(b"con").unwrap();
        writer.write_all(b"tent").unwrap();
        assert_eq!(writer.id(), Digest::of(b"content"));
        assert_eq!(writer.commit().unwrap(), (Digest::of(b"content"), 7));
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
    fn leftovers_of_a_killed_process_are_removed_by_the_next_open() {
        let (dir, store) = store();
        let mut writer = store.writer().unwrap();
        writer.write_all(b"half").unwrap();
        // A killed process runs no destructors, and its lock is released.
        std::mem::forget(writer);
        fs::write(store.root().join("tmp").join("older"), "half").unwrap();
        assert_eq!(leftovers(&store), 2);
        drop(store);
        let store = Store::open(dir.path()).unwrap();
        assert_eq!(leftovers(&store), 0);
    }

    #[test]
    fn what_another_process_is_writing_stays() {
        let (dir, store) = store();
        let kept = store.put(b"kept").unwrap();
        let mut writer = store.writer().unwrap();
        writer.write_all(b"half").unwrap();
        // Each open store holds a separate lock, in this process or another one.
        let other = Store::open(dir.path()).unwrap();
        assert_eq!(leftovers(&other), 1);
        drop(other);
        drop(Store::open(dir.path()).unwrap());
        writer.write_all(b" and whole").unwrap();
        let (blob, _) = writer.commit().unwrap();
        assert_eq!(store.read(&blob).unwrap(), b"half and whole");
        assert_eq!(store.read(&kept).unwrap(), b"kept");
    }

    #[test]
    fn nothing_is_removed_from_what_is_no_store() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("version"), "something").unwrap();
        fs::create_dir(dir.path().join("tmp")).unwrap();
        fs::write(dir.path().join("tmp").join("dear"), "something").unwrap();
        assert!(matches!(Store::open(dir.path()), Err(StoreError::NotAStore { .. })));
        assert!(dir.path().join("tmp").join("dear").exists());
    }

    #[test]
    fn a_file_is_no_store() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for error in [
            Store::open(file.path()).err().unwrap(),
            crate::StoredBoxes::open(file.path()).err().unwrap(),
        ] {
            assert!(matches!(error, StoreError::NotADirectory(_)), "{error}");
        }
    }

    #[test]
    fn a_store_that_another_user_can_change_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("a/store");
        drop(Store::open(&root).unwrap());
        for part in DIRECTORIES.map(|name| root.join(name)).into_iter().chain([root.clone()]) {
            let set = |mode| fs::set_permissions(&part, Permissions::from_mode(mode)).unwrap();
            assert_eq!(fs::metadata(&part).unwrap().permissions().mode() & 0o777, 0o700);
            for mode in [0o720, 0o702, 0o777] {
                set(mode);
                let error = Store::open(&root).unwrap_err();
                assert!(matches!(error, StoreError::Shared(named) if named == part), "{mode:o}");
            }
            set(0o755);
            drop(Store::open(&root).unwrap());
        }
    }

    #[test]
    fn a_swept_store_is_still_shared() {
        let (dir, _store) = store();
        let _other = Store::open(dir.path()).unwrap();
        let lock = File::open(dir.path().join("lock")).unwrap();
        assert!(lock.try_lock().is_err());
        assert!(lock.try_lock_shared().is_ok());
    }

    #[test]
    fn who_waits_for_another_process_is_told() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open(dir.path()).unwrap());
        let other = File::open(dir.path().join("lock")).unwrap();
        other.lock().unwrap();
        let waited = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&waited);
        let waiting = move || {
            count.fetch_add(1, Ordering::SeqCst);
            other.unlock().unwrap();
        };
        drop(Store::open_waiting(dir.path(), waiting).unwrap());
        assert_eq!(waited.load(Ordering::SeqCst), 1);
        Store::open_waiting(dir.path(), || unreachable!("nobody holds the lock")).unwrap();
    }

    /// Damages a blob without changing its size.
    fn damage(store: &Store, blob: &Digest) {
        let path = store.blob_path(blob);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        fs::write(&path, b"c0ntent").unwrap();
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let (_dir, store) = store();
        let blob = store.put(b"content").unwrap();
        store.verify(&blob).unwrap();
        damage(&store, &blob);
        assert!(matches!(store.read(&blob), Err(StoreError::Damaged { .. })));
        assert!(matches!(store.verify(&blob), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn writing_the_content_again_mends_a_damaged_blob() {
        let (_dir, store) = store();
        let blob = store.put(b"content").unwrap();
        damage(&store, &blob);
        store.put(b"content").unwrap();
        assert_eq!(store.read(&blob).unwrap(), b"content");
        damage(&store, &blob);
        let mut writer = store.writer().unwrap();
        writer.write_all(b"content").unwrap();
        assert_eq!(writer.commit().unwrap(), (blob, 7));
        assert_eq!(store.read(&blob).unwrap(), b"content");
        assert_eq!(leftovers(&store), 0);
    }

    #[test]
    fn many_may_open_a_new_store_at_once() {
        for _ in 0..50 {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("store");
            std::thread::scope(|scope| {
                let open = || Store::open(&root).map(drop);
                let opened: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
                opened.into_iter().for_each(|it| it.join().unwrap().unwrap());
            });
        }
    }

    /// The environment variable with the directory of the file system of [`run_on_a_small_disk`]. Only the process that it starts
    /// has this variable.
    const SMALL_DISK: &str = "BOX_CACHE_TEST_SMALL_DISK";

    /// Runs a test of this program again, in a mount namespace with a file system of 64 KiB. Users other than root also need a
    /// user namespace. The file system disappears when the process ends.
    fn run_on_a_small_disk(test: &str) {
        let directory = tempfile::tempdir().unwrap();
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        let namespaces = if is_root { &["--mount"][..] } else { &["--mount", "--map-root-user"] };
        let mount = "mount -t tmpfs -o size=64k,mode=0700 none \"$0\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(namespaces).args(["sh", "-c", mount]).arg(directory.path());
        command.arg(std::env::current_exe().unwrap()).args([test, "--exact"]);
        let output = command.env(SMALL_DISK, directory.path()).output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (printed, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && printed.contains("1 passed"), "{errors}{printed}");
    }

    #[test]
    fn a_full_disk_is_reported_with_the_directory_of_the_store() {
        let Some(disk) = std::env::var_os(SMALL_DISK).map(PathBuf::from) else {
            let test = "store::tests::a_full_disk_is_reported_with_the_directory_of_the_store";
            return run_on_a_small_disk(test);
        };
        let store = Store::open(&disk).unwrap();
        let large = vec![7; 128 << 10];
        let key = crate::KeyHasher::new("test", 1).finish();
        let errors = [
            store.put(&large).unwrap_err(),
            store.record_action(&key, &large, &crate::Refers::NOTHING).unwrap_err(),
            std::thread::scope(|scope| {
                let mut writer = crate::BulkWriter::new(&store, scope).unwrap();
                writer.write_all(&large).unwrap();
                writer.commit().unwrap_err()
            }),
        ];
        for error in errors {
            assert!(matches!(&error, StoreError::Full(root) if *root == disk), "{error}");
        }
        // A twentieth of 64 KiB stays free.
        let half = store.put(&large[..30 << 10]).unwrap();
        let error = store.export(&half, &File::create(disk.join("copy")).unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        fs::remove_file(disk.join("copy")).unwrap();
        let data = store.data_writer().unwrap().write_all(&large).unwrap_err();
        assert_eq!(StoreError::full(&data), Some(disk.as_path()));
        assert_eq!(leftovers(&store), 0);
    }

    #[test]
    fn the_kernel_of_the_virtual_host_may_be_there_first() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = dir.path().join("virtual-host/2-6.1.0/kernel");
        fs::create_dir_all(kernel.parent().unwrap()).unwrap();
        fs::write(&kernel, "kernel").unwrap();
        drop(Store::open(dir.path()).unwrap());
        assert_eq!(fs::read(&kernel).unwrap(), b"kernel");
    }

    #[test]
    fn a_foreign_directory_is_not_used_as_a_store() {
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
        let error = store.read(&Digest::of(b"nothing")).unwrap_err();
        assert!(matches!(error, StoreError::Missing(_)), "{error}");
        let error = store.verify(&Digest::of(b"nothing")).unwrap_err();
        assert!(matches!(error, StoreError::Missing(_)), "{error}");
    }

    #[test]
    fn an_exported_blob_is_a_file_of_its_own() {
        let (dir, store) = store();
        let blob = store.put(b"content").unwrap();
        let to = dir.path().join("exported");
        store.export(&blob, &File::create(&to).unwrap()).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"content");
        let metadata = fs::metadata(&to).unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.nlink()), (0o444, 1));
        // A write to the copy does not change the store.
        fs::set_permissions(&to, Permissions::from_mode(0o644)).unwrap();
        fs::write(&to, "tampered").unwrap();
        assert_eq!(store.read(&blob).unwrap(), b"content");
    }
}
