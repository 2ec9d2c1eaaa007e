//! The listing of a box: every entry of its rootfs, with its origin.
//!
//! A program can show a box's files from the listing alone. A rootfs whose tree digest is the listing's has exactly
//! these entries. The form is canonical: equal trees with equal origins give equal bytes. Only paths are compressed:
//! each is stored as its difference from the previous path. Numbers are little-endian; a byte string is a u32 length
//! and the bytes:
//!
//! ```text
//! "boxbuild listing 1\n"
//! origins  byte string: JSON, see [`Origins`]
//! entries  u32, and each entry in the order of the tree digest:
//!   path   u32: the number of bytes shared with the previous path; byte string: the others
//!   origin u8: 0 generated, 1 init, 2 agent and 3 business image (layer u32), 4 program,
//!          5 skill (number u32), 6 merged, 7 file of the checkout (number u32)
//!   entry  as in [`encoding`](crate::encoding)
//! ```

mod bounds;
mod find;
mod named;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use box_contract::ComponentName;
use box_digest::Digest;
use safe_text::shown;
use serde::{Deserialize, Serialize};

use crate::encoding::{DIRECTORY, FURTHER_NAME, Reader, Truncated, Writer};
use crate::{Inode, InodeId, Tree, entries, is_name, path};
use bounds::Totals;
pub use bounds::{LISTING_BYTES, LISTING_MEMORY, MAX_METADATA_BYTES, check_paths};
pub use find::{FindError, Found};
pub use named::{NamedOrigin, Origin};

const MAGIC: &[u8] = b"boxbuild listing 1\n";
const NOT_CANONICAL: ListingError = ListingError::new("it is not in the canonical form");

/// Every entry of a box, with its origin.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The entries; each inode has its [`Origin`].
    pub tree: Tree,
    /// The names of the origins, by number.
    pub origins: Origins,
}

/// The names of a tree's origins, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Origins {
    /// The images. [`Origin::Layer`] refers to a component's image, and to the index of one of its layers.
    pub images: Vec<ImageOrigin>,
    /// The sha256 of the agent's program. `None` if the program is in the agent's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Digest>,
    /// The baked skills, sorted by name.
    pub skills: Vec<String>,
    /// The files of the checkout that a component has, sorted by component and path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileOrigin>,
}

/// A file or directory of the checkout that was baked into a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FileOrigin {
    /// The component.
    pub component: ComponentName,
    /// The path, as the Boxfile names it.
    pub path: String,
}

/// An image, identified by the digests of its uncompressed layers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ImageOrigin {
    /// The component whose image it is.
    pub component: ComponentName,
    /// The diff_ids of its layers, the lowest first: sha256 of each uncompressed archive, so that a box
    /// depends neither on the compression nor on the packing of an image.
    pub layers: Vec<Digest>,
}

/// The reason why bytes are not a listing, or why a listing cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{reason}{}", at.as_ref().map(|path| format!(", from {path} on")).unwrap_or_default())]
pub struct ListingError {
    reason: &'static str,
    /// The path of the first entry beyond a limit.
    at: Option<String>,
}

impl ListingError {
    const fn new(reason: &'static str) -> Self {
        Self { reason, at: None }
    }

    /// Adds the path of the entry.
    fn at(self, path: &[u8]) -> Self {
        Self { at: Some(shown(&String::from_utf8_lossy(path))), ..self }
    }
}

impl From<Truncated> for ListingError {
    fn from(_: Truncated) -> Self {
        Self::new("it ends early")
    }
}

impl Listing {
    /// Returns the canonical form.
    ///
    /// # Errors
    /// [`ListingError`] if it would exceed the limits of [`Self::decode`].
    pub fn encode(&self) -> Result<Vec<u8>, ListingError> {
        let mut out = self.head()?;
        let count_at = out.len();
        out.extend_from_slice(&[0; 4]);
        let count = self.each_entry(|entry| {
            out.extend_from_slice(entry);
            bounds::check_length(out.len())
        })?;
        out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
        Ok(out)
    }

