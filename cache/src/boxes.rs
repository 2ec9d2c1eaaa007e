//! The boxes of a store: their names and their directories.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use box_digest::Digest;
use host_fs::FileError;
use host_fs::publish::{DirectoryDraft, PublishError, flush_names, new_file, parent_of};
use host_fs::read::{Links, open_regular, read_open};
use host_fs::trust::is_private;

use crate::base::Base;
use crate::error::IoContext;
use crate::gate::{Gate, lock_within};
use crate::label::{belongs_to_another, may_name, name_path, pulled, pulled_path, read};
use crate::session::touch;
use crate::store::{
    check_new, check_version, directory_mode, file_mode, is_readable, open_existing, write_whole,
};
use crate::{KeyHasher, Label, Named, Owner, Publishing, Pulled, Store, StoreError, place};

/// The size limit in bytes of a file in `names/`, `pulled/` or `roots/`. Such a file contains digests, a path or a reference.
pub(crate) const MAX_RECORD_BYTES: u64 = 16 << 10;
/// The file in a box's directory that refers to the box's manifest.
pub(crate) const INDEX: &str = "index.json";
/// The file in a box's directory with the version of the layout.
pub(crate) const LAYOUT: &str = "oci-layout";
/// The empty file in the directory of a box that was built on this host. It is no part of the box.
pub(crate) const BUILT: &str = "built";
/// How often [`Store::note_built`] writes the note again if another process replaces the directory.
const NOTES: usize = 8;
/// How long to wait for the gate while a collection of another process holds it. A collection releases it at short intervals.
const PATIENCE: Duration = Duration::from_secs(10);

/// A box of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBox {
    /// The digest of the box.
    pub digest: Digest,
    /// When the box got its label. For a box without a label, when its documents were written.
    pub since: SystemTime,
    /// The label. A box with several labels is listed once for each.
    pub label: Option<Label>,
    /// The owner of the label, if it is a name.
    pub owner: Option<Owner>,
}

/// Reads the boxes of a store, and creates no files. While this value exists, no process deletes content of the store.
#[derive(Debug)]
pub struct StoredBoxes {
    root: PathBuf,
    /// The shared read-only store.
    base: Option<Base>,
    /// `None` if the store or its gate does not exist.
    _gate: Option<Gate>,
}

