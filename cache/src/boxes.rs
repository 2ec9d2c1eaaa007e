//! The boxes of a store: their names and their directories.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use box_digest::Digest;
use host_fs::read::{Links, ReadError, is_private, open_regular, read_open};

use crate::error::IoContext;
use crate::store::{check_new, check_version, open_existing, share_within, write_whole};
use crate::{KeyHasher, Store, StoreError};

/// The most bytes of the file of a name or of a root: a digest and a path.
const RECORD_BYTES_MAX: u64 = 16 << 10;
/// How long another process may keep the store locked. Only one that deletes does so, and not for long.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a name of the store means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The digest of the box.
    pub digest: Digest,
    /// The Boxfile that the name belongs to, by an absolute path.
    pub owner: PathBuf,
}

impl Named {
    /// Writes it as the file of a name has it: a line with the digest, and after it the path as it is.
    fn encode(&self) -> Vec<u8> {
        [format!("{}\n", self.digest).as_bytes(), self.owner.as_os_str().as_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let digest = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
        Some(Self { digest, owner: path(&bytes[end + 1..]) })
    }
}

/// A box of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBox {
    /// Its digest.
    pub digest: Digest,
    /// When it got its name, or, of one that has none, when it was put into the store.
    pub since: SystemTime,
    /// Its name, and the Boxfile that the name belongs to.
    pub name: Option<(String, PathBuf)>,
}

/// Reads the boxes of a store, and creates nothing. While it is open, no process deletes what the store has.
#[derive(Debug)]
pub struct StoredBoxes {
    root: PathBuf,
    /// A shared lock; `None` if there is no store.
    _lock: Option<File>,
}

impl StoredBoxes {
    /// Opens the store in a directory. A directory that is not there has no boxes.
    ///
    /// # Errors
    /// As [`Self::blobs_of`], and [`StoreError::Busy`].
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        Self::blobs_of(root)?;
        let path = root.join("lock");
        let lock = open_existing(&path)?;
        if let Some(lock) = &lock
            && !share_within(lock, PATIENCE).context("lock", &path)?
        {
            return Err(StoreError::Busy(root.to_owned()));
        }
        Ok(Self { root: root.to_owned(), _lock: lock })
    }

    /// Returns the directory of the blobs of the store in a directory, each under its digest in hexadecimal. No lock is taken:
    /// another process may delete blobs.
    ///
    /// # Errors
    /// [`StoreError::Shared`] if another user can change what the store has, [`StoreError::NotAStore`] if the directory is none of
    /// this version, and [`StoreError::File`].
    pub fn blobs_of(root: &Path) -> Result<PathBuf, StoreError> {
        check_new(root)?;
        check_version(root)?;
        check_private(root)?;
        let blobs = blobs(root);
        for part in [root.join("names"), root.join("boxes"), blobs.clone()] {
            if part.is_symlink() {
                return Err(io::Error::from(io::ErrorKind::NotADirectory)).context("use", &part);
            }
            check_private(&part)?;
        }
        Ok(blobs)
    }

    /// Returns what a name means, if the store knows it.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn named(&self, name: &str) -> Result<Option<Named>, StoreError> {
        name_path(&self.root, name).map_or(Ok(None), |path| read(&path))
    }

    /// Lists the boxes that have a name, sorted by name, and after them the boxes without one, the newest first.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn all(&self) -> Result<Vec<StoredBox>, StoreError> {
        let mut all = Vec::new();
        for (name, since) in entries(&self.root.join("names"))? {
            // What is wrong with one name keeps nobody from the others.
            let Ok(Some(Named { digest, owner })) = self.named(&name) else { continue };
            all.push(StoredBox { digest, since, name: Some((name, owner)) });
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let named: BTreeSet<_> = all.iter().map(|it| it.digest).collect();
        let boxes = entries(&self.root.join("boxes"))?.into_iter();
        let boxes = boxes.filter_map(|(hex, since)| Some((Digest::from_hex(&hex)?, since)));
        let nameless = boxes.filter(|(digest, _)| !named.contains(digest));
        let mut nameless: Vec<_> =
            nameless.map(|(digest, since)| StoredBox { digest, since, name: None }).collect();
        nameless.sort_by_key(|it| (Reverse(it.since), it.digest));
        Ok(all.into_iter().chain(nameless).collect())
    }

    /// Returns the directory with the two documents of the box of this digest: an OCI image layout without blobs.
    pub fn directory(&self, digest: &Digest) -> PathBuf {
        box_directory(&self.root, digest)
    }

    /// Returns the directory of the blobs, each under its digest in hexadecimal.
    pub fn blobs(&self) -> PathBuf {
        blobs(&self.root)
    }
}

