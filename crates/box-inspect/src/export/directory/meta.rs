//! Sets the owners, extended attributes, permissions and times of exported files.

use std::os::fd::AsRawFd;

use box_tree::{Inode, Kind, Leaf, Meta, Tree, entries};
use rustix::fd::BorrowedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, fstat, openat,
};
use rustix::io::Errno;
use serde::Serialize;

const SET_ID: u16 = 0o6000;
/// The attribute with the capabilities of a program (capabilities(7)).
const CAPABILITY: &[u8] = b"security.capability";

/// Whose the exported files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// As the box has it: owners, devices and all extended attributes. Only root can do that.
    Box,
    /// The caller's: without devices, without the set-uid and set-gid bits, which would give away
    /// the caller's rights, and with the extended attributes `user.*` only.
    Caller,
}

/// How much [`Ownership::Caller`] left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Names of devices.
    pub devices: u64,
    /// Files and directories without their set-uid or set-gid bit.
    pub set_id: u64,
    /// Extended attributes, of which a file may have several.
    pub xattrs: u64,
}

impl LeftOut {
    /// Returns a note for people on each kind that was left out.
    pub fn notes(self) -> Vec<String> {
        let Self { devices, set_id, xattrs } = self;
        let lines = [
            (devices, "devices that only root can make"),
            (set_id, "set-uid and set-gid bits, which are for the owners in the box"),
            (xattrs, "extended attributes that only root can set or the file system does not take"),
        ];
        let noted = lines.into_iter().filter(|(count, _)| *count > 0);
        noted.map(|(count, what)| format!("note: left out {what}: {count}")).collect()
    }
}

/// How much [`Ownership::Box`] made that gives rights on the host to whoever reaches the directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Privileged {
    /// Names of devices.
    pub devices: u64,
    /// Files with a set-uid or set-gid bit, by names.
    pub set_id: u64,
    /// Files with capabilities, by names.
    pub capabilities: u64,
}

impl Privileged {
    /// Returns a warning for people, where there is any.
    pub fn warning(self) -> Option<String> {
        let Self { devices, set_id, capabilities } = self;
        (self != Self::default()).then(|| {
            format!(
                "warning: the directory has programs or devices that give rights on this machine to \
                 every user who can reach them: {set_id} set-uid or set-gid, {capabilities} with \
                 capabilities, {devices} devices; export with --no-owner to leave them out"
            )
        })
    }

    /// Counts them in a tree that is made as the box has it.
    pub(crate) fn of(tree: &Tree, ownership: Ownership) -> Self {
        let mut counted = Self::default();
        if ownership == Ownership::Caller {
            return counted;
        }
        for (_, id) in entries(tree) {
            let inode = tree.inode(id);
            let is_file = inode.content().is_some();
            counted.devices += u64::from(inode.device().is_some());
            counted.set_id += u64::from(is_file && inode.meta.mode & SET_ID != 0);
            let capable = inode.meta.xattrs.contains_key(CAPABILITY);
            counted.capabilities += u64::from(is_file && capable);
        }
        counted
    }
}

/// Gives entries what the tree says of them, as far as it may.
#[derive(Debug)]
pub(super) struct MetaSetter {
    ownership: Ownership,
    pub(super) left_out: LeftOut,
}

impl MetaSetter {
    pub(super) fn new(ownership: Ownership) -> Self {
        Self { ownership, left_out: LeftOut::default() }
    }

    /// Returns whether an entry is made at all.
    pub(super) fn makes(&mut self, inode: &Inode) -> bool {
        let device = matches!(inode.kind, Kind::Leaf(Leaf::CharDevice(..) | Leaf::BlockDevice(..)));
        let left_out = device && self.ownership == Ownership::Caller;
        self.left_out.devices += u64::from(left_out);
        !left_out
    }

    /// Gives an open file or directory its owner, which takes set-uid bits and capabilities away, and
    /// then its extended attributes.
    pub(super) fn set_meta(&mut self, file: BorrowedFd<'_>, meta: &Meta) -> Result<(), Errno> {
        self.own(meta, |uid, gid| rustix::fs::fchown(file, uid, gid))?;
        self.attributes(meta, |name, value| {
            rustix::fs::fsetxattr(file, name, value, XattrFlags::CREATE)
        })
    }

    /// Gives a file or directory its permissions after its attributes, which may forbid to set those, and its
    /// times.
    pub(super) fn finish(&mut self, file: BorrowedFd<'_>, meta: &Meta) -> Result<(), Errno> {
        rustix::fs::fchmod(file, self.mode(meta))?;
        rustix::fs::futimens(file, &times(meta))
    }

