//! Generates random stacks of layers. They use few names, so that paths collide.

use box_digest::Digest;
use box_tree::{Content, Leaf, Meta};
use oci_layer::{Action, Change, LayerIndex};
use proptest::prelude::*;
use proptest::sample::select;
use testkit::images::{Entry, Kind, Layer};

use crate::ours;

/// An entry or a marker of a layer.
#[derive(Debug, Clone)]
pub(super) struct Op {
    pub(super) path: String,
    pub(super) what: What,
    attributes: Attributes,
    /// Whether the stack keeps this operation even if it cannot be applied.
    insists: bool,
}

/// The type and content of an operation.
#[derive(Debug, Clone)]
pub(super) enum What {
    Directory,
    File(&'static str),
    Symlink(&'static str),
    HardLink(String),
    Fifo,
    Device,
    Whiteout,
    Opaque,
}

/// Owner, permissions, time and extended attributes.
#[derive(Debug, Clone, Copy)]
struct Attributes {
    mode: u32,
    owner: (u64, u64),
    mtime: &'static str,
    has_xattrs: bool,
}

impl Op {
    pub(super) const fn is_marker(&self) -> bool {
        matches!(self.what, What::Whiteout | What::Opaque)
    }

    fn directory(path: &str, attributes: Attributes) -> Self {
        Self { path: path.to_owned(), what: What::Directory, attributes, insists: false }
    }
}

/// Generates one to five layers. Omits most entries that cannot be applied, such as a hard link to an absent file: otherwise
/// almost every stack would be refused.
pub(super) fn stack() -> impl Strategy<Value = Vec<Vec<Op>>> {
    proptest::collection::vec(layer(), 1..=5).prop_map(|layers| {
        let mut read = Vec::new();
        let layers = layers.into_iter().map(|ops| possible(&mut read, ops));
        layers.filter(|ops| !ops.is_empty()).collect()
    })
}

fn possible(read: &mut Vec<(Digest, LayerIndex)>, ops: Vec<Op>) -> Vec<Op> {
    read.push((Digest::from_bytes([0; 32]), LayerIndex::default()));
    let mut kept = Vec::new();
    for op in ops {
        let last = read.len() - 1;
        read[last].1.changes.push(to_change(&op));
        if op.insists || ours::flat(read).is_ok() {
            kept.push(op);
        } else {
            read[last].1.changes.pop();
        }
    }
    kept
}

/// Generates a layer. Half of the layers have entries for all parent directories, as layers of real programs do.
fn layer() -> impl Strategy<Value = Vec<Op>> {
    (proptest::collection::vec(op(), 2..=12), any::<bool>()).prop_map(|(ops, names_directories)| {
        if names_directories { with_directories(ops) } else { ops }
    })
}

fn with_directories(ops: Vec<Op>) -> Vec<Op> {
    let mut named = std::collections::BTreeSet::new();
    let mut all = Vec::new();
    for op in ops {
        for (end, _) in op.path.match_indices('/') {
            if named.insert(op.path[..end].to_owned()) && !op.is_marker() {
                all.push(Op::directory(&op.path[..end], op.attributes));
            }
        }
        named.insert(op.path.clone());
        all.push(op);
    }
    all
}

fn op() -> impl Strategy<Value = Op> {
    let any_place = prop_oneof![9 => path(), 1 => Just(String::new())];
    let what = prop_oneof![
        4 => path().prop_flat_map(|path| (Just(path), select(&["one", "two", ""][..])
            .prop_map(What::File))),
        4 => any_place.clone().prop_map(|path| (path, What::Directory)),
        3 => (path(), select(&TARGETS[..]).prop_map(What::Symlink)),
        3 => (path(), path().prop_map(What::HardLink)),
        1 => path().prop_map(|path| (path, What::Fifo)),
        1 => path().prop_map(|path| (path, What::Device)),
        4 => path().prop_map(|path| (path, What::Whiteout)),
        2 => any_place.prop_map(|path| (path, What::Opaque)),
    ];
    (what, attributes(), proptest::bool::weighted(0.02))
        .prop_map(|((path, what), attributes, insists)| Op { path, what, attributes, insists })
}

/// Targets of symbolic links: relative, absolute, to directories and files, dangling, upwards, and to themselves.
const TARGETS: [&str; 12] =
    ["a", "b", "c", "../a", "/b", "a/b", "/c/a", "../../../c", "/", "..", ".", "absent"];

fn path() -> impl Strategy<Value = String> + Clone {
    let name = || select(&["a", "b", "c"][..]);
    prop_oneof![
        4 => name().prop_map(str::to_owned),
        4 => (name(), name()).prop_map(|(one, two)| format!("{one}/{two}")),
        2 => (name(), name(), name()).prop_map(|(one, two, three)| format!("{one}/{two}/{three}")),
    ]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let mode = select(&[0o644, 0o755, 0o700, 0o4755, 0o2711, 0o1777, 0][..]);
    let owner = select(&[(0, 0), (1000, 100), (65_534, 3_000_000_000)][..]);
    let mtime = select(&["0", "1700000000.123456789", "-5.25", "4000000000.5"][..]);
    (mode, owner, mtime, proptest::bool::weighted(0.3))
        .prop_map(|(mode, owner, mtime, has_xattrs)| Attributes { mode, owner, mtime, has_xattrs })
}

/// Converts operations into a layer.
pub(super) fn to_layer(ops: &[Op]) -> Layer {
    ops.iter().fold(Layer::new(), |layer, op| match &op.what {
        What::Whiteout => layer.whiteout(&op.path),
        What::Opaque => layer.opaque(&op.path),
        What::Directory => add(layer, op, Kind::Dir),
        What::File(content) => add(layer, op, Kind::File(content.as_bytes().to_vec())),
        What::Symlink(target) => add(layer, op, Kind::Symlink(target.as_bytes().to_vec())),
        What::HardLink(target) => add(layer, op, Kind::Hardlink(target.as_bytes().to_vec())),
        What::Fifo => add(layer, op, Kind::Fifo),
        What::Device => add(layer, op, Kind::CharDevice(1, 3)),
    })
}

/// A file capability as Linux writes it: version 2, effective, CAP_NET_RAW.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn add(layer: Layer, op: &Op, kind: Kind) -> Layer {
    let Attributes { mode, owner: (uid, gid), mtime, has_xattrs } = op.attributes;
    let is_file = matches!(kind, Kind::File(_));
    // Linux allows `user.*` attributes on files and directories only.
    let has_user = is_file || kind == Kind::Dir;
    let slash = if kind == Kind::Dir { "/" } else { "" };
    let name = format!("{}{slash}", if op.path.is_empty() { "." } else { &op.path });
    let mut xattrs = Vec::new();
    if has_xattrs {
        xattrs.push(("trusted.t".to_owned(), b"\0binary\n\xff".to_vec()));
        xattrs.extend(has_user.then(|| ("user.u".to_owned(), b"u".to_vec())));
        xattrs.extend(is_file.then(|| ("security.capability".to_owned(), CAPABILITY.to_vec())));
    }
    let name = name.into_bytes();
    // See `divergences::directories_below_set_gid_ones`.
    let mode = if kind == Kind::Dir { mode & !0o2000 } else { mode };
    layer.entry(Entry { name, kind, mode, uid, gid, mtime: 0, xattrs }).record("mtime", mtime)
}

/// Converts an operation into the change that boxbuild reads from a layer, without attributes.
pub(super) fn to_change(op: &Op) -> Change {
    let leaf = |leaf| Action::Leaf(Meta::root_owned(0), leaf);
    let action = match &op.what {
        What::Whiteout => Action::Whiteout,
        What::Opaque => Action::Opaque,
        What::Directory => Action::Directory(Meta::root_owned(0)),
        What::File(content) => leaf(Leaf::File(Content::of(content.as_bytes()))),
        What::Symlink(target) => leaf(Leaf::Symlink(target.as_bytes().to_vec())),
        What::HardLink(target) => Action::HardLink(target.as_bytes().to_vec()),
        What::Fifo => leaf(Leaf::Fifo),
        What::Device => leaf(Leaf::CharDevice(1, 3)),
    };
    Change { path: op.path.clone().into_bytes(), action }
}
