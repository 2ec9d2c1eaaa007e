//! A finished box on disk, opened to be told of: what is in it, and where that came from.
//!
//! A box comes from strangers as images do: every document is bounded and must have the digest that
//! names it. What boots is opened but not hashed; that is what `boxlaunch verify` does.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use box_image::manifest::{ARTIFACT_TYPE, FORMAT_EPOCH, LISTING_TYPE, ROOTFS_TYPE};
use box_image::{BoxConfig, Descriptor, Digest, Index, Manifest};
use box_tree::listing::{LISTING_BYTES, Listing, ListingError};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

/// Bounds on documents, in bytes.
const DOCUMENT_MAX: u64 = 4 << 20;
const BLOB_MAX: u64 = 512 << 20;

/// Why a box cannot be told of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is nothing.
    #[error(
        "there is no {}; name the directory that `boxbuild build` wrote, such as NAME.box",
        path.display()
    )]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// It is no box.
    #[error(
        "{} is not a box; name the directory that `boxbuild build` wrote, such as NAME.box",
        path.display()
    )]
    NotABox {
        /// The directory.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A blob is not the one that the box names.
    #[error("{} is not what the box names; copy or build the box again", path.display())]
    Damaged {
        /// The blob's file.
        path: PathBuf,
    },
    /// A document does not read.
    #[error("{} does not read: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why not.
        message: String,
    },
    /// The box lacks a blob, as those of other versions may.
    #[error("the box {} has no {what}; build it again with this version of boxbuild", path.display())]
    Lacks {
        /// The box.
        path: PathBuf,
        /// What it lacks.
        what: &'static str,
    },
    /// The box is of another format epoch.
    #[error(
        "the box {} is of format epoch {found}, and this version knows {FORMAT_EPOCH}; \
         use the boxbuild that built it",
        path.display()
    )]
    Epoch {
        /// The box.
        path: PathBuf,
        /// Its epoch.
        found: u32,
    },
    /// The listing is none.
    #[error("the listing of {} is damaged", path.display())]
    Listing {
        /// The box.
        path: PathBuf,
        /// What is wrong with it.
        source: ListingError,
    },
    /// The listing is not that of the rootfs.
    #[error(
        "the listing of {} is not that of its rootfs; somebody changed the box: do not use it",
        path.display()
    )]
    WrongListing {
        /// The box.
        path: PathBuf,
    },
}

/// An opened box: its documents are verified.
#[derive(Debug)]
pub struct OpenedBox {
    dir: PathBuf,
    /// The box digest.
    pub digest: Digest,
    /// The manifest.
    pub manifest: Manifest,
    /// The config.
    pub config: BoxConfig,
}

impl OpenedBox {
    /// Opens the box in a directory.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join("index.json");

        let bytes = read(&path, DOCUMENT_MAX).map_err(|error| without_index(dir, error))?;
        let index: Index = parsed(path, &bytes)?;
        let [named] = index.manifests.as_slice() else {
            return Err(OpenError::NotABox { path: dir.to_owned() });
        };
        if named.artifact_type.as_deref() != Some(ARTIFACT_TYPE) {
            return Err(OpenError::NotABox { path: dir.to_owned() });
        }
        let manifest: Manifest = document(dir, named)?;
        let config: BoxConfig = document(dir, &manifest.config)?;
        match config.epoch {
            FORMAT_EPOCH => {
                Ok(Self { dir: dir.to_owned(), digest: named.digest, manifest, config })
            }
            found => Err(OpenError::Epoch { path: dir.to_owned(), found }),
        }
    }

    /// Reads the listing, which must be that of the rootfs.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn listing(&self) -> Result<Listing, OpenError> {
        let named = self.named(LISTING_TYPE, "listing")?;
        let listing = Listing::decode(&verified(&self.dir, named, LISTING_BYTES as u64)?)
            .map_err(|source| OpenError::Listing { path: self.dir.clone(), source })?;
        if listing.tree.digest().to_string() == self.config.tree {
            return Ok(listing);
        }
        Err(OpenError::WrongListing { path: self.dir.clone() })
    }

    /// Reads a blob whole and verifies it; `what` names it for people.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn blob(&self, media_type: &str, what: &'static str) -> Result<Vec<u8>, OpenError> {
        verified(&self.dir, self.named(media_type, what)?, BLOB_MAX)
    }

    /// Opens the rootfs, of which only the size is checked.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn rootfs(&self) -> Result<File, OpenError> {
        let named = self.named(ROOTFS_TYPE, "rootfs")?;
        let path = blob_path(&self.dir, &named.digest);
        let file = open(&path)?;
        let size = file.metadata().map(|metadata| metadata.len());
        match size.map_err(|source| OpenError::Io { path: path.clone(), source })? {
            size if size == named.size => Ok(file),
            _ => Err(OpenError::Damaged { path }),
        }
    }

    fn named(&self, media_type: &str, what: &'static str) -> Result<&Descriptor, OpenError> {
        let blob = self.manifest.blob(media_type);
        blob.ok_or_else(|| OpenError::Lacks { path: self.dir.clone(), what })
    }
}

/// Says why a directory has no index that can be read.
fn without_index(dir: &Path, error: OpenError) -> OpenError {
    let path = dir.to_owned();
    match &error {
        OpenError::Io { source, .. } => match source.kind() {
            io::ErrorKind::NotFound if !dir.exists() => OpenError::Missing { path },
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => OpenError::NotABox { path },
            _ => error,
        },
        _ => error,
    }
}

fn document<T: DeserializeOwned>(dir: &Path, named: &Descriptor) -> Result<T, OpenError> {
    let bytes = verified(dir, named, DOCUMENT_MAX)?;
    parsed(blob_path(dir, &named.digest), &bytes)
}

fn parsed<T: DeserializeOwned>(path: PathBuf, bytes: &[u8]) -> Result<T, OpenError> {
    serde_json::from_slice(bytes)
        .map_err(|error| OpenError::Malformed { path, message: error.to_string() })
}

fn verified(dir: &Path, named: &Descriptor, limit: u64) -> Result<Vec<u8>, OpenError> {
    let path = blob_path(dir, &named.digest);
    let bytes = read(&path, limit)?;
    let digest = Digest::from_bytes(Sha256::digest(&bytes).into());
    if bytes.len() as u64 == named.size && digest == named.digest {
        return Ok(bytes);
    }
    Err(OpenError::Damaged { path })
}

/// Reads a file of at most `limit` bytes.
fn read(path: &Path, limit: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    if bytes.len() as u64 <= limit {
        return Ok(bytes);
    }
    let message = format!("it has more than {limit} bytes");
    Err(OpenError::Malformed { path: path.to_owned(), message })
}

/// Opens a regular file. Opening a pipe would wait for somebody to write to it.
fn open(path: &Path) -> Result<File, OpenError> {
    let opened = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => File::open(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        Err(error) => Err(error),
    };
    opened.map_err(|source| OpenError::Io { path: path.to_owned(), source })
}

fn blob_path(dir: &Path, digest: &Digest) -> PathBuf {
    dir.join("blobs").join("sha256").join(digest.hex())
}
