//! The conflicts that no policy decides, in bounded memory.

use boxfile_spec::ConflictPolicy;

use super::advice::Advice;
use super::conflict::Conflict;
use super::patterns::Patterns;

/// The maximum number of conflicts that are described. Of the others, only the data for advice is kept.
pub const MAX_CONFLICTS: usize = 1000;

/// The conflicts that no policy decides. Two images can have hundreds of thousands of conflicts, whose paths and values
/// are much larger than both trees. Therefore only the first conflicts are kept whole, while all are counted and
/// included in the advice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// The first [`MAX_CONFLICTS`]: a directory before its entries, names in bytewise order.
    pub first: Vec<Conflict>,
    /// The number of conflicts.
    pub count: usize,
    /// The number of conflicts whose exact path no policy of the Boxfile names.
    pub undeclared: usize,
    /// The suggested declarations for conflicts that need their exact path: system files, and account files that can be
    /// united.
    pub(super) named: Vec<Advice>,
    /// The paths of the other conflicts that no policy names.
    pub(super) plain: Patterns,
}

impl Conflicts {
    /// Adds the conflict at `path`. Conflicts must be added in the order of their paths. `is_declared` is true if a
    /// policy of the Boxfile names exactly this path, `named` is the policy to suggest for exactly this path, and
    /// `whole` returns the conflict.
    pub(super) fn add(
        &mut self,
        path: &[u8],
        is_declared: bool,
        named: Option<ConflictPolicy>,
        whole: impl FnOnce() -> Conflict,
    ) {
        self.count += 1;
        if self.first.len() < MAX_CONFLICTS {
            self.first.push(whole());
        }
        if is_declared {
            return;
        }
        self.undeclared += 1;
        match named {
            Some(policy) => self.named.push(Advice::one(path, policy)),
            None => self.plain.add(path),
        }
    }

    /// Returns whether the images have no conflict.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}
