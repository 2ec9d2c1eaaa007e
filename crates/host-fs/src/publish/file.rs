//! Publishing a file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};

use super::parent::{NewEntry, Parent, flush_names, last_of, parent_of};
use super::sweep::{remove, sweep, sweep_in};
use crate::named::FileSlot;

/// A file that is being written. Dropping the draft removes the file, unless the draft was finished.
///
/// The destination must be on the file system of the draft's directory.
#[derive(Debug)]
pub struct FileDraft {
    parent: Parent,
    name: String,
    file: File,
    finished: bool,
}

impl FileDraft {
    /// Makes an empty file in a directory, with the permissions `mode`, masked by the umask.
    ///
    /// # Errors
    /// The operating system's error, without a path.
    pub fn within(directory: &Path, mode: u32) -> io::Result<Self> {
        Self::new(Parent::open(directory)?, mode)
    }

    fn new(parent: Parent, mode: u32) -> io::Result<Self> {
        let NewEntry { name, file } = parent.create(|parent, name| {
            let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let flags = new | OFlags::RDWR | OFlags::CLOEXEC;
            rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(mode))
        })?;
        Ok(Self { parent, name, file, finished: false })
    }

    /// Makes an empty file beside its destination, and removes leftovers there.
    ///
    /// # Errors
    /// The errors of [`FileDraft::within`].
    pub fn beside(to: &Path, mode: u32) -> io::Result<Self> {
        let directory = parent_of(to);
        let draft = Self::within(directory, mode)?;
        sweep(to, |_| false);
        Ok(draft)
    }

    /// Makes an empty file in the directory of `place`, and removes leftovers there.
    ///
    /// # Errors
    /// The errors of [`FileDraft::within`].
    pub fn at(place: &FileSlot, mode: u32) -> io::Result<Self> {
        let draft = Self::new(Parent::reopen(place.directory(), parent_of(place.path()))?, mode)?;
        sweep_in(&draft.parent, place.name(), |_| false);
        Ok(draft)
    }

    /// Returns the open file, for reading and writing.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Returns the path of the draft.
    pub fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// Flushes the file and renames it to `to`, which must not exist.
    ///
    /// # Errors
    /// The operating system's error: [`io::ErrorKind::AlreadyExists`] if `to` exists.
    pub fn finish_new(mut self, to: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        let other = Parent::open(parent_of(to))?;
        self.parent.rename_new(&self.name, &other, last_of(to))?;
        self.finished = true;
        other.flush()
    }

    /// Flushes the file and renames it to `to`. An existing file there is replaced in one step.
    ///
    /// # Errors
    /// The operating system's error. An old file at `to` is unchanged, unless only the last flush failed.
    pub fn finish_over(self, to: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        self.finish_over_unflushed(to)?;
        flush_names(parent_of(to))
    }

    /// Flushes a file that was made by [`FileDraft::at`], and renames it to the same `place`. An existing file there is
    /// replaced in one step.
    ///
    /// # Errors
    /// The errors of [`FileDraft::finish_over`].
    pub fn finish_at(mut self, place: &FileSlot) -> io::Result<()> {
        self.file.sync_all()?;
        self.parent.rename(&self.name, place.name())?;
        self.finished = true;
        self.parent.flush()
    }

    /// Renames the file like [`finish_over`](Self::finish_over), but without a flush: after a crash its content may
    /// be wrong, or the file may be missing.
    ///
    /// # Errors
    /// The operating system's error. An old file is unchanged.
    pub fn finish_over_unflushed(mut self, to: &Path) -> io::Result<()> {
        rustix::fs::renameat(self.parent.fd(), &self.name, CWD, to)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        if !self.finished {
            remove(&self.parent, &self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn a_new_file_replaces_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("file");
        for (text, expected) in [("one", None), ("two", Some(io::ErrorKind::AlreadyExists))] {
            let draft = FileDraft::beside(&to, 0o600).unwrap();
            draft.file().write_all(text.as_bytes()).unwrap();
            let done = draft.finish_new(&to);
            assert_eq!(done.err().map(|it| it.kind()), expected);
            assert_eq!(fs::read(&to).unwrap(), b"one");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_replaced_and_an_abandoned_draft_removed() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("file");
        fs::write(&to, "old").unwrap();
        let draft = FileDraft::beside(&to, 0o600).unwrap();
        draft.file().write_all(b"new").unwrap();
        drop(FileDraft::within(directory.path(), 0o600).unwrap());
        assert_eq!(fs::read(&to).unwrap(), b"old");
        draft.finish_over(&to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
