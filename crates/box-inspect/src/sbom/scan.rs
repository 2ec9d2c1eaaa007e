//! Reads the package databases of a tree, within bounds.

use std::collections::HashSet;
use std::io;

use box_tree::listing::{Listing, NamedOrigin};
use box_tree::{Content, InodeId, ReadContent, path};

use super::inventory::part;
use super::package::Package;

/// The maximum size of all databases of a box, in bytes.
const MAX_ALL: u64 = 512 << 20;
/// The maximum number of packages of a box. A full desktop has some 5000.
pub(super) const MAX_PACKAGES: usize = 100_000;
/// The maximum size of all paths, in bytes: for each package, the path of the file that lists it. The paths and the document
/// with them are in memory. This is 335 bytes for each of [`MAX_PACKAGES`]; real paths have a third of that.
pub(super) const MAX_PATHS: usize = 32 << 20;
/// The maximum number of names in the symbolic links that are followed for all files. Real images have one or two for each file.
pub(super) const MAX_LINKS: usize = 1 << 20;
/// The maximum number of notes.
const MAX_NOTES: usize = 50;

/// A file that is read for the packages of a box.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Database {
    /// The type of the package URLs of its packages. `None` for a file that lists no package, such as os-release.
    pub(crate) kind: Option<&'static str>,
    /// The [`part`] of the box that contains the file.
    pub(crate) part: String,
    pub(crate) path: String,
    pub(crate) content: Content,
}

/// Decides which files are read.
pub(crate) type Choose<'c> = &'c mut dyn FnMut(Database) -> bool;

/// The packages found so far.
pub(super) struct Scan<'a, 'r> {
    pub(super) listing: &'a Listing,
    contents: &'r mut dyn ReadContent,
    choose: Choose<'r>,
    /// How many bytes may still be read.
    left: u64,
    /// The remaining number of names in links, of [`MAX_LINKS`].
    links_left: usize,
    /// The files that were read by their paths, and the links that were noted.
    seen: HashSet<InodeId>,
    pub(super) packages: Vec<Package<'a>>,
    /// The size of the paths so far, for [`MAX_PATHS`].
    paths: usize,
    notes: Vec<String>,
    /// The number of notes, including the notes beyond [`MAX_NOTES`].
    noted: usize,
}

impl<'a, 'r> Scan<'a, 'r> {
    pub(super) fn new(
        listing: &'a Listing,
        contents: &'r mut dyn ReadContent,
        choose: Choose<'r>,
    ) -> Self {
        let (packages, notes) = (Vec::new(), Vec::new());
        let seen = HashSet::new();
        Self {
            listing,
            contents,
            choose,
            left: MAX_ALL,
            links_left: MAX_LINKS,
            seen,
            packages,
            paths: 0,
            notes,
            noted: 0,
        }
    }

    /// Follows a path of the component at `root`, and symbolic links within it.
    fn follow(&mut self, root: &str, path: &[u8]) -> Option<InodeId> {
        let tree = &self.listing.tree;
        let top = tree.reach(root.as_bytes()).ok()?;
        tree.lookup_in(top, path, &mut self.links_left)
    }

    /// Finds the entry at a path of the component at `root`, through symbolic links within it. Notes a broken link.
    /// Returns `None` if there is no entry.
    pub(super) fn find(&mut self, root: &str, path: &str) -> Option<InodeId> {
        let (mut here, mut walked) = (self.follow(root, b"")?, Vec::new());
        for name in path::names(path.as_bytes()) {
            let child = self.listing.tree.child(here, name)?;
            walked = path::join(&walked, name);
            let Some(found) = self.follow(root, &walked) else {
                if self.seen.insert(child) {
                    let link = format!("{root}{}", String::from_utf8_lossy(&walked));
                    self.note(&link, "the symbolic link leads nowhere in the component");
                }
                return None;
            };
            here = found;
        }
        Some(here)
    }

    /// Reads a file of the component at `root` as text. Returns `None` if there is no file, if it was already read by another
    /// path, or if it is not chosen. `kind` is the one of its [`Database`].
    pub(super) fn file(
        &mut self,
        root: &str,
        path: &str,
        (kind, limit): (Option<&'static str>, u64),
    ) -> io::Result<Option<String>> {
        match self.find(root, path).filter(|id| self.seen.insert(*id)) {
            Some(id) => self.text(id, &format!("{root}{path}"), (kind, limit)),
            None => Ok(None),
        }
    }

    /// Lists the names in a directory of the component at `root` that are UTF-8.
    pub(super) fn names(&mut self, root: &str, path: &str) -> Vec<String> {
        let id = self.find(root, path);
        let names = id.and_then(|id| self.listing.tree.inode(id).names()).into_iter().flatten();
        names.filter_map(|(name, _)| String::from_utf8(name.to_vec()).ok()).collect()
    }

    /// Returns the origin of the entry at a path of the component at `root`, following symbolic links.
    pub(super) fn origin(&mut self, root: &str, path: &str) -> Option<NamedOrigin<'a>> {
        self.follow(root, path.as_bytes()).and_then(|found| self.listing.origin(found))
    }

    /// Returns whether the limits allow one more package, whose file has this path. Adds a note if they do not.
    pub(super) fn has_room(&mut self, path: &str) -> bool {
        self.paths = self.paths.saturating_add(path.len());
        if self.packages.len() >= MAX_PACKAGES {
            self.note(path, "the rest is not read: a box has fewer packages");
        } else if self.paths > MAX_PATHS {
            self.note(path, "the rest is not read: the paths of a box's packages are shorter");
        } else {
            return true;
        }
        false
    }

    /// Notes that the file at `path`, or an entry of it, was left out.
    pub(super) fn note(&mut self, path: &str, reason: &str) {
        self.noted += 1;
        if self.noted <= MAX_NOTES {
            self.notes.push(format!("{path}: {reason}"));
        }
    }

    /// Returns the packages, and the notes on entries that were left out.
    pub(super) fn finish(mut self) -> (Vec<Package<'a>>, Vec<String>) {
        if let Some(more) = self.noted.checked_sub(MAX_NOTES).filter(|more| *more > 0) {
            self.notes.push(format!("and {more} more"));
        }
        if self.links_left == 0 {
            self.notes
                .push("its links are not followed any further: there are too many".to_owned());
        }
        (self.packages, self.notes)
    }

    /// Reads a file as text, if it is chosen. Notes an entry that is no file, is too large or exceeds a limit.
    pub(super) fn text(
        &mut self,
        id: InodeId,
        path: &str,
        (kind, limit): (Option<&'static str>, u64),
    ) -> io::Result<Option<String>> {
        let inode = self.listing.tree.inode(id);
        let Some(&content) = inode.content() else {
            self.note(path, &format!("it is not read, being a {}", inode.type_name()));
            return Ok(None);
        };
        let reason = if content.size > limit {
            format!("it is not read, having more than {limit} bytes")
        } else if content.size > self.left {
            format!("it is not read: the files before it had {MAX_ALL} bytes together")
        } else {
            let (part, path) = (part(self.listing.origin(id).as_ref()), path.to_owned());
            if !(self.choose)(Database { kind, part, path, content }) {
                return Ok(None);
            }
            self.left -= content.size;
            let bytes = self.contents.read(content, limit)?;
            let text = String::from_utf8(bytes);
            return Ok(Some(
                text.unwrap_or_else(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()),
            ));
        };
        self.note(path, &reason);
        Ok(None)
    }
}
