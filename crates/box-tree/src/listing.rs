//! The listing of a box: every entry of its rootfs, and where each came from.
//!
//! With the listing, a box tells of its files without its image being read, and a rootfs whose tree
//! digest is the listing's has these entries and no others. The form is canonical: equal trees of
//! equal origins give equal bytes. It is not compressed but for the paths, of which each is told by
//! its difference to the one before. Numbers are little-endian, byte strings are a u32 length and
//! the bytes:
//!
//! ```text
//! "boxbuild listing 1\n"
//! origins  byte string: JSON, see [`Origins`]
//! entries  u32, and each entry in the order of the tree digest:
//!   path   u32: how many bytes are as in the path before; byte string: the others
//!   origin u8: 0 generated, 1 init, 2 agent and 3 business image (layer u32), 4 program,
//!          5 skill (number u32), 6 merged, 7 file of the checkout (number u32)
//!   entry  as in [`encoding`](crate::encoding)
//! ```

mod bounds;
mod find;
mod named;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use box_digest::Digest;
use box_image::ComponentName;
use serde::{Deserialize, Serialize};

use crate::encoding::{DIRECTORY, FURTHER_NAME, Reader, Truncated, Writer};
use crate::{Inode, InodeId, Meta, Tree, entries, is_name};
use bounds::Totals;
pub use bounds::{LISTING_BYTES, METADATA_BYTES_MAX};
pub use find::{FindError, Found};
pub use named::{NamedOrigin, Origin};

const MAGIC: &[u8] = b"boxbuild listing 1\n";

/// Every entry of a box, and where each came from.
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
    /// In the order in which origins number them.
    pub images: Vec<ImageOrigin>,
    /// sha256 of the agent's program that is in no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Digest>,
    /// The baked skills, sorted by name.
    pub skills: Vec<String>,
    /// The files of the checkout that a component has, sorted by component and place.
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

/// An image, named by what its layers unpack to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ImageOrigin {
    /// The component whose image it is.
    pub component: ComponentName,
    /// The diff_ids of its layers, the lowest first: sha256 of each uncompressed archive, so that neither
    /// the compression nor the packing of an image enters a box.
    pub layers: Vec<Digest>,
}

/// The reason why bytes are not a listing, as a sentence about it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ListingError(&'static str);

impl From<Truncated> for ListingError {
    fn from(_: Truncated) -> Self {
        Self("it ends early")
    }
}

impl Listing {
    /// Returns the canonical form.
    ///
    /// # Errors
    /// [`ListingError`] where it would be larger than [`Self::decode`] takes.
    pub fn encode(&self) -> Result<Vec<u8>, ListingError> {
        let mut out = Writer(MAGIC.to_vec());
        let origins = serde_json::to_vec(&self.origins);
        let origins = origins.map_err(|_| ListingError("its origins cannot be written as JSON"))?;
        bounds::check_origins(&origins)?;
        out.bytes(&origins);
        let mut totals = Totals::default();
        let count_at = out.0.len();
        out.u32(0);
        let (mut count, mut before, mut first) = (0u32, Vec::new(), HashMap::new());
        for (path, id) in entries(&self.tree) {
            totals.path(&path)?;
            let shared = before.iter().zip(&path).take_while(|(a, b)| a == b).count();
            out.length(shared);
            out.bytes(&path[shared..]);
            let inode = self.tree.inode(id);
            put(&mut out, inode, first.get(&id).copied());
            if let Entry::Vacant(vacant) = first.entry(id) {
                vacant.insert(count);
                totals.meta(&inode.meta)?;
            }
            (count, before) = (count + 1, path);
            bounds::check_entries(count)?;
            bounds::check_length(out.0.len())?;
        }
        out.0[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
        Ok(out.0)
    }

    /// Reads the canonical form.
    ///
    /// # Errors
    /// [`ListingError`] for anything that [`Self::encode`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, ListingError> {
        let behind = bytes.strip_prefix(MAGIC).ok_or(ListingError("it is of another version"))?;
        bounds::check_length(bytes.len())?;
        let mut input = Reader::new(behind);
        let origins = input.bytes()?;
        bounds::check_origins(origins)?;
        let origins = serde_json::from_slice(origins);
        let origins = origins.map_err(|_| ListingError("its origins are malformed"))?;
        let mut builder = Builder::default();
        let count = input.u32()?;
        bounds::check_entries(count)?;
        for _ in 0..count {
            builder.entry(&mut input)?;
        }
        if !input.is_empty() || builder.inodes.is_empty() {
            return Err(ListingError("it does not end where it should"));
        }
        let listing = Self { tree: builder.tree, origins };
        if builder.inodes.iter().any(|id| listing.origin(*id).is_none()) {
            return Err(ListingError("an origin names what is not there"));
        }
        match listing.encode() {
            Ok(canonical) if canonical == bytes => Ok(listing),
            _ => Err(ListingError("it is not in the canonical form")),
        }
    }
}

