//! The limits of a listing: large enough for every box that can be built.
//!
//! A box can come from a stranger, and its digest is known only after the whole listing was read. The writer checks the
//! same limits, so that a box that cannot be read is not built.

use super::ListingError;
use crate::{Inode, Names, Tree, memory, path};

/// The maximum size of all paths, link targets and extended attributes of the layers of a build, in bytes,
/// with some overhead for each entry. A layer that is applied twice is included twice. Real images have a
/// tenth of this.
pub const MAX_METADATA_BYTES: usize = 192 << 20;

/// The maximum size of a listing, in bytes. An entry takes less than in the index of its layer; the additional 64 MiB are
/// for directories that no layer has.
pub const LISTING_BYTES: usize = MAX_METADATA_BYTES + (64 << 20);
/// The maximum memory of all entries and their names, in bytes: the limit for all layers, and 256 MiB for files of the
/// checkout, skills (which both components have), copies of package databases, and the fixed entries of every box.
pub const LISTING_MEMORY: usize = memory::MAX_LAYERS + (256 << 20);
/// The maximum size of the encoded origins, in bytes.
const MAX_ORIGINS: usize = 4 << 20;
/// The maximum number of entries: as many as two images can have.
const MAX_ENTRIES: u32 = 1 << 21;
/// The maximum size of all paths, in bytes. Paths are stored as differences, so the size of the listing does not limit
/// them. Paths in layers have less than [`MAX_METADATA_BYTES`]. The additional 64 MiB are for the path of a component's
/// root before each path (32 MiB), and for directories that no layer has. This is 128 bytes for each of [`MAX_ENTRIES`].
const MAX_PATHS: usize = MAX_METADATA_BYTES + (64 << 20);
/// The maximum length of a path, in bytes: 4096 as in layers, and the path of a component's root or a skill before it.
const PATH_MAX: usize = 4096 + 256;
/// The maximum number of names in a path: 256 as in layers, and the names of a component's root or a skill before them.
const MAX_DEPTH: usize = 256 + 8;

/// Checks the length of the encoded origins.
///
/// # Errors
/// [`ListingError`].
pub(super) fn check_origins(origins: &[u8]) -> Result<(), ListingError> {
    check(origins.len() <= MAX_ORIGINS, "its origins have more than 4 MiB")
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
    check(count <= MAX_ENTRIES, "it has more than 2097152 entries")
}

/// Checks the length of a path.
///
/// # Errors
/// [`ListingError`].
pub(super) fn check_path(length: usize) -> Result<(), ListingError> {
    check(length <= PATH_MAX, "a path has more than 4352 bytes")
}

/// Checks that the paths of a tree are within the limits of a listing, without its attributes. The paths of a checked tree
/// do not take much more memory or time than its entries.
///
/// # Errors
/// [`ListingError`].
pub fn check_paths(tree: &Tree) -> Result<(), ListingError> {
    let (mut totals, mut names) = (Totals::default(), Names::new(tree));
    while let Some((path, _)) = names.next() {
        totals.path(path)?;
    }
    Ok(())
}

/// Totals of the entries so far.
#[derive(Debug, Default)]
pub(super) struct Totals {
    paths: usize,
    xattrs: usize,
    memory: usize,
}

impl Totals {
    /// Adds the path of an entry.
    ///
    /// # Errors
    /// [`ListingError`].
    pub(super) fn path(&mut self, path: &[u8]) -> Result<(), ListingError> {
        self.paths += path.len();
        let names = memchr::memchr_iter(b'/', path).count();
        check_path(path.len())?;
        check(names <= MAX_DEPTH, "a path has more than 264 names")?;
        let fits = self.paths <= MAX_PATHS;
        check_at(path, fits, "its paths have more than 256 MiB together")?;
        let (_, name) = path::split(path);
        self.add_memory(path, name.len())
    }

    /// Adds an inode at `path`, its first name.
    ///
    /// # Errors
    /// [`ListingError`].
    pub(super) fn inode(&mut self, path: &[u8], inode: &Inode) -> Result<(), ListingError> {
        self.xattrs += inode.meta.xattrs_cost();
        let fits = self.xattrs <= MAX_METADATA_BYTES;
        check_at(path, fits, "its extended attributes have more than 192 MiB together")?;
        self.add_memory(path, memory::inode(inode))
    }

    /// Adds `path`, a further name of an inode.
    ///
    /// # Errors
    /// [`ListingError`].
    pub(super) fn further_name(&mut self, path: &[u8]) -> Result<(), ListingError> {
        self.add_memory(path, memory::NAME)
    }

