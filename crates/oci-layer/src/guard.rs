//! The checks that keep hostile archives out, by name.
//!
//! A check that nothing needs is dead weight, and one that no test needs may be gone tomorrow: the
//! tests leave out each of these in turn, and each time the corpus of hostile archives must notice.
//! A program that is no test has all of them, always.

/// A check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// A header's sum is that of its bytes.
    Checksum,
    /// A header is of a known format.
    Magic,
    /// One zero block is no end.
    LoneZeroBlock,
    /// The archive does not end behind an extended header.
    EndInside,
    /// No global header between an extended header and its member.
    GlobalInside,
    /// A global header changes no member.
    GlobalEffect,
    /// One extended header and one long name for a member.
    ExtendedTwice,
    /// One value for a key of an extended header.
    RecordTwice,
    /// A record's length is a plain number.
    RecordLength,
    /// A record ends with a newline.
    RecordEnd,
    /// What this reader reads has a value.
    EmptyRecord,
    /// Long names end with a NUL.
    LongNameEnd,
    /// Long names are not empty.
    LongNameEmpty,
    /// Extended headers are short.
    HeaderBytes,
    /// The name is not given by an extended header and by a long name.
    NameTwice,
    /// The header and the extended header agree about the size.
    SizeTwice,
    /// Numbers do not start with a NUL.
    LeadingNul,
    /// No sparse files.
    Sparse,
    /// A file's name ends without a slash.
    FileSlash,
    /// Devices have numbers that Linux has.
    DeviceNumber,
    /// No attributes of overlayfs.
    OverlayAttribute,
    /// Only attributes that Linux has.
    UnsupportedAttribute,
    /// Attributes are small.
    AttributeBytes,
    /// Only files have data.
    UnexpectedData,
    /// Only types that a file system has.
    EntryType,
    /// Links lead somewhere.
    LinkTarget,
    /// The root is a directory.
    RootNotDirectory,
    /// Not too many entries.
    Entries,
    /// Not too many bytes of names and attributes.
    IndexBytes,
    /// Not too many bytes for the blob's size.
    Inflated,
    /// The blob is the one that is named.
    BlobDigest,
    /// The archive is the one that is named.
    DiffId,
    /// No NUL in a path.
    PathNul,
    /// No `..` in a path.
    PathParent,
    /// Paths are short.
    PathBytes,
    /// Names are short.
    NameBytes,
    /// Paths are not deep.
    PathDepth,
    /// A whiteout hides a name.
    WhiteoutEmpty,
    /// A whiteout does not hide the parent.
    WhiteoutParent,
}

#[cfg(test)]
impl Guard {
    /// All of them: the length is right only if none is forgotten.
    pub(super) const ALL: [Self; Self::WhiteoutParent as usize + 1] = [
        Self::Checksum,
        Self::Magic,
        Self::LoneZeroBlock,
        Self::EndInside,
        Self::GlobalInside,
        Self::GlobalEffect,
        Self::ExtendedTwice,
        Self::RecordTwice,
        Self::RecordLength,
        Self::RecordEnd,
        Self::EmptyRecord,
        Self::LongNameEnd,
        Self::LongNameEmpty,
        Self::HeaderBytes,
        Self::NameTwice,
        Self::SizeTwice,
        Self::LeadingNul,
        Self::Sparse,
        Self::FileSlash,
        Self::DeviceNumber,
        Self::OverlayAttribute,
        Self::UnsupportedAttribute,
        Self::AttributeBytes,
        Self::UnexpectedData,
        Self::EntryType,
        Self::LinkTarget,
        Self::RootNotDirectory,
        Self::Entries,
        Self::IndexBytes,
        Self::Inflated,
        Self::BlobDigest,
        Self::DiffId,
        Self::PathNul,
        Self::PathParent,
        Self::PathBytes,
        Self::NameBytes,
        Self::PathDepth,
        Self::WhiteoutEmpty,
        Self::WhiteoutParent,
    ];
}

impl Guard {
    /// Tells whether what this check is for is there.
    #[inline]
    pub(super) fn catches(self, bad: bool) -> bool {
        bad && self.is_on()
    }

    #[cfg(not(test))]
    const fn is_on(self) -> bool {
        true
    }

    #[cfg(test)]
    fn is_on(self) -> bool {
        left_out::GUARD.get() != Some(self)
    }
}

/// Which check a test leaves out.
#[cfg(test)]
pub(super) mod left_out {
    use std::cell::Cell;

    use super::Guard;

    thread_local! {
        /// The check that this thread leaves out.
        pub(crate) static GUARD: Cell<Option<Guard>> = const { Cell::new(None) };
    }
}