    /// Returns the bytes before the number of entries.
    fn head(&self) -> Result<Vec<u8>, ListingError> {
        let origins = serde_json::to_vec(&self.origins);
        let origins =
            origins.map_err(|_| ListingError::new("its origins cannot be written as JSON"))?;
        bounds::check_origins(&origins)?;
        let mut out = Writer(MAGIC.to_vec());
        out.bytes(&origins);
        Ok(out.0)
    }

    /// Encodes the entries and passes them to `write`, one by one. Returns their number.
    fn each_entry(
        &self,
        mut write: impl FnMut(&[u8]) -> Result<(), ListingError>,
    ) -> Result<u32, ListingError> {
        let (mut totals, mut out) = (Totals::default(), Writer::default());
        let (mut count, mut before, mut first) = (0u32, Vec::new(), HashMap::new());
        for (path, id) in entries(&self.tree) {
            out.0.clear();
            totals.path(&path)?;
            let shared = path::shared(&before, &path);
            out.length(shared);
            out.bytes(&path[shared..]);
            let inode = self.tree.inode(id);
            put(&mut out, inode, first.get(&id).copied());
            match first.entry(id) {
                Entry::Vacant(vacant) => {
                    vacant.insert(count);
                    totals.inode(&path, inode)?;
                }
                Entry::Occupied(_) => totals.further_name(&path)?,
            }
            (count, before) = (count + 1, path);
            bounds::check_entries(count)?;
            write(&out.0)?;
        }
        Ok(count)
    }

    /// Returns whether `bytes` are the canonical form. Compares entry by entry, because a second copy of a large
    /// listing would take as much memory as the tree.
    fn is_written_as(&self, bytes: &[u8]) -> bool {
        let head = self.head().ok().and_then(|head| bytes.strip_prefix(&*head));
        let Some((number, mut rest)) = head.and_then(<[u8]>::split_first_chunk) else {
            return false;
        };
        let count = self.each_entry(|entry| {
            rest = rest.strip_prefix(entry).ok_or(NOT_CANONICAL)?;
            Ok(())
        });
        rest.is_empty() && count.is_ok_and(|count| count == u32::from_le_bytes(*number))
    }

    /// Reads the canonical form.
    ///
    /// # Errors
    /// [`ListingError`] for anything that [`Self::encode`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, ListingError> {
        let behind =
            bytes.strip_prefix(MAGIC).ok_or(ListingError::new("it is of another version"))?;
        bounds::check_length(bytes.len())?;
        let mut input = Reader::new(behind);
        let origins = input.bytes()?;
        bounds::check_origins(origins)?;
        let origins = serde_json::from_slice(origins);
        let origins = origins.map_err(|_| ListingError::new("its origins are malformed"))?;
        let mut builder = Builder::default();
        let count = input.u32()?;
        bounds::check_entries(count)?;
        for _ in 0..count {
            builder.entry(&mut input)?;
        }
        if !input.is_empty() || builder.inodes.is_empty() {
            return Err(ListingError::new("it does not end where it should"));
        }
        let listing = Self { tree: builder.tree, origins };
        if builder.inodes.iter().any(|id| listing.origin(*id).is_none()) {
            return Err(ListingError::new("an origin names what is not there"));
        }
        if listing.is_written_as(bytes) { Ok(listing) } else { Err(NOT_CANONICAL) }
    }
}

impl Listing {
    /// Returns the origin of an inode. `None` if the origin's number is invalid, which no decoded listing has.
    pub fn origin(&self, id: InodeId) -> Option<NamedOrigin<'_>> {
        self.origins.named(self.tree.inode(id).origin)
    }
}

fn put(out: &mut Writer, inode: &Inode, first: Option<u32>) {
    let (tag, number) = match inode.origin {
        Origin::Generated => (0, None),
        Origin::Init => (1, None),
        Origin::Layer(ComponentName::Agent, layer) => (2, Some(layer)),
        Origin::Layer(ComponentName::Business, layer) => (3, Some(layer)),
        Origin::Program => (4, None),
        Origin::Skill(skill) => (5, Some(skill)),
        Origin::Merged => (6, None),
        Origin::File(file) => (7, Some(file)),
    };
    out.0.push(tag);
    number.into_iter().for_each(|number| out.u32(number));
    out.entry(inode, first);
}

