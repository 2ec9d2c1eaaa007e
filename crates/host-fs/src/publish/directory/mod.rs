//! Publishing a directory.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::Mode;
use rustix::io::Errno;

use super::flush::flush_tree;
use super::parent::{
    DraftName, Lock, NewEntry, Parent, is_unsupported, last_of, open_directory, parent_of,
};
use super::sweep::{remove, sweep};
use crate::FileError;

/// The timeout for the lock of a destination. Another publisher holds it during its exchange and check.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);
/// The number of attempts at a destination that other processes change meanwhile.
const ATTEMPTS: usize = 1000;

/// How a directory replaced another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// In one step, so that the old or the new directory existed at every moment. Also used if there was no old directory.
    Atomic,
    /// The file system has no `RENAME_EXCHANGE`. A crash between the two steps would have left no destination, and the
    /// old directory beside it under a temporary name.
    InSteps,
}

/// Why a directory is not published.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum PublishError {
    /// The destination exists already, or is not a directory that may be replaced. `what` is the end of a sentence
    /// about it, such as `is a symbolic link`.
    #[error("{} exists{}", path.display(), and(what.as_deref()))]
    Exists { path: PathBuf, what: Option<String> },
    /// Other processes kept the destination locked, or changed it repeatedly.
    #[error("another process is using {}", path.display())]
    Busy { path: PathBuf },
    /// The replaced directory was refused after an exchange, and could not be put back.
    #[error("cannot write {}; what was there is kept as {}", path.display(), kept.display())]
    NotRestored { path: PathBuf, kept: PathBuf, source: io::Error },
    /// The operating system refused something. `path` is the destination, even if the error is about a file
    /// of the draft.
    #[error(transparent)]
    File(#[from] FileError),
}

fn and(what: Option<&str>) -> String {
    what.map_or_else(String::new, |what| format!(" and {what}"))
}

/// A directory that is being filled. Dropping the draft removes the directory, unless the draft was finished.
#[derive(Debug)]
pub struct DirectoryDraft {
    parent: Parent,
    to: PathBuf,
    /// The name of the destination in `parent`.
    last: OsString,
    name: String,
    path: PathBuf,
    /// Holds the lock of the draft.
    directory: File,
    /// Holds the lock of the old directory at the destination.
    replaced: Option<File>,
    finished: bool,
}

/// The handle of the directory, to fill it by [`new_file`](super::new_file) and [`new_directories`](super::new_directories).
impl AsFd for DirectoryDraft {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl DirectoryDraft {
    /// Makes an empty directory beside its destination, with the permissions `mode`, masked by the umask, and removes
    /// leftovers there. A slash at the end of the destination is ignored, because it would follow a symbolic link.
    ///
    /// # Errors
    /// [`PublishError::File`].
    pub fn beside(to: &Path, mode: u32) -> Result<Self, PublishError> {
        let to: PathBuf = to.components().collect();
        let (parent, NewEntry { name, file: directory }) = match create(&to, mode) {
            Ok(made) => made,
            Err(error) => return Err(FileError::of("write", to)(error).into()),
        };
        sweep(&to, |_| false);
        let (path, last) = (parent.join(&name), last_of(&to).to_owned());
        Ok(Self { parent, to, last, name, path, directory, replaced: None, finished: false })
    }

    /// Returns the path of the draft. If another user may write to its parent, the path may lead elsewhere; then use
    /// the handle to fill the draft.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Flushes the directory and renames it to the destination, which must not exist.
    ///
    /// The draft itself may be read-only: a rename within one parent directory needs no write permission for it.
    ///
    /// # Errors
    /// [`PublishError`]. The directory is removed, unless only the last flush failed.
    pub fn finish_new(mut self) -> Result<(), PublishError> {
        flush_tree(&self.directory).map_err(|source| self.failed("flush", source))?;
        match self.parent.rename_new(&self.name, &self.parent, &self.last) {
            Err(Errno::EXIST) => {
                return Err(PublishError::Exists { path: self.to.clone(), what: None });
            }
            renamed => renamed.map_err(|errno| self.failed("write", errno))?,
        }
        self.finished = true;
        self.parent.flush().map_err(|source| self.failed("flush", source))
    }

    /// Flushes the directory and renames it to the destination. An existing directory there is replaced and removed
    /// if `accept` returns no error for it. `accept` is called after the exchange, so that it sees all files that
    /// other programs have put there.
    ///
    /// # Errors
    /// The error of `accept`, or [`PublishError`]. The old directory is then at the destination again, except after
    /// [`PublishError::NotRestored`], which has its path, and after a failure of the last flush.
    pub fn finish_over(
        mut self,
        accept: impl Fn(&Path) -> Result<(), PublishError>,
    ) -> Result<Swap, PublishError> {
        flush_tree(&self.directory).map_err(|source| self.failed("flush", source))?;
        let swap = self.place(&accept)?;
        self.finished = true;
        self.parent.flush().map_err(|source| self.failed("flush", source))?;
        // Until the flush, a power failure may bring back the old directory, so it is removed afterwards.
        remove(&self.parent, &self.name);
        sweep(&self.to, |path| accept(path).is_ok());
        Ok(swap)
    }

