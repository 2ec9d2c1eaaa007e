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
/// The attribute with a program's capabilities: [capabilities(7)](https://man7.org/linux/man-pages/man7/capabilities.7.html).
const CAPABILITY: &[u8] = b"security.capability";

/// Who owns the exported files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The owners in the box, with devices and all extended attributes. Only root can do that.
    Box,
    /// The caller. Leaves out devices, extended attributes except `user.*`, and set-user-ID and set-group-ID bits, which would
    /// give the caller's rights to other users.
    Caller,
}

/// The numbers of entries and attributes that [`Ownership::Caller`] left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The number of device entries. A device with two hard links counts twice.
    pub devices: u64,
    /// The number of files and directories that lost their set-user-ID or set-group-ID bit.
    pub set_id: u64,
    /// The number of extended attributes. One file may have several.
    pub xattrs: u64,
}

impl LeftOut {
    /// Returns a note on each kind that was left out.
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

/// The number of files that give rights on the host to every user who can access the directory. [`Ownership::Box`] makes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Privileged {
    /// The number of device entries. Here and below, a file with two hard links counts twice.
    pub devices: u64,
    /// The number of entries that are regular files with a set-user-ID or set-group-ID bit.
    pub set_id: u64,
    /// The number of entries that are regular files with capabilities.
    pub capabilities: u64,
}

impl Privileged {
    /// Returns a warning. `None` if every count is zero.
    pub fn warning(self) -> Option<String> {
        let Self { devices, set_id, capabilities } = self;
        (self != Self::default()).then(|| {
            format!(
                "warning: the directory has programs or devices that give rights on this host to every user who can reach them: {set_id} set-uid or set-gid, {capabilities} with \
                 capabilities, {devices} devices; export with --no-owner to leave them out"
            )
        })
    }

    /// Counts these entries of `tree`. All counts are zero for [`Ownership::Caller`], which leaves these rights out.
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

/// Sets the metadata of entries. Skips and counts the metadata that the ownership leaves out.
#[derive(Debug)]
pub(super) struct MetaSetter {
    ownership: Ownership,
    pub(super) left_out: LeftOut,
}

impl MetaSetter {
    pub(super) fn new(ownership: Ownership) -> Self {
        Self { ownership, left_out: LeftOut::default() }
    }

    /// Returns whether the export makes this entry. Counts a device that is left out.
    pub(super) fn makes(&mut self, inode: &Inode) -> bool {
        let device = matches!(inode.kind, Kind::Leaf(Leaf::CharDevice(..) | Leaf::BlockDevice(..)));
        let left_out = device && self.ownership == Ownership::Caller;
        self.left_out.devices += u64::from(left_out);
        !left_out
    }

    /// Sets the owner of an open file or directory, and then its extended attributes: a change of the owner removes set-user-ID
    /// bits and capabilities.
    pub(super) fn set_meta(&mut self, file: BorrowedFd<'_>, meta: &Meta) -> Result<(), Errno> {
        self.own(meta, |uid, gid| rustix::fs::fchown(file, uid, gid))?;
        self.attributes(meta, |name, value| {
            rustix::fs::fsetxattr(file, name, value, XattrFlags::CREATE)
        })
    }

    /// Sets the permissions of a file or directory, and its times. Must be called after [`set_meta`](Self::set_meta), because the
    /// permissions can forbid setting attributes.
    pub(super) fn finish(&mut self, file: BorrowedFd<'_>, meta: &Meta) -> Result<(), Errno> {
        rustix::fs::fchmod(file, self.mode(meta))?;
        rustix::fs::futimens(file, &times(meta))
    }

    /// Sets all metadata of a symbolic link, device or pipe, which is never opened for reading or writing. A box with write
    /// access to the directory could replace the entry meanwhile, so the name is resolved once and the result must be of the
    /// expected type.
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
        // fchown, fchmod and fsetxattr refuse an `O_PATH` handle (EBADF), so use its path in /proc. That path resolves to the
        // open entry itself, even if the entry is a symbolic link.
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
        // Refuse this number, because `chown` would leave the owner unchanged.
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
                // The file system has no attributes, or the entry is of a type that cannot have `user.*`.
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

/// Returns the times to set. [`Meta`] has no access time, so the modification time is used for both.
fn times(meta: &Meta) -> Timestamps {
    let time = Timespec { tv_sec: meta.mtime, tv_nsec: meta.mtime_nsec.into() };
    Timestamps { last_access: time, last_modification: time }
}

/// Returns the file type of a symbolic link, device or pipe. `None` for all others.
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

    /// A box may replace the new entry by a link or a file.
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
