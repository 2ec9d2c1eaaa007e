//! The fields of an entry by which two are compared.

use box_image::named_enum;

use super::{Inode, Meta};

named_enum! {
    /// The fields that can differ at a path.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Field {
        /// The type of the entry.
        Type "type",
        /// The permissions.
        Mode "mode",
        /// The numeric user id.
        Uid "uid",
        /// The numeric group id.
        Gid "gid",
        /// The size of a file.
        Size "size",
        /// The bytes of a file.
        Content "content",
        /// The target of a symbolic link.
        Target "target",
        /// The numbers of a device.
        Device "device",
        /// The extended attributes.
        Xattrs "xattrs",
        /// The modification time.
        Mtime "mtime",
        /// Which other names it has.
        HardLinks "hard-links",
    }
}

impl Field {
    /// Returns `true` if two inodes differ in this field. Their hard links are not known here.
    pub fn differs(self, one: &Inode, other: &Inode) -> bool {
        let (a, b) = (&one.meta, &other.meta);
        match self {
            Self::Type => one.type_name() != other.type_name(),
            Self::Mode => a.mode != b.mode,
            Self::Uid => a.uid != b.uid,
            Self::Gid => a.gid != b.gid,
            Self::Size => one.content().map(|it| it.size) != other.content().map(|it| it.size),
            Self::Content => one.content() != other.content(),
            Self::Target => one.target() != other.target(),
            Self::Device => one.device() != other.device(),
            Self::Xattrs => a.xattrs != b.xattrs,
            Self::Mtime => (a.mtime, a.mtime_nsec) != (b.mtime, b.mtime_nsec),
            Self::HardLinks => false,
        }
    }
}

impl Meta {
    /// Returns the first extended attribute, by name, of which two inodes have different values or
    /// only one has any.
    pub fn differing_xattr<'a>(&'a self, other: &'a Self) -> Option<&'a [u8]> {
        let differing =
            self.xattrs.iter().find(|(name, value)| other.xattrs.get(*name) != Some(value));
        let further = other.xattrs.keys().find(|name| !self.xattrs.contains_key(*name));
        differing.map(|(name, _)| name).into_iter().chain(further).min().map(Vec::as_slice)
    }
}
