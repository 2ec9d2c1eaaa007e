#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use box_cache::{Base, Held, Pulled, Store, StoreError, StoredBoxes, hold, waiting_text};
use box_contract::RemoteName;
use box_contract::image_ref::WITH_PATH;
use box_contract::remote::PATH_ENDS;
use box_contract::rules::is_name;
use box_digest::Digest;
use box_layout::{Documents, OpenBox, OpenError, Places};
use safe_text::shown;

/// The separator between a box and the digest that it must have, with the digest's prefix: `hello@sha256:…`.
const PINNED: &[u8] = b"@sha256:";

/// An error from finding a box.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum FindError {
    /// The text is neither a path nor a digest nor a valid name.
    #[error("{} is neither a path nor the name of a box", shown(text))]
    NotAName {
        text: String,
        /// Whether there is a box at this path.
        is_here: bool,
    },
    /// The text, or its part after `@`, begins with `sha256:` but is not a digest.
    #[error("{0:?} is not a digest")]
    BadDigest(String),
    /// The text ends with a tag but names no registry, such as `hello:v1`.
    #[error("{} names no registry", shown(text))]
    NoHost { text: String },
    /// The path is a file with the suffix of an archive, such as `hello.tar`.
    #[error("{} is a file, not the directory of a box", shown(&.0.display().to_string()))]
    File(PathBuf),
    /// The text is the reference to an image of this host, such as `oci:images/agent`.
    #[error("{} is an OCI image, not a box", shown(text))]
    Image { text: String },
    /// The text begins with a registry but is not a valid name of a box there, such as `ghcr.io/A`.
    #[error("{} is not the name of a box in a registry: {reason}", shown(text))]
    BadRemote { text: String, reason: &'static str },
    /// The store has no box that was pulled under this name, or only one with another digest.
    #[error("the store has no box that was pulled as {0}")]
    NotPulled(Box<RemoteName>),
    /// The store has no box with this name.
    #[error("no box has the name {name} in the store {}", shown(&store.display().to_string()))]
    NoName {
        name: String,
        store: PathBuf,
        /// Whether the current directory has a box of this name.
        is_here: bool,
        /// See [`Stores::is_named`].
        is_named: bool,
    },
    /// The text is a name or a digest, but the caller passed no store.
    #[error("no directory for the store")]
    NoStore,
    /// The store has no box with this digest.
    #[error("the store has no box {0}")]
    NoBox(Digest),
    /// The box does not have the expected digest.
    #[error("the box has the digest {found}, not {expected}")]
    OtherBox { expected: Digest, found: Digest },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The host's shared store cannot be read.
    #[error("the host's store cannot be used")]
    Base(#[source] StoreError),
    /// The box cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl FindError {
    /// Returns whether a pull can help: the store lacks a box of a registry, or lacks one of its blobs.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::NotPulled(_) | Self::NoBox(_) => true,
            Self::Open(error) => error.is_missing(),
            _ => false,
        }
    }

    /// Sets whether the command line names the store.
    fn in_store(self, is_named: bool) -> Self {
        match self {
            Self::NoName { name, store, is_here, .. } => {
                Self::NoName { name, store, is_here, is_named }
            }
            error => error,
        }
    }
}

/// The stores in which boxes are searched.
#[derive(Debug, Clone, Default)]
pub struct Stores {
    /// The user's store, if its directory is known.
    pub own: Option<PathBuf>,
    /// Whether the command line names the user's store.
    pub is_named: bool,
    /// The directory of the host's shared store, if the user names one.
    pub base: Option<PathBuf>,
    /// Prints a line if a search waits for another process that uses the user's store.
    pub note: Option<fn(&str)>,
}

impl Stores {
    /// Opens the store in the directory `root` for reading. Waits while another process deletes content of it.
    ///
    /// # Errors
    /// The errors of [`StoredBoxes::blobs_of`].
    pub fn boxes(&self, root: &Path) -> Result<StoredBoxes, StoreError> {
        StoredBoxes::open_waiting(root, || {
            self.note.iter().for_each(|note| note(&waiting_text(root)));
        })
    }

