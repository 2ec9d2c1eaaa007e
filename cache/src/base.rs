//! A shared read-only store, which a user's store reads in addition to its own content.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use box_digest::Digest;

use crate::boxes::check_private;
use crate::error::IoContext;
use crate::store::{is_store, open_existing};
use crate::{ActionKey, StoreError, StoredBoxes};

/// A store that is only read. A user's store that reads a base copies nothing from it except the manifests of boxes. The base
/// usually belongs to root, who fills it for all users. Users who can read its directory can also read its content, because its
/// files are then readable, too.
///
/// A base is read without locks, because only its owner can take them. So its content can disappear at any time, and is then
/// treated as absent.
#[derive(Debug, Clone)]
pub struct Base {
    root: PathBuf,
}

impl Base {
    /// Opens the store in the directory `root`. Returns `None` if there is none.
    ///
    /// # Errors
    /// The errors of [`StoredBoxes::blobs_of`]. Among them is [`StoreError::Shared`] if another user can write to this store, and
    /// so could change the boxes.
    pub fn open(root: &Path) -> Result<Option<Self>, StoreError> {
        StoredBoxes::blobs_of(root)?;
        for part in ["actions", "data"].map(|name| root.join(name)) {
            if part.is_symlink() {
                return Err(ErrorKind::NotADirectory.into()).context("use", &part);
            }
            check_private(&part)?;
        }
        Ok(is_store(root).then(|| Self { root: root.to_owned() }))
    }