impl StoredBoxes {
    /// Opens the store in the directory `root`. A missing directory has no boxes.
    ///
    /// # Errors
    /// The errors of [`Self::blobs_of`], and [`StoreError::Busy`].
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        Self::blobs_of(root)?;
        let gate = Gate::share_within(root, PATIENCE)?;
        Ok(Self { root: root.to_owned(), base: None, _gate: gate })
    }

    /// Opens the store like [`Self::open`], but waits without end. Calls `waiting` if the wait takes more than a second, as
    /// [`Store::open_waiting`] does.
    ///
    /// # Errors
    /// The errors of [`Self::blobs_of`].
    pub fn open_waiting(root: &Path, waiting: impl FnOnce()) -> Result<Self, StoreError> {
        Self::blobs_of(root)?;
        let gate = Gate::share_waiting(root, waiting)?;
        Ok(Self { root: root.to_owned(), base: None, _gate: gate })
    }

    /// Adds the boxes of `base`. If both stores have the same name or reference, this store takes precedence. If `base` is this
    /// store, it is ignored.
    #[must_use]
    pub fn with_base(self, base: Option<Base>) -> Self {
        let base = base.filter(|it| !it.is_at(&self.root));
        Self { base, ..self }
    }

    /// Returns the directory of this store.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of this store, and then of the base.
    fn roots(&self) -> impl Iterator<Item = &Path> {
        [&*self.root].into_iter().chain(self.base.as_ref().map(Base::root))
    }

    /// Returns the directory of the blobs of the store in `root`. Each blob is a file with its hexadecimal digest as the name. No
    /// lock is taken, so another process may delete blobs.
    ///
    /// # Errors
    /// [`StoreError::Shared`] and [`StoreError::Replaceable`] if another user can change or replace the store, [`StoreError::NotAStore`] if the directory is not a store of
    /// this version, and [`StoreError::File`].
    pub fn blobs_of(root: &Path) -> Result<PathBuf, StoreError> {
        check_new(root)?;
        place::check(root)?;
        check_version(root)?;
        check_private(root)?;
        let blobs = blobs(root);
        for part in [
            root.join("names"),
            root.join("pulled"),
            root.join("boxes"),
            root.join(crate::attachments::DIRECTORY),
            blobs.clone(),
        ] {
            if part.is_symlink() {
                return Err(io::Error::from(io::ErrorKind::NotADirectory)).context("use", &part);
            }
            check_private(&part)?;
        }
        Ok(blobs)
    }

    /// Returns the box that has a name, with the owner of the name. Returns `None` if no box has the name.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn named(&self, name: &str) -> Result<Option<Named>, StoreError> {
        let read = |root| name_path(root, name).map_or(Ok(None), |path| read(&path, Named::decode));
        first(self.roots().map(read))
    }

    /// Returns the box that was pulled under a reference, if there is one.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn pulled(&self, reference: &str) -> Result<Option<Pulled>, StoreError> {
        first(self.roots().map(|root| pulled(root, reference)))
    }

    /// Returns all references of a box, those of this store and those of the base.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn references(&self, digest: &Digest) -> Result<Vec<Pulled>, StoreError> {
        let all = self.roots().map(all_pulled).collect::<Result<Vec<_>, _>>()?;
        let all = all.into_iter().flatten().map(|(pulled, _)| pulled);
        Ok(all.filter(|it| it.digest == *digest).collect())
    }

    /// Lists the boxes with labels, sorted by label, and then the boxes without labels, the newest first.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn all(&self) -> Result<Vec<StoredBox>, StoreError> {
        let mut all: Vec<StoredBox> = Vec::new();
        for root in self.roots() {
            let known: BTreeSet<_> = all.iter().filter_map(|it| it.label.clone()).collect();
            let labelled = labelled(root)?.into_iter();
            all.extend(
                labelled.filter(|it| it.label.as_ref().is_none_or(|it| !known.contains(it))),
            );
        }
        all.sort_by(|a, b| a.label.cmp(&b.label));
        let mut known: BTreeSet<_> = all.iter().map(|it| it.digest).collect();
        let mut nameless = Vec::new();
        for root in self.roots() {
            nameless.extend(boxes(root)?.into_iter().filter(|(digest, _)| known.insert(*digest)));
        }
        nameless.sort_by_key(|(digest, since)| (Reverse(*since), *digest));
        let nameless = nameless.into_iter().map(|(digest, since)| StoredBox {
            digest,
            since,
            label: None,
            owner: None,
        });
        Ok(all.into_iter().chain(nameless).collect())
    }

    /// Returns the directory with the two documents of a box. It is an [OCI image
    /// layout](https://github.com/opencontainers/image-spec/blob/main/image-layout.md) without blobs.
    pub fn directory(&self, digest: &Digest) -> PathBuf {
        let mut found = self.roots().map(|root| box_directory(root, digest));
        found.find(|it| it.is_dir()).unwrap_or_else(|| box_directory(&self.root, digest))
    }

    /// Returns whether one of the stores noted that the box was built in it ([`Store::note_built`]). Boxes that were pulled or
    /// loaded have no such note.
    pub fn is_built(&self, digest: &Digest) -> bool {
        self.roots().any(|root| box_directory(root, digest).join(BUILT).is_file())
    }

    /// Returns the shared read-only store.
    pub const fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    /// Returns the directory of the blobs. Each is a file with its hexadecimal digest as the name.
    pub fn blobs(&self) -> PathBuf {
        blobs(&self.root)
    }
}

/// Returns the first value that is not `None`.
fn first<T>(
    found: impl Iterator<Item = Result<Option<T>, StoreError>>,
) -> Result<Option<T>, StoreError> {
    found.filter_map(Result::transpose).next().transpose()
}

/// Returns the boxes of a store that have labels.
fn labelled(root: &Path) -> Result<Vec<StoredBox>, StoreError> {
    let mut all = Vec::new();
    for (name, since) in entries(&root.join("names"))? {
        let path = name_path(root, &name);
        // A file that cannot be read must not hide the other names.
        let Some(Ok(Some(Named { digest, owner }))) = path.map(|it| read(&it, Named::decode))
        else {
            continue;
        };
        let (label, owner) = (Some(Label::Name(name)), Some(owner));
        all.push(StoredBox { digest, since, label, owner });
    }
    all.extend(all_pulled(root)?.into_iter().map(|(Pulled { digest, reference, .. }, since)| {
        StoredBox { digest, since, label: Some(Label::Pulled(reference)), owner: None }
    }));
    Ok(all)
}

/// Returns the references of a store, each with the time when it was written. A damaged file is left out.
fn all_pulled(root: &Path) -> Result<Vec<(Pulled, SystemTime)>, StoreError> {
    let directory = root.join("pulled");
    let found = entries(&directory)?.into_iter().filter_map(|(name, since)| {
        let found = read(&directory.join(&name), Pulled::decode).ok()??;
        (found.file_name() == name).then_some((found, since))
    });
    Ok(found.collect())
}

/// Returns the boxes of a store, each with the time when its documents were written.
fn boxes(root: &Path) -> Result<Vec<(Digest, SystemTime)>, StoreError> {
    let directory = root.join("boxes");
    // Not the time of the directory, which is the last use of the box.
    let since = |hex: &str| directory.join(hex).join(INDEX).symlink_metadata()?.modified();
    let entries = entries(&directory)?.into_iter();
    let boxes = entries
        .filter_map(|(hex, used)| Some((Digest::from_hex(&hex)?, since(&hex).unwrap_or(used))));
    Ok(boxes.collect())
}