    /// Opens the host's shared store. Returns `None` if the user names none, or if the named directory has none.
    ///
    /// # Errors
    /// [`FindError::Base`].
    pub fn base(&self) -> Result<Option<Base>, FindError> {
        self.base.as_deref().map_or(Ok(None), Base::open).map_err(FindError::Base)
    }
}

/// Uses only the user's store, without a shared store.
impl From<Option<&Path>> for Stores {
    fn from(own: Option<&Path>) -> Self {
        Self { own: own.map(Path::to_owned), ..Self::default() }
    }
}

/// The text with which a user names a box, for example `hello`, `./hello.box` or `ghcr.io/acme/hello:v1`. The last example is a
/// name in an [OCI registry](https://github.com/opencontainers/distribution-spec/blob/main/spec.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxReference {
    kind: Kind,
    /// The digest that the box must have, for a path or name with `@sha256:…`.
    pinned: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Path(PathBuf),
    Digest(Digest),
    Name(String),
    Remote(RemoteName),
}

/// A box that was found and is not open yet.
#[derive(Debug)]
pub struct Found {
    places: Places,
    /// The digests that the box must match: the ones that the user wrote, and the one that the store has for the name.
    expected: Vec<Digest>,
    /// The directory of the store, if it can be used.
    root: Option<PathBuf>,
    /// Why the store cannot be used. Reported if the box's directory lacks blobs.
    unusable: Option<FindError>,
    /// Prevents deletions in the store until the box is open.
    _boxes: Option<StoredBoxes>,
}

impl BoxReference {
    /// Parses the text that a user wrote.
    ///
    /// # Errors
    /// [`FindError::NotAName`], [`FindError::NoHost`], [`FindError::Image`], [`FindError::BadRemote`] or
    /// [`FindError::BadDigest`].
    pub fn parse(text: &OsStr) -> Result<Self, FindError> {
        let bytes = text.as_bytes();
        if WITH_PATH.iter().any(|form| bytes.starts_with(form.as_bytes())) {
            return Err(FindError::Image { text: text.to_string_lossy().into_owned() });
        }
        if !is_path(bytes) && RemoteName::begins(bytes) {
            let kind = Kind::Remote(remote(bytes)?);
            return Ok(Self { kind, pinned: None });
        }
        let at = bytes.windows(PINNED.len()).rposition(|it| it == PINNED).filter(|at| *at > 0);
        let (bytes, pinned) = match at {
            Some(at) => (&bytes[..at], Some(digest(&bytes[at + 1..])?)),
            None => (bytes, None),
        };
        Ok(Self { kind: Kind::parse(bytes)?, pinned })
    }

    /// Returns whether the text contains a digest that the box must have.
    pub fn names_digest(&self) -> bool {
        match &self.kind {
            Kind::Digest(_) => true,
            Kind::Remote(name) => name.digest.is_some(),
            Kind::Path(_) | Kind::Name(_) => self.pinned.is_some(),
        }
    }

    /// Creates the reference to the box with this digest.
    pub const fn of_digest(digest: Digest) -> Self {
        Self { kind: Kind::Digest(digest), pinned: None }
    }

    /// Returns the digest that the box must have, if the text is a path or name with `@sha256:…`. The digest of a name in a
    /// registry is in [`RemoteName::digest`] instead.
    pub const fn pinned(&self) -> Option<Digest> {
        self.pinned
    }

