//! What one layer, and all layers of a build, may ask for before it counts as an attack.

use crate::encoding::XATTR_BYTES;

/// Bytes of all paths, targets and extended attributes of all layers of a build, each as often as it
/// is applied, and a little for each entry. Real images have a tenth of it.
pub(crate) const ALL_INDEX_BYTES: usize = 192 << 20;

/// How many inodes the layers of an image may make: one for each entry, and for each directory that
/// an entry's path goes through and that no entry names.
pub(super) const INODES_MAX: usize = 1 << 20;

/// Bounds on one layer. Real images stay far below the defaults.
///
/// The index of a layer, at the bounds of `entries` and `index_bytes`, takes less than 200 MiB.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Entries.
    pub entries: usize,
    /// Bytes of the uncompressed archive, whatever the size of its blob is.
    pub archive_bytes: u64,
    /// Bytes to which any blob may grow, however small it is.
    pub small_archive_bytes: u64,
    /// How many times its own size a blob may grow beyond that. Files of programs grow 2 to 5
    /// times, logs 20 times, nothing but zeros 1000 times (gzip) and more (zstd).
    pub growth: u64,
    /// Bytes of one path (`PATH_MAX` of Linux).
    pub path_bytes: usize,
    /// Parts of one path.
    pub depth: usize,
    /// Bytes of all extended attributes of one entry (Linux allows 64 KiB for one value).
    pub xattr_bytes: usize,
    /// Bytes of the extended header of one entry.
    pub header_bytes: usize,
    /// Bytes of all paths, targets and extended attributes, and a little for each entry.
    pub index_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 400_000,
            archive_bytes: 64 << 30,
            small_archive_bytes: 512 << 20,
            growth: 100,
            path_bytes: 4096,
            depth: 256,
            xattr_bytes: XATTR_BYTES,
            header_bytes: 1 << 20,
            index_bytes: 96 << 20,
        }
    }
}

impl Limits {
    /// Returns the limits of a layer whose blob has this many bytes.
    pub(super) fn of_blob(&self, size: u64) -> Self {
        let grown = size.saturating_mul(self.growth).max(self.small_archive_bytes);
        Self { archive_bytes: self.archive_bytes.min(grown), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_may_grow_with_its_blob() {
        let allowed = |size| Limits::default().of_blob(size).archive_bytes;
        assert_eq!(allowed(0), 512 << 20);
        assert_eq!(allowed(5 << 20), 512 << 20);
        assert_eq!(allowed(6 << 20), 600 << 20);
        assert_eq!(allowed(1 << 30), 64 << 30);
        assert_eq!(allowed(u64::MAX), 64 << 30);
    }
}
