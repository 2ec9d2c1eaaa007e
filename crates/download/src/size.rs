//! The size that a file must have.

use crate::error::DownloadError;

/// The size in bytes that a file must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Exactly this many.
    Exactly(u64),
    /// This many or fewer.
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

    /// Returns the most bytes that the file can have.
    pub const fn most(self) -> u64 {
        match self {
            Self::Exactly(size) | Self::AtMost(size) => size,
        }
    }

    /// Refuses a file of another size. More may follow what was found, unless it is the whole file.
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