    /// Returns the path of the box, if the reference is a path.
    pub fn path(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the name of the box in the store, if the reference is such a name.
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the name of the box in a registry, if the reference is such a name.
    pub fn remote(&self) -> Option<&RemoteName> {
        match &self.kind {
            Kind::Remote(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the name that the box can have on another host: its name in the store, or its name and tag in a registry.
    pub fn label(&self) -> Option<String> {
        let name = self.name().map(str::to_owned);
        // A name in a registry without a tag has a digest, which is enough to find the box on the other host.
        name.or_else(|| Some(self.remote().filter(|it| it.tag.is_some())?.unpinned().to_string()))
    }

    /// Finds the box. Blobs that a box's directory lacks are looked up in the stores. Without a store, the directory must be
    /// complete.
    ///
    /// # Errors
    /// [`FindError::File`] for a path. [`Found::open`] checks later whether there is a box at the path. It reports an unusable
    /// store only if the directory lacks blobs.
    ///
    /// For other references: [`FindError::NoStore`], [`FindError::NoName`], [`FindError::NotPulled`], [`FindError::NoBox`],
    /// [`FindError::Store`] and [`FindError::Base`].
    pub fn find(&self, stores: impl Into<Stores>) -> Result<Found, FindError> {
        let stores = stores.into();
        let root = match (&self.kind, &stores.own) {
            (Kind::Path(path), _) if is_archive(path) => return Err(FindError::File(path.clone())),
            (Kind::Path(path), _) => return Ok(self.at(path, &stores)),
            (_, own) => own.as_deref().ok_or(FindError::NoStore)?,
        };
        let boxes = stores.boxes(root)?.with_base(stores.base()?);
        let digest = self.digest_of(&boxes, root);
        let digest = digest.map_err(|error| error.in_store(stores.is_named))?;
        let directory = boxes.directory(&digest);
        if !directory.is_dir() {
            return Err(FindError::NoBox(digest));
        }
        let base = boxes.base().map(Base::blobs);
        let places = Places::new(directory, Some(&boxes.blobs())).with_base(base);
        let expected = [digest].into_iter().chain(self.pinned).collect();
        let root = Some(root.to_owned());
        Ok(Found { places, expected, root, unusable: None, _boxes: Some(boxes) })
    }

    /// Returns the digest of the box in the store `root` to which this reference refers. `note` is that of [`Stores`].
    ///
    /// # Errors
    /// [`FindError::NoName`], [`FindError::NotPulled`], [`FindError::Store`], and [`FindError::OtherBox`] if the user wrote
    /// another digest. [`FindError::NoStore`] for a path, which refers to no box of a store.
    pub fn digest_in(&self, root: &Path, note: fn(&str)) -> Result<Digest, FindError> {
        let stores = Stores { note: Some(note), ..Stores::default() };
        let found = self.digest_of(&stores.boxes(root)?, root)?;
        match self.pinned.filter(|it| *it != found) {
            Some(expected) => Err(FindError::OtherBox { expected, found }),
            None => Ok(found),
        }
    }

    /// Returns the digest of the box in `boxes`, the boxes of the store `root`.
    fn digest_of(&self, boxes: &StoredBoxes, root: &Path) -> Result<Digest, FindError> {
        match &self.kind {
            Kind::Digest(digest) => Ok(*digest),
            Kind::Name(name) => {
                let named = boxes.named(name)?.map(|it| it.digest);
                named.ok_or_else(|| FindError::NoName {
                    name: name.clone(),
                    store: root.to_owned(),
                    is_here: is_box(Path::new(name)),
                    is_named: false,
                })
            }
            // The digest alone identifies the box, even if it was pulled under another name.
            Kind::Remote(RemoteName { digest: Some(pin), .. }) if boxes.directory(pin).is_dir() => {
                Ok(*pin)
            }
            Kind::Remote(name) => {
                let is_it = |it: &Pulled| {
                    name.digest.is_none_or(|pin| [it.digest, it.registry_digest].contains(&pin))
                };
                let mut pulled = boxes.pulled(&name.unpinned().to_string())?.filter(is_it);
                if pulled.is_none() && name.digest.is_some() {
                    // The box is recorded without its tag if it was fetched by its digest because the tag meant another box.
                    let by_digest = RemoteName { tag: None, ..name.clone() }.to_string();
                    pulled = boxes.pulled(&by_digest)?.filter(is_it);
                }
                let missing = || FindError::NotPulled(Box::new(name.clone()));
                pulled.map(|it| it.digest).ok_or_else(missing)
            }
            // A path refers to no box of a store. `find` handles paths itself.
            Kind::Path(_) => Err(FindError::NoStore),
        }
    }

    /// Returns the box in `directory`. Its missing blobs may be in the stores.
    fn at(&self, directory: &Path, stores: &Stores) -> Found {
        let own = stores.own.as_deref().map(StoredBoxes::blobs_of).transpose();
        let own = own.map_err(FindError::from);
        let (blobs, base, unusable) = match own.and_then(|blobs| Ok((blobs, stores.base()?))) {
            Ok((blobs, base)) => (blobs, base, None),
            Err(error) => (None, None, Some(error)),
        };
        let places =
            Places::new(directory, blobs.as_deref()).with_base(base.as_ref().map(Base::blobs));
        let expected = self.pinned.into_iter().collect();
        let root = stores.own.clone().filter(|_| unusable.is_none());
        Found { places, expected, root, unusable, _boxes: None }
    }
}

impl Kind {
    fn parse(bytes: &[u8]) -> Result<Self, FindError> {
        let text = OsStr::from_bytes(bytes);
        if is_tagged(bytes) {
            return Err(FindError::NoHost { text: text.to_string_lossy().into_owned() });
        }
        if is_path(bytes) {
            return Ok(Self::Path(text.into()));
        }
        if bytes.starts_with(&PINNED[1..]) {
            return digest(bytes).map(Self::Digest);
        }
        match text.to_str().filter(|it| is_name(it)) {
            Some(name) => Ok(Self::Name(name.to_owned())),
            None => {
                let is_here = is_box(Path::new(text));
                Err(FindError::NotAName { text: text.to_string_lossy().into_owned(), is_here })
            }
        }
    }
}

impl Found {
    /// Adds a digest that the box must have.
    #[must_use]
    pub fn expect(mut self, digest: Option<Digest>) -> Self {
        self.expected.extend(digest);
        self
    }

    /// Opens the box, and checks its digest.
    ///
    /// # Errors
    /// [`FindError::Open`] and [`FindError::OtherBox`].
    pub fn open(self) -> Result<OpenBox, FindError> {
        match OpenBox::open(self.places.clone()) {
            Ok(opened) => self.check(opened.digest).map(|()| opened),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Opens the box like [`Self::open`], and marks it as running: the store keeps the box until the returned [`Held`] is
    /// dropped. [`Held`] is `None` if the store does not have the box.
    ///
    /// # Errors
    /// The errors of [`Self::open`].
    pub fn open_to_run(self) -> Result<(OpenBox, Option<Held>), FindError> {
        let opened = match OpenBox::open(self.places.clone()) {
            Ok(opened) => self.check(opened.digest).map(|()| opened)?,
            Err(error) => return Err(self.explain(error)),
        };
        // Marks the box while `self` still prevents deletions in the store.
        let held = self.root.as_deref().and_then(|root| hold(root, &opened.digest));
        Ok((opened, held))
    }

    /// Reads the documents of the box, and checks its digest.
    ///
    /// # Errors
    /// The errors of [`Self::open`].
    pub fn documents(self) -> Result<Documents, FindError> {
        match Documents::read(self.places.clone()) {
            Ok(documents) => self.check(documents.digest).map(|()| documents),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Converts the error of opening the box. If the box lacks a blob and the store cannot be used, returns the reason for that,
    /// because the blob may be in the store.
    fn explain(self, error: OpenError) -> FindError {
        match (error, self.unusable) {
            (OpenError::Absent { .. }, Some(unusable)) => unusable,
            (error, _) => error.into(),
        }
    }

    fn check(&self, found: Digest) -> Result<(), FindError> {
        match self.expected.iter().find(|it| **it != found) {
            Some(expected) => Err(FindError::OtherBox { expected: *expected, found }),
            None => Ok(()),
        }
    }
}

/// Returns the places of the box with a digest in a store, which need not have the box.
pub fn places_in(store: &Store, digest: &Digest) -> Places {
    let places = Places::new(store.box_directory(digest), Some(&store.blobs()));
    places.with_base(store.base().map(Base::blobs))
}

/// Returns whether a text is a path: by its beginning or end, or because it has a `/` after a part that is no server. For
/// example, `out/hello` is a path, and `ghcr.io/hello` is a name in a registry.
fn is_path(bytes: &[u8]) -> bool {
    let has_directory = bytes.contains(&b'/') && !RemoteName::begins(bytes);
    is_written_as_path(bytes) || has_directory
}

/// Returns whether a path is a file with the suffix of an archive.
fn is_archive(path: &Path) -> bool {
    let name = path.as_os_str().as_bytes();
    let ends = PATH_ENDS[1..].iter().any(|end| name.ends_with(end.as_bytes()));
    ends && path.is_file()
}

/// Returns whether a directory is probably a box, because it contains the file `oci-layout`.
fn is_box(path: &Path) -> bool {
    path.join("oci-layout").is_file()
}

/// Returns whether a text is a path by its beginning or its end: `/a`, `./a`, `../a`, `a/`, `a.box`, `.` or `..`.
fn is_written_as_path(bytes: &[u8]) -> bool {
    let ends = bytes.ends_with(b"/") || PATH_ENDS.iter().any(|end| bytes.ends_with(end.as_bytes()));
    let begins = [&b"/"[..], b"./", b"../"].iter().any(|it| bytes.starts_with(it));
    begins || ends || [&b"."[..], b".."].contains(&bytes)
}

/// Returns whether the last part of a text has a tag, and the text is neither a path nor a digest: `hello:v1`, `acme/hello:v1`.
fn is_tagged(bytes: &[u8]) -> bool {
    let last = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    last.contains(&b':') && !is_written_as_path(bytes) && !bytes.starts_with(&PINNED[1..])
}

fn remote(bytes: &[u8]) -> Result<RemoteName, FindError> {
    let text = String::from_utf8_lossy(bytes);
    RemoteName::parse(&text)
        .map_err(|reason| FindError::BadRemote { text: text.into_owned(), reason })
}

fn digest(bytes: &[u8]) -> Result<Digest, FindError> {
    let text = String::from_utf8_lossy(bytes);
    text.parse().map_err(|_| FindError::BadDigest(text.into_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use box_cache::{Named, Owner};
    use box_layout::OpenBox;
    use testkit::TestBox;
    use testkit::test_box::config;

    use super::*;

    const HEX: &str = "7777777777777777777777777777777777777777777777777777777777777777";

    fn parse(text: &str) -> Result<BoxReference, String> {
        BoxReference::parse(text.as_ref()).map_err(|error| error.to_string())
    }

    #[test]
    fn how_a_text_is_written_says_what_it_means() {
        for path in [
            "a.box",
            "d/a.box",
            "/a",
            "./a",
            "../a",
            "a/",
            ".",
            "..",
            "a.tar",
            "a.tar.gz",
            "a.tgz",
            "a.tar.zst",
            "A b.box",
            "a@b.box",
            "a/b",
            "A b/c.d/e",
        ] {
            let found = parse(path).unwrap();
            assert_eq!(found.path(), Some(Path::new(path)));
            assert!(!found.names_digest());
        }
        for name in ["hello", "a", "my-agent", "box", "0"] {
            let kind = Kind::Name(name.to_owned());
            assert_eq!(parse(name).unwrap(), BoxReference { kind, pinned: None });
        }
        for remote in ["ghcr.io/a/b:1", "localhost/a:1", "h:1/a:1"] {
            let found = parse(remote).unwrap();
            assert_eq!(found.remote().unwrap().to_string(), remote);
            assert!(!found.names_digest());
            assert!(parse(&format!("{remote}@sha256:{HEX}")).unwrap().names_digest());
        }
        let digest: Digest = format!("sha256:{HEX}").parse().unwrap();
        let found = parse(&format!("sha256:{HEX}")).unwrap();
        assert_eq!(found.kind, Kind::Digest(digest));
        assert!(found.names_digest());
        for name in ["hello", "./hello", "hello.box"] {
            let found = parse(&format!("{name}@sha256:{HEX}")).unwrap();
            assert!(found.names_digest());
            assert_eq!(found, BoxReference { pinned: Some(digest), ..parse(name).unwrap() });
        }
    }

    #[test]
    fn what_can_be_no_box_is_refused() {
        for text in ["", "Hello", "a b", "a@b", "-a", "a.b", "\u{1b}[m", "ghcr.io"] {
            let error = parse(text).unwrap_err();
            assert!(error.ends_with("is neither a path nor the name of a box"), "{error}");
            assert!(!error.contains('\u{1b}'));
        }
        for text in ["a:1", "acme/hello:v1", "a:\u{1b}[m"] {
            let error = parse(text).unwrap_err();
            assert!(error.ends_with(" names no registry") && !error.contains('\u{1b}'), "{error}");
        }
        for text in ["ghcr.io/A", "localhost:x/a", "ghcr.io/a:\u{1b}[m", "ghcr.io/a@sha256:7"] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(" is not the name of a box in a registry: "), "{error}");
            assert!(!error.contains('\u{1b}'));
        }
        for text in ["oci:images/agent", "oci:hello.box", "docker-archive:a.tar", "oci:\u{1b}[m"] {
            let error = parse(text).unwrap_err();
            assert!(error.ends_with(" is an OCI image, not a box"), "{error}");
            assert!(!error.contains('\u{1b}'));
        }
        for text in ["sha256:", "sha256:77", "hello@sha256:", "a.box@sha256:zz"] {
            assert!(parse(text).unwrap_err().ends_with("is not a digest"), "{text}");
        }
    }

    /// A store with the blobs of a box, and the box's digest.
    fn stored_box(root: &Path) -> (Store, Digest) {
        let (made, store) = (TestBox::new(&config()), Store::open(root).unwrap());
        let opened = OpenBox::open(made.path()).unwrap();
        for (name, now) in opened.files() {
            let bytes = fs::read(now).unwrap();
            if name.starts_with("blobs") {
                store.put(&bytes).unwrap();
            } else {
                let directory = store.box_directory(&opened.digest);
                fs::create_dir_all(&directory).unwrap();
                fs::write(directory.join(name), bytes).unwrap();
            }
        }
        (store, opened.digest)
    }

    #[test]
    fn a_box_of_the_store_is_opened_by_its_name_and_by_its_digest() {
        let root = tempfile::tempdir().unwrap();
        let (store, digest) = stored_box(root.path());
        let open = |text: &str| {
            let find = || BoxReference::parse(text.as_ref())?.find(Some(root.path()));
            let documents = find()?.documents().map(|it| it.digest);
            let opened = find()?.open().map(|it| it.digest);
            assert_eq!(documents.ok(), opened.as_ref().ok().copied());
            opened
        };
        assert_eq!(open(&digest.to_string()).unwrap(), digest);
        let absent = open("hello").unwrap_err();
        assert!(matches!(absent, FindError::NoName { is_here: false, .. }), "{absent}");
        let named =
            Stores { own: Some(root.path().to_owned()), is_named: true, ..Stores::default() };
        let absent = BoxReference::parse("hello".as_ref()).unwrap().find(named).unwrap_err();
        assert!(matches!(absent, FindError::NoName { is_named: true, .. }), "{absent}");
        let owner = Owner::Boxfile(root.path().join("version"));
        store.name_box("hello", &Named { digest, owner }).unwrap();
        assert_eq!(open("hello").unwrap(), digest);
        assert_eq!(open(&format!("hello@{digest}")).unwrap(), digest);
        let other = open(&format!("hello@sha256:{HEX}")).unwrap_err();
        assert!(matches!(other, FindError::OtherBox { found, .. } if found == digest));
        let absent = open(&format!("sha256:{HEX}")).unwrap_err();
        assert!(matches!(absent, FindError::NoBox(_)), "{absent}");
    }

    #[test]
    fn a_box_that_was_pulled_is_found_by_either_digest() {
        let root = tempfile::tempdir().unwrap();
        let (store, digest) = stored_box(root.path());
        let registry_digest = Digest::of(b"the registry's manifest");
        let open = |text: &str| {
            BoxReference::parse(text.as_ref())?.find(Some(root.path()))?.open().map(|it| it.digest)
        };
        let absent = open("ghcr.io/acme/hello:v1").unwrap_err();
        assert!(matches!(absent, FindError::NotPulled(_)), "{absent}");
        let reference = "ghcr.io/acme/hello:v1".to_owned();
        store
            .note_pulled(&Pulled {
                reference,
                digest,
                registry_digest,
                is_asked: true,
                is_loaded: false,
            })
            .unwrap();
        for pin in [String::new(), format!("@{digest}"), format!("@{registry_digest}")] {
            assert_eq!(open(&format!("ghcr.io/acme/hello:v1{pin}")).unwrap(), digest);
        }
        // The tag means another box now. The digest still finds the first box.
        let reference = "ghcr.io/acme/hello:v1".to_owned();
        let moved = Pulled {
            reference,
            digest: registry_digest,
            registry_digest,
            is_asked: true,
            is_loaded: false,
        };
        store.note_pulled(&moved).unwrap();
        assert_eq!(open(&format!("ghcr.io/acme/hello:v1@{digest}")).unwrap(), digest);
        for other in [format!("ghcr.io/acme/hello:v1@sha256:{HEX}"), "ghcr.io/acme/hello".into()] {
            assert!(matches!(open(&other), Err(FindError::NotPulled(_))), "{other}");
        }
    }

    #[test]
    fn a_name_whose_box_was_exchanged_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let (store, digest) = stored_box(root.path());
        let owner = Owner::Boxfile(root.path().join("version"));
        let meant: Digest = format!("sha256:{HEX}").parse().unwrap();
        store.name_box("hello", &Named { digest: meant, owner }).unwrap();
        fs::rename(store.box_directory(&digest), store.box_directory(&meant)).unwrap();
        let find = || parse("hello").unwrap().find(Some(root.path())).unwrap();
        assert!(matches!(find().open(), Err(FindError::OtherBox { .. })));
        assert!(matches!(find().documents(), Err(FindError::OtherBox { .. })));
    }

    #[test]
    fn a_whole_box_is_opened_beside_a_store_that_cannot_be_used() {
        let (made, root) = (TestBox::new(&config()), tempfile::tempdir().unwrap());
        fs::write(root.path().join("version"), "another store").unwrap();
        let path = made.path().as_os_str();
        let find = |word| BoxReference::parse(word).unwrap().find(Some(root.path()));
        let opened = find(path).unwrap().open().unwrap();
        let kernel = made.blob(box_contract::manifest::KERNEL_TYPE);
        let bytes = fs::read(&kernel).unwrap();
        fs::remove_file(&kernel).unwrap();
        let unusable = find(path).unwrap().open().unwrap_err();
        assert!(matches!(unusable, FindError::Store(_)), "{unusable}");
        fs::write(&kernel, bytes).unwrap();
        assert!(matches!(find("hello".as_ref()), Err(FindError::Store(_))));
        let other: Digest = format!("sha256:{HEX}").parse().unwrap();
        find(path).unwrap().expect(Some(opened.digest)).open().unwrap();
        let refused = find(path).unwrap().expect(Some(other)).open().unwrap_err();
        assert!(matches!(refused, FindError::OtherBox { .. }), "{refused}");
    }

    /// The rows of the page are words that a user may type.
    #[test]
    fn the_page_shows_the_forms() {
        let page = include_str!("../../../docs/commands.md");
        let (_, page) = page.split_once("| written | means |").unwrap();
        let lines = page.lines().skip(2).take_while(|line| line.starts_with('|'));
        let lines: Vec<_> = lines.collect();
        for end in PATH_ENDS {
            assert!(lines[3].contains(&format!("`{end}`")), "{end}");
        }
        let rows: Vec<_> =
            lines.iter().map(|row| row.split('|').nth(1).unwrap().to_owned()).collect();
        let kinds = rows.iter().map(|row| {
            let words = row.split('`').skip(1).step_by(2);
            let digest = |word: &str| word.replace("8f3c…", HEX);
            words.map(|word| parse(&digest(word)).unwrap().kind).collect::<Vec<_>>()
        });
        let kinds: Vec<_> = kinds.collect();
        assert!(matches!(kinds[0][..], [Kind::Name(_)]), "{kinds:?}");
        assert!(matches!(kinds[1][..], [Kind::Digest(_)]), "{kinds:?}");
        assert!(kinds[2].iter().all(|it| matches!(it, Kind::Remote(_))), "{kinds:?}");
        assert!(kinds[3].len() > 4 && kinds[3].iter().all(|it| matches!(it, Kind::Path(_))));
    }

    #[test]
    fn without_a_store_there_are_paths_only() {
        assert!(parse("./a").unwrap().find(None).unwrap().places.store.is_none());
        assert!(matches!(parse("hello").unwrap().find(None), Err(FindError::NoStore)));
    }
}