/// How long the start of a box waits for the lock that marks the box as running.
const UNLOCKED_WITHIN: Duration = Duration::from_millis(500);

/// Marks a box as running until this value is dropped. A running box is not deleted.
#[derive(Debug)]
pub struct Held {
    /// The locked `index.json` of the box. The kernel releases the shared lock if the process is killed.
    _file: File,
}

/// Marks a box of a store as used, and as running until the returned value is dropped. Returns `None` if the store does not have
/// the box, or if its `index.json` cannot be locked within half a second.
pub fn hold(root: &Path, digest: &Digest) -> Option<Held> {
    let directory = box_directory(root, digest);
    let file = open_existing(&directory.join(INDEX)).ok()??;
    // A collection holds the exclusive lock for a moment. In a store that all users can read, another user can hold the lock
    // indefinitely.
    lock_within(|| file.try_lock_shared(), UNLOCKED_WITHIN).ok().filter(|is_taken| *is_taken)?;
    touch(&directory);
    Some(Held { _file: file })
}

impl Store {
    /// Notes the use of a box of this store: sets the time of its directory to now.
    pub(crate) fn use_box(&self, digest: &Digest) {
        touch(&self.box_directory(digest));
    }

    /// Returns the directory with the two documents of a box; see [`StoredBoxes::directory`].
    pub fn box_directory(&self, digest: &Digest) -> PathBuf {
        box_directory(self.root(), digest)
    }

    /// Returns whether this store or the base has a box.
    pub fn has_box(&self, digest: &Digest) -> bool {
        self.roots().any(|root| box_directory(root, digest).is_dir())
    }

    /// Returns the directory of the blobs; see [`StoredBoxes::blobs`].
    pub fn blobs(&self) -> PathBuf {
        blobs(self.root())
    }

    /// Adds a box that is being published ([`Self::publish`]) to this store, so that it can be found by its digest. `documents`
    /// are the names and bytes of the two files in [`Self::box_directory`]. Returns whether the box is new.
    ///
    /// # Errors
    /// [`StoreError::File`], [`StoreError::Full`] and [`StoreError::Busy`].
    pub fn keep_box(
        &self,
        _published: &Publishing<'_>,
        digest: &Digest,
        documents: &[(&str, Vec<u8>)],
    ) -> Result<bool, StoreError> {
        self.keep_documents(digest, documents)
    }

    /// Notes that a box of this store was built on this host, and not fetched or loaded from elsewhere. [`StoredBoxes::is_built`]
    /// returns it. The note is removed with the box.
    ///
    /// # Errors
    /// [`StoreError::File`] and [`StoreError::Full`].
    pub fn note_built(&self, _: &Publishing<'_>, digest: &Digest) -> Result<(), StoreError> {
        let path = self.box_directory(digest).join(BUILT);
        // A build of the same box in another process may replace the directory meanwhile.
        for _ in 0..NOTES {
            match write_whole(self.root(), &path, &[]) {
                Err(StoreError::File(error)) if error.source.kind() == io::ErrorKind::NotFound => {}
                _ if !path.exists() => {}
                written => return written,
            }
        }
        write_whole(self.root(), &path, &[])
    }

    fn keep_documents(
        &self,
        digest: &Digest,
        documents: &[(&str, Vec<u8>)],
    ) -> Result<bool, StoreError> {
        let directory = self.box_directory(digest);
        self.use_box(digest);
        self.own_manifest(digest)?;
        if has(&directory, documents) {
            // The process that wrote the documents may have been killed before it flushed the directory.
            let parent = parent_of(&directory);
            return flush_names(parent).context("flush", parent).map(|()| false);
        }
        let is_new = !directory.exists();
        let draft = DirectoryDraft::beside(&directory, directory_mode(self.root()));
        let draft = draft.map_err(|error| self.publish_error(&directory, error))?;
        let mode = file_mode(self.root());
        let write = |(name, bytes): &(&str, Vec<u8>)| {
            let mut file = new_file(&draft, name, mode)?;
            // The umask must not apply.
            file.set_permissions(Permissions::from_mode(mode))?;
            file.write_all(bytes)
        };
        let written = documents.iter().try_for_each(write).context("write", &directory);
        written.map_err(|error| error.within(self.root()))?;
        if is_readable(self.root()) {
            let permissions = Permissions::from_mode(directory_mode(self.root()));
            fs::set_permissions(draft.path(), permissions).context("write", &directory)?;
        }
        // Replaces an existing directory. Only the store writes there, so documents that differ are damaged.
        let done = draft.finish_over(|_| Ok(()));
        done.map(|_| is_new).map_err(|error| self.publish_error(&directory, error))
    }

    /// Copies the manifest of a box from the base if this store lacks it. A collection of this store reads the manifest to find
    /// the blobs of the box.
    fn own_manifest(&self, digest: &Digest) -> Result<(), StoreError> {
        let is_own = self.blob_path(digest).exists();
        let Some(bytes) = self.read(digest).ok().filter(|_| !is_own) else { return Ok(()) };
        let mut writer = self.writer()?;
        writer.write_all(&bytes).map_err(|error| self.write_error(error))?;
        writer.commit().map(drop)
    }