    /// Sets all of these for a link, device or pipe, whose content is not opened. Somebody else may exchange it meanwhile, such as a box that may write
    /// to the directory around it: what its name stands for is looked up once, and has to be of its kind.
    pub(super) fn set_meta_at(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        inode: &Inode,
    ) -> Result<(), Errno> {
        let meta = &inode.meta;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(parent, name, flags, Mode::empty())?;
        if kind_of(inode) != Some(FileType::from_raw_mode(fstat(&made)?.st_mode)) {
            return Err(Errno::STALE);
        }
        // No call but those with a path takes such a handle. This path ends at what is open, be it a link.
        let path = format!("/proc/self/fd/{}", made.as_raw_fd());
        let path = path.as_str();
        self.own(meta, |uid, gid| rustix::fs::chown(path, uid, gid))?;
        self.attributes(meta, |name, value| {
            rustix::fs::setxattr(path, name, value, XattrFlags::CREATE)
        })?;
        if !matches!(inode.kind, Kind::Leaf(Leaf::Symlink(_))) {
            rustix::fs::chmod(path, self.mode(meta))?;
        }
        rustix::fs::utimensat(CWD, path, &times(meta), AtFlags::empty())
    }

    fn own(
        &self,
        meta: &Meta,
        chown: impl FnOnce(Option<Uid>, Option<Gid>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if self.ownership == Ownership::Caller {
            return Ok(());
        }
        // To the system call, this number means to leave the owner as it is.
        if meta.uid == u32::MAX || meta.gid == u32::MAX {
            return Err(Errno::INVAL);
        }
        chown(Some(Uid::from_raw(meta.uid)), Some(Gid::from_raw(meta.gid)))
    }

    fn attributes(
        &mut self,
        meta: &Meta,
        set: impl Fn(&[u8], &[u8]) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        for (name, value) in &meta.xattrs {
            let done = match self.ownership {
                Ownership::Caller if !name.starts_with(b"user.") => Err(Errno::NOTSUP),
                _ => set(name, value),
            };
            match (done, self.ownership) {
                // A file system without attributes, or `user.*` of something that is no file.
                (Err(Errno::NOTSUP | Errno::PERM), Ownership::Caller) => self.left_out.xattrs += 1,
                (done, _) => done?,
            }
        }
        Ok(())
    }

    fn mode(&mut self, meta: &Meta) -> Mode {
        let mode = match self.ownership {
            Ownership::Box => meta.mode,
            Ownership::Caller => meta.mode & !SET_ID,
        };
        self.left_out.set_id += u64::from(mode != meta.mode);
        Mode::from_raw_mode(mode.into())
    }
}

/// The last access is not part of a tree: it is as the last change.
fn times(meta: &Meta) -> Timestamps {
    let time = Timespec { tv_sec: meta.mtime, tv_nsec: meta.mtime_nsec.into() };
    Timestamps { last_access: time, last_modification: time }
}

/// Returns the kind of file that a link, device or pipe is.
const fn kind_of(inode: &Inode) -> Option<FileType> {
    match &inode.kind {
        Kind::Leaf(Leaf::Symlink(_)) => Some(FileType::Symlink),
        Kind::Leaf(Leaf::CharDevice(..)) => Some(FileType::CharacterDevice),
        Kind::Leaf(Leaf::BlockDevice(..)) => Some(FileType::BlockDevice),
        Kind::Leaf(Leaf::Fifo) => Some(FileType::Fifo),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, File, Permissions};
    use std::os::fd::AsFd;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A box may put a link or a file of its own in the place of what was made.
    #[test]
    fn what_took_the_place_of_a_pipe_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::write(at("key"), "key").unwrap();
        fs::set_permissions(at("key"), Permissions::from_mode(0o600)).unwrap();
        symlink("key", at("link")).unwrap();
        fs::hard_link(at("key"), at("other")).unwrap();
        let no_attributes = BTreeMap::new();
        let meta =
            Meta { mode: 0o777, uid: 0, gid: 0, mtime: 7, mtime_nsec: 0, xattrs: no_attributes };
        let pipe = Inode::leaf(meta, Leaf::Fifo);
        let directory = File::open(root.path()).unwrap();
        for name in ["link", "key", "other"] {
            let mut setter = MetaSetter::new(Ownership::Caller);
            let done = setter.set_meta_at(directory.as_fd(), name.as_bytes(), &pipe);
            assert_eq!(done, Err(Errno::STALE), "{name}");
        }
        assert_eq!(fs::metadata(at("key")).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