impl Listing {
    /// Says where an inode came from; nothing where its origin's number names nothing, which no
    /// decoded listing has.
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
        _ => return Err(ListingError("it has an unknown origin")),
    })
}

/// Builds the tree of a listing, entry by entry.
#[derive(Debug, Default)]
struct Builder {
    tree: Tree,
    path: Vec<u8>,
    /// The inode of each entry so far.
    inodes: Vec<InodeId>,
    /// The directories that the last path leads through: the length of each one's path.
    open: Vec<(usize, InodeId)>,
    /// Totals of the entries so far.
    totals: Totals,
}

impl Builder {
    fn entry(&mut self, input: &mut Reader<'_>) -> Result<(), ListingError> {
        let shared = usize::try_from(input.u32()?).unwrap_or(usize::MAX);
        let others = input.bytes()?;
        if shared > self.path.len() {
            return Err(ListingError("a path shares more than there is"));
        }
        bounds::check_path(shared.saturating_add(others.len()))?;
        self.path.truncate(shared);
        self.path.extend_from_slice(others);
        self.totals.path(&self.path)?;
        let origin = origin(input)?;
        let id = match input.u8()? {
            FURTHER_NAME => self.further(input.u32()?)?,
            DIRECTORY => {
                let meta = self.meta(input)?;
                self.tree.add(Inode::directory(meta).from(origin))
            }
            tag => {
                let meta = self.meta(input)?;
                self.tree.add(Inode::leaf(meta, input.leaf(tag)?).from(origin))
            }
        };
        self.place(id)?;
        self.inodes.push(id);
        Ok(())
    }

    /// Reads the attributes of a new inode.
    fn meta(&mut self, input: &mut Reader<'_>) -> Result<Meta, ListingError> {
        let meta = input.meta()?;
        self.totals.meta(&meta)?;
        Ok(meta)
    }

    /// Returns the inode of an earlier entry, which must not be a directory.
    fn further(&self, first: u32) -> Result<InodeId, ListingError> {
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let id = self.inodes.get(first).copied();
        id.filter(|id| self.tree.inode(*id).names().is_none())
            .ok_or(ListingError("a further name has no inode"))
    }

