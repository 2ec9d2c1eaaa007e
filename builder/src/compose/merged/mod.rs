//! The layout "merged": both images share one root.
//!
//! Each image is flattened first, so that a whiteout of one image never hides a file of the other. Then the two trees
//! are merged path by path:
//!
//! - An entry that only one image has is kept.
//! - An entry that both images have is one entry if type, mode, owner, extended attributes, and content, target or
//!   device are the same. It has the time and the origin of the agent's image, because a different time needs no
//!   decision.
//! - A directory that no layer of an image lists, and that exists only as the parent of another path, has no
//!   attributes. The attributes of the other image's directory apply.
//! - Every other difference is a conflict. If no policy of the Boxfile decides it, nothing is built.
//!
//! Hard links are kept: names that share an inode in their image share one in the merged root, except for a name that
//! the other image's entry replaces. If both images have the same entry at a path, the two inodes become one, and the
//! further names of both refer to it.
//!
//! The result depends only on the two trees and the policies.

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
    /// The root of both components. `None` if a conflict is undecided.
    pub root: Option<MergedRoot>,
    /// The statistics and the conflicts.
    pub report: MergeReport,
}

/// A root that both components share.
#[derive(Debug)]
pub struct MergedRoot {
    /// The root's entries.
    pub tree: Tree,
    /// The contents of the united files, which no image has.
    pub united: Vec<Vec<u8>>,
}

/// The statistics of a merge. A file with two names is counted as two entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeReport {
    /// The entries that only the agent's image has.
    pub agent: usize,
    /// The entries that only the business image has.
    pub business: usize,
    /// The entries that are the same in both images.
    pub equal: usize,
    /// The declared policies in their order, and the number of conflicts that each decided.
    pub policies: Vec<PolicyUse>,
    /// The conflicts that no policy decides.
    #[serde(skip)]
    pub conflicts: Conflicts,
}

impl MergeReport {
    /// Returns the report before any decision, for trees with these numbers of entries.
    fn of([agent, business]: [usize; 2], declared: &[Declared]) -> Self {
        let policies = declared.iter().map(PolicyUse::unused).collect();
        Self { agent, business, equal: 0, policies, conflicts: Conflicts::default() }
    }
}

/// Merges the images. The order of `images` has no effect.
///
/// # Errors
/// [`ComposeError::Libc`] if the images have two C libraries; [`ComposeError::Unreadable`] if a file that is to be
/// united cannot be read.
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
