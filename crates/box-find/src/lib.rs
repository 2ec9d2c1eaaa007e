//! Finds the box that a user names: by a path, by a name of the store, or by its digest.
//!
//! | written | means |
//! | --- | --- |
//! | `hello.box`, `/srv/hello`, `./hello`, `../hello`, `out/hello`, `hello/`, `.` | the directory of a box |
//! | `sha256:…` | the box of the store that has this digest |
//! | `hello` | the box of the store that has this name |
//!
//! After each of them, `@sha256:…` says which digest the box has to have. The form of a text decides its meaning; the content of the
//! current directory does not. So a box that may write there cannot take the place of another box.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use box_cache::{Named, StoreError, StoredBoxes};
use box_digest::Digest;
use box_image::rules::is_name;
use box_image::text::shown;
use box_layout::{Documents, OpenBox, OpenError, Places};

/// What separates a box from the digest that it has to have, and begins that digest.
const PINNED: &[u8] = b"@sha256:";

/// An error from finding a box.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum FindError {
    /// The text is neither a path nor a digest, and can be no name.
    #[error("{} is neither a path nor the name of a box", shown(text))]
    NotAName {
        text: String,
        /// Whether there is a directory at this path.
        is_here: bool,
    },
    /// The text after `@` or the whole one begins like a digest, and is none.
    #[error("{0:?} is not a digest")]
    BadDigest(String),
    /// The store knows no box of this name.
    #[error("no box has the name {name} in the store {}", shown(&store.display().to_string()))]
    NoName {
        name: String,
        store: PathBuf,
        /// Whether the current directory has a directory of this name.
        is_here: bool,
    },
    /// A name or a digest was given, and no store.
    #[error("no directory for the store")]
    NoStore,
    /// The store has no box of this digest.
    #[error("the store has no box {0}")]
    NoBox(Digest),
    /// The box is not the one that was meant.
    #[error("the box has the digest {found}, and {expected} was asked for")]
    OtherBox { expected: Digest, found: Digest },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The box cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// What a user wrote to name a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxReference {
    kind: Kind,
    /// The digest that the box has to have.
    pinned: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Path(PathBuf),
    Digest(Digest),
    Name(String),
}

/// A box that was found and is not open yet.
#[derive(Debug)]
pub struct Found {
    places: Places,
    /// The digests that it has to have: those that the user wrote, and that of its name in the store.
    expected: Vec<Digest>,
    /// Why the store cannot be used, if what the directory lacks is needed.
    unusable: Option<StoreError>,
    /// Keeps what the store has until the box is open.
    _boxes: Option<StoredBoxes>,
}

impl BoxReference {
    /// Reads what a user wrote.
    ///
    /// # Errors
    /// [`FindError::NotAName`] or [`FindError::BadDigest`].
    pub fn parse(text: &OsStr) -> Result<Self, FindError> {
        let bytes = text.as_bytes();
        let at = bytes.windows(PINNED.len()).rposition(|it| it == PINNED).filter(|at| *at > 0);
        let (bytes, pinned) = match at {
            Some(at) => (&bytes[..at], Some(digest(&bytes[at + 1..])?)),
            None => (bytes, None),
        };
        Ok(Self { kind: Kind::parse(bytes)?, pinned })
    }

    /// Returns whether the text says by its digest which box it means.
    pub fn names_digest(&self) -> bool {
        self.pinned.is_some() || matches!(self.kind, Kind::Digest(_))
    }

    /// Returns the path of the directory that it names, if it names one.
    pub fn path(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the name of the store that it is, if it is one.
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Finds the box. What a directory lacks is looked for in the store, too; without a store it has to be whole.
    ///
    /// # Errors
    /// [`FindError::NoName`], [`FindError::NoBox`] and [`FindError::Store`]. Whether there is a box at a path, [`Found::open`] finds
    /// out; a directory that is whole needs no store, so that one that cannot be used is no error there.
    pub fn find(&self, store: Option<&Path>) -> Result<Found, FindError> {
        let root = match (&self.kind, store) {
            (Kind::Path(path), store) => return Ok(self.at(path, store)),
            (_, store) => store.ok_or(FindError::NoStore)?,
        };
        let boxes = StoredBoxes::open(root)?;
        let digest = match &self.kind {
            Kind::Name(name) => boxes.named(name)?.ok_or_else(|| FindError::NoName {
                name: name.clone(),
                store: root.to_owned(),
                is_here: Path::new(name).is_dir(),
            })?,
            Kind::Digest(digest) => Named { digest: *digest, owner: PathBuf::new() },
            Kind::Path(_) => return Err(FindError::NoStore),
        }
        .digest;
        let directory = boxes.directory(&digest);
        if !directory.is_dir() {
            return Err(FindError::NoBox(digest));
        }
        let places = Places::new(directory, Some(&boxes.blobs()));
        let expected = [digest].into_iter().chain(self.pinned).collect();
        Ok(Found { places, expected, unusable: None, _boxes: Some(boxes) })
    }

    /// Names the box in a directory.
    fn at(&self, directory: &Path, store: Option<&Path>) -> Found {
        let (blobs, unusable) = match store.map(StoredBoxes::blobs_of).transpose() {
            Ok(blobs) => (blobs, None),
            Err(error) => (None, Some(error)),
        };
        let places = Places::new(directory, blobs.as_deref());
        Found { places, expected: self.pinned.into_iter().collect(), unusable, _boxes: None }
    }
}

impl Kind {
    fn parse(bytes: &[u8]) -> Result<Self, FindError> {
        let text = OsStr::from_bytes(bytes);
        if is_path(bytes) {
            return Ok(Self::Path(text.into()));
        }
        if bytes.starts_with(&PINNED[1..]) {
            return digest(bytes).map(Self::Digest);
        }
        match text.to_str().filter(|it| is_name(it)) {
            Some(name) => Ok(Self::Name(name.to_owned())),
            None => {
                let is_here = Path::new(text).is_dir();
                Err(FindError::NotAName { text: text.to_string_lossy().into_owned(), is_here })
            }
        }
    }
}

impl Found {
    /// Adds a digest that the box has to have.
    #[must_use]
    pub fn expect(mut self, digest: Option<Digest>) -> Self {
        self.expected.extend(digest);
        self
    }