    /// Returns whether `root` is the directory of this store, even if the paths differ, as with a symbolic link.
    pub(crate) fn is_at(&self, root: &Path) -> bool {
        let place = |path: &Path| path.metadata().map(|it| (it.dev(), it.ino())).ok();
        self.root == root || (place(root).is_some() && place(&self.root) == place(root))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of the blobs; see [`StoredBoxes::blobs`].
    pub fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    pub(crate) fn open_blob(&self, blob: &Digest) -> Result<Option<File>, StoreError> {
        open_existing(&self.blobs().join(blob.hex()))
    }

    pub(crate) fn action_path(&self, key: &ActionKey) -> PathBuf {
        self.root.join("actions").join(key.hex())
    }

    pub(crate) fn data_path(&self, key: &ActionKey) -> PathBuf {
        self.root.join("data").join(key.hex())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, Permissions};
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::SystemTime;

    use super::*;
    use crate::{KeyHasher, Named, Owner, Pulled, Refers, Store};

    /// Returns all files in a directory, each with its mode, the time of its last change, and its content.
    fn all(directory: &Path) -> BTreeMap<PathBuf, (u32, SystemTime, Vec<u8>)> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let bytes = if about.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
            if about.is_dir() {
                found.extend(all(&path));
            }
            found.insert(path, (about.permissions().mode(), about.modified().unwrap(), bytes));
        }
        found
    }

    struct TestStore {
        directory: tempfile::TempDir,
        key: ActionKey,
        blob: Digest,
        digest: Digest,
    }

    impl TestStore {
        /// Makes a shared store with one object of each kind.
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().join("base");
            fs::create_dir(&root).unwrap();
            fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
            let store = Store::open(&root).unwrap();
            let (blob, digest) = (store.put(b"blob").unwrap(), Digest::of(b"manifest"));
            let key = KeyHasher::new("test", 1).finish();
            store.record_action(&key, b"value", &Refers::to(&[blob])).unwrap();
            let mut data = store.data_writer().unwrap();
            std::io::Write::write_all(&mut data, b"data").unwrap();
            data.commit(&key).unwrap();
            let documents = [("index.json", b"index".to_vec()), ("oci-layout", b"layout".to_vec())];
            let published = store.publish(&[]).unwrap();
            store.keep_box(&published, &digest, &documents).unwrap();
            drop(published);
            let owner = Owner::Boxfile(root.join("version"));
            store.name_box("hello", &Named { digest, owner }).unwrap();
            let reference = "ghcr.io/a:1".to_owned();
            store
                .note_pulled(&Pulled {
                    reference,
                    digest,
                    registry_digest: blob,
                    is_asked: true,
                    is_loaded: false,
                })
                .unwrap();
            Self { directory, key, blob, digest }
        }

        fn root(&self) -> PathBuf {
            self.directory.path().join("base")
        }

        fn base(&self) -> Option<Base> {
            Base::open(&self.root()).unwrap()
        }

        fn own(&self) -> PathBuf {
            self.directory.path().join("own")
        }
    }

    #[test]
    fn what_the_base_has_is_found_and_nothing_is_written_there() {
        let place = TestStore::new();
        let before = all(&place.root());
        let store = Store::open(&place.own()).unwrap().with_base(place.base());
        assert_eq!(store.read(&place.blob).unwrap(), b"blob");
        assert_eq!((store.size(&place.blob), store.verify(&place.blob).ok()), (Some(4), Some(4)));
        assert_eq!(store.put(b"blob").unwrap(), place.blob);
        assert!(store.is_whole(&place.blob));
        assert_eq!(store.action(&place.key).unwrap().as_deref(), Some(&b"value"[..]));
        let mut data = Vec::new();
        store.open_data(&place.key).unwrap().read_to_end(&mut data).unwrap();
        assert_eq!(data, b"data");
        store.publish(&[(place.blob, 4)]).unwrap();
        assert_eq!(store.added(), 0, "no copy was made");
        assert!(store.pulled("ghcr.io/a:1").unwrap().is_some());
        // A loaded box cannot take a name from the shared store. The manifest of a box from there is copied to this store.
        let other = Named { digest: Digest::of(b"other"), owner: Owner::Archive };
        assert!(matches!(store.name_box("hello", &other), Err(StoreError::NameTaken { .. })));
        let published = store.publish(&[]).unwrap();
        assert!(store.keep_box(&published, &place.blob, &[("index.json", vec![1])]).unwrap());
        drop(published);
        assert!(place.own().join("blobs").join(place.blob.hex()).exists());
        store.record_action(&place.key, b"own", &Refers::NOTHING).unwrap();
        assert_eq!(store.action(&place.key).unwrap().as_deref(), Some(&b"own"[..]));
        assert_eq!(all(&place.root()), before);
    }

    #[test]
    fn the_boxes_of_both_stores_are_found() {
        let place = TestStore::new();
        let before = all(&place.root());
        let boxes = || StoredBoxes::open(&place.own()).unwrap().with_base(place.base());
        assert_eq!(boxes().named("hello").unwrap().unwrap().digest, place.digest);
        assert_eq!(boxes().pulled("ghcr.io/a:1").unwrap().unwrap().digest, place.digest);
        assert!(boxes().directory(&place.digest).starts_with(place.root()));
        let labels = || {
            let all = boxes().all().unwrap();
            all.into_iter().map(|it| it.label.unwrap().text().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(labels(), ["hello", "ghcr.io/a:1"]);
        // Names in the user's store take precedence.
        let store = Store::open(&place.own()).unwrap();
        let named = Named { digest: Digest::of(b"own"), owner: Owner::Archive };
        store.name_box("hello", &named).unwrap();
        assert_eq!(boxes().named("hello").unwrap(), Some(named));
        assert_eq!(labels(), ["hello", "ghcr.io/a:1"]);
        assert_eq!(all(&place.root()), before);
    }

    #[test]
    fn a_blob_that_is_damaged_in_the_base_is_mended_in_the_own_store() {
        let place = TestStore::new();
        let path = place.root().join("blobs").join(place.blob.hex());
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        fs::write(&path, b"bl0b").unwrap();
        let store = Store::open(&place.own()).unwrap().with_base(place.base());
        assert!(!store.is_whole(&place.blob));
        store.put(b"blob").unwrap();
        assert_eq!(store.read(&place.blob).unwrap(), b"blob");
    }

    #[test]
    fn a_store_is_no_base_of_itself_whatever_path_leads_there() {
        let place = TestStore::new();
        let link = place.directory.path().join("link");
        std::os::unix::fs::symlink(place.root(), &link).unwrap();
        let base = Base::open(&place.root()).unwrap().unwrap();
        assert!(base.is_at(&link) && base.is_at(&place.root()) && !base.is_at(&place.own()));
    }

    #[test]
    fn who_can_read_the_directory_can_read_what_is_in_it() {
        let place = TestStore::new();
        let is_private = |path: &Path| {
            let own = ["lock", "gate", "turn", "sessions", "locks", "tmp"];
            own.iter().any(|name| path == place.root().join(name))
        };
        for (path, (mode, ..)) in all(&place.root()) {
            let wanted = if path.is_dir() { 0o055 } else { 0o044 };
            let found = mode & 0o077;
            assert!(is_private(&path) || found == wanted, "{} {found:o}", path.display());
        }
        let own = Store::open(&place.own()).unwrap();
        own.record_action(&place.key, b"value", &Refers::NOTHING).unwrap();
        let modes = all(&place.own());
        let others = modes.iter().filter(|(path, _)| !path.starts_with(place.own().join("blobs")));
        assert!(
            others.into_iter().all(|(_, (mode, ..))| mode & 0o077 == 0),
            "by default it is closed"
        );
    }

    #[test]
    fn a_base_that_is_not_there_is_none_and_one_that_others_can_change_is_refused() {
        let place = TestStore::new();
        assert!(Base::open(&place.directory.path().join("none")).unwrap().is_none());
        let names = place.root().join("names");
        fs::set_permissions(&names, Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(Base::open(&place.root()), Err(StoreError::Shared(_))));
    }
}
