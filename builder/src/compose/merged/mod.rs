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
mod compare;
mod conflict;
mod glob;
mod join;
mod libc;
mod policies;
mod report;
mod settle;
mod shared;
mod special;
#[cfg(test)]
mod tests;
mod text;

use box_image::ComponentName;
use box_tree::Tree;
use boxfile_spec::Conflict as Declared;

use super::{ComposeError, FlatImage};
pub use accounts::AccountClash;
pub use advice::{Advice, advice, policy_word};
pub use compare::Difference;
pub use conflict::{Conflict, MergeConflicts, Note, Side};
use join::join;
use policies::Policies;
pub use policies::{PolicyUse, Unused};
pub use report::MergeReport;
pub use settle::ReadContent;
use settle::Settler;
pub use special::Special;
pub use text::describe;

/// What merging gave.
#[derive(Debug)]
pub struct Merge {
    /// The root of both components; nothing where a conflict is left.
    pub root: Option<MergedRoot>,
    /// What was done.
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

/// Merges the images, in whatever order they are given.
///
/// # Errors
/// [`ComposeError::Libc`] where the images have two C libraries; [`ComposeError::Unreadable`] where
/// a file that is to be united cannot be read.
pub fn merge(
    images: &[FlatImage],
    declared: &[Declared],
    read: &mut ReadContent<'_>,
) -> Result<Merge, ComposeError> {
    let of = |component| images.iter().find(|it| it.component == component).map(|it| &it.tree);
    let (agent, business) = (of(ComponentName::Agent), of(ComponentName::Business));
    let (Some(agent), Some(business)) = (agent, business) else {
        return Ok(alone(agent.or(business), declared));
    };
    libc::check(agent, business)?;
    let mut settler = Settler::new([agent, business], Policies::new(declared), read);
    let shared = shared::shared(agent, business);
    shared.iter().try_for_each(|entry| settler.settle(entry))?;
    let settled = settler.finish();
    let report = MergeReport::of([agent, business], shared.len(), settled.tally);
    if !report.conflicts.is_empty() {
        return Ok(Merge { root: None, report });
    }
    let tree = join([agent, business], &shared, &settled.same, settled.edits);
    Ok(Merge { root: Some(MergedRoot { tree, united: settled.united }), report })
}

/// Merges one image with nothing.
fn alone(tree: Option<&Tree>, declared: &[Declared]) -> Merge {
    let tree = tree.cloned().unwrap_or_default();
    let report = MergeReport::alone(&tree, Policies::new(declared).finish());
    Merge { root: Some(MergedRoot { tree, united: Vec::new() }), report }
}
