//! Writes a sealed box to its output directory, an OCI image layout, atomically.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use box_cache::Store;
use box_contract::manifest::{BLOBS, documents};
use box_digest::Digest;
use box_layout::{EntryKind, entry_kind, names_one_box};
use host_fs::FileError;
use host_fs::publish::{
    DirectoryDraft, PublishError, Swap, create_directories, flush_names, new_directories, new_file,
    parent_of, sweep,
};
use host_fs::read::{Links, open_regular, read_open};
use host_fs::trust::is_private;
use rayon::prelude::*;

use crate::seal::Sealed;

/// Which blobs of a box its directory contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All blobs: the directory can be copied to another host.
    Whole,
    /// Manifest and config only, which are a few kilobytes. The other blobs are in the store.
    Thin,
}

impl Form {
    /// Returns the blobs that a directory of this form has, in the order of their digests. The set has no duplicates:
    /// two parts of a box can be the same blob.
    fn blobs(self, sealed: &Sealed) -> BTreeSet<(Digest, u64)> {
        match self {
            Self::Whole => sealed.blobs().into_iter().collect(),
            Self::Thin => sealed.documents().into(),
        }
    }

    /// Returns the mode of the documents, before the umask. Other users must not be able to change which blobs of the
    /// store a thin directory names: boxlaunch refuses a box that they can change.
    const fn mode(self) -> u32 {
        match self {
            Self::Whole => 0o666,
            Self::Thin => 0o644,
        }
    }
}

/// Writes a box's directory and returns how it was put at `output`. An existing box is replaced. If the same box in
/// the same form is there unchanged, it is left alone, and the result is `None`.
///
/// Blobs are copies of the store's blobs. On btrfs and XFS they are reflinks, which share their bytes on the disk.
/// All files are flushed to the disk before the directory gets its name.
///
/// # Errors
/// [`PublishError`]. The previous content is still at `output`, or, with [`PublishError::NotRestored`], next to it.
pub fn write(
    store: &Store,
    sealed: &Sealed,
    output: &Path,
    form: Form,
) -> Result<Option<Swap>, PublishError> {
    let documents = &documents(sealed.manifest, sealed.manifest_size);
    let blobs = &form.blobs(sealed);
    // Without a trailing slash, which would follow a symbolic link.
    let output: &Path = &output.components().collect::<PathBuf>();
    let parent = parent_of(output);
    let check = |found: &Path| check_replaceable(found, output);
    if fs::symlink_metadata(output).is_ok() {
        check(output)?;
        if is_same(store, output, documents, (blobs, form)) {
            sweep(output, |left| check(left).is_ok());
            // The build that wrote the directory may have been killed before it flushed the directory's name.
            flush_names(parent).map_err(FileError::of("flush", parent))?;
            return Ok(None);
        }
    }
    create_directories(parent, 0o777).map_err(FileError::of("make the directory", parent))?;
    let draft = DirectoryDraft::beside(output, 0o777)?;
    fill(store, documents, (blobs, form), &draft).map_err(FileError::of("write", output))?;
    draft.finish_over(check).map(Some)
}

/// Checks that `found` may be replaced. It is `output`, or the former `output` after it was moved.
fn check_replaceable(found: &Path, output: &Path) -> Result<(), PublishError> {
    let path = output.to_owned();
    match obstacle(found).map_err(FileError::of("read", output))? {
        None => Ok(()),
        what => Err(PublishError::Exists { path, what }),
    }
}