    fn add_memory(&mut self, path: &[u8], bytes: usize) -> Result<(), ListingError> {
        self.memory += bytes;
        let fits = self.memory <= LISTING_MEMORY;
        check_at(path, fits, "its entries take more than 576 MiB of memory")
    }
}

/// Checks a total. The error contains `path`, the first entry beyond the limit.
fn check_at(path: &[u8], fits: bool, reason: &'static str) -> Result<(), ListingError> {
    check(fits, reason).map_err(|error| error.at(path))
}

fn check(fits: bool, reason: &'static str) -> Result<(), ListingError> {
    if fits { Ok(()) } else { Err(ListingError::new(reason)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::{Leaf, Meta};

    #[test]
    fn texts_tell_the_bounds() {
        assert_eq!((LISTING_BYTES, MAX_METADATA_BYTES), (256 << 20, 192 << 20));
        assert_eq!(LISTING_MEMORY, 576 << 20);
        assert!(check_length(LISTING_BYTES).is_ok() && check_length(LISTING_BYTES + 1).is_err());
        assert!(check_entries(2_097_152).is_ok() && check_entries(2_097_153).is_err());
    }

    #[test]
    fn a_path_is_neither_too_long_nor_too_deep() {
        let path = |bytes: Vec<u8>| Totals::default().path(&bytes);
        assert!(path(vec![b'a'; 4352]).is_ok() && path(vec![b'a'; 4353]).is_err());
        assert!(path(b"/a".repeat(264)).is_ok() && path(b"/a".repeat(265)).is_err());
    }

    #[test]
    fn a_tree_has_no_paths_that_a_listing_could_not_have() {
        let with = |names: usize, length: usize| {
            let mut tree = Tree::default();
            let make = |directory, _| tree.ensure_directory(directory, &vec![b'n'; length]);
            (0..names).fold(Tree::ROOT, make);
            check_paths(&tree).map_err(|error| error.to_string())
        };
        assert_eq!((with(264, 1), with(17, 255)), (Ok(()), Ok(())));
        assert_eq!(with(265, 1), Err("a path has more than 264 names".to_owned()));
        assert_eq!(with(18, 255), Err("a path has more than 4352 bytes".to_owned()));
    }

    /// Calls `add` until it fails, and returns the number of successful calls and the error.
    fn most(mut add: impl FnMut() -> Result<(), ListingError>) -> (usize, String) {
        let mut times = 0;
        loop {
            match add() {
                Ok(()) => times += 1,
                Err(error) => return (times, error.to_string()),
            }
        }
    }

    #[test]
    fn paths_and_attributes_are_counted_over_all_entries() {
        let mut totals = Totals::default();
        let path = [vec![b'a'; 4095], b"/".to_vec()].concat();
        (0..(256 << 20) / 4096).for_each(|_| totals.path(&path).unwrap());
        let error = totals.path(b"/").unwrap_err().to_string();
        assert_eq!(error, "its paths have more than 256 MiB together, from / on");
        let (mut totals, mut meta) = (Totals::default(), Meta::root_owned(0));
        (0..1000u32).for_each(|at| drop(meta.xattrs.insert(at.to_le_bytes().into(), Vec::new())));
        let pipe = Inode::leaf(meta, Leaf::Fifo);
        let (times, error) = most(|| totals.inode(b"/pipe", &pipe));
        assert_eq!(times, (192 << 20) / (1000 * (4 + 64)));
        assert_eq!(error, "its extended attributes have more than 192 MiB together, from /pipe on");
    }

    #[test]
    fn memory_is_counted_over_all_entries() {
        let mut attribute = Meta::root_owned(0);
        attribute.xattrs.insert(b"user.a".to_vec(), b"1".to_vec());
        let directory = Inode::directory(Meta::root_owned(0));
        for (inode, takes) in [
            (Some(Inode::leaf(attribute, Leaf::Fifo)), 340 + 640 + 2 * (7 + 64)),
            (Some(directory), 760),
            (None, 240),
        ] {
            let memory = LISTING_MEMORY - 10 * (4 + takes);
            let mut totals = Totals { memory, ..Totals::default() };
            let (times, error) = most(|| {
                totals.path(b"/d/name")?;
                match &inode {
                    Some(inode) => totals.inode(b"/d/name", inode),
                    None => totals.further_name(b"/d/name"),
                }
            });
            assert_eq!(times, 10, "{takes}");
            assert_eq!(error, "its entries take more than 576 MiB of memory, from /d/name on");
        }
    }
}