    /// Puts an inode at the current path.
    fn place(&mut self, id: InodeId) -> Result<(), ListingError> {
        if self.path == b"/" && self.inodes.is_empty() {
            let root = self.tree.inode(id).clone();
            if root.names().is_none() {
                return Err(ListingError("its root is not a directory"));
            }
            *self.tree.inode_mut(Tree::ROOT) = root;
            self.open.push((0, Tree::ROOT));
            return Ok(());
        }
        let slash = self.path.iter().rposition(|byte| *byte == b'/');
        let slash = slash.ok_or(ListingError("a path is not absolute"))?;
        self.open.retain(|(length, _)| *length <= slash);
        let parent = self.open.last().copied().filter(|(length, _)| *length == slash);
        let (_, parent) = parent.ok_or(ListingError("a path has no directory"))?;
        let name = &self.path[slash + 1..];
        let last = self.tree.inode(parent).names().and_then(|names| names.last_key_value());
        if !is_name(name) || last.is_some_and(|(last, _)| **last >= *name) {
            return Err(ListingError("its names are not in order"));
        }
        self.tree.link(parent, name, id);
        if self.tree.inode(id).names().is_some() {
            self.open.push((self.path.len(), id));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Content, Follow, Kind, Leaf};

    fn sample() -> Listing {
        let mut tree = Tree::default();
        tree.inode_mut(Tree::ROOT).meta.mode = 0o700;
        let etc = tree.ensure_directory(Tree::ROOT, b"etc");
        tree.dress(etc, &Meta::root_owned(0o711), Origin::Layer(ComponentName::Business, 3));
        for (name, leaf, origin) in [
            ("etc.conf", Leaf::File(Content::of(b"x")), Origin::Skill(0)),
            ("link", Leaf::Symlink(b"etc".to_vec()), Origin::Layer(ComponentName::Agent, 0)),
            ("null", Leaf::CharDevice(1, 3), Origin::Program),
            ("own", Leaf::File(Content::of(b"own")), Origin::File(0)),
        ] {
            let inode = tree.add(Inode::leaf(Meta::root_owned(0o644), leaf).from(origin));
            tree.link(Tree::ROOT, name.as_bytes(), inode);
            tree.link(etc, name.as_bytes(), inode);
        }
        let image = |component, layers| ImageOrigin {
            component,
            layers: vec![Digest::from_bytes([2; 32]); layers],
        };
        let origins = Origins {
            images: vec![image(ComponentName::Agent, 1), image(ComponentName::Business, 4)],
            program: Some(Digest::from_bytes([3; 32])),
            skills: vec!["greet".to_owned()],
            files: vec![FileOrigin {
                component: ComponentName::Business,
                path: "conf/own".to_owned(),
            }],
        };
        Listing { tree, origins }
    }

    /// Every name with what it stands for.
    fn facts(listing: &Listing) -> Vec<(Vec<u8>, Meta, String, Origin)> {
        let fact = |(path, id)| {
            let inode = listing.tree.inode(id);
            let kind = match &inode.kind {
                Kind::Directory(_) => "directory".to_owned(),
                Kind::Leaf(leaf) => format!("{leaf:?}"),
            };
            (path, inode.meta.clone(), kind, inode.origin)
        };
        entries(&listing.tree).map(fact).collect()
    }

    #[test]
    fn a_listing_reads_back() {
        let listing = sample();
        let read = Listing::decode(&listing.encode().unwrap()).unwrap();
        assert_eq!(facts(&read), facts(&listing));
        assert_eq!(read.origins, listing.origins);
        assert_eq!(read.tree.digest(), listing.tree.digest());
        assert_eq!(read.encode().unwrap(), listing.encode().unwrap());
    }

    #[test]
    fn an_origin_that_names_nothing_is_refused() {
        let strip: [fn(&mut Origins); 5] = [
            |it| it.skills.clear(),
            |it| it.files.clear(),
            |it| it.program = None,
            |it| drop(it.images.remove(0)),
            |it| it.images[1].layers.truncate(3),
        ];
        for strip in strip {
            let mut listing = sample();
            strip(&mut listing.origins);
            let error = Listing::decode(&listing.encode().unwrap()).unwrap_err();
            assert!(error.to_string().ends_with("an origin names what is not there"), "{error}");
        }
    }

    #[test]
    fn origins_are_named() {
        let listing = sample();
        let found = |path: &[u8]| listing.find(b"", path, Follow::Parents).unwrap().id;
        let named = |path: &[u8]| listing.origin(found(path)).unwrap().to_string();
        assert_eq!(named(b"etc"), "business layer 4 020202020202");
        assert_eq!(named(b"/link"), "agent layer 1 020202020202");
        assert_eq!(named(b"//etc/./etc.conf"), "skill greet");
        assert_eq!(named(b"/null"), "agent program 030303030303");
        assert_eq!(named(b"/own"), "business file conf/own");
        assert_eq!(named(b"."), "generated");
    }

    #[test]
    fn a_path_that_leads_nowhere_says_where_it_ends() {
        let listing = sample();
        let find = |path: &[u8]| listing.find(b"", path, Follow::Parents);
        let error = |path: &[u8]| find(path).unwrap_err().to_string();
        assert_eq!(error(b"/etc/nul"), "there is no /etc/nul");
        let Err(FindError::Missing { siblings, .. }) = find(b"/etc/nul") else { panic!() };
        assert!(siblings.contains(&"null".to_owned()));
        assert_eq!(error(b"/wholly/other"), "there is no /wholly");
        assert_eq!(error(b"/null/x"), "/null is not a directory");
        assert_eq!(error(b"/null/../etc"), "/null is not a directory");
        let long = format!("/{}", "etc/../".repeat(2049));
        assert!(
            error(long.as_bytes()).ends_with("/etc/.. is too long once its links are followed")
        );
        assert_eq!(error(b"/link/nul"), "there is no /etc/nul");
    }

    #[test]
    fn links_are_followed_in_the_directories_of_a_path() {
        let mut listing = sample();
        let mut add = |root: &[u8], name: &[u8], target: &[u8]| {
            let leaf = Leaf::Symlink(target.to_vec());
            let link = listing.tree.add(Inode::leaf(Meta::root_owned(0o777), leaf));
            let root = listing.tree.reach(root).unwrap();
            listing.tree.link(root, name, link);
        };
        add(b"/etc", b"up", b"/../..//etc");
        add(b"/etc", b"self", b"/");
        add(b"/etc", b"loop", b"loop");
        let find = |root: &[u8], path: &[u8], follow| {
            let found = listing.find(root, path, follow).map_err(|error| error.to_string())?;
            Ok::<_, String>(String::from_utf8(found.path).unwrap())
        };
        let parents = |path: &[u8]| find(b"", path, Follow::Parents).unwrap();
        assert_eq!(parents(b"/link"), "/link");
        assert_eq!(parents(b"link/null"), "/etc/null");
        assert_eq!(parents(b"/etc/up/up//null"), "/etc/null");
        assert_eq!(parents(b"/link/../null"), "/null");
        assert_eq!(parents(b"../.."), "");
        assert_eq!(find(b"", b"/link", Follow::All).unwrap(), "/etc");
        // Of a process whose root is /etc.
        assert_eq!(find(b"/etc", b"/self/self/null", Follow::Parents).unwrap(), "/null");
        assert_eq!(find(b"/etc", b"up", Follow::All).unwrap_err(), "there is no /etc");
        let endless = find(b"", b"/etc/loop/x", Follow::Parents).unwrap_err();
        assert_eq!(endless, "/etc/loop/x leads through too many symbolic links");
    }

    #[test]
    fn an_empty_tree_has_a_root() {
        let empty = Listing { tree: Tree::default(), origins: Origins::default() };
        let read = Listing::decode(&empty.encode().unwrap()).unwrap();
        assert_eq!(read.tree.digest(), Tree::default().digest());
        let bytes = empty.encode().unwrap();
        let none = bytes.len() - 4 - 9 - 1 - 1 - 2 - 4 - 4 - 8 - 4 - 4;
        let mut bytes = bytes[..none].to_vec();
        bytes[none - 4..].fill(0);
        assert!(Listing::decode(&bytes).is_err());
    }

    /// The listing of a root and of a pipe with so many attributes, each of four bytes.
    fn with_attributes(count: u32) -> Vec<u8> {
        let mut listing = Listing { tree: Tree::default(), origins: Origins::default() };
        let mut meta = Meta::root_owned(0);
        for at in 0..count {
            meta.xattrs.insert(at.to_be_bytes().to_vec(), Vec::new());
        }
        let pipe = listing.tree.add(Inode::leaf(meta, Leaf::Fifo));
        listing.tree.link(Tree::ROOT, b"pipe", pipe);
        listing.encode().unwrap()
    }

    #[test]
    fn a_listing_takes_no_more_memory_than_that_of_a_build() {
        let most = 128 << 10;
        assert!(Listing::decode(&with_attributes(most / 4)).is_ok());
        assert!(Listing::decode(&with_attributes(most / 4 + 1)).is_err());
        let mut bytes = sample().encode().unwrap();
        let origins = serde_json::to_vec(&sample().origins).unwrap();
        let count_at = MAGIC.len() + 4 + origins.len();
        bytes[count_at..count_at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = Listing::decode(&bytes).unwrap_err().to_string();
        assert_eq!(error, "it has more than 2097152 entries");
    }

    #[test]
    fn what_could_not_be_read_back_is_not_written() {
        let mut listing = sample();
        listing.origins.skills.extend(vec![String::new(); 1 << 20]);
        assert!(listing.encode().is_ok());
        listing.origins.skills.extend(vec![String::new(); 1 << 20]);
        let error = listing.encode().unwrap_err().to_string();
        assert_eq!(error, "its origins have more than 4 MiB");
    }

    proptest! {
        #[test]
        fn damage_is_an_error_or_another_listing(
            at in any::<prop::sample::Index>(), change in 1..=255u8, cut in any::<bool>(),
        ) {
            let mut bytes = sample().encode().unwrap();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= change }
            if let Ok(read) = Listing::decode(&bytes) {
                prop_assert_eq!(read.encode().unwrap(), bytes);
            }
        }
    }
}