impl Store {
    /// Returns where the two files are by which a box of this store is found; see [`StoredBoxes::directory`].
    pub fn box_directory(&self, digest: &Digest) -> PathBuf {
        box_directory(self.root(), digest)
    }

    /// Returns the directory of the blobs; see [`StoredBoxes::blobs`].
    pub fn blobs(&self) -> PathBuf {
        blobs(self.root())
    }

    /// Gives a box a name. The box that had it keeps its digest only. If the name means this box already, it stays with the
    /// Boxfile that it belongs to. Returns what the name meant if it belonged to a Boxfile that is gone.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`] if the name means another box, of a Boxfile that is still there; [`StoreError::File`] and
    /// [`StoreError::Full`].
    pub fn name_box(&self, name: &str, named: &Named) -> Result<Option<Named>, StoreError> {
        let _lock = self.lock_action(&KeyHasher::new("name", 1).part(name.as_bytes()).finish())?;
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let path = name_path(self.root(), name).ok_or_else(invalid);
        let path = path.context("name a box in", self.root())?;
        let before = read(&path)?;
        if may_name(name, before.as_ref(), named)? {
            write_whole(self.root(), &path, &named.encode())?;
        }
        Ok(before.filter(|it| it.owner != named.owner && is_gone(&it.owner)))
    }

    /// Checks that a box may get a name; see [`Store::name_box`].
    ///
    /// # Errors
    /// [`StoreError::NameTaken`] and [`StoreError::File`].
    pub fn check_name(&self, name: &str, named: &Named) -> Result<(), StoreError> {
        let before = name_path(self.root(), name).map_or(Ok(None), |path| read(&path))?;
        may_name(name, before.as_ref(), named).map(drop)
    }

    /// Notes that a directory elsewhere has a box without its blobs, which have to stay in this store as long as the directory
    /// is there. The path has to be absolute.
    ///
    /// # Errors
    /// [`StoreError::File`] and [`StoreError::Full`].
    pub fn add_root(&self, directory: &Path) -> Result<(), StoreError> {
        let bytes = directory.as_os_str().as_bytes();
        let path = self.root().join("roots").join(Digest::of(bytes).hex());
        if path.exists() {
            return Ok(());
        }
        write_whole(self.root(), &path, bytes)
    }
}

/// Returns the file of a name; `None` for a text that is none: it would lead elsewhere, or could move a terminal's cursor.
fn name_path(root: &Path, name: &str) -> Option<PathBuf> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name = !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_part);
    is_name.then(|| root.join("names").join(name))
}

fn blobs(root: &Path) -> PathBuf {
    root.join("blobs")
}

fn box_directory(root: &Path, digest: &Digest) -> PathBuf {
    root.join("boxes").join(digest.hex())
}

/// Returns whether the file of a name has to be written, and refuses to take a name from a Boxfile that is still there.
fn may_name(name: &str, before: Option<&Named>, named: &Named) -> Result<bool, StoreError> {
    let Some(before) = before.filter(|it| it.owner != named.owner && !is_gone(&it.owner)) else {
        return Ok(before != Some(named));
    };
    if before.digest == named.digest {
        return Ok(false);
    }
    Err(StoreError::NameTaken { name: name.to_owned(), owner: before.owner.clone() })
}

/// Returns whether there is no file at a path. One that cannot be looked at may be there.
fn is_gone(path: &Path) -> bool {
    let kind = path.symlink_metadata().map_err(|error| error.kind());
    matches!(kind, Err(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}

/// Reads the file of a name. One that another user can change, or that is damaged, means nothing.
fn read(path: &Path) -> Result<Option<Named>, StoreError> {
    let bytes = open_regular(path, Links::Refuse).and_then(|file| {
        let is_private = is_private(&file)?;
        Ok(is_private.then_some(read_open(&file, RECORD_BYTES_MAX)?))
    });
    match bytes {
        Ok(bytes) => Ok(bytes.and_then(|it| Named::decode(&it))),
        Err(ReadError::Io(error)) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context("read", path)
        }
        Err(_) => Ok(None),
    }
}

/// Lists a directory's entries whose names are text, with the time of the last change of each; none if there is no such
/// directory.
fn entries(directory: &Path) -> Result<Vec<(String, SystemTime)>, StoreError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.context("read", directory)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.context("read", directory)?;
        // Another process may have removed it meanwhile.
        let changed = entry.metadata().and_then(|it| it.modified());
        names.extend(entry.file_name().into_string().ok().zip(changed.ok()));
    }
    Ok(names)
}