fn origin(input: &mut Reader<'_>) -> Result<Origin, ListingError> {
    Ok(match input.u8()? {
        0 => Origin::Generated,
        1 => Origin::Init,
        2 => Origin::Layer(ComponentName::Agent, input.u32()?),
        3 => Origin::Layer(ComponentName::Business, input.u32()?),
        4 => Origin::Program,
        5 => Origin::Skill(input.u32()?),
        6 => Origin::Merged,
        7 => Origin::File(input.u32()?),
        _ => return Err(ListingError::new("it has an unknown origin")),
    })
}

/// Builds the tree of a listing, entry by entry.
#[derive(Debug, Default)]
struct Builder {
    tree: Tree,
    path: Vec<u8>,
    /// The inode of each entry so far.
    inodes: Vec<InodeId>,
    /// The directories on the last path, each with the length of its path.
    open: Vec<(usize, InodeId)>,
    /// Totals of the entries so far.
    totals: Totals,
}

impl Builder {
    fn entry(&mut self, input: &mut Reader<'_>) -> Result<(), ListingError> {
        let shared = usize::try_from(input.u32()?).unwrap_or(usize::MAX);
        let others = input.bytes()?;
        if shared > self.path.len() {
            return Err(ListingError::new("a path shares more than there is"));
        }
        bounds::check_path(shared.saturating_add(others.len()))?;
        self.path.truncate(shared);
        self.path.extend_from_slice(others);
        self.totals.path(&self.path)?;
        let origin = origin(input)?;
        let id = match input.u8()? {
            FURTHER_NAME => {
                self.totals.further_name(&self.path)?;
                self.further(input.u32()?)?
            }
            DIRECTORY => self.add(Inode::directory(input.meta()?).from(origin))?,
            tag => self.add(Inode::leaf(input.meta()?, input.leaf(tag)?).from(origin))?,
        };
        self.place(id)?;
        self.inodes.push(id);
        Ok(())
    }

    /// Adds the inode of the current path.
    fn add(&mut self, inode: Inode) -> Result<InodeId, ListingError> {
        self.totals.inode(&self.path, &inode)?;
        Ok(self.tree.add(inode))
    }

    /// Returns the inode of an earlier entry, which must not be a directory.
    fn further(&self, first: u32) -> Result<InodeId, ListingError> {
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let id = self.inodes.get(first).copied();
        id.filter(|id| self.tree.inode(*id).names().is_none())
            .ok_or(ListingError::new("a further name has no inode"))
    }

    /// Puts an inode at the current path.
    fn place(&mut self, id: InodeId) -> Result<(), ListingError> {
        if self.path == b"/" && self.inodes.is_empty() {
            let root = self.tree.inode(id).clone();
            if root.names().is_none() {
                return Err(ListingError::new("its root is not a directory"));
            }
            *self.tree.inode_mut(Tree::ROOT) = root;
            self.open.push((0, Tree::ROOT));
            return Ok(());
        }
        let slash = memchr::memrchr(b'/', &self.path);
        let slash = slash.ok_or(ListingError::new("a path is not absolute"))?;
        self.open.retain(|(length, _)| *length <= slash);
        let parent = self.open.last().copied().filter(|(length, _)| *length == slash);
        let (_, parent) = parent.ok_or(ListingError::new("a path has no directory"))?;
        let name = &self.path[slash + 1..];
        let last = self.tree.inode(parent).names().and_then(|names| names.last_key_value());
        if !is_name(name) || last.is_some_and(|(last, _)| **last >= *name) {
            return Err(ListingError::new("its names are not in order"));
        }
        self.tree.link(parent, name, id);
        if self.tree.inode(id).names().is_some() {
            self.open.push((self.path.len(), id));
        }
        Ok(())
    }
}
