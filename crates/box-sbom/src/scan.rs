//! Reading the package databases of a tree, within bounds.

use std::io;

use box_tree::listing::{Listing, NamedOrigin};
use box_tree::{Content, InodeId, Kind, Leaf};

use super::package::Package;

/// Reads a content, which has at most so many bytes.
pub(super) type Read<'r> = &'r mut dyn FnMut(Content, u64) -> io::Result<Vec<u8>>;

/// The bytes of all databases of a box.
const ALL_MAX: u64 = 512 << 20;
/// The packages of a box. A desktop with everything has some 5000.
pub(super) const PACKAGES_MAX: usize = 100_000;
/// How many of the files that do not read are named.
const NOTES_MAX: usize = 50;

/// What was found so far.
pub(super) struct Scan<'a, 'r> {
    pub(super) listing: &'a Listing,
    read: Read<'r>,
    /// How many bytes may still be read.
    left: u64,
    pub(super) packages: Vec<Package<'a>>,
    notes: Vec<String>,
    /// How many notes there would be.
    noted: usize,
}

impl<'a, 'r> Scan<'a, 'r> {
    pub(super) fn new(listing: &'a Listing, read: Read<'r>) -> Self {
        let (packages, notes) = (Vec::new(), Vec::new());
        Self { listing, read, left: ALL_MAX, packages, notes, noted: 0 }
    }

    /// Reads the file at a path as text; nothing where there is no file.
    pub(super) fn file(&mut self, path: &str, limit: u64) -> io::Result<Option<String>> {
        let Ok(id) = self.listing.tree.reach(path.as_bytes()) else { return Ok(None) };
        self.text(id, path, limit)
    }

    /// Lists the names in a directory that are UTF-8.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let id = self.listing.tree.reach(path.as_bytes()).ok();
        let names = id.and_then(|id| self.listing.tree.inode(id).names()).into_iter().flatten();
        names.filter_map(|(name, _)| String::from_utf8(name.to_vec()).ok()).collect()
    }

    /// Says where what is at a path came from; nothing where nothing is there.
    pub(super) fn origin(&self, path: &[u8]) -> Option<NamedOrigin<'a>> {
        self.listing.origin(self.listing.tree.reach(path).ok()?)
    }

    /// Returns whether the box may have more packages than were found, and notes where it may not.
    pub(super) fn has_room(&mut self, path: &str) -> bool {
        let has_room = self.packages.len() < PACKAGES_MAX;
        if !has_room {
            self.note(path, "the rest is not read: a box has fewer packages");
        }
        has_room
    }

    /// Notes that something of a file was left out.
    pub(super) fn note(&mut self, path: &str, why: &str) {
        self.noted += 1;
        if self.noted <= NOTES_MAX {
            self.notes.push(format!("{path}: {why}"));
        }
    }

    /// Returns the packages, and what was left out.
    pub(super) fn finish(mut self) -> (Vec<Package<'a>>, Vec<String>) {
        if let Some(more) = self.noted.checked_sub(NOTES_MAX).filter(|more| *more > 0) {
            self.notes.push(format!("and {more} more"));
        }
        (self.packages, self.notes)
    }

    /// Reads a file as text; `None` if it is not text or exceeds the bounds.
    pub(super) fn text(
        &mut self,
        id: InodeId,
        path: &str,
        limit: u64,
    ) -> io::Result<Option<String>> {
        let Kind::Leaf(Leaf::File(content)) = self.listing.tree.inode(id).kind else {
            return Ok(None);
        };
        let why = if content.size > limit {
            format!("it is not read, having more than {limit} bytes")
        } else if content.size > self.left {
            format!("it is not read: the files before it had {ALL_MAX} bytes together")
        } else {
            self.left -= content.size;
            let bytes = (self.read)(content, limit)?;
            let text = String::from_utf8(bytes);
            return Ok(Some(
                text.unwrap_or_else(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()),
            ));
        };
        self.note(path, &why);
        Ok(None)
    }
}
