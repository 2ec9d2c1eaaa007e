//! The files of a tar archive, which is read in place: nothing is extracted.

mod index;
mod magic;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host_fs::FileError;
use host_fs::read::{Links, Section, open_regular};

use super::error::SourceError;
use super::files::Files;
use super::form::{Form, Found};
use super::place::Opened;
use index::Index;

/// An archive whose members are known.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    file: Arc<File>,
    index: Index,
}

impl Archive {
    /// Opens an archive, which should be of a form, and reads the headers of its members.
    ///
    /// # Errors
    /// There is no such file, it is no archive, or it has what could be read in two ways.
    pub(super) fn open(path: &Path, expected: Form) -> Result<Self, SourceError> {
        let other = |found| SourceError::NotAnImage { path: path.to_owned(), expected, found };
        if path.is_dir() {
            return Err(other(Found::Directory));
        }
        if !path.exists() {
            return Err(other(Found::Nothing));
        }
        let file = open_regular(path, Links::Follow).map_err(FileError::of("read", path))?;
        let length = file.metadata().map_err(FileError::of("read", path))?.len();
        let file = Arc::new(file);
        if let Some(found) = magic::check(path, &mut Section::new(&*file, 0, length))? {
            return Err(other(found));
        }
        let index = Index::read(path, &file, length)?;
        Ok(Self { path: path.to_owned(), file, index })
    }

    /// Returns whether there is a member of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.index.has(name)
    }
}

impl Files for Archive {
    fn title(&self) -> String {
        self.path.display().to_string()
    }

    fn at(&self, name: &str) -> String {
        format!("{name} in {}", self.path.display())
    }

    fn open(&self, name: &str) -> Result<Option<Opened>, SourceError> {
        let failed = |why| SourceError::Malformed(format!("cannot read {}: {why}", self.at(name)));
        let place = self.index.find(name).map_err(failed)?;
        Ok(place.map(|(offset, size)| {
            let reader = Section::new(Arc::clone(&self.file), offset, size);
            Opened { reader: Box::new(reader), size }
        }))
    }
}
