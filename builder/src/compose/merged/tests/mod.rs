//! The merge as a whole.

mod decided;
mod properties;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use box_contract::ComponentName;
use box_digest::Digest;
use box_tree::{Content, InodeId, Kind, Leaf, Meta, ReadContent, Tree, entries};
use boxfile_spec::{Conflict as Declared, ConflictPolicy};
use diagnostics::{Span, Spanned};
use oci_layer::{Action, Change, LayerIndex, flatten};

use super::{Conflict, Conflicts, MAX_CONFLICTS, Merge, advice, merge};
use crate::compose::FlatImage;

/// Parses a change: `d PATH [MODE]`, `f PATH CONTENT [MTIME]`, `s PATH TARGET`, `h PATH TARGET`, `w PATH` (whiteout),
/// `o PATH` (opaque).
fn change(line: &str) -> Change {
    let words: Vec<_> = line.split(' ').collect();
    let word = |at: usize| words.get(at).copied().unwrap_or("");
    let meta = |mode| Meta::root_owned(mode);
    let action = match words[0] {
        "d" => Action::Directory(meta(u16::from_str_radix(word(2), 8).unwrap_or(0o755))),
        "f" => {
            let mtime = word(3).parse().unwrap_or(0);
            let leaf = Leaf::File(Content::of(word(2).replace('|', "\n").as_bytes()));
            Action::Leaf(Meta { mtime, ..meta(0o644) }, leaf)
        }
        "s" => Action::Leaf(meta(0o777), Leaf::Symlink(word(2).into())),
        "h" => Action::HardLink(word(2).into()),
        "w" => Action::Whiteout,
        _ => Action::Opaque,
    };
    Change { path: word(1).into(), action }
}

fn flat(component: ComponentName, layers: &[LayerIndex]) -> FlatImage {
    let layers = layers.iter().map(|layer| (Digest::from_bytes([0; 32]), layer));
    let tree = flatten(component, layers).unwrap();
    FlatImage { component, process: Default::default(), tree }
}

/// Returns an image of one layer.
fn image(component: ComponentName, lines: &[&str]) -> FlatImage {
    let changes = lines.iter().map(|line| change(line)).collect();
    flat(component, &[LayerIndex { changes, ..LayerIndex::default() }])
}

fn both(agent: &[&str], business: &[&str]) -> [FlatImage; 2] {
    [image(ComponentName::Agent, agent), image(ComponentName::Business, business)]
}

/// Parses declarations of the form `PATTERN POLICY`.
fn policies(lines: &[&str]) -> Vec<Declared> {
    let one = |line: &&str| {
        let (pattern, policy) = line.split_once(' ').unwrap();
        let policy = match policy {
            "prefer-agent" => ConflictPolicy::PreferAgent,
            "prefer-business" => ConflictPolicy::PreferBusiness,
            "drop" => ConflictPolicy::Drop,
            _ => ConflictPolicy::Merge,
        };
        let pattern = Spanned { value: pattern.to_owned(), span: Span::default() };
        Declared { pattern, policy }
    };
    lines.iter().map(one).collect()
}

/// Merges images. The only readable contents are `texts`.
fn merged(images: &[FlatImage], declared: &[&str], texts: &[&str]) -> Merge {
    let texts: BTreeMap<Content, Vec<u8>> =
        texts.iter().map(|text| (Content::of(text.as_bytes()), text.as_bytes().to_vec())).collect();
    merge(images, &policies(declared), &mut Texts(texts)).unwrap()
}

struct Texts(BTreeMap<Content, Vec<u8>>);

impl ReadContent for Texts {
    fn copy_head(&mut self, content: Content, limit: u64, out: &mut dyn Write) -> io::Result<()> {
        io::copy(&mut self.0[&content].take(limit), out).map(drop)
    }
}

/// Lists the path and the entry of each inode of a tree, without the root.
fn list(tree: &Tree) -> Vec<String> {
    let show = |(path, id): (Vec<u8>, InodeId)| {
        let path = String::from_utf8(path).unwrap();
        let inode = tree.inode(id);
        match &inode.kind {
            Kind::Directory(_) => format!("{path}/ {:o}", inode.meta.mode),
            Kind::Leaf(Leaf::File(content)) => format!("{path} ={}", content.size),
            Kind::Leaf(Leaf::Symlink(to)) => format!("{path} >{}", String::from_utf8_lossy(to)),
            Kind::Leaf(_) => path,
        }
    };
    entries(tree).skip(1).map(show).collect()
}

/// Merges two images without undecided conflicts, and lists the root.
fn root(agent: &[&str], business: &[&str], declared: &[&str]) -> Vec<String> {
    let merge = merged(&both(agent, business), declared, &[]);
    list(&merge.root.unwrap_or_else(|| panic!("{:?}", merge.report.conflicts.first)).tree)
}

/// Merges two images, and returns the undecided conflicts.
fn left(agent: &[&str], business: &[&str], declared: &[&str]) -> Conflicts {
    merged(&both(agent, business), declared, &["1", "22"]).report.conflicts
}

/// Lists the path and the difference of each conflict.
fn shown(conflicts: &Conflicts) -> Vec<String> {
    let one = |conflict: &Conflict| {
        let [agent, business] = &conflict.difference.values;
        let path = String::from_utf8_lossy(&conflict.path).into_owned();
        format!("{path}: {} {agent} {business}", conflict.difference.field)
    };
    conflicts.first.iter().map(one).collect()
}