    /// Copies the documents of a box from the base if this store lacks them. The caller holds the gate.
    pub(crate) fn own_box(&self, digest: &Digest) -> Result<(), StoreError> {
        let Some(base) = self.base().filter(|_| !self.box_directory(digest).exists()) else {
            return Ok(());
        };
        let directory = box_directory(base.root(), digest);
        let document = |name: &'static str| {
            let file = open_existing(&directory.join(name)).ok()??;
            Some((name, read_open(&file, MAX_RECORD_BYTES).ok()?))
        };
        let documents = [INDEX, LAYOUT].map(document);
        let [Some(index), Some(layout)] = documents else { return Ok(()) };
        self.keep_documents(digest, &[index, layout]).map(drop)
    }

    /// Removes a box from the list of boxes, so that it is no longer found by its digest or by a name. Its blobs stay.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn forget_box(&self, digest: &Digest) -> Result<(), StoreError> {
        let directory = self.box_directory(digest);
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).context("remove", &directory)
            }
            _ => Ok(()),
        }
    }

    fn publish_error(&self, directory: &Path, error: PublishError) -> StoreError {
        match error {
            PublishError::File(error) => StoreError::File(error).within(self.root()),
            PublishError::Busy { .. } => StoreError::Busy(self.root().to_owned()),
            error => FileError::of("write", directory)(io::Error::other(error)).into(),
        }
    }

    /// Gives a box a name, and takes the name from the box that had it before. If another Boxfile that exists has given the name
    /// to this box, the name still belongs to that Boxfile. Returns the previous box and owner of the name if the owner was
    /// another one and is gone: an image, or a Boxfile that does not exist any more.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`] if another Boxfile that exists has given the name to another box, or another box was loaded under it, for
    /// [`Owner::Image`] also if another image has it, and for [`Owner::Archive`] if any other box has it; [`StoreError::File`] and [`StoreError::Full`].
    pub fn name_box(&self, name: &str, named: &Named) -> Result<Option<Named>, StoreError> {
        let before = self.write_name(name, named, may_name)?;
        Ok(before.filter(|it| !it.owner.is_same(&named.owner) && it.owner.is_gone()))
    }

    /// Gives a box a name, even if another box has the name. Returns the previous box and owner of the name.
    ///
    /// # Errors
    /// [`StoreError::File`] and [`StoreError::Full`].
    pub fn rename_box(&self, name: &str, named: &Named) -> Result<Option<Named>, StoreError> {
        self.write_name(name, named, |_, before, named| Ok(before != Some(named)))
    }

    /// Writes the file of a name if `may` returns true. Returns the previous box and owner of the name.
    fn write_name(
        &self,
        name: &str,
        named: &Named,
        may: impl FnOnce(&str, Option<&Named>, &Named) -> Result<bool, StoreError>,
    ) -> Result<Option<Named>, StoreError> {
        let _lock = self.lock_action(&KeyHasher::new("name", 1).part(name.as_bytes()).finish())?;
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let path = name_path(self.root(), name).ok_or_else(invalid);
        let path = path.context("name a box in", self.root())?;
        let before = self.name_before(name, &named.owner)?;
        if may(name, before.as_ref(), named)? {
            write_whole(self.root(), &path, &named.encode())?;
        } else if named.owner == Owner::Archive {
            // The box already has the name. A loaded box must be kept, so the owner in this store becomes one that keeps the box.
            let owner = match before.as_ref().map(|it| it.owner.clone()) {
                Some(Owner::Boxfile(boxfile)) => Owner::Tagged(boxfile),
                owner => owner.unwrap_or(Owner::Archive),
            };
            let kept = Named { digest: named.digest, owner };
            if read(&path, Named::decode)?.as_ref() != Some(&kept) {
                write_whole(self.root(), &path, &kept.encode())?;
            }
        }
        Ok(before)
    }

    /// Returns the current box and owner of a name. Also looks in the base if the new owner is [`Owner::Archive`], because a
    /// loaded box cannot take a name from a box there either.
    fn name_before(&self, name: &str, owner: &Owner) -> Result<Option<Named>, StoreError> {
        let stores = if *owner == Owner::Archive { 2 } else { 1 };
        let paths = self.roots().take(stores).filter_map(|root| name_path(root, name));
        first(paths.map(|path| read(&path, Named::decode)))
    }

    /// Checks that a box may get a name; see [`Store::name_box`].
    ///
    /// # Errors
    /// [`StoreError::NameTaken`] and [`StoreError::File`].
    pub fn check_name(&self, name: &str, named: &Named) -> Result<(), StoreError> {
        let before = self.name_before(name, &named.owner)?;
        may_name(name, before.as_ref(), named).map(drop)
    }

    /// Returns whether a box of `owner` may get a name, whatever box has it now; see [`Store::name_box`].
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn is_free_for(&self, name: &str, owner: &Owner) -> Result<bool, StoreError> {
        let before = self.name_before(name, owner)?;
        Ok(before.is_none_or(|it| !belongs_to_another(&it.owner, owner)))
    }

    /// Returns the box that has a name; see [`StoredBoxes::named`].
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn named(&self, name: &str) -> Result<Option<Named>, StoreError> {
        let read = |root| name_path(root, name).map_or(Ok(None), |path| read(&path, Named::decode));
        first(self.roots().map(read))
    }

    /// Returns the box that was pulled under a reference; see [`StoredBoxes::pulled`].
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn pulled(&self, reference: &str) -> Result<Option<Pulled>, StoreError> {
        first(self.roots().map(|root| pulled(root, reference)))
    }

    /// Returns the directory of this store, and then of the base.
    fn roots(&self) -> impl Iterator<Item = &Path> {
        [self.root()].into_iter().chain(self.base().map(Base::root))
    }

    /// Records the reference under which a box was pulled, and takes it from the box that was pulled under it before. If a user
    /// has pulled the reference, [`Pulled::is_asked`] stays true when a start fetches it later.
    ///
    /// # Errors
    /// [`StoreError::File`] and [`StoreError::Full`].
    pub fn note_pulled(&self, pulled: &Pulled) -> Result<(), StoreError> {
        self.write_pulled(pulled, |_| true).map(drop)
    }

    /// Gives a reference back to the box that had it before, if the reference still means the box `now`.
    ///
    /// # Errors
    /// [`StoreError::File`] and [`StoreError::Full`].
    pub fn give_back(&self, before: &Pulled, now: &Digest) -> Result<(), StoreError> {
        self.write_pulled(before, |it| it.digest == *now).map(drop)
    }

    /// Like [`Self::note_pulled`], for the reference that an archive gives a box. If the reference means another box, writes
    /// nothing and returns that box. If it means the same box, the registry's digest of the box is kept, and the note that it was
    /// pulled.
    ///
    /// # Errors
    /// [`StoreError::File`] and [`StoreError::Full`].
    pub fn offer_pulled(&self, pulled: &Pulled) -> Result<Option<Pulled>, StoreError> {
        let before = self.write_pulled(pulled, |before| before.digest == pulled.digest)?;
        Ok(before.filter(|it| it.digest != pulled.digest))
    }

    /// Writes the file of a reference if the reference is new, or if `may` returns true for its current box. Returns the previous
    /// box.
    fn write_pulled(
        &self,
        pulled: &Pulled,
        may: impl FnOnce(&Pulled) -> bool,
    ) -> Result<Option<Pulled>, StoreError> {
        let key = KeyHasher::new("pulled", 1).part(pulled.reference.as_bytes()).finish();
        let _lock = self.lock_action(&key)?;
        let before = self.pulled(&pulled.reference)?;
        if before.as_ref().is_some_and(|before| !may(before)) {
            return Ok(before);
        }
        let path = pulled_path(self.root(), &pulled.reference);
        let own = read(&path, Pulled::decode)?;
        let same = before.as_ref().filter(|it| it.digest == pulled.digest);
        // An archive does not contain the registry's digest, and has the box's digest instead.
        let is_unknown = pulled.registry_digest == pulled.digest;
        let registry_digest = same.filter(|_| is_unknown).map(|it| it.registry_digest);
        let noted = Pulled {
            is_asked: pulled.is_asked || own.as_ref().is_some_and(|it| it.is_asked),
            registry_digest: registry_digest.unwrap_or(pulled.registry_digest),
            is_loaded: pulled.is_loaded && same.is_none_or(|it| it.is_loaded),
            ..pulled.clone()
        };
        if own.as_ref() != Some(&noted) {
            write_whole(self.root(), &path, &noted.encode())?;
        }
        Ok(before)
    }

    /// Notes a thin directory: a directory outside the store with a box whose blobs are in this store. This store keeps the blobs
    /// while the directory exists. A collection can also be told that a directory stands for those in it
    /// ([`Contents::thin_in`](crate::collect::Contents::thin_in)). The path must be absolute.
    ///
    /// # Errors
    /// [`StoreError::File`] and [`StoreError::Full`].
    pub fn add_root(&self, directory: &Path) -> Result<(), StoreError> {
        let bytes = directory.as_os_str().as_bytes();
        let path = self.root().join("roots").join(Digest::of(bytes).hex());
        // Touched, because a collection removes an old root whose directory does not exist. This build has not created it yet.
        if path.exists() {
            touch(&path);
            return Ok(());
        }
        write_whole(self.root(), &path, bytes)
    }
}