/// Refuses a directory that another user can change. A missing directory counts as unchanged.
fn check_private(directory: &Path) -> Result<(), StoreError> {
    match File::open(directory).and_then(|it| is_private(&it)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(StoreError::Shared(directory.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).context("examine", directory),
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    std::ffi::OsString::from_vec(bytes.to_vec()).into()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    struct Place {
        directory: tempfile::TempDir,
        store: Store,
    }

    impl Place {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let store = Store::open(&directory.path().join("store")).unwrap();
            Self { directory, store }
        }

        fn boxes(&self) -> StoredBoxes {
            StoredBoxes::open(self.store.root()).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let all = self.boxes().all().unwrap();
            all.into_iter().filter_map(|it| Some(it.name?.0)).collect()
        }

        /// Makes a Boxfile.
        fn boxfile(&self, name: &str) -> PathBuf {
            let path = self.directory.path().join(name);
            fs::write(&path, "").unwrap();
            path
        }
    }

    fn named(content: &str, owner: &Path) -> Named {
        Named { digest: Digest::of(content.as_bytes()), owner: owner.to_owned() }
    }

    #[test]
    fn a_name_means_the_newest_box_of_its_boxfile() {
        let place = Place::new();
        assert_eq!(place.boxes().named("hello").unwrap(), None);
        let owner = place.boxfile("line\nend");
        for content in ["old", "old", "new"] {
            place.store.name_box("hello", &named(content, &owner)).unwrap();
            assert_eq!(place.boxes().named("hello").unwrap(), Some(named(content, &owner)));
        }
        place.store.name_box("a", &named("old", &owner)).unwrap();
        assert_eq!(place.names(), ["a", "hello"]);
        for content in ["new", "nameless"] {
            let directory = place.store.box_directory(&Digest::of(content.as_bytes()));
            fs::create_dir(directory).unwrap();
        }
        let all = place.boxes().all().unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!((all[2].digest, &all[2].name), (Digest::of(b"nameless"), &None));
    }

    #[test]
    fn a_name_belongs_to_its_boxfile_as_long_as_that_is_there() {
        let place = Place::new();
        let (one, other) = (place.boxfile("one"), place.boxfile("other"));
        place.store.name_box("hello", &named("1", &one)).unwrap();
        let taken = |result: Result<Option<Named>, StoreError>| matches!(result, Err(StoreError::NameTaken { name, owner }) if name == "hello" && owner == one);
        assert!(place.store.check_name("hello", &named("2", &other)).is_err());
        assert!(taken(place.store.name_box("hello", &named("2", &other))));
        assert_eq!(place.boxes().named("hello").unwrap(), Some(named("1", &one)));
        // The same box may have it: it stays with the first one.
        place.store.check_name("hello", &named("1", &other)).unwrap();
        assert_eq!(place.store.name_box("hello", &named("1", &other)).unwrap(), None);
        assert_eq!(place.boxes().named("hello").unwrap(), Some(named("1", &one)));
        fs::remove_file(&one).unwrap();
        let before = place.store.name_box("hello", &named("2", &other)).unwrap();
        assert_eq!(before, Some(named("1", &one)));
        assert_eq!(place.boxes().named("hello").unwrap(), Some(named("2", &other)));
    }

    #[test]
    fn of_two_boxfiles_that_want_a_name_at_once_one_gets_it() {
        let place = Place::new();
        let boxfiles: Vec<_> = (0..8).map(|at| place.boxfile(&at.to_string())).collect();
        let give = |owner: &PathBuf| {
            let content = owner.to_str().unwrap();
            place.store.name_box("hello", &named(content, owner)).is_ok()
        };
        let given = std::thread::scope(|scope| {
            let threads: Vec<_> = boxfiles.iter().map(|it| scope.spawn(|| give(it))).collect();
            threads.into_iter().filter_map(|it| it.join().ok()).filter(|is_given| *is_given).count()
        });
        assert_eq!(given, 1);
    }

    #[test]
    fn no_name_leads_out_of_the_directory_of_names() {
        let place = Place::new();
        let owner = place.boxfile("one");
        for name in [
            "",
            ".",
            "..",
            "../roots/x",
            "a/b",
            "/etc/passwd",
            ".hidden",
            "a\0",
            "a b",
            "\u{1b}[m",
            "é",
        ] {
            place.store.name_box(name, &named("1", &owner)).unwrap_err();
            assert_eq!(place.boxes().named(name).unwrap(), None, "{name:?}");
        }
        assert_eq!(place.names(), [""; 0]);
    }

    #[test]
    fn a_damaged_name_means_nothing() {
        let place = Place::new();
        let path = place.store.root().join("names/hello");
        fs::create_dir(&path).unwrap();
        assert_eq!(place.boxes().named("hello").unwrap(), None);
        fs::remove_dir(&path).unwrap();
        let long = vec![b'x'; 1 << 20];
        for bytes in [&b""[..], b"sha256:00\n/a", b"no line end", b"\xff\n/a", &long] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(place.boxes().named("hello").unwrap(), None);
        }
        let owner = place.boxfile("one");
        place.store.name_box("hello", &named("1", &owner)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert_eq!(place.boxes().named("hello").unwrap(), None);
    }

    #[test]
    fn names_that_another_user_can_change_are_not_read() {
        let place = Place::new();
        for part in ["", "names", "boxes", "blobs"] {
            let path = place.store.root().join(part);
            fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
            let error = StoredBoxes::open(place.store.root()).unwrap_err();
            assert!(matches!(error, StoreError::Shared(_)), "{part}");
            fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        }
    }

    #[test]
    fn a_boxfile_that_cannot_be_looked_at_keeps_its_name() {
        let place = Place::new();
        let long = place.directory.path().join("a".repeat(300));
        assert!(!is_gone(&long), "the name is too long, and not absent");
        assert!(is_gone(&place.directory.path().join("none/Boxfile")));
        let file = place.boxfile("file");
        assert!(is_gone(&file.join("Boxfile")) && !is_gone(&file));
    }

    #[test]
    fn who_keeps_the_store_locked_is_not_waited_for_without_end() {
        let place = Place::new();
        let root = place.store.root().to_owned();
        drop(place.store);
        let lock = fs::File::open(root.join("lock")).unwrap();
        lock.lock().unwrap();
        let error = StoredBoxes::open(&root).unwrap_err();
        assert!(matches!(error, StoreError::Busy(_)), "{error}");
        StoredBoxes::blobs_of(&root).unwrap();
        let mode = lock.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "no other user can take the lock");
    }

    #[test]
    fn one_name_that_cannot_be_read_hides_no_other() {
        let place = Place::new();
        place.store.name_box("hello", &named("1", &place.boxfile("one"))).unwrap();
        fs::create_dir(place.store.root().join("names/directory")).unwrap();
        fs::write(place.store.root().join("names/long"), vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(place.names(), ["hello"]);
    }

    #[test]
    fn a_store_of_another_version_is_not_read() {
        let place = Place::new();
        fs::write(place.store.root().join("version"), "boxbuild store 9\n").unwrap();
        let error = StoredBoxes::open(place.store.root()).unwrap_err();
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    }

    #[test]
    fn a_directory_without_a_store_has_no_boxes_and_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        for path in [directory.path().to_owned(), directory.path().join("none")] {
            StoredBoxes::blobs_of(&path).unwrap();
            let boxes = StoredBoxes::open(&path).unwrap();
            assert_eq!(boxes.named("hello").unwrap(), None);
            assert_eq!(boxes.all().unwrap(), []);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_root_is_noted_once() {
        let place = Place::new();
        for _ in 0..2 {
            place.store.add_root(Path::new("/work/hello.box")).unwrap();
        }
        let roots: Vec<_> = fs::read_dir(place.store.root().join("roots")).unwrap().collect();
        let [Ok(root)] = roots.as_slice() else { panic!("{roots:?}") };
        assert_eq!(fs::read(root.path()).unwrap(), b"/work/hello.box");
    }
}
