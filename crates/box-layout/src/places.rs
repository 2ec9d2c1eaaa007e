//! The directories with the files of a box.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use host_fs::read::{Links, open_regular, read_open};

use crate::{Blob, MAX_DOCUMENT, OpenError, blob_path};

/// The directories with the files of a box: its directory, and a store for files that are missing there.
///
/// ```
/// use std::path::Path;
/// use box_layout::Places;
///
/// let alone = Places::from(Path::new("hello.box"));
/// let thin = Places::new("hello.box", Some(Path::new("/home/ada/.cache/boxbuild/blobs")));
/// assert_eq!(alone.directory, thin.directory);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The directory of the box, as the caller named it: an OCI image layout.
    pub directory: PathBuf,
    /// The directory of a store's blobs, each under its digest in hexadecimal.
    pub store: Option<PathBuf>,
    /// The directory of the blobs of the host's shared store, for blobs that `store` lacks.
    pub base: Option<PathBuf>,
}

impl Places {
    /// Combines the directory of a box and the directory of a store's blobs.
    pub fn new(directory: impl Into<PathBuf>, store: Option<&Path>) -> Self {
        Self { directory: directory.into(), store: store.map(Path::to_owned), base: None }
    }

    /// Adds the directory of the blobs of the host's shared store.
    #[must_use]
    pub fn with_base(self, base: Option<PathBuf>) -> Self {
        Self { base, ..self }
    }

    /// Opens the file of a blob for reading. `action` is the verb in messages. If the box's directory has an entry of this
    /// name that cannot be opened as a regular file, the stores are not used.
    ///
    /// # Errors
    /// [`OpenError::Absent`], [`OpenError::File`] or [`OpenError::NotRegular`].
    pub(crate) fn open(&self, blob: &Descriptor, action: &'static str) -> Result<Blob, OpenError> {
        for (path, is_stored) in self.candidates(&blob.digest) {
            match open_regular(&path, Links::Refuse) {
                Ok(file) => return Ok(Blob { path, descriptor: blob.clone(), file, is_stored }),
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(OpenError::at(action, &path, error)),
            }
        }
        Err(OpenError::Absent {
            places: Box::new(self.clone()),
            role: blob.role().to_owned(),
            digest: blob.digest,
        })
    }

    /// Opens the file of a blob for reading.
    ///
    /// # Errors
    /// [`OpenError::Absent`], [`OpenError::File`] or [`OpenError::NotRegular`].
    pub fn open_blob(&self, blob: &Descriptor) -> Result<Blob, OpenError> {
        self.open(blob, "open")
    }

    /// Reads the bytes of the manifest with a digest, and verifies them.
    ///
    /// # Errors
    /// The errors of [`Self::open_blob`]; [`OpenError::Different`] if the manifest is damaged.
    pub fn read_manifest(&self, digest: Digest) -> Result<Vec<u8>, OpenError> {
        let Blob { path, file, .. } =
            self.open(&Descriptor::new(OCI_MANIFEST_TYPE, digest, 0), "read")?;
        let bytes = read_open(&file, MAX_DOCUMENT);
        let bytes = bytes.map_err(|error| OpenError::at("read", &path, error))?;
        let found = Digest::of(&bytes);
        if found == digest { Ok(bytes) } else { Err(OpenError::digest(path, digest, found)) }
    }

    /// Returns the path of a blob: the first candidate that exists, or the path in the box's directory if none exists.
    pub(crate) fn find(&self, digest: &Digest) -> PathBuf {
        let is_absent = |path: &Path| {
            let found = path.symlink_metadata();
            found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        let own = blob_path(&self.directory, digest);
        self.candidates(digest).map(|it| it.0).find(|path| !is_absent(path)).unwrap_or(own)
    }

    /// Returns the paths at which a blob may be, in the order in which they are tried, and whether each is in a store.
    fn candidates(&self, digest: &Digest) -> impl Iterator<Item = (PathBuf, bool)> {
        let stores = self.store.iter().chain(&self.base);
        let stored = stores.map(|store| (store.join(digest.hex()), true));
        [(blob_path(&self.directory, digest), false)].into_iter().chain(stored)
    }
}

/// The directory of a box, without a store.
impl<P: AsRef<Path> + ?Sized> From<&P> for Places {
    fn from(directory: &P) -> Self {
        Self::new(directory.as_ref(), None)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use box_contract::manifest::{KERNEL_TYPE, LISTING_TYPE};
    use testkit::TestBox;
    use testkit::test_box::config;

    use super::*;
    use crate::OpenBox;

    /// A box whose blobs are in a store next to it.
    fn thin() -> (TestBox, PathBuf) {
        let made = TestBox::new(&config());
        let store = made.path().join("store");
        fs::create_dir(&store).unwrap();
        for entry in fs::read_dir(made.path().join("blobs/sha256")).unwrap() {
            let entry = entry.unwrap();
            fs::rename(entry.path(), store.join(entry.file_name())).unwrap();
        }
        (made, store)
    }

    #[test]
    fn what_the_directory_lacks_the_store_has() {
        let (made, store) = thin();
        assert!(OpenBox::open(made.path()).is_err());
        let opened = OpenBox::open(Places::new(made.path(), Some(&store))).unwrap();
        assert!(opened.boot_blobs().all(|it| it.path.starts_with(&store)));
        assert!(opened.files().iter().all(|(_, now)| now.is_file()));
        let [kernel, listing] =
            [KERNEL_TYPE, LISTING_TYPE].map(|it| opened.manifest.blob(it).unwrap().digest);
        fs::copy(store.join(kernel.hex()), made.blob_path(&kernel)).unwrap();
        let opened = OpenBox::open(Places::new(made.path(), Some(&store))).unwrap();
        assert_eq!(opened.kernel.path, made.blob_path(&kernel));
        fs::remove_file(store.join(listing.hex())).unwrap();
        let named = opened.manifest.blob(LISTING_TYPE).unwrap();
        let error = opened.read_blob(named, 1 << 20).unwrap_err();
        assert!(error.is_missing(), "{error}");
        let (digest, store) = (listing.to_string(), store.display().to_string());
        let text = error.to_string();
        assert!(text.contains(&digest) && text.contains(&store), "{text}");
    }

    #[test]
    fn a_wrong_file_in_the_directory_hides_the_one_in_the_store() {
        let (made, store) = thin();
        let kernel = OpenBox::open(Places::new(made.path(), Some(&store))).unwrap().kernel;
        let own = made.blob_path(&kernel.descriptor.digest);
        symlink(&kernel.path, &own).unwrap();
        let error = OpenBox::open(Places::new(made.path(), Some(&store))).unwrap_err();
        assert!(matches!(error, OpenError::NotRegular(path) if path == own));
    }
}