    /// Moves the draft to its destination. The old directory then has the draft's name.
    fn place(
        &mut self,
        accept: &impl Fn(&Path) -> Result<(), PublishError>,
    ) -> Result<Swap, PublishError> {
        for _ in 0..ATTEMPTS {
            match self.parent.rename_new(&self.name, &self.parent, &self.last) {
                Err(Errno::EXIST) => {}
                renamed => {
                    renamed.map_err(|errno| self.failed("write", errno))?;
                    return Ok(Swap::Atomic);
                }
            }
            self.replaced = self.lock_destination()?;
            if self.replaced.is_some()
                && let Some(swap) = self.replace(accept)?
            {
                return Ok(swap);
            }
        }
        Err(self.busy())
    }

    /// Locks the directory at the destination. Returns `None` if it was replaced meanwhile, or does not exist.
    fn lock_destination(&self) -> Result<Option<File>, PublishError> {
        let start = Instant::now();
        let file = match self.parent.open_directory(&self.last) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened.map_err(|errno| self.failed("write", errno))?,
        };
        while Lock::of(&file) == Lock::Taken {
            if start.elapsed() > PATIENCE {
                return Err(self.busy());
            }
            sleep(PAUSE);
        }
        let same = self.parent.leads_to(&self.last, &file);
        let same = same.map_err(|errno| self.failed("write", errno))?;
        Ok(same.then_some(file))
    }

    /// Exchanges the draft with the directory at the destination. Returns `None` if the destination does not exist.
    fn replace(
        &mut self,
        accept: &impl Fn(&Path) -> Result<(), PublishError>,
    ) -> Result<Option<Swap>, PublishError> {
        let (draft, aside) = (self.name.clone(), self.aside());
        self.rename(&aside)?;
        match self.parent.exchange(&aside, &self.last) {
            Ok(()) => {}
            Err(Errno::NOENT) => return self.rename(&draft).map(|()| None),
            Err(errno) if is_unsupported(errno) => {
                self.rename(&draft)?;
                return self.replace_in_steps(accept);
            }
            Err(errno) => return Err(self.failed("write", errno)),
        }
        // The draft's name now refers to the old directory.
        self.finished = true;
        if let Err(refused) = accept(&self.parent.join(&aside)) {
            match self.parent.exchange(&aside, &self.last) {
                // Another process removed the new directory.
                Err(Errno::NOENT) => self.restore(&aside)?,
                restored => restored.map_err(|errno| self.not_restored(&aside, errno))?,
            }
            // The draft is back under its name, unless others changed the destination once more.
            self.finished = !self.parent.leads_to(&aside, &self.directory).unwrap_or(false);
            return Err(refused);
        }
        self.rename(&draft)?;
        Ok(Some(Swap::Atomic))
    }

    /// Replaces the directory at the destination on a file system that cannot exchange. Returns `None` if the
    /// destination does not exist.
    fn replace_in_steps(
        &mut self,
        accept: &impl Fn(&Path) -> Result<(), PublishError>,
    ) -> Result<Option<Swap>, PublishError> {
        let aside = self.aside();
        match self.parent.rename(&self.last, &aside) {
            Err(Errno::NOENT) => return Ok(None),
            renamed => renamed.map_err(|errno| self.failed("replace", errno))?,
        }
        let accepted = accept(&self.parent.join(&aside));
        let placed = accepted.and_then(|()| {
            let renamed = self.parent.rename_new(&self.name, &self.parent, &self.last);
            renamed.map_err(|errno| self.failed("write", errno))
        });
        if let Err(error) = placed {
            self.restore(&aside)?;
            return Err(error);
        }
        self.finished = true;
        let renamed = self.parent.rename(&aside, &self.name);
        renamed.map_err(|errno| self.failed("write", errno))?;
        Ok(Some(Swap::InSteps))
    }

    /// Moves the old directory back to the destination, which does not exist now.
    fn restore(&self, aside: &str) -> Result<(), PublishError> {
        let restored = self.parent.rename_new(aside, &self.parent, &self.last);
        restored.map_err(|errno| self.not_restored(aside, errno))
    }

    /// Returns the draft's name during the exchange, when the name may refer to the old directory.
    fn aside(&self) -> String {
        DraftName::aside(&self.name, &self.last)
    }

    /// Renames the directory that has the draft's name, and stores the new name.
    fn rename(&mut self, name: &str) -> Result<(), PublishError> {
        let renamed = self.parent.rename(&self.name, name);
        renamed.map_err(|errno| self.failed("write", errno))?;
        name.clone_into(&mut self.name);
        Ok(())
    }

    fn failed(&self, doing: &'static str, source: impl Into<io::Error>) -> PublishError {
        FileError::of(doing, &self.to)(source).into()
    }

    fn not_restored(&self, aside: &str, errno: Errno) -> PublishError {
        let kept = self.parent.join(aside);
        PublishError::NotRestored { path: self.to.clone(), kept, source: errno.into() }
    }

    fn busy(&self) -> PublishError {
        PublishError::Busy { path: self.to.clone() }
    }
}

impl Drop for DirectoryDraft {
    fn drop(&mut self) {
        if !self.finished {
            remove(&self.parent, &self.name);
        }
    }
}

/// Makes a directory beside a path.
fn create(to: &Path, mode: u32) -> io::Result<(Parent, NewEntry)> {
    let parent = Parent::open(parent_of(to))?;
    let entry = parent.create(|parent, name| {
        rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(mode))?;
        open_directory(parent, name)
    })?;
    Ok((parent, entry))
}

#[cfg(test)]
mod tests;
