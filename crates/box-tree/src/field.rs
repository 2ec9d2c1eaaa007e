//! Compares two entries field by field.

use box_contract::named_enum;
use box_digest::AnyDigest;
use safe_text::shown;

use super::{Content, Inode, Meta};

/// The maximum length of an extended attribute's value that is shown, in bytes. A longer value is shown as its hash.
const MAX_SHOWN_VALUE: usize = 64;

/// A field in which two entries differ, and both values, each as one line that is safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDifference {
    /// The name of the field. For extended attributes, `xattr NAME` with the first attribute that differs.
    pub field: String,
    /// The values of the two entries.
    pub values: [String; 2],
}

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
        /// The other names of the inode.
        HardLinks "hard-links",
    }
}

impl Field {
    /// Returns `true` if two inodes differ in this field. Always `false` for hard links: an inode does not contain its names.
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

    /// Formats the two values of a field that differs. Empty for hard links: an inode does not contain its names.
    pub fn difference(self, one: &Inode, other: &Inode) -> FieldDifference {
        let xattr = one.meta.differing_xattr(&other.meta).filter(|_| self == Self::Xattrs);
        let field = match xattr {
            Some(name) => format!("xattr {}", shown(&String::from_utf8_lossy(name))),
            None => self.name().to_owned(),
        };
        FieldDifference { field, values: [one, other].map(|inode| self.value(inode, xattr)) }
    }

    /// Formats the value of the field. For extended attributes, it is the value of `xattr`.
    fn value(self, inode: &Inode, xattr: Option<&[u8]>) -> String {
        let meta = &inode.meta;
        let found = match self {
            Self::Type => Some(inode.type_name().to_owned()),
            Self::Mode => Some(format!("{:04o}", meta.mode)),
            Self::Uid => Some(meta.uid.to_string()),
            Self::Gid => Some(meta.gid.to_string()),
            Self::Size => inode.content().map(|it| it.size.to_string()),
            Self::Content => inode.content().map(|it| AnyDigest::from(it.hash).short()),
            Self::Target => inode.target().map(|it| shown(&String::from_utf8_lossy(it))),
            Self::Device => inode.device_numbers(),
            Self::Xattrs => Some(match xattr.and_then(|name| meta.xattrs.get(name)) {
                None => "none".to_owned(),
                Some(value) if value.len() <= MAX_SHOWN_VALUE => {
                    shown(&format!("\"{}\"", value.escape_ascii()))
                }
                Some(value) => {
                    let digest = AnyDigest::from(Content::of(value).hash);
                    format!("{} ({} bytes)", digest.short(), value.len())
                }
            }),
            Self::Mtime => Some(format!("{}.{:09}", meta.mtime_utc(), meta.mtime_nsec)),
            Self::HardLinks => None,
        };
        found.unwrap_or_default()
    }
}

impl Meta {
    /// Returns the name of the first extended attribute, in bytewise order, that has different values
    /// in the two inodes or that only one of them has.
    pub fn differing_xattr<'a>(&'a self, other: &'a Self) -> Option<&'a [u8]> {
        let differing =
            self.xattrs.iter().find(|(name, value)| other.xattrs.get(*name) != Some(value));
        let further = other.xattrs.keys().find(|name| !self.xattrs.contains_key(*name));
        differing.map(|(name, _)| name).into_iter().chain(further).min().map(Vec::as_slice)
    }

    /// Shows the modification time as UTC without the nanoseconds: `2023-11-14 22:13:20` (the
    /// proleptic Gregorian calendar).
    pub fn mtime_utc(&self) -> String {
        box_contract::age::utc(self.mtime)
    }
}