fn blobs(root: &Path) -> PathBuf {
    root.join("blobs")
}

pub(crate) fn box_directory(root: &Path, digest: &Digest) -> PathBuf {
    root.join("boxes").join(digest.hex())
}

/// Returns whether a directory has all of these documents with exactly these bytes, and no other user can change them.
fn has(directory: &Path, documents: &[(&str, Vec<u8>)]) -> bool {
    documents.iter().all(|(name, bytes)| {
        let Ok(file) = open_regular(&directory.join(name), Links::Refuse) else { return false };
        let found = read_open(&file, bytes.len() as u64);
        is_private(&file).unwrap_or(false) && found.is_ok_and(|found| found == *bytes)
    })
}

/// Lists the entries of a directory whose names are UTF-8, each with the time of its last change. A missing directory has no
/// entries.
pub(crate) fn entries(directory: &Path) -> Result<Vec<(String, SystemTime)>, StoreError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.context("read", directory)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.context("read", directory)?;
        // Another process may have removed the entry in the meantime.
        let changed = entry.metadata().and_then(|it| it.modified());
        names.extend(entry.file_name().into_string().ok().zip(changed.ok()));
    }
    Ok(names)
}

/// Refuses a directory that another user can change. A missing directory is accepted.
pub(crate) fn check_private(directory: &Path) -> Result<(), StoreError> {
    match File::open(directory).and_then(|it| is_private(&it)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(StoreError::Shared(directory.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).context("examine", directory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::is_gone;

    struct TestStore {
        directory: tempfile::TempDir,
        store: Store,
    }

    impl TestStore {
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
            all.into_iter().filter_map(|it| Some(it.label?.text().to_owned())).collect()
        }

        /// Creates a Boxfile.
        fn boxfile(&self, name: &str) -> PathBuf {
            let path = self.directory.path().join(name);
            fs::write(&path, "").unwrap();
            path
        }
    }

    fn named(content: &str, owner: &Path) -> Named {
        Named { digest: Digest::of(content.as_bytes()), owner: Owner::Boxfile(owner.to_owned()) }
    }

    #[test]
    fn a_name_means_the_newest_box_of_its_boxfile() {
        let place = TestStore::new();
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
        assert_eq!((all[2].digest, &all[2].label), (Digest::of(b"nameless"), &None));
    }

    #[test]
    fn a_name_belongs_to_its_boxfile_as_long_as_that_is_there() {
        let place = TestStore::new();
        let (one, other) = (place.boxfile("one"), place.boxfile("other"));
        place.store.name_box("hello", &named("1", &one)).unwrap();
        let taken = |result: Result<Option<Named>, StoreError>| matches!(result, Err(StoreError::NameTaken { name, owner }) if name == "hello" && owner == Owner::Boxfile(one.clone()));
        assert!(place.store.check_name("hello", &named("2", &other)).is_err());
        assert!(taken(place.store.name_box("hello", &named("2", &other))));
        assert_eq!(place.boxes().named("hello").unwrap(), Some(named("1", &one)));
        // The same box may get the name, which still belongs to the first Boxfile.
        place.store.check_name("hello", &named("1", &other)).unwrap();
        assert_eq!(place.store.name_box("hello", &named("1", &other)).unwrap(), None);
        assert_eq!(place.boxes().named("hello").unwrap(), Some(named("1", &one)));
        fs::remove_file(&one).unwrap();
        let before = place.store.name_box("hello", &named("2", &other)).unwrap();
        assert_eq!(before, Some(named("1", &one)));
        assert_eq!(place.boxes().named("hello").unwrap(), Some(named("2", &other)));
    }

    #[test]
    fn a_name_of_an_archive_is_taken_only_by_who_names_both() {
        let place = TestStore::new();
        let boxfile = place.boxfile("one");
        let archive = Named { digest: Digest::of(b"1"), owner: Owner::Archive };
        place.store.name_box("hello", &archive).unwrap();
        assert_eq!(place.boxes().named("hello").unwrap(), Some(archive.clone()));
        let built = named("2", &boxfile);
        let error = place.store.name_box("hello", &built).unwrap_err().to_string();
        assert_eq!(error, "the name hello belongs to a box that was loaded from a file");
        assert_eq!(place.store.rename_box("hello", &built).unwrap(), Some(archive.clone()));
        for _ in 0..2 {
            assert!(place.store.name_box("hello", &archive).is_err(), "another box has the name");
            fs::remove_file(&boxfile).ok();
        }
        assert_eq!(place.boxes().named("hello").unwrap(), Some(built));
        let other = Named { digest: Digest::of(b"3"), owner: Owner::Archive };
        place.store.name_box("other", &archive).unwrap();
        place.store.name_box("other", &archive).unwrap();
        let error = place.store.name_box("other", &other).unwrap_err().to_string();
        assert_eq!(error, "the name other belongs to a box that was loaded from a file");
        assert!(place.store.check_name("other", &other).is_err());
        assert_eq!(place.store.rename_box("other", &other).unwrap(), Some(archive));
        assert_eq!(place.boxes().named("other").unwrap(), Some(other));
    }

    #[test]
    fn a_box_that_is_loaded_is_kept_also_if_a_build_gave_it_the_name() {
        let place = TestStore::new();
        let boxfile = place.boxfile("one");
        place.store.name_box("hello", &named("1", &boxfile)).unwrap();
        let archive = Named { digest: Digest::of(b"1"), owner: Owner::Archive };
        place.store.name_box("hello", &archive).unwrap();
        let found = place.boxes().named("hello").unwrap().unwrap();
        assert_eq!(found.owner, Owner::Tagged(boxfile));
    }

    #[test]
    fn a_reference_that_is_offered_takes_no_other_box_s_place() {
        let place = TestStore::new();
        let pulled = |content: &[u8], is_asked| {
            let (digest, registry_digest) = (Digest::of(content), Digest::of(b"registry's"));
            Pulled {
                reference: "ghcr.io/a:1".to_owned(),
                digest,
                registry_digest,
                is_asked,
                is_loaded: false,
            }
        };
        let found = || place.boxes().pulled("ghcr.io/a:1").unwrap().unwrap();
        place.store.note_pulled(&pulled(b"1", false)).unwrap();
        let other = place.store.offer_pulled(&pulled(b"2", true)).unwrap();
        assert_eq!((other, found()), (Some(pulled(b"1", false)), pulled(b"1", false)));
        // If the same box is offered, it is kept from now on, with the registry's digest.
        let own = Digest::of(b"1");
        let offered = Pulled { registry_digest: own, is_loaded: true, ..pulled(b"1", true) };
        assert_eq!(place.store.offer_pulled(&offered).unwrap(), None);
        assert_eq!(found(), pulled(b"1", true));
        // A pull of a box that was loaded shows that the registry has it, also if the registry's manifest is the box's own.
        let offered = Pulled { reference: "ghcr.io/b:1".to_owned(), ..offered };
        assert_eq!(place.store.offer_pulled(&offered).unwrap(), None);
        assert_eq!(place.boxes().references(&own).unwrap().len(), 2);
        let noted = || place.boxes().pulled("ghcr.io/b:1").unwrap().unwrap();
        assert_eq!(noted(), offered);
        let pulled = Pulled { is_loaded: false, ..offered };
        place.store.note_pulled(&pulled).unwrap();
        assert_eq!(noted(), pulled);
    }

    #[test]
    fn a_reference_is_given_back_unless_it_has_moved_on() {
        let place = TestStore::new();
        let pulled = |content: &[u8]| Pulled {
            reference: "ghcr.io/a:1".to_owned(),
            digest: Digest::of(content),
            registry_digest: Digest::of(b"registry's"),
            is_asked: false,
            is_loaded: false,
        };
        let found = || place.boxes().pulled("ghcr.io/a:1").unwrap().unwrap().digest;
        place.store.note_pulled(&pulled(b"2")).unwrap();
        place.store.give_back(&pulled(b"1"), &Digest::of(b"2")).unwrap();
        assert_eq!(found(), Digest::of(b"1"));
        place.store.note_pulled(&pulled(b"3")).unwrap();
        place.store.give_back(&pulled(b"1"), &Digest::of(b"2")).unwrap();
        assert_eq!(found(), Digest::of(b"3"), "another pull has moved it on");
    }

    #[test]
    fn a_reference_of_an_earlier_version_counts_as_loaded_if_it_may_be() {
        let place = TestStore::new();
        let (digest, other) = (Digest::of(b"1"), Digest::of(b"registry's"));
        let path = pulled_path(place.store.root(), "ghcr.io/a:1");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let noted = |prefix: &str, registry: Digest| {
            fs::write(&path, format!("{prefix}{digest}\n{registry}\nghcr.io/a:1")).unwrap();
            let found = place.boxes().pulled("ghcr.io/a:1").unwrap().unwrap();
            assert_eq!((found.digest, found.registry_digest), (digest, registry));
            (found.is_asked, found.is_loaded)
        };
        assert_eq!((noted("", digest), noted("", other)), ((true, true), (true, false)));
        assert_eq!(noted("fetched\n", digest), (false, false));
    }

    #[test]
    fn a_tag_is_a_name_of_its_boxfile_that_keeps_the_box() {
        let place = TestStore::new();
        let [one, other] = ["one", "other"].map(|name| place.boxfile(name));
        let tagged = Named { digest: Digest::of(b"1"), owner: Owner::Tagged(one.clone()) };
        assert!(tagged.owner.keeps() && Owner::Archive.keeps() && !named("1", &one).owner.keeps());
        for wanted in [&named("1", &one), &tagged, &named("1", &one)] {
            assert_eq!(place.store.name_box("hello", wanted).unwrap(), None);
            assert_eq!(place.boxes().named("hello").unwrap().as_ref(), Some(wanted));
        }
        assert!(place.store.name_box("hello", &named("2", &other)).is_err());
    }

    #[test]
    fn what_was_pulled_is_found_by_its_reference() {
        let place = TestStore::new();
        let pulled = |reference: &str, content: &[u8]| {
            let (reference, registry_digest) = (reference.to_owned(), Digest::of(b"registry's"));
            Pulled {
                reference,
                digest: Digest::of(content),
                registry_digest,
                is_asked: true,
                is_loaded: false,
            }
        };
        let long = format!("ghcr.io/{}:v1", "a/".repeat(200));
        for text in ["ghcr.io/acme/agent:v1", &long] {
            assert_eq!(place.boxes().pulled(text).unwrap(), None);
            for content in [b"old", b"new"] {
                place.store.note_pulled(&pulled(text, content)).unwrap();
                assert_eq!(place.boxes().pulled(text).unwrap(), Some(pulled(text, content)));
            }
        }
        assert_eq!(place.names(), [&long, "ghcr.io/acme/agent:v1"]);
        // A file whose reference does not match the hash in its name is ignored.
        let from = pulled_path(place.store.root(), &long);
        fs::rename(from, pulled_path(place.store.root(), "ghcr.io/other:v1")).unwrap();
        assert_eq!(place.boxes().pulled("ghcr.io/other:v1").unwrap(), None);
        assert_eq!(place.names(), ["ghcr.io/acme/agent:v1"]);
    }

    #[test]
    fn of_two_boxfiles_that_want_a_name_at_once_one_gets_it() {
        let place = TestStore::new();
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
        let place = TestStore::new();
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
        let place = TestStore::new();
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
        let place = TestStore::new();
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
        let place = TestStore::new();
        let long = place.directory.path().join("a".repeat(300));
        assert!(!is_gone(&long), "the name is too long, and not absent");
        assert!(is_gone(&place.directory.path().join("none/Boxfile")));
        let file = place.boxfile("file");
        assert!(is_gone(&file.join("Boxfile")) && !is_gone(&file));
    }

    #[test]
    fn who_keeps_the_store_locked_is_not_waited_for_without_end() {
        let place = TestStore::new();
        let root = place.store.root().to_owned();
        drop(place.store);
        let lock = fs::File::open(root.join("gate")).unwrap();
        lock.lock().unwrap();
        let error = StoredBoxes::open(&root).unwrap_err();
        assert!(matches!(error, StoreError::Busy(_)), "{error}");
        StoredBoxes::blobs_of(&root).unwrap();
        let mode = lock.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "no other user can take the lock");
    }

    #[test]
    fn one_name_that_cannot_be_read_hides_no_other() {
        let place = TestStore::new();
        place.store.name_box("hello", &named("1", &place.boxfile("one"))).unwrap();
        fs::create_dir(place.store.root().join("names/directory")).unwrap();
        fs::write(place.store.root().join("names/long"), vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(place.names(), ["hello"]);
    }

    #[test]
    fn a_store_of_another_version_is_not_read() {
        let place = TestStore::new();
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
    fn a_box_that_is_kept_is_listed_and_what_is_damaged_is_replaced() {
        let place = TestStore::new();
        let digest = Digest::of(b"manifest");
        let documents = [("index.json", b"index".to_vec()), ("oci-layout", b"layout".to_vec())];
        let published = place.store.publish(&[]).unwrap();
        let keep = || place.store.keep_box(&published, &digest, &documents).unwrap();
        let path = place.store.box_directory(&digest).join("index.json");
        keep();
        assert_eq!(place.boxes().all().unwrap()[0].digest, digest);
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        keep();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before, "it is left alone");
        fs::write(&path, "damaged").unwrap();
        keep();
        assert_eq!(fs::read(&path).unwrap(), b"index");
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        keep();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        place.store.forget_box(&digest).unwrap();
        place.store.forget_box(&digest).unwrap();
        assert_eq!(place.boxes().all().unwrap(), []);
    }

    #[test]
    fn a_box_is_built_here_until_it_is_removed() {
        let place = TestStore::new();
        let digest = Digest::of(b"manifest");
        let documents = [("index.json", b"index".to_vec()), ("oci-layout", b"layout".to_vec())];
        let published = place.store.publish(&[]).unwrap();
        let keep = || place.store.keep_box(&published, &digest, &documents).unwrap();
        keep();
        assert!(!place.boxes().is_built(&digest), "it may come from anywhere");
        for _ in 0..2 {
            place.store.note_built(&published, &digest).unwrap();
            assert!(place.boxes().is_built(&digest));
        }
        // A pull of the same box changes nothing.
        keep();
        assert!(place.boxes().is_built(&digest));
        place.store.forget_box(&digest).unwrap();
        keep();
        assert!(!place.boxes().is_built(&digest));
    }

    #[test]
    fn a_root_is_noted_once() {
        let place = TestStore::new();
        for _ in 0..2 {
            place.store.add_root(Path::new("/work/hello.box")).unwrap();
        }
        let roots: Vec<_> = fs::read_dir(place.store.root().join("roots")).unwrap().collect();
        let [Ok(root)] = roots.as_slice() else { panic!("{roots:?}") };
        assert_eq!(fs::read(root.path()).unwrap(), b"/work/hello.box");
    }
}
