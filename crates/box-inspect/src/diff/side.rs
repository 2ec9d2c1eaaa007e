//! One side of a comparison: the tree of a box, of an image or of a directory.

use std::sync::OnceLock;

use box_contract::{ComponentName, ComponentPlan};
use box_digest::Digest;
use box_tree::listing::{FindError, Found, Listing, NamedOrigin};
use box_tree::{Field, Follow, Inode, InodeId, entries, path};

use crate::links::{FirstName, HardLinks};
use crate::opened::{self, Documents, OpenError};

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
    /// The entries with their origins. A directory has no origins.
    pub listing: Listing,
    /// The path of the compared directory in the listing. Empty for the whole tree.
    root: Vec<u8>,
    /// The distinct roots of the components. Empty unless a whole box is compared.
    components: Vec<Vec<u8>>,
    /// The component whose root is compared, if one was asked for.
    component: Option<ComponentName>,
    /// The inodes with several names below the root, computed when the first entry is asked for.
    links: OnceLock<HardLinks>,
}

impl Side {
    /// Takes the rootfs of a box, or the root of one component in it.
    ///
    /// # Errors
    /// [`OpenError`] if the box lacks the component or its listing cannot be read.
    pub fn of_box(opened: &Documents, component: Option<ComponentName>) -> Result<Self, OpenError> {
        let root = |plan: &ComponentPlan| path::normalize(plan.root.as_bytes());
        let kind = SideKind::Box(opened.digest);
        if let Some(name) = component {
            let root = root(opened::component(opened, name)?);
            let side = Self::new(kind, opened::listing(opened)?, root);
            return Ok(Self { component, ..side });
        }
        let mut components: Vec<_> =
            opened.config.plan.components().map(|(_, plan)| root(plan)).collect();
        // With layout "merged" both components have one root.
        components.dedup();
        let side = Self::new(kind, opened::listing(opened)?, Vec::new());
        Ok(Self { components, ..side })
    }

    /// Takes the rootfs of the box with a digest, from its listing alone. The caller has verified that it is the listing of the
    /// box.
    pub fn of_listing(digest: Digest, listing: Listing) -> Self {
        Self::new(SideKind::Box(digest), listing, Vec::new())
    }

    pub(super) fn new(kind: SideKind, listing: Listing, root: Vec<u8>) -> Self {
        let (components, component) = (Vec::new(), None);
        Self { kind, listing, root, components, component, links: OnceLock::new() }
    }

    /// Lists the entries at a path of the compared root and below, in the canonical order. `depth` limits the number of
    /// names below the compared root.
    pub fn entries<'s>(
        &'s self,
        path: &[u8],
        depth: Option<usize>,
    ) -> impl Iterator<Item = (Vec<u8>, Entry<'s>)> + use<'s> {
        let names = below(&self.listing, &self.root, path);
        let is_listed =
            move |path: &[u8]| depth.is_none_or(|most| path::names(path).count() <= most);
        names.filter(move |(path, _)| is_listed(path)).map(|(path, id)| (path, self.entry(id)))
    }

    fn entry(&self, id: InodeId) -> Entry<'_> {
        let names = || below(&self.listing, &self.root, b"");
        let group = self.links.get_or_init(|| HardLinks::of(names)).get(id);
        Entry {
            inode: self.listing.tree.inode(id),
            origin: self.origin(id),
            names: group.map_or(1, |(names, _)| names),
            first_name: group.map(|(_, first)| first),
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

    /// Finds the entry at a path of the compared root. Symbolic links are resolved as in the running component: in a
    /// box, an absolute target starts at the component's root.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn find(&self, path: &[u8], follow: Follow) -> Result<Found, PathError> {
        let path = path::normalize(path);
        for root in &self.components {
            let below = path.strip_prefix(root.as_slice());
            if let Some(below) = below.filter(|it| it.is_empty() || it.starts_with(b"/")) {
                return self.find_below(root, below, follow);
            }
        }
        self.find_below(b"", &path, follow).map_err(|error| {
            let has = |root: &&Vec<u8>| self.find_below(root, &path, follow).is_ok();
            let elsewhere = self.components.iter().filter(has);
            let shown = |root: &Vec<u8>| [root.as_slice(), path.as_slice()].concat();
            PathError { elsewhere: elsewhere.map(shown).collect(), ..error }
        })
    }

    /// Finds a path below a directory of the compared root. Returns the path from the compared root.
    fn find_below(&self, top: &[u8], path: &[u8], follow: Follow) -> Result<Found, PathError> {
        let root = [self.root.as_slice(), top].concat();
        let below = |error: FindError| PathError {
            error: error.below(&String::from_utf8_lossy(top)),
            component: self.component,
            elsewhere: Vec::new(),
        };
        let Found { id, path } = self.listing.find(&root, path, follow).map_err(below)?;
        Ok(Found { id, path: [top, path.as_slice()].concat() })
    }
}

/// A path that does not exist in a compared or listed tree.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct PathError {
    /// Which part of the path does not exist, and why.
    pub error: FindError,
    /// The component whose root was searched, if one was asked for.
    pub component: Option<ComponentName>,
    /// The same path below the root of each component that has it.
    pub elsewhere: Vec<Vec<u8>>,
}

/// Lists the entries at a path below the compared root, in the canonical order.
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
    /// The entry's mode, owner, times, attributes and content.
    pub inode: &'a Inode,
    /// The origin of the entry. `None` for a directory of this host.
    pub origin: Option<NamedOrigin<'a>>,
    /// The number of names (hard links) of the inode in the compared tree. Always 1 for a directory.
    pub names: usize,
    /// The first path, in the canonical order, of an inode with several names.
    pub first_name: Option<FirstName<'a>>,
    /// Whether the entry is in a directory of this host, where symbolic links have no permissions.
    on_host: bool,
}

impl Entry<'_> {
    /// Returns `true` if `field` differs between two entries of one path.
    pub(super) fn differs(&self, other: &Self, field: Field) -> bool {
        let has_no_mode = |it: &Self| it.inode.target().is_some();
        match field {
            Field::HardLinks => (self.names, self.first_name) != (other.names, other.first_name),
            // Ignore the permissions of two symbolic links: archives and images store them, but Linux has none.
            Field::Mode if self.on_host || other.on_host => {
                !(has_no_mode(self) && has_no_mode(other)) && field.differs(self.inode, other.inode)
            }
            field => field.differs(self.inode, other.inode),
        }
    }
}
