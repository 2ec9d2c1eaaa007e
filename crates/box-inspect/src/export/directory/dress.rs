//! Sets the owners, extended attributes, permissions and times of exported files.

use std::os::fd::AsRawFd;

use box_tree::{Inode, Kind, Leaf, Meta};
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

const SET_ID: u16 = 0o6000;

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Names of devices.
    pub devices: u64,
    /// Files and directories without their set-uid or set-gid bit.
    pub set_id: u64,
    /// Extended attributes, of which a file may have several.
    pub xattrs: u64,
}

/// Gives entries what the tree says of them, as far as it may.
#[derive(Debug)]
pub(super) struct Dresser {
    ownership: Ownership,
    pub(super) left_out: LeftOut,
}

impl Dresser {
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
    pub(super) fn dress(&mut self, file: BorrowedFd<'_>, meta: &Meta) -> Result<(), Errno> {
        self.own(meta, |uid, gid| rustix::fs::fchown(file, uid, gid))?;
        self.attributes(meta, |name, value| {
            rustix::fs::fsetxattr(file, name, value, XattrFlags::CREATE)
        })
    }

    /// Gives a dressed file or directory its permissions, which may forbid to set attributes, and its
    /// times.
    pub(super) fn finish(&mut self, file: BorrowedFd<'_>, meta: &Meta) -> Result<(), Errno> {
        rustix::fs::fchmod(file, self.mode(meta))?;
        rustix::fs::futimens(file, &times(meta))
    }

    /// Dresses a link, device or pipe, which is not opened. It was made just now in a directory
    /// that is closed to others, so that its name stands for it.
    pub(super) fn dress_name(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        inode: &Inode,
    ) -> Result<(), Errno> {
        let meta = &inode.meta;
        let link = AtFlags::SYMLINK_NOFOLLOW;
        self.own(meta, |uid, gid| rustix::fs::chownat(parent, name, uid, gid, link))?;
        // There is no call that takes a directory's handle, a name and an attribute.
        let directory = format!("/proc/self/fd/{}/", parent.as_raw_fd()).into_bytes();
        let path = [directory.as_slice(), name].concat();
        self.attributes(meta, |attribute, value| {
            rustix::fs::lsetxattr(path.as_slice(), attribute, value, XattrFlags::CREATE)
        })?;
        if !matches!(inode.kind, Kind::Leaf(Leaf::Symlink(_))) {
            rustix::fs::chmodat(parent, name, self.mode(meta), AtFlags::empty())?;
        }
        rustix::fs::utimensat(parent, name, &times(meta), link)
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
