//! Files by their names: those of a directory, or of an archive.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::error::SourceError;
use super::place::Opened;

/// Named files.
pub(super) trait Files: fmt::Debug + Send + Sync {
    /// Names the place for people.
    fn title(&self) -> String;

    /// Says for people where a file is.
    fn at(&self, name: &str) -> String;

    /// Opens a file; nothing where there is none of this name.
    ///
    /// # Errors
    /// It is there, but is no file that can be read.
    fn open(&self, name: &str) -> Result<Option<Opened>, SourceError>;
}

/// The files of a directory. The names are ours, or made of digests: none leads out of it.
#[derive(Debug)]
pub(super) struct Directory(pub(super) PathBuf);

impl Files for Directory {
    fn title(&self) -> String {
        self.0.display().to_string()
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn open(&self, name: &str) -> Result<Option<Opened>, SourceError> {
        let path = self.0.join(name);
        let opened = open_file(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((size, file)) => Ok(Some(Opened { reader: Box::new(file), size })),
            Err(error) if is_absent(&error) => Ok(None),
            Err(source) => Err(SourceError::Io { at: self.at(name), source }),
        }
    }
}

/// Whether there is no such file: perhaps because what should be its directory is none.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Opens a regular file. Opening a pipe would wait for somebody to write to it.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}
