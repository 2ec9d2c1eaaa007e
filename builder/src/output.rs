//! Putting a sealed box where it was asked for: an OCI image layout directory, whole or not at all.

use std::fs::{self, File, FileType, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use box_cache::{BlobId, Store, StoreError};
use box_image::manifest::ARTIFACT_TYPE;
use box_image::{Digest, Index, OciLayout};
use tempfile::TempDir;

use crate::seal::Sealed;

/// Why a box cannot be put where it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// Something that is no box is there, or something else beside a box.
    #[error(
        "{} exists and {what}; move that away, or name another directory with --output",
        path.display()
    )]
    Occupied {
        /// The directory that the box was to be written to.
        path: PathBuf,
        /// What is there instead, as the end of a sentence.
        what: String,
    },
    /// A symbolic link is there.
    #[error(
        "{} is a symbolic link, which no box replaces; name the directory that it leads to with \
         --output",
        path.display()
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Replacing the box failed, and so did putting back what was there.
    #[error(
        "cannot write {}; what was there is kept as {}: move it back",
        output.display(),
        kept.display()
    )]
    NotRestored {
        /// The directory that the box was to be written to.
        output: PathBuf,
        /// Where that which was there lies now.
        kept: PathBuf,
        /// Why it could not be put back.
        source: io::Error,
    },
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

impl OutputError {
    /// Names the box in the place of a file of its that is still in the staging directory.
    fn outside(self, staging: &Path, output: &Path) -> Self {
        match self {
            Self::Io { path, source, .. } | Self::Store(StoreError::Io { path, source, .. })
                if path.starts_with(staging) =>
            {
                Self::Io { doing: "write", path: output.to_owned(), source }
            }
            error => error,
        }
    }
}

