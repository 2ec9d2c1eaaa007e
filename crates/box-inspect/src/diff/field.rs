//! The fields of an entry, in the order in which they are compared.

use super::Entry;

/// What can differ at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// What it is.
    Type,
    /// The permissions.
    Mode,
    /// The user id.
    Uid,
    /// The group id.
    Gid,
    /// The size of a file.
    Size,
    /// The bytes of a file.
    Content,
    /// The target of a symbolic link.
    Target,
    /// The numbers of a device.
    Device,
    /// The extended attributes.
    Xattrs,
    /// The modification time.
    Mtime,
    /// Which other names it has.
    HardLinks,
}

impl Field {
    /// All, in the order in which they are compared.
    pub const ALL: [Self; 11] = [
        Self::Type,
        Self::Mode,
        Self::Uid,
        Self::Gid,
        Self::Size,
        Self::Content,
        Self::Target,
        Self::Device,
        Self::Xattrs,
        Self::Mtime,
        Self::HardLinks,
    ];

    /// Returns the name, as in `hard-links`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Mode => "mode",
            Self::Uid => "uid",
            Self::Gid => "gid",
            Self::Size => "size",
            Self::Content => "content",
            Self::Target => "target",
            Self::Device => "device",
            Self::Xattrs => "xattrs",
            Self::Mtime => "mtime",
            Self::HardLinks => "hard-links",
        }
    }

    /// Tells whether two entries of the same path differ in this field.
    pub(super) fn differs(self, one: &Entry<'_>, other: &Entry<'_>) -> bool {
        let (a, b) = (&one.inode.meta, &other.inode.meta);
        match self {
            Self::Type => one.kind() != other.kind(),
            Self::Mode => a.mode != b.mode && !has_no_mode(one, other),
            Self::Uid => a.uid != b.uid,
            Self::Gid => a.gid != b.gid,
            Self::Size => one.content().map(|it| it.size) != other.content().map(|it| it.size),
            Self::Content => one.content() != other.content(),
            Self::Target => one.target() != other.target(),
            Self::Device => one.device() != other.device(),
            Self::Xattrs => a.xattrs != b.xattrs,
            Self::Mtime => (a.mtime, a.mtime_nsec) != (b.mtime, b.mtime_nsec),
            Self::HardLinks => (one.names, one.group) != (other.names, other.group),
        }
    }
}

/// Links have permissions in archives and images, but none on Linux.
fn has_no_mode(one: &Entry<'_>, other: &Entry<'_>) -> bool {
    one.target().is_some() && other.target().is_some() && (one.on_host || other.on_host)
}

impl<'a> Entry<'a> {
    /// Returns the first extended attribute, by name, of which two entries have different values or
    /// only one has any.
    pub fn differing_xattr(&self, other: &Self) -> Option<&'a [u8]> {
        let (a, b) = (&self.inode.meta.xattrs, &other.inode.meta.xattrs);
        let differing = a.iter().find(|(name, value)| b.get(*name) != Some(value));
        let further = b.keys().find(|name| !a.contains_key(*name));
        differing.map(|(name, _)| name).into_iter().chain(further).min().map(Vec::as_slice)
    }
}
