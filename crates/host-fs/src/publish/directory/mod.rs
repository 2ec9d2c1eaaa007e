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

/// How long to wait for the lock of a destination. It is held for an exchange and a check.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);
/// How often a destination that others change meanwhile is tried.
const ATTEMPTS: usize = 1000;

/// How a directory took the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// In one step, or there was none: at every moment either the old or the new was there.
    Atomic,
    /// The file system has no `RENAME_EXCHANGE`: a crash between two steps would have left nothing
    /// at the destination, and the old directory beside it.
    InSteps,
}

/// Why a directory is not published.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum PublishError {
    /// Something is at the destination, where nothing was to be, or nothing else than what is
    /// replaced: `what` is the end of a sentence about it, such as `is a symbolic link`.
    #[error("{} exists{}", path.display(), and(what.as_deref()))]
    Exists { path: PathBuf, what: Option<String> },
    /// Other processes kept the destination locked, or changed it again and again.
    #[error("another process is using {}", path.display())]
    Busy { path: PathBuf },
    /// The replaced directory was refused after an exchange, and could not be put back.
    #[error("cannot write {}; what was there is kept as {}", path.display(), kept.display())]
    NotRestored { path: PathBuf, kept: PathBuf, source: io::Error },
    /// The operating system refused something. Also where a file of the draft is concerned, the path
    /// is that of the destination.
    #[error(transparent)]
    File(#[from] FileError),
}

fn and(what: Option<&str>) -> String {
    what.map_or_else(String::new, |what| format!(" and {what}"))
}

/// A directory that is being filled; it is removed unless it is finished.
#[derive(Debug)]
pub struct DirectoryDraft {
    parent: Parent,
    to: PathBuf,
    /// Its name in `parent`.
    last: OsString,
    name: String,
    path: PathBuf,
    /// Holds the lock of the draft.
    directory: File,
    /// Holds the lock of what was at the destination.
    replaced: Option<File>,
    finished: bool,
}

/// The directory itself, to fill it by [`new_file`](super::new_file) and [`new_directories`](super::new_directories).
impl AsFd for DirectoryDraft {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl DirectoryDraft {
    /// Makes an empty directory beside its destination, with these permissions as far as the umask
    /// allows, and removes leftovers there. A slash at the end of the destination is ignored: it
    /// would follow a symbolic link.
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

    /// Returns the draft's own path. Where somebody else may write to the directory that it is in, it may lead elsewhere: fill the draft
    /// through its handle there.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Flushes the directory and gives it its name, which nothing may have.
    ///
    /// The parent stays the same, so that this needs no permission to write to the directory itself.
    ///
    /// # Errors
    /// [`PublishError`]; the directory is removed, unless only the last flush failed.
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

    /// Flushes the directory and gives it its name. A directory that has the name is replaced and
    /// removed, provided that `accept` returns no error for it: it is called when the directory has
    /// been taken out, so that it sees all that was ever put there.
    ///
    /// # Errors
    /// That of `accept`, and [`PublishError`]. What was there is then there again, except with
    /// [`PublishError::NotRestored`], which says where it is.
    pub fn finish_over(
        mut self,
        accept: impl Fn(&Path) -> Result<(), PublishError>,
    ) -> Result<Swap, PublishError> {
        flush_tree(&self.directory).map_err(|source| self.failed("flush", source))?;
        let swap = self.place(&accept)?;
        self.finished = true;
        self.parent.flush().map_err(|source| self.failed("flush", source))?;
        // After the flush: until then a power failure may bring back what was replaced.
        remove(&self.parent, &self.name);
        sweep(&self.to, |path| accept(path).is_ok());
        Ok(swap)
    }

    /// Puts the draft at its destination. What was there has the draft's name then.
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

    /// Locks the directory at the destination; returns `None` where it is another one meanwhile, or
    /// none.
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

    /// Exchanges the draft with what is at the destination; returns `None` where nothing is there.
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
        // What has the draft's name now is not the draft.
        self.finished = true;
        if let Err(refused) = accept(&self.parent.join(&aside)) {
            match self.parent.exchange(&aside, &self.last) {
                // Somebody removed the new directory.
                Err(Errno::NOENT) => self.restore(&aside)?,
                restored => restored.map_err(|errno| self.not_restored(&aside, errno))?,
            }
            // What came back is the draft, unless others changed the destination once more.
            self.finished = !self.parent.leads_to(&aside, &self.directory).unwrap_or(false);
            return Err(refused);
        }
        self.rename(&draft)?;
        Ok(Some(Swap::Atomic))
    }

    /// Replaces what is at the destination where the file system exchanges nothing; returns `None`
    /// where nothing is there.
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

    /// Puts back what was at the destination, where nothing is now.
    fn restore(&self, aside: &str) -> Result<(), PublishError> {
        let restored = self.parent.rename_new(aside, &self.parent, &self.last);
        restored.map_err(|errno| self.not_restored(aside, errno))
    }

    /// Returns the draft's name while it may be that of what was at the destination.
    fn aside(&self) -> String {
        DraftName::aside(&self.name, &self.last)
    }

    /// Gives the draft, or what has its name, another one beside the destination.
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