/// The names and bytes of the files that a box has next to its blobs, as [`documents`] returns them.
type Documents = [(&'static str, Vec<u8>); 2];

/// Writes the files of a box into an open, empty directory.
fn fill(
    store: &Store,
    documents: &Documents,
    (digests, form): (&BTreeSet<(Digest, u64)>, Form),
    directory: impl AsFd,
) -> io::Result<()> {
    let blobs = new_directories(&directory, BLOBS)?;
    for (digest, _) in digests {
        store.export(digest, &new_file(&blobs, &digest.hex(), 0o666)?)?;
    }
    let write =
        |(name, bytes): &(&str, Vec<u8>)| new_file(&directory, name, form.mode())?.write_all(bytes);
    documents.iter().try_for_each(write)
}

/// Returns why `path` may not be replaced; `None` if it is a box. Only a box may be replaced, because the replacement
/// deletes everything in the directory.
fn obstacle(path: &Path) -> io::Result<Option<String>> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_symlink() {
        return Ok(Some("is a symbolic link, which no box replaces".to_owned()));
    }
    if !kind.is_dir() || !names_one_box(path) {
        return Ok(Some("is not a box".to_owned()));
    }
    Ok(foreign(path)?.map(|it| format!("holds {}, which is no part of a box", it.display())))
}

/// Returns the first path in a box's directory that no build writes.
fn foreign(path: &Path) -> io::Result<Option<PathBuf>> {
    for directory in ["", "blobs", BLOBS] {
        let entries = match fs::read_dir(path.join(directory)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let (name, kind) = (Path::new(directory).join(entry.file_name()), entry.file_type()?);
            let is_of_box = match entry_kind(&name) {
                Some(EntryKind::File) => kind.is_file(),
                Some(EntryKind::Directory) => kind.is_dir(),
                None => false,
            };
            if !is_of_box {
                return Ok(Some(name));
            }
        }
    }
    Ok(None)
}

/// Returns whether the directory at `path` contains exactly these documents and blobs, undamaged. Other users must not
/// be able to change the blobs, or the documents of a thin directory.
fn is_same(
    store: &Store,
    path: &Path,
    documents: &Documents,
    (expected, form): (&BTreeSet<(Digest, u64)>, Form),
) -> bool {
    let blobs = path.join(BLOBS);
    let says = |name: &str, bytes: &[u8]| {
        let Ok(file) = open_regular(&path.join(name), Links::Refuse) else { return false };
        let may_be = form == Form::Whole || is_private(&file).unwrap_or(false);
        may_be && read_open(&file, bytes.len() as u64).is_ok_and(|found| found == bytes)
    };
    documents.iter().all(|(name, bytes)| says(name, bytes))
        && fs::read_dir(&blobs).is_ok_and(|found| found.count() == expected.len())
        && expected.par_iter().all(|(digest, size)| {
            is_blob(store, digest, *size, &blobs.join(digest.hex())).unwrap_or(false)
        })
}

/// Returns whether a file is this blob, has one name, and cannot be changed by other users. Earlier versions made hard
/// links into the store: a write to such a box would change other boxes.
fn is_blob(store: &Store, digest: &Digest, size: u64, path: &Path) -> io::Result<bool> {
    let file = open_regular(path, Links::Refuse)?;
    let found = file.metadata()?;
    // A file of another length is not read. No launcher starts a box that another user can change.
    let may_be = found.len() == size && found.nlink() == 1 && is_private(&file)?;
    Ok(may_be && store.has_bytes_of(digest, &file)?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use box_digest::Blake3Digest;

    use super::*;

    /// A running box may be able to write to the directory in which another box is built.
    #[test]
    fn what_somebody_else_puts_into_a_draft_is_not_written_through() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let store = Store::open(&at("store")).unwrap();
        let blob = store.put(b"content").unwrap();
        let sealed = Sealed {
            manifest: blob,
            manifest_size: 7,
            config: (blob, 7),
            tree: Blake3Digest::from_bytes([0; 32]),
            rootfs_size: 0,
            layers: Vec::new(),
        };
        let documents = documents(sealed.manifest, sealed.manifest_size);
        fs::write(at("precious"), "precious").unwrap();
        let filled = |planted: &str| {
            let directory = at(&format!("draft of {planted}"));
            fs::create_dir(&directory).unwrap();
            symlink(at("precious"), directory.join(planted)).unwrap();
            fill(
                &store,
                &documents,
                (&Form::Whole.blobs(&sealed), Form::Whole),
                File::open(&directory).unwrap(),
            )
        };
        for planted in ["index.json", "blobs", "oci-layout"] {
            let error = filled(planted).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{planted}");
        }
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "precious");
        filled("other").unwrap();
    }
}
