//! Layout "merged": both images are one root.
//!
//! Each image is flattened before, so that what one hides never hides anything of the other. Then
//! both trees are laid over each other at their own absolute paths:
//!
//! - what only one image has is taken as it is;
//! - what both have and is the same (type, mode, owner, extended attributes, and content, target or
//!   device) is one entry. It is the agent image's: its time and its origin count, as a time alone
//!   is no difference worth a decision;
//! - a directory that no layer of an image names, and that is only on the way to something, says
//!   nothing of its attributes: the other image's count;
//! - all else is a conflict, which a policy of the Boxfile decides, or nobody: then nothing is built.
//!
//! Names that shared an inode in their image share one in the merged root, but for a name that now
//! stands for the other image's entry. Where both images have the same entry at a path, the two
//! inodes are one, and the further names of both go with it.
//!
//! The result depends on the two trees and the policies alone.

mod accounts;
mod advice;
mod below;
mod conflict;
mod conflicts;
mod join;
mod libc;
mod patterns;
mod policies;
mod resolve;
mod shared;
mod system_file;
#[cfg(test)]
mod tests;

use box_contract::ComponentName;
use box_tree::{ReadContent, Tree};
use boxfile_spec::Conflict as Declared;
use serde::Serialize;

use super::{ComposeError, FlatImage};
pub use accounts::AccountClash;
pub use advice::{Advice, MAX_ADVICE, advice};
use below::Below;
pub use conflict::{Conflict, MergeConflicts, Note, Side};
pub use conflicts::{Conflicts, MAX_CONFLICTS};
use join::join;
pub use policies::{PolicyUse, Unused};
use resolve::Resolver;
use shared::each_shared;
pub use system_file::SystemFile;

/// The result of merging.
#[derive(Debug)]
pub struct Merge {
    /// The root of both components; nothing where a conflict is left.
    pub root: Option<MergedRoot>,
    /// The steps taken.
    pub report: MergeReport,
}

/// A root that both components have.
#[derive(Debug)]
pub struct MergedRoot {
    /// Its entries.
    pub tree: Tree,
    /// The contents of the files that were united, which no image has.
    pub united: Vec<Vec<u8>>,
}

/// The result of a merge in numbers. Entries are counted by their names.
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
    /// The conflicts that no policy decides.
    #[serde(skip)]
    pub conflicts: Conflicts,
}

impl MergeReport {
    /// Returns the report on trees of so many entries before anything is decided.
    fn of([agent, business]: [usize; 2], declared: &[Declared]) -> Self {
        let policies = declared.iter().map(PolicyUse::unused).collect();
        Self { agent, business, equal: 0, policies, conflicts: Conflicts::default() }
    }
}

/// Merges the images, in whatever order they are given.
///
/// # Errors
/// [`ComposeError::Libc`] where the images have two C libraries; [`ComposeError::Unreadable`] where
/// a file that is to be united cannot be read.
pub fn merge(
    images: &[FlatImage],
    declared: &[Declared],
    read: &mut dyn ReadContent,
) -> Result<Merge, ComposeError> {
    let of = |component| images.iter().find(|it| it.component == component).map(|it| &it.tree);
    let (agent, business) = (of(ComponentName::Agent), of(ComponentName::Business));
    let (Some(agent), Some(business)) = (agent, business) else {
        let alone = agent.or(business);
        let entries = alone.map_or(0, |tree| Below::of(tree).entries());
        let report = MergeReport::of([entries, 0], declared);
        let tree = alone.cloned().unwrap_or_default();
        return Ok(Merge { root: Some(MergedRoot { tree, united: Vec::new() }), report });
    };
    libc::check(agent, business)?;
    let mut resolver = Resolver::new([agent, business], declared, read);
    each_shared([agent, business], |entry| resolver.resolve(entry))?;
    let Resolver { report, edits, same, united, .. } = resolver;
    if !report.conflicts.is_empty() {
        return Ok(Merge { root: None, report });
    }
    let tree = join([agent, business], &same, edits);
    Ok(Merge { root: Some(MergedRoot { tree, united }), report })
}
