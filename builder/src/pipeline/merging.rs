//! The layout `merged` in the pipeline.

use box_image::{ComponentName, Layout};
use box_tree::{Content, ReadContent, Tree};

use super::resolved::Resolved;
use super::root::{Flattened, unfit};
use crate::BuildError;
use crate::compose::merged::{MergeConflicts, MergedRoot};
use crate::compose::{self, Merge};
use crate::pack::ContentMap;

/// A file of accounts with more bytes is none.
const ACCOUNTS_MAX: u64 = 4 << 20;

/// Merges the images where the layout asks for it.
pub(super) fn merge(
    resolved: &Resolved<'_>,
    flat: &Flattened,
) -> Result<Option<Merge>, BuildError> {
    let boxfile = resolved.request.boxfile;
    if boxfile.layout == Layout::Split {
        return Ok(None);
    }
    let mut packs = flat.contents.reader(resolved.store);
    let mut read = |content: Content| packs.read(content, ACCOUNTS_MAX);
    let merge = compose::merge(&flat.images, &boxfile.conflicts, &mut read);
    merge.map(Some).map_err(|source| unfit(boxfile, source))
}

/// Returns the merged root, and puts the united files into the store.
///
/// # Errors
/// [`BuildError::Conflicts`] where a conflict is left.
pub(super) fn accept(
    Merge { root, report }: Merge,
    resolved: &Resolved<'_>,
    contents: &mut ContentMap,
) -> Result<Tree, BuildError> {
    let Some(MergedRoot { tree, united }) = root else {
        let spans = ComponentName::ALL.map(|it| resolved.request.boxfile.root_span(it));
        let unmerged =
            MergeConflicts { conflicts: report.conflicts, origins: resolved.origins(), spans };
        return Err(BuildError::Conflicts(Box::new(unmerged)));
    };
    for file in united {
        contents.add(resolved.store.put(&file)?, &[(Content::of(&file), 0)]);
    }
    Ok(tree)
}
