//! Makes and lists boxbuild's tree of an image.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use box_contract::ComponentName;
use box_contract::{ImageRef, Platform};
use box_digest::Digest;
use box_tree::{Inode, Kind as TreeKind, Leaf, Origin, Tree, entries};
use oci_image::{Access, open};
use oci_layer::{LayerError, LayerIndex, Limits, decode, flatten};

use crate::listing::{Entry, Kind, Listing, with_first_names};

/// Decodes the layers of an image.
pub(crate) fn layers(layout: &Path, tag: &str) -> Result<Vec<(Digest, LayerIndex)>, LayerError> {
    let (path, tag) = (layout.display().to_string(), Some(tag.to_owned()));
    let reference = ImageRef::OciLayout { path, tag, digest: None };
    let access = Access { base: Path::new(""), registries: None };
    let image = open(&reference, None, Platform::LinuxAmd64, &access).unwrap();
    let decoded = image.layers.iter().map(|layer| {
        let blob = image.open_layer(layer).unwrap();
        let index = decode(layer, blob, &mut io::sink(), &mut io::sink(), &Limits::default());
        index.map(|index| (layer.digest, index))
    });
    decoded.collect()
}

/// Flattens layers into one tree.
pub(crate) fn flat(layers: &[(Digest, LayerIndex)]) -> Result<Tree, LayerError> {
    flatten(ComponentName::Agent, layers.iter().map(|(digest, index)| (*digest, index)))
}

/// Returns the tree of an image.
pub(crate) fn tree(layout: &Path, tag: &str) -> Result<Tree, LayerError> {
    flat(&layers(layout, tag)?)
}

pub(crate) fn listing(tree: &Tree) -> Listing {
    let all = entries(tree).map(|(path, id)| (path, (entry(tree.inode(id)), id)));
    with_first_names(all.collect::<BTreeMap<_, _>>())
}

/// Returns the directories without an entry in any layer.
pub(crate) fn implicit(tree: &Tree) -> BTreeSet<Vec<u8>> {
    let is_implicit = |inode: &Inode| inode.names().is_some() && inode.origin == Origin::Generated;
    entries(tree).filter(|(_, id)| is_implicit(tree.inode(*id))).map(|(path, _)| path).collect()
}

fn entry(inode: &Inode) -> Entry {
    let meta = &inode.meta;
    let mut entry = Entry {
        kind: Kind::Directory,
        mode: meta.mode.into(),
        uid: meta.uid,
        gid: meta.gid,
        mtime: (meta.mtime, meta.mtime_nsec.into()),
        size: 0,
        target: Vec::new(),
        xattrs: meta.xattrs.clone(),
        device: (0, 0),
        content: None,
        first_name: Vec::new(),
    };
    let TreeKind::Leaf(leaf) = &inode.kind else { return entry };
    match leaf {
        Leaf::File(content) => {
            (entry.kind, entry.size, entry.content) =
                (Kind::File, content.size, Some(content.hash));
        }
        Leaf::Symlink(target) => {
            (entry.kind, entry.target) = (Kind::Symlink, target.clone());
        }
        Leaf::CharDevice(major, minor) => {
            (entry.kind, entry.device) = (Kind::CharDevice, (*major, *minor));
        }
        Leaf::BlockDevice(major, minor) => {
            (entry.kind, entry.device) = (Kind::BlockDevice, (*major, *minor));
        }
        Leaf::Fifo => entry.kind = Kind::Fifo,
    }
    entry
}