    /// Opens the box, and checks that it is the one that was meant.
    ///
    /// # Errors
    /// [`FindError::Open`] and [`FindError::OtherBox`].
    pub fn open(self) -> Result<OpenBox, FindError> {
        match OpenBox::open(self.places.clone()) {
            Ok(opened) => self.check(opened.digest).map(|()| opened),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Reads the documents of the box, and checks that it is the one that was meant.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn documents(self) -> Result<Documents, FindError> {
        match Documents::read(self.places.clone()) {
            Ok(documents) => self.check(documents.digest).map(|()| documents),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Says why the store was not used, if the box lacks something that may be there.
    fn explain(self, error: OpenError) -> FindError {
        match (error, self.unusable) {
            (OpenError::Absent { .. }, Some(unusable)) => unusable.into(),
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

/// Returns whether a text is a path. One whose first part could be the name of a server is none, as images are named so.
fn is_path(bytes: &[u8]) -> bool {
    let begins = [&b"/"[..], b"./", b"../"].iter().any(|it| bytes.starts_with(it));
    let ends = [&b"/"[..], b".box", b".tar"].iter().any(|it| bytes.ends_with(it));
    let mut parts = bytes.split(|byte| *byte == b'/');
    let first = parts.next().unwrap_or_default();
    let is_server = first == b"localhost" || first.iter().any(|byte| b".:".contains(byte));
    begins || ends || [&b"."[..], b".."].contains(&bytes) || (parts.next().is_some() && !is_server)
}

fn digest(bytes: &[u8]) -> Result<Digest, FindError> {
    let text = String::from_utf8_lossy(bytes);
    text.parse().map_err(|_| FindError::BadDigest(text.into_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use box_cache::Store;
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
        let servers = ["a:1", "ghcr.io/a/b:1", "localhost/a", "h:1/a"];
        let others = ["", "Hello", "a b", "a@b", "-a", "a.b", "\u{1b}[m"];
        for text in servers.into_iter().chain(others) {
            let error = parse(text).unwrap_err();
            assert!(error.ends_with("is neither a path nor the name of a box"), "{error}");
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
        let owner = root.path().join("version");
        store.name_box("hello", &Named { digest, owner }).unwrap();
        assert_eq!(open("hello").unwrap(), digest);
        assert_eq!(open(&format!("hello@{digest}")).unwrap(), digest);
        let other = open(&format!("hello@sha256:{HEX}")).unwrap_err();
        assert!(matches!(other, FindError::OtherBox { found, .. } if found == digest));
        let absent = open(&format!("sha256:{HEX}")).unwrap_err();
        assert!(matches!(absent, FindError::NoBox(_)), "{absent}");
    }

    #[test]
    fn a_name_whose_box_was_exchanged_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let (store, digest) = stored_box(root.path());
        let owner = root.path().join("version");
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
        let kernel = made.blob(box_image::manifest::KERNEL_TYPE);
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
        let rows = page.lines().skip(2).take_while(|line| line.starts_with('|'));
        let rows: Vec<_> = rows.map(|row| row.split('|').nth(1).unwrap().to_owned()).collect();
        let kinds = rows.iter().map(|row| {
            let words = row.split('`').skip(1).step_by(2);
            let digest = |word: &str| word.replace("8f3c…", HEX);
            words.map(|word| parse(&digest(word)).unwrap().kind).collect::<Vec<_>>()
        });
        let kinds: Vec<_> = kinds.collect();
        assert!(matches!(kinds[0][..], [Kind::Name(_)]), "{kinds:?}");
        assert!(matches!(kinds[1][..], [Kind::Digest(_)]), "{kinds:?}");
        assert!(kinds[2].len() > 4 && kinds[2].iter().all(|it| matches!(it, Kind::Path(_))));
    }

    #[test]
    fn without_a_store_there_are_paths_only() {
        assert!(parse("./a").unwrap().find(None).unwrap().places.store.is_none());
        assert!(matches!(parse("hello").unwrap().find(None), Err(FindError::NoStore)));
    }
}
