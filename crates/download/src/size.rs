//! The required size of a file.

use crate::error::DownloadError;

/// The required size of a file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Exactly this size.
    Exactly(u64),
    /// At most this size.
    AtMost(u64),
}

impl Default for Size {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Size {
    /// At most 2 GiB.
    pub const DEFAULT: Self = Self::AtMost(2 << 30);

    /// Returns the largest size that the file can have.
    pub const fn most(self) -> u64 {
        match self {
            Self::Exactly(size) | Self::AtMost(size) => size,
        }
    }

    /// Returns an error if the size `found` is wrong. If `is_whole` is false, `found` may still grow.
    pub(crate) fn check(self, what: &str, found: u64, is_whole: bool) -> Result<(), DownloadError> {
        let what = || what.to_owned();
        match self {
            Self::Exactly(expected) if found > expected || (is_whole && found < expected) => {
                Err(DownloadError::WrongSize { what: what(), expected, found })
            }
            Self::AtMost(limit) if found > limit => {
                Err(DownloadError::TooLarge { what: what(), limit })
            }
            _ => Ok(()),
        }
    }
}
