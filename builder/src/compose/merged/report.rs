//! What merging did, and what it could not decide.

use std::fmt;

use box_tree::{Inode, Kind, Leaf, Origin, Tree};

use super::compare::{Difference, kind};
use super::settle::{Tally, below};
use super::{AccountClash, PolicyUse, Special};

/// What merging did. Entries are counted by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeReport {
    /// The entries that only the agent's image has.
    pub agent: usize,
    /// The entries that only the business image has.
    pub business: usize,
    /// The entries that both have and that are the same.
    pub equal: usize,
    /// The declared policies, in their order, and what each decided.
    pub policies: Vec<PolicyUse>,
    /// What no policy decides: a directory before what is in it, names in bytewise order.
    pub conflicts: Vec<Conflict>,
}

impl MergeReport {
    /// Puts together what was counted, of so many paths that both trees have.
    pub(super) fn of(trees: [&Tree; 2], shared: usize, tally: Tally) -> Self {
        let [agent, business] = trees.map(|tree| below(tree, Tree::ROOT) + 1 - shared);
        let Tally { equal, below, policies, conflicts } = tally;
        let (agent, business) = (agent - below[0], business - below[1]);
        Self { agent, business, equal, policies, conflicts }
    }

    /// Returns the report on one image that is merged with nothing.
    pub(super) fn alone(tree: &Tree, policies: Vec<PolicyUse>) -> Self {
        let agent = below(tree, Tree::ROOT) + 1;
        Self { agent, business: 0, equal: 0, policies, conflicts: Vec::new() }
    }
}

/// A path at which the images differ, and no policy decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path.
    pub path: Vec<u8>,
    /// The first field that differs.
    pub difference: Difference,
    /// What the agent's image and the business image have.
    pub sides: [Side; 2],
    /// Why it is not as simple as that.
    pub note: Option<Note>,
    /// Whether the Boxfile has a policy for this very path.
    pub declared: bool,
}

/// What one image has at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// Where it came from.
    pub origin: Origin,
    /// What it is, in a word.
    pub kind: &'static str,
    /// A file's size in bytes.
    pub size: Option<u64>,
    /// How many entries are below a directory.
    pub below: usize,
}

impl Side {
    pub(super) const fn of(inode: &Inode, below: usize) -> Self {
        let size = match &inode.kind {
            Kind::Leaf(Leaf::File(content)) => Some(content.size),
            _ => None,
        };
        Self { origin: inode.origin, kind: kind(inode), size, below }
    }
}

/// Why a conflict is not as simple as others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The file describes a whole system.
    Special(Special),
    /// The policy is `merge`, and two lines clash.
    Accounts(AccountClash),
    /// The policy is `merge`, and there are not two files with the same attributes.
    NotUnitable,
    /// The policy is `drop`, and both are directories.
    DroppedAttributes,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Special(special) => fmt::Display::fmt(special, f),
            Self::Accounts(clash) => fmt::Display::fmt(clash, f),
            Self::NotUnitable => f.write_str(
                "`merge` unites two regular files with the same mode, owner and attributes; write \
                 `prefer-agent` or `prefer-business` in its place",
            ),
            Self::DroppedAttributes => f.write_str(
                "both have this directory, and only its attributes differ: what is in it is \
                 merged, and `drop` would take all of it. Write `prefer-agent` or \
                 `prefer-business` for it",
            ),
        }
    }
}
