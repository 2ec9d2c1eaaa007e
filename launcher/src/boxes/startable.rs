//! Boxes that can be started again: the store keeps the box of each record.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use box_cache::{Store, StoreError};
use box_layout::MAX_DOCUMENT;
use box_prune::STARTED;
use host_fs::OsError;
use host_fs::publish::FileDraft;
use host_fs::read::{Links, read_file};

use super::{Boxes, Entry};

/// The documents of a box in its directory. Its other files are in the store.
const DOCUMENTS: [&str; 2] = ["oci-layout", "index.json"];

impl Boxes {
    /// Makes a store keep the boxes of all records that have a copy of their box's documents.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn note_in(&self, store: &Path) -> Result<(), StoreError> {
        Store::open(store)?.add_root(&self.directory)
    }
}

impl Entry {
    /// Copies the documents of the box in `directory`, so that the store keeps the box as long as this record exists.
    ///
    /// # Errors
    /// If they cannot be copied.
    pub fn keep_documents(&self, directory: &Path) -> Result<(), OsError> {
        let copy = self.directory.join(STARTED);
        copy_documents(directory, &copy).map_err(OsError::file("make", &copy))
    }
}

/// Copies the documents of a box into another directory, which need not exist.
pub(super) fn copy_documents(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    DOCUMENTS.iter().try_for_each(|name| copy_document(&from.join(name), &to.join(name)))
}

/// Copies a document. A program that can write to the directory of the box may have replaced the verified document with a link, a
/// pipe or a long file meanwhile. The copy is replaced as a whole, because an update may start another box under the name. It is
/// flushed as little as the record beside it, because a flush takes longer than the rest of this.
fn copy_document(from: &Path, to: &Path) -> io::Result<()> {
    let bytes = read_file(from, Links::Refuse, MAX_DOCUMENT)?;
    let draft = FileDraft::beside(to, 0o600)?;
    draft.file().write_all(&bytes)?;
    draft.finish_over_unflushed(to)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_short_regular_document_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        fs::write(at("index.json"), "first").unwrap();
        copy_document(&at("index.json"), &at("kept")).unwrap();
        symlink("index.json", at("link")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::File::create(at("long")).unwrap().set_len(MAX_DOCUMENT + 1).unwrap();
        for path in ["link", "pipe", "long", "none"] {
            assert!(copy_document(&at(path), &at("kept")).is_err(), "{path}");
            assert_eq!(fs::read_to_string(at("kept")).unwrap(), "first");
        }
        // A link at the destination is replaced, not followed.
        symlink("index.json", at("other")).unwrap();
        fs::write(at("new"), "second").unwrap();
        copy_document(&at("new"), &at("other")).unwrap();
        assert!(!at("other").is_symlink());
        assert_eq!(fs::read_to_string(at("index.json")).unwrap(), "first");
    }
}
