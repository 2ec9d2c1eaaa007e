//! Boxes that can be started again: the store keeps the box of each record.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use box_cache::{Store, StoreError};
use box_prune::STARTED;
use host_fs::OsError;

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

fn copy_documents(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    // A document is replaced as a whole: an update may start another box under the name.
    let place = |name: &str| -> (PathBuf, PathBuf) { (from.join(name), to.join(name)) };
    DOCUMENTS.map(place).into_iter().try_for_each(|(from, to)| fs::copy(from, to).map(drop))
}
