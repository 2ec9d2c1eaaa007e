//! How large a listing may be: as large as that of any box that can be built, and no larger.
//!
//! A box comes from strangers, and its digest is known only when all of its listing is read: so the
//! same bounds hold for whoever writes a listing, and a box that nobody could read is not built.

use super::ListingError;
use crate::Meta;

/// Bytes of all paths, link targets and extended attributes of the layers of a build, each as often as
/// it is applied, with some overhead for each entry. Real images have a tenth of it.
pub const METADATA_BYTES_MAX: usize = 192 << 20;

/// Bytes of a listing. What it tells of an entry takes less than the same in the index of a layer;
/// the rest is for directories that no layer names.
pub const LISTING_BYTES: usize = METADATA_BYTES_MAX + (64 << 20);
/// Bytes of what the origins name.
const ORIGINS_MAX: usize = 4 << 20;
/// Entries: as many as two images can have.
const ENTRIES_MAX: u32 = 1 << 21;
/// Bytes of all paths together. What is stored as differences could else grow without end.
const PATHS_MAX: u64 = 4 << 30;

/// Checks the length of what the origins name.
///
/// # Errors
/// [`ListingError`].
pub(super) fn check_origins(origins: &[u8]) -> Result<(), ListingError> {
    check(origins.len() <= ORIGINS_MAX, "its origins have more than 4 MiB")
}

/// Checks the length of a listing.
///
/// # Errors
/// [`ListingError`].
pub(super) fn check_length(length: usize) -> Result<(), ListingError> {
    check(length <= LISTING_BYTES, "it has more than 256 MiB")
}

/// Checks the number of entries.
///
/// # Errors
/// [`ListingError`].
pub(super) fn check_entries(count: u32) -> Result<(), ListingError> {
    check(count <= ENTRIES_MAX, "it has more than 2097152 entries")
}

/// Totals of the entries so far.
#[derive(Debug, Default)]
pub(super) struct Totals {
    paths: u64,
    xattrs: usize,
}

impl Totals {
    /// Adds the path of an entry.
    ///
    /// # Errors
    /// [`ListingError`].
    pub(super) fn path(&mut self, path: &[u8]) -> Result<(), ListingError> {
        self.paths += path.len() as u64;
        check(self.paths <= PATHS_MAX, "its paths have more than 4 GiB together")
    }

    /// Adds the attributes of an inode. In memory they take several times what they take here.
    ///
    /// # Errors
    /// [`ListingError`].
    pub(super) fn meta(&mut self, meta: &Meta) -> Result<(), ListingError> {
        self.xattrs += meta.xattrs_cost();
        let fits = self.xattrs <= METADATA_BYTES_MAX;
        check(fits, "its extended attributes have more than 192 MiB together")
    }
}

fn check(fits: bool, why: &'static str) -> Result<(), ListingError> {
    if fits { Ok(()) } else { Err(ListingError(why)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_tell_the_bounds() {
        assert_eq!((LISTING_BYTES, METADATA_BYTES_MAX), (256 << 20, 192 << 20));
        assert!(check_length(LISTING_BYTES).is_ok() && check_length(LISTING_BYTES + 1).is_err());
        assert!(check_entries(2_097_152).is_ok() && check_entries(2_097_153).is_err());
    }

    #[test]
    fn paths_and_attributes_are_counted_over_all_entries() {
        let mut totals = Totals::default();
        let path = vec![b'a'; 64 << 20];
        (0..64).for_each(|_| totals.path(&path).unwrap());
        assert!(totals.path(b"/").is_err());
        let mut meta = Meta::root_owned(0);
        (0..1000u32).for_each(|at| drop(meta.xattrs.insert(at.to_le_bytes().into(), Vec::new())));
        let fit = (192 << 20) / (1000 * (4 + 64));
        (0..fit).for_each(|_| totals.meta(&meta).unwrap());
        assert!(totals.meta(&meta).is_err());
    }
}
