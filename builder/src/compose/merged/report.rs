//! What merging did, and what it could not decide.

use box_tree::Tree;
use serde::Serialize;

use super::conflict::Conflict;
use super::policies::PolicyUse;
use super::settle::{Tally, below};

/// What merging did. Entries are counted by their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    #[serde(skip)]
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
