//! One side of a comparison: the tree of a box, of an image or of a directory.

use box_digest::Digest;
use box_image::ComponentName;
use box_tree::listing::{Listing, NamedOrigin};
use box_tree::{Field, Inode, InodeId, entries, path};

use crate::links::HardLinks;
use crate::opened::{self, OpenBox, OpenError};

/// The kind of a compared tree, with its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SideKind {
    /// A box of this digest.
    Box(Digest),
    /// An image of this digest.
    Image(Digest),
    /// A directory of this host.
    Directory,
}

/// A tree to be compared.
#[derive(Debug)]
pub struct Side {
    /// The kind of the tree, with its digest.
    pub kind: SideKind,
    /// The entries and, but for a directory, where they came from.
    pub listing: Listing,
    /// The directory of the tree that is compared, as the root of what is compared.
    root: Vec<u8>,
    /// The inodes with several names below the root.
    links: HardLinks,
}

impl Side {
    /// Takes the rootfs of a box, or what is in it of one component; nothing where the box has no
    /// such component.
    ///
    /// # Errors
    /// [`OpenError`] where the box's listing cannot be read.
    pub fn of_box(
        opened: &OpenBox,
        component: Option<ComponentName>,
    ) -> Result<Option<Self>, OpenError> {
        let root = match component.map(|name| opened.config.plan.component(name)) {
            None => Vec::new(),
            Some(None) => return Ok(None),
            Some(Some(component)) => path::normalize(component.root.as_bytes()),
        };
        Ok(Some(Self::new(SideKind::Box(opened.digest), opened::listing(opened)?, root)))
    }

    pub(super) fn new(kind: SideKind, listing: Listing, root: Vec<u8>) -> Self {
        let links = HardLinks::of(below(&listing, &root, b""));
        Self { kind, listing, root, links }
    }

    /// Lists the entries at a path of the compared root and below, in the canonical order.
    pub fn entries(&self, path: &[u8]) -> impl Iterator<Item = (Vec<u8>, Entry<'_>)> {
        let names = below(&self.listing, &self.root, path);
        names.map(|(path, id)| (path, self.entry(id)))
    }

    fn entry(&self, id: InodeId) -> Entry<'_> {
        let group = self.links.0.get(&id);
        Entry {
            inode: self.listing.tree.inode(id),
            origin: self.origin(id),
            names: group.map_or(1, |(names, _)| *names),
            first_name: group.map(|(_, first)| first.as_slice()),
            on_host: self.kind == SideKind::Directory,
        }
    }

    fn origin(&self, id: InodeId) -> Option<NamedOrigin<'_>> {
        match (self.kind, self.listing.origin(id)?) {
            (SideKind::Directory, _) => None,
            (SideKind::Image(_), origin) => Some(origin.without_component()),
            (SideKind::Box(_), origin) => Some(origin),
        }
    }

    /// Finds what a path of the compared root names.
    ///
    /// # Errors
    /// [`FindError`](box_tree::listing::FindError), which names the place where the path ends.
    pub fn find(&self, path: &[u8]) -> Result<InodeId, box_tree::listing::FindError> {
        self.listing.find(&[self.root.as_slice(), b"/", path].concat())
    }
}

/// Lists what is at a path below the root that is compared, in the canonical order.
fn below<'a>(
    listing: &'a Listing,
    root: &'a [u8],
    path: &[u8],
) -> impl Iterator<Item = (Vec<u8>, InodeId)> + use<'a> {
    let prefix = [root, &path::normalize(path)].concat();
    entries(&listing.tree).filter_map(move |(path, id)| {
        let path = if path == b"/" { Vec::new() } else { path };
        let rest = path.strip_prefix(prefix.as_slice())?;
        let is_below = rest.is_empty() || rest.starts_with(b"/");
        is_below.then(|| match &path[root.len()..] {
            b"" => (b"/".to_vec(), id),
            path => (path.to_vec(), id),
        })
    })
}

/// One entry of a compared tree.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Its mode, owner, times, attributes and content.
    pub inode: &'a Inode,
    /// Where it came from, where that is known.
    pub origin: Option<NamedOrigin<'a>>,
    /// How many names its inode has in the compared tree; of a directory always 1.
    pub names: usize,
    /// The first path, in the canonical order, of an inode that has several.
    pub first_name: Option<&'a [u8]>,
    /// Whether it is in a directory of this host, where links have no permissions.
    on_host: bool,
}

impl Entry<'_> {
    /// Returns `true` if two entries of the same path differ in a field.
    pub(super) fn differs(&self, other: &Self, field: Field) -> bool {
        let has_no_mode = |it: &Self| it.inode.target().is_some();
        match field {
            Field::HardLinks => (self.names, self.first_name) != (other.names, other.first_name),
            // Links have permissions in archives and images, but none on Linux.
            Field::Mode if self.on_host || other.on_host => {
                !(has_no_mode(self) && has_no_mode(other)) && field.differs(self.inode, other.inode)
            }
            field => field.differs(self.inode, other.inode),
        }
    }
}
