//! The labels of boxes: names, and the references under which boxes were pulled.

use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use box_digest::Digest;
use host_fs::read::{Links, ReadError, open_regular, read_open};
use host_fs::trust::is_private;

use crate::StoreError;
use crate::boxes::MAX_RECORD_BYTES;
use crate::error::IoContext;

/// The box that has a name, and the owner of the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The digest of the box.
    pub digest: Digest,
    /// The owner of the name.
    pub owner: Owner,
}

/// The owner of a name. A Boxfile is identified by its absolute path, an image by its full reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The Boxfile that declares the name in `box`. The name means the newest box of this Boxfile.
    Boxfile(PathBuf),
    /// The Boxfile of a box for which a person chose the name. The box is kept.
    Tagged(PathBuf),
    /// No Boxfile, because the box was loaded from an archive. The box is kept, and no build takes the name.
    Archive,
    /// The image from which the box was made without a Boxfile, such as `docker://docker.io/library/debian:13`. The name means the
    /// newest box of this image, until a Boxfile takes it.
    Image(String),
}

/// The prefix of the record of [`Owner::Tagged`]. The record of [`Owner::Boxfile`] begins with the `/` of its path.
const TAGGED: &[u8] = b"tagged ";
/// The record of [`Owner::Archive`].
const ARCHIVE: &[u8] = b"archive";
/// The prefix of the record of [`Owner::Image`].
const IMAGE: &[u8] = b"image ";

/// Describes the box that has the name: `the box of /work/hello/Boxfile`.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boxfile(path) | Self::Tagged(path) => write!(f, "the box of {}", path.display()),
            Self::Archive => f.write_str("a box that was loaded from a file"),
            Self::Image(reference) => write!(f, "the box of the image {reference}"),
        }
    }
}

impl Owner {
    /// Returns the Boxfile that owns the name.
    pub fn boxfile(&self) -> Option<&Path> {
        match self {
            Self::Boxfile(path) | Self::Tagged(path) => Some(path),
            Self::Archive | Self::Image(_) => None,
        }
    }

    /// Returns the reference of the image that owns the name.
    pub fn image(&self) -> Option<&str> {
        match self {
            Self::Image(reference) => Some(reference),
            _ => None,
        }
    }

    /// Returns whether two values are the same Boxfile or the same image.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.boxfile(), self.image()) == (other.boxfile(), other.image())
    }

    /// Returns whether a person wants to keep the box, even if it is not used for a long time.
    pub const fn keeps(&self) -> bool {
        !matches!(self, Self::Boxfile(_) | Self::Image(_))
    }

    /// Returns whether the owner's Boxfile does not exist any more, or the owner has none.
    pub(crate) fn is_gone(&self) -> bool {
        self.boxfile().is_none_or(is_gone)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Boxfile(path) => path.as_os_str().as_bytes().to_vec(),
            Self::Tagged(path) => [TAGGED, path.as_os_str().as_bytes()].concat(),
            Self::Archive => ARCHIVE.to_vec(),
            Self::Image(reference) => [IMAGE, reference.as_bytes()].concat(),
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if let Some(bytes) = bytes.strip_prefix(TAGGED) {
            return Some(Self::Tagged(path(bytes)));
        }
        if let Some(bytes) = bytes.strip_prefix(IMAGE) {
            return Some(Self::Image(std::str::from_utf8(bytes).ok()?.to_owned()));
        }
        match bytes {
            ARCHIVE => Some(Self::Archive),
            _ => bytes.starts_with(b"/").then(|| Self::Boxfile(path(bytes))),
        }
    }
}

impl Named {
    /// Encodes the file of a name: a line with the digest, then the owner.
    pub(crate) fn encode(&self) -> Vec<u8> {
        [format!("{}\n", self.digest).into_bytes(), self.owner.encode()].concat()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (digest, owner) = line(bytes)?;
        Some(Self { digest: digest.parse().ok()?, owner: Owner::decode(owner)? })
    }
}

/// A box with a reference to a registry, under which it was pulled, or which the archive declares from which it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// The reference: `HOST/NAME:TAG`, or `HOST/NAME@sha256:…`.
    pub reference: String,
    /// The digest of the box.
    pub digest: Digest,
    /// The digest of the registry's manifest when the box was pulled. The box's digest if it was loaded.
    pub registry_digest: Digest,
    /// Whether a person pulled the box, so that the box is kept. If false, a start fetched the box, and can fetch it again.
    pub is_asked: bool,
    /// Whether the reference is only what an archive declares: no registry has shown the box under it.
    pub is_loaded: bool,
}

/// The prefix of the record of a box that a start has fetched. Records without a prefix begin with a digest.
const FETCHED: &[u8] = b"fetched\n";
/// The prefix of the record of a box that was loaded from an archive.
const LOADED: &[u8] = b"loaded\n";
/// The prefix of the record of a box that a person pulled, if the registry's manifest is the box's own. Earlier versions wrote no
/// prefix for it, nor for a box that was loaded. So a record without a prefix is that of a loaded box if its digests are equal.
const PULLED: &[u8] = b"pulled\n";

