//! What one layer may ask for before it counts as an attack.

/// Bounds on one layer. Real images stay far below the defaults.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Entries.
    pub entries: usize,
    /// Bytes of the uncompressed archive.
    pub archive_bytes: u64,
    /// Bytes of one path (`PATH_MAX` of Linux).
    pub path_bytes: usize,
    /// Parts of one path.
    pub depth: usize,
    /// Bytes of all extended attributes of one entry (Linux allows 64 KiB for one value).
    pub xattr_bytes: usize,
    /// Bytes of the extended headers of one entry.
    pub header_bytes: usize,
    /// Bytes of all paths, targets and extended attributes, and a little for each entry.
    pub index_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 1 << 20,
            archive_bytes: 64 << 30,
            path_bytes: 4096,
            depth: 256,
            xattr_bytes: 128 << 10,
            header_bytes: 1 << 20,
            index_bytes: 256 << 20,
        }
    }
}
