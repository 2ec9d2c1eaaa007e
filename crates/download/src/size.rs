//! The size that a file must have.

use crate::error::DownloadError;
use crate::guard::{Guard, Guards};

/// The size in bytes that a file must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Exactly this many.
    Exactly(u64),
    /// This many or fewer.
    AtMost(u64),
}

impl Size {
    /// Returns the most bytes that the file can have.
    pub const fn most(self) -> u64 {
        match self {
            Self::Exactly(size) | Self::AtMost(size) => size,
        }
    }

    /// Refuses a whole file of another size.
    pub(crate) fn check(self, what: &str, found: u64, guards: Guards) -> Result<(), DownloadError> {
        match self {
            Self::Exactly(expected) if found < expected && guards.hold(Guard::Size) => {
                Err(DownloadError::WrongSize { what: what.to_owned(), expected, found })
            }
            _ => self.check_part(what, found, guards),
        }
    }

    /// Refuses a file of which there are too many bytes already.
    pub(crate) fn check_part(
        self,
        what: &str,
        found: u64,
        guards: Guards,
    ) -> Result<(), DownloadError> {
        let what = || what.to_owned();
        match self {
            Self::Exactly(expected) if found > expected && guards.hold(Guard::Size) => {
                Err(DownloadError::WrongSize { what: what(), expected, found })
            }
            Self::AtMost(limit) if found > limit => {
                Err(DownloadError::TooLarge { what: what(), limit })
            }
            _ => Ok(()),
        }
    }
}
