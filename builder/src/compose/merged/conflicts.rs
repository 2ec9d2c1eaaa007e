//! All conflicts that no policy decides, within bounds.

use boxfile_spec::ConflictPolicy;

use super::advice::Advice;
use super::conflict::Conflict;
use super::patterns::Patterns;

/// The most conflicts that are described; of all others, only what advice needs is kept.
pub const MAX_CONFLICTS: usize = 1000;

/// The conflicts that no policy decides. Two images can have hundreds of thousands, whose paths and values are many
/// times as large as both trees: the first are kept as they are, and all are counted and advised on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// The first [`MAX_CONFLICTS`]: a directory before what is in it, names in bytewise order.
    pub first: Vec<Conflict>,
    /// How many there are.
    pub count: usize,
    /// How many of them the Boxfile has no policy for by their very path.
    pub undeclared: usize,
    /// Declarations for those that are best decided by their own name: a file that describes a whole system, or two
    /// that can be united.
    pub(super) named: Vec<Advice>,
    /// The others that are not declared.
    pub(super) plain: Patterns,
}

impl Conflicts {
    /// Adds the conflict at a path, which follows those that were added. `named` is the policy to advise for this path
    /// alone, and `whole` describes the conflict.
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