/// Takes out of an error of the crate `tempfile` the path that it ends with, which tells nobody
/// anything.
pub(crate) fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason),
        None => error,
    }
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
/// [`OutputError`]; what was there before is still there, or, with [`OutputError::NotRestored`],
/// beside it.
pub fn write(store: &Store, sealed: &Sealed, output: &Path) -> Result<(), OutputError> {
    let documents = documents(sealed)?;
    // Without a slash at the end, which would follow a symbolic link.
    let output: &Path = &output.components().collect::<PathBuf>();
    if let Ok(there) = fs::symlink_metadata(output) {
        if there.is_symlink() {
            return Err(OutputError::Link { path: output.to_owned() });
        }
        if let Some(what) = obstacle(output).context("read", output)? {
            return Err(OutputError::Occupied { path: output.to_owned(), what });
        }
        if is_same(store, output, &documents, sealed) {
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
        .map_err(without_path)
        .context("write", output)?;
    fill(store, sealed, &documents, &staging.path().join("new"))
        .map_err(|error| error.outside(staging.path(), output))?;
    swap(staging, output)?;
    File::open(parent).and_then(|directory| directory.sync_all()).context("flush", parent)
}

/// The names and bytes of the files that a box has beside its blobs.
type Documents = [(&'static str, Vec<u8>); 2];

fn documents(sealed: &Sealed) -> Result<Documents, OutputError> {
    let index = Index::of_box(sealed.manifest, sealed.manifest_size);
    Ok([
        ("oci-layout", serde_json::to_vec(&OciLayout::default())?),
        ("index.json", serde_json::to_vec(&index)?),
    ])
}

fn fill(
    store: &Store,
    sealed: &Sealed,
    documents: &Documents,
    new: &Path,
) -> Result<(), OutputError> {
    let blobs = new.join("blobs/sha256");
    fs::create_dir_all(&blobs).context("make the directory", &blobs)?;
    for (digest, _) in &sealed.blobs {
        store.export(&BlobId(*digest.as_bytes()), &blobs.join(digest.hex()))?;
    }
    for (name, bytes) in documents {
        let path = new.join(name);
        fs::write(&path, bytes).context("write", &path)?;
        File::open(&path).and_then(|file| file.sync_all()).context("flush", &path)?;
    }
    Ok(())
}

/// Puts the staged box in the place of `output`; puts `output` back if that fails.
fn swap(staging: TempDir, output: &Path) -> Result<(), OutputError> {
    let (new, old) = (staging.path().join("new"), staging.path().join("old"));
    if fs::symlink_metadata(output).is_err() {
        return fs::rename(new, output).context("write", output);
    }
    fs::rename(output, &old).context("replace", output)?;
    let swapped = fs::rename(new, output);
    if swapped.is_err() {
        restore(staging, output)?;
    }
    swapped.context("write", output)
}

/// Puts back what was at `output`. Where that fails it stays in the staging directory, which would
/// else be removed.
fn restore(staging: TempDir, output: &Path) -> Result<(), OutputError> {
    let Err(source) = fs::rename(staging.path().join("old"), output) else { return Ok(()) };
    let kept = staging.keep().join("old");
    Err(OutputError::NotRestored { output: output.to_owned(), kept, source })
}

/// Says what is at a path that is not, or not only, a box: only a box may be replaced, because
/// everything in the directory goes with it.
fn obstacle(path: &Path) -> io::Result<Option<String>> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if !kind.is_dir() || !has_box_index(path) {
        return Ok(Some("is not a box".to_owned()));
    }
    Ok(foreign(path)?.map(|it| format!("holds {}, which is no part of a box", it.display())))
}

/// Whether the index of an image layout names one box and nothing else.
fn has_box_index(path: &Path) -> bool {
    let index = fs::read(path.join("index.json")).unwrap_or_default();
    let index: Option<Index> = serde_json::from_slice(&index).ok();
    index.is_some_and(|index| {
        let mut types = index.manifests.iter().map(|it| it.artifact_type.as_deref());
        types.next() == Some(Some(ARTIFACT_TYPE)) && types.next().is_none()
    })
}

/// Returns the first thing in a box's directory that no build puts there.
fn foreign(path: &Path) -> io::Result<Option<PathBuf>> {
    for directory in ["", "blobs", "blobs/sha256"] {
        let entries = match fs::read_dir(path.join(directory)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if !name.to_str().is_some_and(|name| is_of_box(directory, name, kind)) {
                return Ok(Some(Path::new(directory).join(name)));
            }
        }
    }
    Ok(None)
}

/// Whether a box has such a file or directory there.
fn is_of_box(directory: &str, name: &str, kind: FileType) -> bool {
    match (directory, name) {
        ("", "oci-layout" | "index.json") => kind.is_file(),
        ("", "blobs") | ("blobs", "sha256") => kind.is_dir(),
        ("blobs/sha256", name) => {
            kind.is_file() && format!("sha256:{name}").parse::<Digest>().is_ok()
        }
        _ => false,
    }
}

/// Whether a directory is this very box with undamaged blobs.
fn is_same(store: &Store, path: &Path, documents: &Documents, sealed: &Sealed) -> bool {
    let blobs = path.join("blobs/sha256");
    documents.iter().all(|(name, bytes)| fs::read(path.join(name)).is_ok_and(|it| it == *bytes))
        && sealed
            .blobs
            .iter()
            .all(|(digest, _)| is_blob(store, digest, &blobs.join(digest.hex())).unwrap_or(false))
}

/// Whether a file is this blob: the very file that the store has, which the build wrote or
/// verified just now, or else one whose bytes hash to the digest. How many links the file has
/// says nothing: whoever writes through one of them changes all.
fn is_blob(store: &Store, digest: &Digest, path: &Path) -> Result<bool, OutputError> {
    let blob = BlobId(*digest.as_bytes());
    let stored = store.open_blob(&blob)?.metadata().context("read", path)?;
    let file = File::open(path).context("open", path)?;
    let found = file.metadata().context("read", path)?;
    if (found.dev(), found.ino()) == (stored.dev(), stored.ino()) {
        return Ok(true);
    }
    Ok(BlobId::of_reader(file).context("read", path)? == blob)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_put_back_is_kept_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let staging = tempfile::tempdir_in(dir.path()).unwrap();
        fs::create_dir(staging.path().join("old")).unwrap();
        fs::write(staging.path().join("old/precious"), "data").unwrap();
        let output = dir.path().join("output");
        fs::create_dir(&output).unwrap();
        fs::write(output.join("meanwhile"), "in the way").unwrap();
        let error = restore(staging, &output).unwrap_err();
        let OutputError::NotRestored { kept, .. } = &error else { panic!("{error}") };
        assert_eq!(fs::read(kept.join("precious")).unwrap(), b"data");
        assert!(error.to_string().contains(&kept.display().to_string()), "{error}");
    }

    #[test]
    fn a_failed_swap_puts_back_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("output");
        fs::create_dir(&output).unwrap();
        fs::write(output.join("precious"), "data").unwrap();
        // Nothing is staged, so that the second renaming fails.
        let staging = tempfile::tempdir_in(dir.path()).unwrap();
        let error = swap(staging, &output).unwrap_err();
        assert!(matches!(error, OutputError::Io { doing: "write", .. }), "{error}");
        assert_eq!(fs::read(output.join("precious")).unwrap(), b"data");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the staging is gone");
    }
}
