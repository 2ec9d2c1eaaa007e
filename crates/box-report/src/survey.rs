//! What one walk through the listing of a box finds.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use box_inspect::largest::Largest;
use box_inspect::sbom::{Inventory, part};
use box_tree::listing::{Listing, Origin};
use box_tree::{InodeId, Tree};
use safe_text::shown;

use crate::names::Names;
use crate::sections::MAX_ROWS;

/// How many names below the root the directories of an origin have: `/roots/agent/usr/lib` has four.
const DEPTH: usize = 4;
/// The number of directories of an origin.
const MAX_DIRECTORIES: usize = 64;

/// The sizes of the files of a box. A file with several names counts once, at its first name.
#[derive(Debug)]
pub(crate) struct Survey<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) names: Names<'a>,
    seen: HashSet<InodeId>,
    /// The number and the size of the files of each origin.
    pub(crate) origins: BTreeMap<Origin, (u64, u64)>,
    /// The size of the files of each origin in the directories at [`DEPTH`].
    tops: BTreeMap<(Origin, usize), u64>,
    /// The largest files, by their names.
    pub(crate) largest: Largest<(usize, InodeId)>,
    /// The names of the files that were combined from both images.
    pub(crate) combined: Largest<(usize, InodeId)>,
}

impl<'a> Survey<'a> {
    pub(crate) fn of(listing: &'a Listing) -> Self {
        let mut survey = Self {
            listing,
            names: Names::new(),
            seen: HashSet::new(),
            origins: BTreeMap::new(),
            tops: BTreeMap::new(),
            largest: Largest::new(MAX_ROWS),
            combined: Largest::new(MAX_ROWS),
        };
        survey.walk(Tree::ROOT);
        survey.names.close();
        survey
    }

    /// Adds what is below a directory. A listing has at most 264 nested directories, so recursion is safe.
    fn walk(&mut self, directory: InodeId) {
        for (name, id) in self.listing.tree.inode(directory).names().into_iter().flatten() {
            let (name, inode) = (Cow::Borrowed(&**name), self.listing.tree.inode(*id));
            if inode.names().is_some() {
                self.names.open(name);
                self.walk(*id);
                self.names.close();
            } else if let Some(content) = inode.content().filter(|_| self.seen.insert(*id)) {
                self.add(name, (*id, inode.origin), content.size);
            }
        }
    }

    fn add(&mut self, name: Cow<'a, [u8]>, (id, origin): (InodeId, Origin), size: u64) {
        let number = self.names.leaf(name, size);
        let (files, bytes) = self.origins.entry(origin).or_default();
        (*files, *bytes) = (*files + 1, bytes.saturating_add(size));
        let top = self.tops.entry((origin, self.names.open_at(DEPTH))).or_default();
        *top = top.saturating_add(size);
        self.largest.add(size, || (number, id));
        if origin == Origin::Merged {
            self.combined.add(size, || (number, id));
        }
    }

    /// Returns an origin as text.
    pub(crate) fn origin(&self, origin: Origin) -> String {
        self.listing.origins.named(origin).map(|it| shown(&it.to_string())).unwrap_or_default()
    }

    /// Sorts the files by the part of the box, then by its layer, then by directory.
    pub(crate) fn by_origin(&self) -> Names<'static> {
        let mut parts = BTreeMap::<String, BTreeMap<Origin, Largest<usize>>>::new();
        for ((origin, directory), size) in &self.tops {
            let of = parts.entry(part(self.listing.origins.named(*origin).as_ref())).or_default();
            let of = of.entry(*origin).or_insert_with(|| Largest::new(MAX_DIRECTORIES));
            of.add(*size, || *directory);
        }
        let (mut names, owned) = (Names::new(), |it: String| Cow::Owned(it.into_bytes()));
        for (part, origins) in parts {
            names.open(owned(part.clone()));
            for (origin, directories) in origins {
                let text = self.origin(origin);
                // Only images and the builder have several origins.
                let is_part = text == shown(&part);
                if !is_part {
                    names.open(owned(text));
                }
                let mut left = self.origins.get(&origin).map_or(0, |(_, bytes)| *bytes);
                for (size, directory) in directories.into_vec() {
                    left = left.saturating_sub(size);
                    names.leaf(owned(in_image(self.names.path(directory))), size);
                }
                names.leaf(Cow::Borrowed(b"other directories"), left);
                if !is_part {
                    names.close();
                }
            }
            names.close();
        }
        names.close();
        names
    }
}

/// Returns a path of a component's root as its image has it.
fn in_image(path: String) -> String {
    let below = path.strip_prefix("/roots/").and_then(|it| it.split_once('/'));
    below.map_or_else(|| path.clone(), |(_, below)| format!("/{below}"))
}

/// Sorts the packages by the part of the box.
pub(crate) fn by_package(inventory: &Inventory) -> Names<'static> {
    let mut names = Names::new();
    let all: Vec<_> = inventory.sizes.iter().collect();
    // The packages are sorted by part.
    for packages in all.chunk_by(|(a, _), (b, _)| a.part == b.part) {
        names.open(Cow::Owned(packages[0].0.part.clone().into_bytes()));
        for (package, size) in packages {
            let name = format!("{} ({})", package.name, package.kind);
            names.leaf(Cow::Owned(name.into_bytes()), **size);
        }
        names.close();
    }
    names.close();
    names
}
