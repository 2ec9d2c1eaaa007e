//! The checks that keep hostile archives out, by name.

use super::LayerErrorKind;

guards::guards! {
    #[cfg(test)]
    pub(super) enum Guard {
        /// A header's sum is that of its bytes.
        Checksum,
        /// A header is of a known format.
        Magic,
        /// One zero block is no end.
        LoneZeroBlock,
        /// The archive does not end after an extended header.
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
        /// A PAX record that this reader uses has a value.
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
}

impl Guard {
    /// Refuses what is `bad`, except where a test leaves this check out.
    pub(super) fn refuse(
        self,
        bad: bool,
        error: impl FnOnce() -> LayerErrorKind,
    ) -> Result<(), LayerErrorKind> {
        if self.catches(bad) { Err(error()) } else { Ok(()) }
    }
}