impl Pulled {
    /// Returns the name of the box's file in `pulled/`: a hash, because a reference can be longer than a file name.
    pub(crate) fn file_name(&self) -> String {
        Digest::of(self.reference.as_bytes()).hex()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let text = format!("{}\n{}\n{}", self.digest, self.registry_digest, self.reference);
        let prefix = match self {
            Self { is_loaded: true, .. } => LOADED,
            Self { is_asked: false, .. } => FETCHED,
            _ if self.digest == self.registry_digest => PULLED,
            _ => b"",
        };
        [prefix, text.as_bytes()].concat()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let prefix = [FETCHED, LOADED, PULLED].into_iter().find(|it| bytes.starts_with(it));
        let (digest, bytes) = line(&bytes[prefix.map_or(0, <[u8]>::len)..])?;
        let (registry_digest, reference) = line(bytes)?;
        let reference = std::str::from_utf8(reference).ok()?.to_owned();
        let [digest, registry_digest] = [digest, registry_digest].map(str::parse);
        let (digest, registry_digest): (Digest, Digest) = (digest.ok()?, registry_digest.ok()?);
        let is_asked = prefix != Some(FETCHED);
        let is_loaded = prefix.map_or(digest == registry_digest, |it| it == LOADED);
        Some(Self { reference, digest, registry_digest, is_asked, is_loaded })
    }
}

/// Splits off the first line.
fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

/// A name or reference by which a user finds a box of the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// A name.
    Name(String),
    /// The reference under which the box was pulled, or which its archive declares: `HOST/NAME:TAG`.
    Pulled(String),
}

impl Label {
    /// Returns the text by which `boxlaunch run` finds the box.
    pub fn text(&self) -> &str {
        match self {
            Self::Name(text) | Self::Pulled(text) => text,
        }
    }

    /// Returns the file of the label in a store, or `None` if its text is not a valid name.
    pub(crate) fn path(&self, root: &Path) -> Option<PathBuf> {
        match self {
            Self::Name(name) => name_path(root, name),
            Self::Pulled(reference) => Some(pulled_path(root, reference)),
        }
    }

    /// Returns the box that has the label in the store `root`.
    pub(crate) fn means(&self, root: &Path) -> Result<Option<Digest>, StoreError> {
        let Some(path) = self.path(root) else { return Ok(None) };
        Ok(match self {
            Self::Name(_) => read(&path, Named::decode)?.map(|it| it.digest),
            Self::Pulled(_) => read(&path, Pulled::decode)?.map(|it| it.digest),
        })
    }
}

/// Returns the file of a name. Returns `None` for an invalid name, which could be a path to another directory or contain control
/// characters.
pub(crate) fn name_path(root: &Path, name: &str) -> Option<PathBuf> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name = !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_part);
    is_name.then(|| root.join("names").join(name))
}

pub(crate) fn pulled(root: &Path, reference: &str) -> Result<Option<Pulled>, StoreError> {
    let found = read(&pulled_path(root, reference), Pulled::decode)?;
    Ok(found.filter(|it| it.reference == reference))
}

/// Returns the file of a reference; see [`Pulled::file_name`].
pub(crate) fn pulled_path(root: &Path, reference: &str) -> PathBuf {
    root.join("pulled").join(Digest::of(reference.as_bytes()).hex())
}

/// Returns whether the file of a name must be written. Refuses to take the name from another Boxfile that still exists, for a box
/// of an image also from another image, and for a loaded box from any other box.
pub(crate) fn may_name(
    name: &str,
    before: Option<&Named>,
    named: &Named,
) -> Result<bool, StoreError> {
    match before.filter(|it| belongs_to_another(&it.owner, &named.owner)) {
        Some(others) if others.digest == named.digest => Ok(false),
        Some(others) => {
            Err(StoreError::NameTaken { name: name.to_owned(), owner: others.owner.clone() })
        }
        None => Ok(before != Some(named)),
    }
}

/// Returns whether a name of `theirs` is not for `mine` to take.
pub(crate) fn belongs_to_another(theirs: &Owner, mine: &Owner) -> bool {
    match mine {
        // A loaded box takes no name from another box, because a user who loads an archive does not know the names in it.
        Owner::Archive => true,
        // A user has loaded the box and may start it by the name, also with secrets. A Boxfile of a stranger must not take its place.
        _ if *theirs == Owner::Archive => true,
        mine if mine.is_same(theirs) => false,
        Owner::Image(_) => theirs.image().is_some() || !theirs.is_gone(),
        Owner::Boxfile(_) | Owner::Tagged(_) => !theirs.is_gone(),
    }
}

/// Returns whether there is no file at `path`. A path that cannot be examined is treated as existing.
pub(crate) fn is_gone(path: &Path) -> bool {
    let kind = path.symlink_metadata().map_err(|error| error.kind());
    matches!(kind, Err(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}

/// Reads the file of a name.
pub(crate) fn read_name(path: &Path) -> Result<Option<Named>, StoreError> {
    read(path, Named::decode)
}

/// Reads the file of a label. Returns `None` if the file is damaged or another user can change it.
pub(crate) fn read<T>(
    path: &Path,
    decode: fn(&[u8]) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    let bytes = open_regular(path, Links::Refuse).and_then(|file| {
        let is_private = is_private(&file)?;
        Ok(is_private.then_some(read_open(&file, MAX_RECORD_BYTES)?))
    });
    match bytes {
        Ok(bytes) => Ok(bytes.and_then(|it| decode(&it))),
        Err(ReadError::Io(error)) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context("read", path)
        }
        Err(_) => Ok(None),
    }
}

pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    std::ffi::OsString::from_vec(bytes.to_vec()).into()
}
