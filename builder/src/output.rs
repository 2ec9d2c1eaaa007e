//! Putting a sealed box where it was asked for: an OCI image layout directory, whole or not at all.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use box_cache::{BlobId, Store, StoreError};
use box_image::manifest::ARTIFACT_TYPE;
use box_image::{Index, OciLayout};

use crate::seal::Sealed;

/// Why a box cannot be put where it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// Something that is no box is there.
    #[error("{} exists and is not a box; remove it, or name another with --output", .0.display())]
    Occupied(PathBuf),
    /// The operating system refused something.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A document does not become JSON.
    #[error(transparent)]
    Document(#[from] serde_json::Error),
}

trait Context<T> {
    fn context(self, doing: &'static str, path: &Path) -> Result<T, OutputError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, doing: &'static str, path: &Path) -> Result<T, OutputError> {
        self.map_err(|source| OutputError::Io { doing, path: path.to_owned(), source })
    }
}

/// Writes a box's directory. A box that is there already is replaced; the same box is left alone.
///
/// Blobs are hard links into the store where the file systems permit, else copies.
///
/// # Errors
/// [`OutputError`]; what was there before is still there.
pub fn write(store: &Store, sealed: &Sealed, output: &Path) -> Result<(), OutputError> {
    let index = serde_json::to_vec(&Index::of_box(sealed.manifest, sealed.manifest_size))?;
    if fs::symlink_metadata(output).is_ok() {
        if !is_box(output) {
            return Err(OutputError::Occupied(output.to_owned()));
        }
        if is_same(output, &index, sealed) {
            return Ok(());
        }
    }
    let parent = match output.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).context("make the directory", parent)?;
    let staging = tempfile::Builder::new()
        .prefix(".boxbuild-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir_in(parent)
        .context("make a directory in", parent)?;
    let new = staging.path().join("new");
    fill(store, sealed, &index, &new)?;
    swap(&new, output, &staging.path().join("old"))?;
    File::open(parent).and_then(|directory| directory.sync_all()).context("flush", parent)
}

fn fill(store: &Store, sealed: &Sealed, index: &[u8], new: &Path) -> Result<(), OutputError> {
    let blobs = new.join("blobs/sha256");
    fs::create_dir_all(&blobs).context("make the directory", &blobs)?;
    for (digest, _) in &sealed.blobs {
        store.export(&BlobId(*digest.as_bytes()), &blobs.join(digest.hex()))?;
    }
    let layout = serde_json::to_vec(&OciLayout::default())?;
    for (name, bytes) in [("oci-layout", layout.as_slice()), ("index.json", index)] {
        let path = new.join(name);
        fs::write(&path, bytes).context("write", &path)?;
        File::open(&path).and_then(|file| file.sync_all()).context("flush", &path)?;
    }
    Ok(())
}

/// Puts `new` in the place of `output`; puts `output` back if that fails.
fn swap(new: &Path, output: &Path, old: &Path) -> Result<(), OutputError> {
    if fs::symlink_metadata(output).is_err() {
        return fs::rename(new, output).context("write", output);
    }
    fs::rename(output, old).context("replace", output)?;
    let swapped = fs::rename(new, output);
    if swapped.is_err() {
        fs::rename(old, output).context("restore", output)?;
    }
    swapped.context("write", output)
}

/// Whether a directory is a box: only then may it be replaced.
fn is_box(path: &Path) -> bool {
    let index = fs::read(path.join("index.json")).unwrap_or_default();
    let index: Option<Index> = serde_json::from_slice(&index).ok();
    index.is_some_and(|index| {
        let mut types = index.manifests.iter().map(|it| it.artifact_type.as_deref());
        types.next() == Some(Some(ARTIFACT_TYPE)) && types.next().is_none()
    })
}

/// Whether a directory is this very box, with blobs that were not touched since.
fn is_same(path: &Path, index: &[u8], sealed: &Sealed) -> bool {
    let blobs = path.join("blobs/sha256");
    let blob_is_there = |digest: &box_image::Digest, size: u64| {
        let metadata = fs::symlink_metadata(blobs.join(digest.hex()));
        metadata.is_ok_and(|it| it.is_file() && it.len() == size && it.nlink() > 1)
    };
    fs::read(path.join("index.json")).is_ok_and(|found| found == index)
        && sealed.blobs.iter().all(|(digest, size)| blob_is_there(digest, *size))
}
