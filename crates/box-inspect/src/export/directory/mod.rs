//! The form `dir`: a tree in a directory of the host.
//!
//! This is the only module in which names from an image become names on the host. Three rules keep
//! them inside the directory:
//!
//! - The directory is new. It is made next to its final path under an unpredictable name, with
//!   access for its owner alone, and renamed when it is complete.
//! - Every name is used relative to an open directory. It contains no `/` and is not `..`, and no
//!   two entries of a directory have the same name. A directory is opened without following links,
//!   right after it was made.
//! - No file is overwritten. Of the entries that were made, only directories are opened for reading
//!   again, without following links. Links, devices and pipes are opened only with `O_PATH`.
//!
//! Directories get their owners, permissions and times when they are complete, the deepest first,
//! so that no permission prevents the making of an entry. The umask has no effect.

mod meta;

use std::fs::File;
use std::path::Path;

use box_tree::path::{lossy, names, split};
use box_tree::{Inode, InodeId, Kind, Leaf, Tree, entries};
use host_fs::publish::open_directory;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::place;
use crate::contents::VerifiedContents;
use crate::error::{ExportError, entry_at};
use crate::links::HardLinks;
use crate::paths::Paths;
use meta::MetaSetter;
pub use meta::{LeftOut, Ownership, Privileged};

/// The maximum depth of a directory. All directories on the path are open at the same time.
const MAX_DEPTH: usize = 500;
const CLOSED: Mode = Mode::RWXU;

/// Writes a tree into a new directory at `to`.
pub(super) fn extract(
    tree: &Tree,
    contents: &VerifiedContents,
    to: &Path,
    ownership: Ownership,
) -> Result<LeftOut, ExportError> {
    let draft = place::directory(to, CLOSED.bits())?;
    let root = fcntl_dupfd_cloexec(&draft, 0).map_err(at("open", b"/"))?;
    let first = HardLinks::of(|| entries(tree));
    let setter = MetaSetter::new(ownership);
    let mut extraction = Extraction { tree, contents, first, root, setter };
    extraction.fill()?;
    extraction.finish_directories()?;
    let left_out = extraction.setter.left_out;
    draft.finish_new()?;
    Ok(left_out)
}

/// Returns a function that adds the operation and the entry's path to an error.
fn at(doing: &'static str, path: &[u8]) -> impl FnOnce(Errno) -> ExportError {
    move |errno| entry_at(doing, path)(errno.into()).into()
}

/// A tree that is being written into a directory.
struct Extraction<'a> {
    tree: &'a Tree,
    contents: &'a VerifiedContents,
    first: HardLinks,
    /// The directory that becomes the tree's root.
    root: OwnedFd,
    setter: MetaSetter,
}

impl Extraction<'_> {
    /// Makes all entries. Only the owner can access the directories until they are finished.
    fn fill(&mut self) -> Result<(), ExportError> {
        let tree = self.tree;
        // The open directories on the last path, each with the length of its path.
        let mut open = vec![(0, self.directory(b"").map_err(at("open", b"/"))?)];
        for (path, id) in entries(tree).skip(1) {
            let (directory, name) = split(&path);
            open.retain(|(length, _)| *length <= directory.len());
            let Some((_, parent)) = open.last() else { continue };
            if let Some(made) = self.make(parent.as_fd(), &path, name, id)? {
                open.push((path.len(), made));
            }
            if open.len() > MAX_DEPTH {
                return Err(ExportError::NoPlace {
                    path: lossy(&path),
                    what: "500 directories above it",
                    form: "the format dir",
                });
            }
        }
        Ok(())
    }

    /// Makes one entry. Returns a handle if it is a directory.
    fn make(
        &mut self,
        parent: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        id: InodeId,
    ) -> Result<Option<OwnedFd>, ExportError> {
        let inode = self.tree.inode(id);
        if !self.setter.makes(inode) {
            return Ok(None);
        }
        if let Some(first) = self.first.before(path, id) {
            self.link(&first, parent, name).map_err(at("link", path))?;
            return Ok(None);
        }
        let failed = at("make", path);
        let done = match &inode.kind {
            Kind::Directory(_) => {
                let made = rustix::fs::mkdirat(parent, name, CLOSED);
                return made.and_then(|()| open_directory(parent, name)).map(Some).map_err(failed);
            }
            Kind::Leaf(Leaf::File(content)) => {
                let mut file = new_file(parent, name).map_err(failed)?;
                let copied = self.contents.copy(path, *content, &mut file);
                copied.map_err(|error| error.writing(entry_at("write", path)))?;
                let done = self.setter.set_meta(file.as_fd(), &inode.meta);
                done.and_then(|()| self.setter.finish(file.as_fd(), &inode.meta))
            }
            Kind::Leaf(leaf) => {
                make_special(parent, name, leaf).map_err(failed)?;
                self.setter.set_meta_at(parent, name, inode)
            }
        };
        done.map_err(at("set the owner and attributes of", path))?;
        Ok(None)
    }

    /// Adds a hard link to the entry at the path `first`.
    fn link(&self, first: &[u8], parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        let (directory, first) = split(first);
        let directory = self.directory(directory)?;
        rustix::fs::linkat(directory, first, parent, name, AtFlags::empty())
    }

    /// Opens a directory of the export, one name of its path at a time, without following links.
    fn directory(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let mut directory = rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?;
        for name in names(path) {
            directory = open_directory(&directory, name)?;
        }
        Ok(directory)
    }

    /// Sets the metadata of the directories, the deepest first. Sets the permissions last, because
    /// they can prevent all other changes.
    fn finish_directories(&mut self) -> Result<(), ExportError> {
        let tree = self.tree;
        let directories = entries(tree).filter(|(_, id)| tree.inode(*id).names().is_some());
        let mut paths = Paths::default();
        let directories: Vec<_> = directories.map(|(path, id)| (paths.add(&path), id)).collect();
        for step in [MetaSetter::set_meta, MetaSetter::finish] {
            for (place, id) in directories.iter().rev() {
                let (Inode { meta, .. }, path) = (tree.inode(*id), paths.path(*place));
                let done = self.directory(&path);
                let done = done.and_then(|it| step(&mut self.setter, it.as_fd(), meta));
                done.map_err(at("set the owner and attributes of", &path))?;
            }
        }
        Ok(())
    }
}

fn new_file(parent: BorrowedFd<'_>, name: &[u8]) -> Result<File, Errno> {
    let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let flags = new | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

/// Makes a symbolic link, a device or a pipe.
fn make_special(parent: BorrowedFd<'_>, name: &[u8], leaf: &Leaf) -> Result<(), Errno> {
    let node = |kind, (major, minor)| {
        let device = rustix::fs::makedev(major, minor);
        rustix::fs::mknodat(parent, name, kind, Mode::RUSR | Mode::WUSR, device)
    };
    match leaf {
        Leaf::Symlink(target) => rustix::fs::symlinkat(target.as_slice(), parent, name),
        Leaf::CharDevice(major, minor) => node(FileType::CharacterDevice, (*major, *minor)),
        Leaf::BlockDevice(major, minor) => node(FileType::BlockDevice, (*major, *minor)),
        Leaf::Fifo => node(FileType::Fifo, (0, 0)),
        Leaf::File(_) => new_file(parent, name).map(drop),
    }
}
